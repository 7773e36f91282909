//! Weights on this machine: getting them, and finding those fetched before. Opens no checkpoint: what is in a file is the plugin's
//! business.

pub mod fetch;
