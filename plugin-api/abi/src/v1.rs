//! Contract version 1.
//!
//! A plugin exports `describe` and `open`; an open model answers `call(interface, method, message)`, where a [`Message`] is a JSON
//! header (see [`message`]) and Arrow arrays. Frozen once published: see the crate's root.
//!
//! Rooms: [`message`] (JSON), [`array`] (Arrow over the C data interface), [`error`], [`callbacks`] (what a plugin may ask of
//! the host), `raw` (the `abi_stable` types), [`export`] (the plugin's end), [`load`] (the host's end).

pub mod array;
pub mod callbacks;
pub mod error;
pub mod export;
pub mod load;
pub mod message;
mod raw;

pub use array::Array;
pub use callbacks::{HostCallbacks, HostEvents};
pub use error::{ErrorKind, PluginError};
pub use load::{LoadError, Model, Plugin};
pub use raw::{Interface, Message};
