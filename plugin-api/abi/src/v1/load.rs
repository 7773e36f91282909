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
        let module = header.init_root_module::<PluginModuleRef>().map_err(shorten)?;
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
    pub fn call(&mut self, interface: Interface, method: &str, message: Message) -> Result<Message, PluginError> {
        self.0.call(interface, method.into(), message).into_result()
    }
}

fn shorten(error: LibraryError) -> LoadError {
    match error {
        LibraryError::OpenError { err, .. } | LibraryError::GetSymbolError { err, .. } => LoadError::NoRootModule(cap(&err.to_string())),
        LibraryError::InvalidAbiHeader(found) => LoadError::NoRootModule(format!(
            "expected abi_stable {}, found {}.{}",
            "0.11", found.abi_major, found.abi_minor
        )),
        LibraryError::AbiInstability(report) => LoadError::Layout(differences(&report.to_string())),
        LibraryError::IncompatibleVersionNumber { expected_version, actual_version, .. } => {
            LoadError::Layout(format!("expected version {expected_version}, found {actual_version}"))
        }
        LibraryError::RootModule { err: RootModuleError::Unwound, .. } => LoadError::Start("it panicked".to_owned()),
        other => LoadError::Start(cap(&other.to_string())),
    }
}

/// The lines of abi_stable's report that say what differs; the rest of its 20 kB prints both types in full, at every level.
fn differences(report: &str) -> String {
    cap(report)
}

fn cap(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut end = line.len().min(MAX_REASON);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    line[..end].to_owned()
}
