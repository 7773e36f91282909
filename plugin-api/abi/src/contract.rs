//! The contract's version: one number behind one C symbol, readable without trusting any other layout.
//!
//! Must not know what is in any version.

/// The version a plugin built with this crate speaks.
///
/// When to raise it: when any type in the current version's module would have to change (a field, a method, an argument, an
/// order, a meaning). Then a module `v2` is added, this becomes 2, and hosts keep reading 1. Not for new JSON fields with defaults,
/// new method names, interface numbers or error kinds. Until encoders, dual encoders, generators and LoRA all have real
/// implementers the contract is 0.x in spirit: version 1 may still change with the workspace, and plugins are rebuilt.
pub const CONTRACT_VERSION: u32 = 1;

/// The plain C symbol that gives the version: [`ContractFn`].
pub const CONTRACT_SYMBOL: &str = "focus_plugin_contract";

/// Type of the symbol. Takes nothing, touches nothing, returns the version.
pub type ContractFn = unsafe extern "C" fn() -> u32;

/// The versions that this crate can load, oldest first.
pub const SUPPORTED: &[u32] = &[1];
