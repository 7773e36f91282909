//! The plugin's end: a trait in plain Rust types, wrapped into the root module. focus-plugin-sdk implements it.
//!
//! Must not know of model registration or panics; what is given here must never unwind (the SDK's barrier sees to that).

use super::raw::{ModelBox, PluginModule, PluginModuleRef, RawModel, RawModel_TO};
use super::{HostCallbacks, Interface, Message, PluginError};
use abi_stable::library::{CheckTypeLayout, LibHeader, RootModuleResult};
use abi_stable::prefix_type::PrefixTypeTrait;
use abi_stable::sabi_trait::TD_Opaque;
use abi_stable::std_types::{RResult, RStr, RString};

/// An open model in plain Rust. No method may unwind, and neither may `Drop`: it would end the process.
pub trait ServedModel: 'static {
    /// JSON (`message::OpenedModel`).
    fn opened(&self) -> String;
    /// Answer one request.
    fn call(
        &mut self,
        interface: Interface,
        method: &str,
        message: Message,
    ) -> Result<Message, PluginError>;
}

/// What a plugin exports, in plain Rust. No function may unwind.
pub trait Exports: 'static {
    /// JSON (`message::PluginDescriptor`).
    fn describe() -> Result<String, PluginError>;
    /// Open a model; `options` is JSON (`message::OpenOptions`).
    fn open(options: &str, host: HostCallbacks) -> Result<Box<dyn ServedModel>, PluginError>;
}

struct Served(Box<dyn ServedModel>);

impl RawModel for Served {
    fn opened(&self) -> RString {
        self.0.opened().into()
    }

    fn call(
        &mut self,
        interface: Interface,
        method: RStr<'_>,
        message: Message,
    ) -> RResult<Message, PluginError> {
        self.0.call(interface, method.as_str(), message).into()
    }
}

/// The static that a plugin exports under [`ROOT_SYMBOL`].
pub type Header = LibHeader;

/// The symbol under which `abi_stable` looks for [`Header`]; `export_plugin!` repeats it, because an attribute takes a literal.
pub const ROOT_SYMBOL: &str = "_1as_0lib_1header_0root_bmodule_bloader";

/// The header for a set of exports.
pub const fn header<E: Exports>() -> Header {
    // SAFETY: `construct` returns a `PluginModuleRef` erased by abi_stable itself, as required.
    unsafe { LibHeader::from_constructor::<PluginModuleRef>(construct::<E>, CheckTypeLayout::Yes) }
}

extern "C" fn construct<E: Exports>() -> RootModuleResult {
    abi_stable::library::__call_root_module_loader(module::<E>)
}

pub(super) fn module<E: Exports>() -> PluginModuleRef {
    PluginModule {
        describe: describe::<E>,
        open: open::<E>,
    }
    .leak_into_prefix()
}

extern "C" fn describe<E: Exports>() -> RResult<RString, PluginError> {
    E::describe().map(RString::from).into()
}

extern "C" fn open<E: Exports>(
    options: RStr<'_>,
    host: HostCallbacks,
) -> RResult<ModelBox, PluginError> {
    E::open(options.as_str(), host)
        .map(|model| RawModel_TO::from_value(Served(model), TD_Opaque))
        .into()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_symbol_is_the_one_abi_stable_looks_for() {
        assert_eq!(
            super::ROOT_SYMBOL,
            abi_stable::library::ROOT_MODULE_LOADER_NAME
        );
    }
}
