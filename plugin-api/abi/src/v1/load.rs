//! The host's end: a loaded plugin and its open models in plain Rust types.
//!
//! Must not check digests, sidecars or contract versions: focus-worker does, before it comes here.

use super::raw::{ModelBox, PluginModuleRef};
use super::{HostCallbacks, HostEvents, Interface, Message, PluginError};
use abi_stable::library::{LibraryError, RootModuleError, lib_header_from_path};
use std::path::Path;
use std::sync::Arc;

/// Longest text that a [`LoadError`] carries, in bytes; abi_stable's own run to 34 kB.
pub const MAX_REASON: usize = 1200;

/// A dylib that says it speaks version 1 could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The root module is not there, or is from another abi_stable.
    #[error("No root module of contract 1 in the library: {0}")]
    NoRootModule(String),
    /// The types differ.
    #[error("Types of the library differ from contract 1: {0}")]
    Layout(String),
    /// The module could not be set up.
    #[error("Root module of the library failed to start: {0}")]
    Start(String),
}

impl LoadError {
    /// Advice.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoRootModule(_) => Some("Export it with focus-plugin-sdk's `export_plugin!`".to_owned()),
            Self::Layout(_) => Some("Rebuild the plugin against the focus-plugin-abi of this host, with Rust and features as documented".to_owned()),
            Self::Start(_) => None,
        }
    }
}

/// A loaded plugin. The library is never unloaded: statics, threads and vtables of it may live on anywhere.
#[derive(Clone, Copy)]
pub struct Plugin {
    module: PluginModuleRef,
}

impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("v1::Plugin").finish_non_exhaustive()
    }
}

impl Plugin {
    /// Load the root module of the dylib at `path`; if the dylib is loaded already under that path, that one is used.
    ///
    /// # Safety
    /// `path` is a native library whose code may run in this process, and whose contract symbol said 1.
    pub unsafe fn load(path: &Path) -> Result<Self, LoadError> {
        // Not `RootModule::load_from*`: those cache the first module they ever loaded and return it for every other path.
        let header = lib_header_from_path(path).map_err(shorten)?;
        let module = header
            .init_root_module::<PluginModuleRef>()
            .map_err(shorten)?;
        Ok(Self { module })
    }

    /// JSON (`message::PluginDescriptor`).
    pub fn describe(&self) -> Result<String, PluginError> {
        self.module.describe()().into_result().map(Into::into)
    }

    /// Open a model; `options` is JSON (`message::OpenOptions`).
    pub fn open(&self, options: &str, events: Arc<dyn HostEvents>) -> Result<Model, PluginError> {
        let model = self.module.open()(options.into(), HostCallbacks::new(events)).into_result()?;
        Ok(Model(model))
    }
}

/// An open model; stays on the thread that opened it.
pub struct Model(ModelBox);

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("v1::Model").finish_non_exhaustive()
    }
}

impl Model {
    /// JSON (`message::OpenedModel`).
    pub fn opened(&self) -> String {
        self.0.opened().into()
    }

    /// Ask for something.
    pub fn call(
        &mut self,
        interface: Interface,
        method: &str,
        message: Message,
    ) -> Result<Message, PluginError> {
        self.0.call(interface, method.into(), message).into_result()
    }
}

fn shorten(error: LibraryError) -> LoadError {
    match error {
        LibraryError::OpenError { err, .. } | LibraryError::GetSymbolError { err, .. } => {
            LoadError::NoRootModule(cap(&err.to_string()))
        }
        LibraryError::InvalidAbiHeader(found) => LoadError::NoRootModule(format!(
            "expected abi_stable {}, found {}.{}",
            "0.11", found.abi_major, found.abi_minor
        )),
        LibraryError::AbiInstability(report) => LoadError::Layout(differences(&report.to_string())),
        LibraryError::IncompatibleVersionNumber {
            expected_version,
            actual_version,
            ..
        } => LoadError::Layout(format!(
            "expected version {expected_version}, found {actual_version}"
        )),
        LibraryError::RootModule {
            err: RootModuleError::Unwound,
            ..
        } => LoadError::Start("it panicked".to_owned()),
        other => LoadError::Start(cap(&other.to_string())),
    }
}

