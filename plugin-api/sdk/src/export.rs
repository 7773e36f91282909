//! What `export_plugin!` puts behind the exported symbols. Must not know any model.

use crate::barrier::guard;
use crate::registry::models;
use crate::serve::Served;
use crate::{Error, Host, ModelDescriptor, OpenOptions, PluginDescriptor, RANDOM_WEIGHTS};
use focus_plugin_abi::v1::export::ServedModel;
use focus_plugin_abi::v1::{HostCallbacks, PluginError};

/// Name, version and licence of a plugin, as given to `export_plugin!`.
#[derive(Debug, Clone, Copy)]
pub struct PluginInfo {
    /// Short lower-case name.
    pub name: &'static str,
    /// SemVer.
    pub version: &'static str,
    /// SPDX expression.
    pub license: &'static str,
}

/// Export the plugin: the contract symbol and the root module with every model registered in this crate.
///
/// `export_plugin! { name: "handcrafted", version: env!("CARGO_PKG_VERSION"), license: env!("CARGO_PKG_LICENSE") }`
///
/// Once per library; the crate is a `cdylib`. Refuses to compile with `panic = "abort"`.
#[macro_export]
macro_rules! export_plugin {
    (name: $name:expr, version: $version:expr, license: $license:expr $(,)?) => {
        #[cfg(not(panic = "unwind"))]
        compile_error!("a focus plugin needs `panic = \"unwind\"` in its profile: a panic must not end the worker process");

        const _: () = {
            struct ThisPlugin;

            impl $crate::__private::Exports for ThisPlugin {
                fn describe() -> ::core::result::Result<::std::string::String, $crate::__private::PluginError> {
                    $crate::__private::describe($crate::__private::PluginInfo { name: $name, version: $version, license: $license })
                }
                fn open(
                    options: &str,
                    host: $crate::__private::HostCallbacks,
                ) -> ::core::result::Result<::std::boxed::Box<dyn $crate::__private::ServedModel>, $crate::__private::PluginError> {
                    $crate::__private::open(options, host)
                }
            }

            #[unsafe(export_name = "focus_plugin_contract")]
            extern "C" fn contract() -> u32 {
                $crate::__private::CONTRACT_VERSION
            }

            // `focus_plugin_abi::v1::export::ROOT_SYMBOL`
            #[unsafe(export_name = "_1as_0lib_1header_0root_bmodule_bloader")]
            static HEADER: $crate::__private::Header = $crate::__private::header::<ThisPlugin>();
        };
    };
}

/// The descriptor as JSON.
pub fn describe(info: PluginInfo) -> Result<String, PluginError> {
    let described = guard("while describing itself", || {
        let models = models()?.into_iter().map(|(card, _)| card).collect();
        let descriptor = PluginDescriptor {
            name: info.name.into(),
            version: info.version.into(),
            license: info.license.into(),
            models,
        };
        serde_json::to_string(&descriptor).map_err(Error::internal)
    });
    described.map_err(PluginError::from)
}

/// Open a registered model.
pub fn open(options: &str, callbacks: HostCallbacks) -> Result<Box<dyn ServedModel>, PluginError> {
    let opened = guard("while opening", || {
        let host = Host::new(callbacks);
        let options: OpenOptions = serde_json::from_str(options).map_err(|error| {
            Error::invalid_request(format!("Open options cannot be read: {error}"))
        })?;
        let models = models()?;
        let Some((card, registration)) = models.iter().find(|(card, _)| card.id == options.model)
        else {
            let ids: Vec<_> = models.iter().map(|(card, _)| card.id.as_str()).collect();
            return Err(
                Error::invalid_request(format!("Unknown model `{}`", options.model))
                    .with_hint(format!("Models of this plugin: {}", ids.join(", "))),
            );
        };
        check(card, &options)?;
        let model = (registration.open)(&options, &host)?;
        Ok(Box::new(Served::new(model, host)?) as Box<dyn ServedModel>)
    });
    opened.map_err(PluginError::from)
}

fn check(card: &ModelDescriptor, options: &OpenOptions) -> Result<(), Error> {
    let kind = options.device.split(':').next().unwrap_or_default();
    if !card.devices.iter().any(|device| device == kind) {
        return Err(Error::unsupported(format!(
            "Unsupported device: expected one of {}, found `{}`",
            quoted(&card.devices),
            options.device
        ))
        .with_hint("CPU and CUDA builds of a plugin are separate files"));
    }
    if let Some(dtype) = options
        .dtype
        .as_ref()
        .filter(|dtype| !card.dtypes.contains(dtype))
    {
        return Err(Error::unsupported(format!(
            "Unsupported dtype: expected one of {}, found `{dtype}`",
            quoted(&card.dtypes)
        )));
    }
    let random = options.settings.contains_key(RANDOM_WEIGHTS);
    if !card.weight_files.is_empty() && options.weights.is_none() && !random {
        return Err(Error::weights(format!(
            "Model `{}` needs weights: expected a folder with {}, found none",
            card.id,
            quoted(&card.weight_files)
        )));
    }
    Ok(())
}

fn quoted(words: &[String]) -> String {
    words
        .iter()
        .map(|word| format!("`{word}`"))
        .collect::<Vec<_>>()
        .join(", ")
}
