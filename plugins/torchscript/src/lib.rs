//! torchscript: any image encoder exported from PyTorch as TorchScript, run by libtorch on the CPU.
//!
//! The weights folder has two files: `encoder.pt`, what `torch.jit.trace` or `torch.jit.script` saved, and `encoder.toml`, how pictures
//! are prepared and which of the model's values is the embedding ([`card`]). docs/torchscript.md has the recipe.
//!
//! libtorch lives in this dylib and its worker process alone. A TorchScript file is a program: its operators run with the worker's
//! rights, which are to read the weights folder and to compute.
//!
//! Rooms, in the order data flows: [`card`] the TOML; [`pool`] one vector out of many; [`encoder`] the plugin.

#![forbid(unsafe_code)]

pub mod card;
pub mod encoder;
pub mod pool;

focus_plugin_sdk::export_plugin! { name: "torchscript", version: env!("CARGO_PKG_VERSION"), license: "MIT OR Apache-2.0" }
focus_plugin_sdk::register_model! { describe: card::descriptor, open: encoder::open }
