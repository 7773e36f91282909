//! focus-plugin-abi: the contract between the host and a model plugin.
//!
//! Owns every type that crosses the border and the only mentions of `abi_stable` in the project, so that it could be replaced
//! here alone. Must not know of processes, sockets, files other than the dylib, or of any model.
//!
//! Rooms:
//! * [`contract`]: the number that is read before anything else, and when it is raised.
//! * [`v1`]: version 1, a frozen module. **A published version's types never change**: `abi_stable` compares layouts and
//!   refuses a plugin even for an added method that has a default. What may grow are the JSON headers of [`v1::message`]
//!   (new fields with defaults), the methods and interface numbers that [`v1::Model::call`] is asked for, and the error kinds.
//!   Everything else is a `v2` beside this one, and the host keeps an adapter for each.
//!
//! Plugin authors use focus-plugin-sdk, not this crate.

pub mod contract;
pub mod v1;

/// What the expansion of `export_plugin!` needs; not for people.
#[doc(hidden)]
pub mod __private {
    pub use crate::v1::export::{Header, header};
}