/// What differs, one clause each, out of abi_stable's report; the rest of its 5 to 34 kB prints both types in full at every level.
fn differences(report: &str) -> String {
    const SHOWN: usize = 4;
    let mut place = String::new();
    let mut found: Vec<String> = Vec::new();
    let mut lines = report.lines().map(str::trim).peekable();
    let is_title = |line: &str| {
        ["Expected:", "Found:", "Error:", "Layout of"]
            .iter()
            .any(|title| line.starts_with(title))
            || line.ends_with("error(s)inside:")
    };
    while let Some(line) = lines.next() {
        if line.contains("error(s)inside") {
            place.clear();
        } else if let Some(name) = line.strip_prefix("type:").filter(|_| place.is_empty()) {
            name.clone_into(&mut place);
        } else if let Some(what) = line.strip_prefix("Error:") {
            let mut side = |title: &str| {
                if lines.next_if_eq(&title).is_none() {
                    return "nothing".to_owned();
                }
                let block = std::iter::from_fn(|| lines.next_if(|line| !is_title(line)));
                cap_to(&block.collect::<Vec<_>>().join(" "), 80)
            };
            let (expected, got) = (side("Expected:"), side("Found:"));
            found.push(format!(
                "{what} in `{place}`: expected {expected}, found {got}"
            ));
        }
    }
    if found.is_empty() {
        return cap(report);
    }
    let rest = found.len().saturating_sub(SHOWN);
    found.truncate(SHOWN);
    let shown = found.join("; ");
    cap(&if rest == 0 {
        shown
    } else {
        format!("{shown}; and {rest} more")
    })
}

fn cap(text: &str) -> String {
    cap_to(text, MAX_REASON)
}

/// One line of at most `most` bytes.
fn cap_to(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line[..line.floor_char_boundary(most)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi_stable::StableAbi;
    use abi_stable::abi_stability::abi_checking::check_layout_compatibility;

    /// The module as some other version might have it: `open` takes one argument less, and there is a third function.
    #[expect(
        dead_code,
        clippy::pedantic,
        reason = "generated, and only its layout is looked at"
    )]
    mod other {
        use crate::v1::PluginError;
        use abi_stable::StableAbi;
        use abi_stable::std_types::{RResult, RStr, RString};

        #[repr(C)]
        #[derive(StableAbi)]
        #[sabi(kind(Prefix(prefix_ref = PluginModuleRef)))]
        pub struct PluginModule {
            pub describe: extern "C" fn() -> RResult<RString, PluginError>,
            pub open: extern "C" fn(options: RStr<'_>) -> RResult<RString, PluginError>,
            #[sabi(last_prefix_field)]
            pub close: extern "C" fn(),
        }
    }

    #[test]
    fn a_layout_report_is_cut_to_what_differs() {
        let report = check_layout_compatibility(
            <PluginModuleRef as StableAbi>::LAYOUT,
            <other::PluginModuleRef as StableAbi>::LAYOUT,
        )
        .expect_err("they differ")
        .to_string();
        let short = differences(&report);
        assert!(
            short.len() <= MAX_REASON && short.len() < report.len() / 4,
            "{short}"
        );
        assert!(
            short.contains("in `PluginModule`: expected 2, found 3"),
            "{short}"
        );
        assert!(
            short.contains("too many fields in `PluginModule`: expected 3, found 2; "),
            "{short}"
        );
        assert!(!short.contains('\n'), "{short}");
    }

    #[test]
    fn a_report_of_another_shape_is_cut_anyhow() {
        assert_eq!(differences(&"é\n".repeat(5000)).len(), MAX_REASON);
        assert_eq!(
            differences("Error:x"),
            "x in ``: expected nothing, found nothing"
        );
    }
}
