//! openai: any server that speaks OpenAI's chat completions (vLLM, hosted services) as a generative model.
//!
//! The weights live in the server; this plugin sends a picture and a question and reads text and the first token's log-probabilities.
//! Reference: <https://platform.openai.com/docs/api-reference/chat>, and for token ids
//! <https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html>. How to run it: `docs/openai.md`. Licence of the plugin: MIT OR
//! Apache-2.0; the model's is its server's affair.
//!
//! What leaves this machine in a request is the picture's pixels, the prompt and the model's name; no path and no id is known here. The
//! server's host must be granted ([`focus_plugin_sdk::OpenOptions::network`]). Keys come from the environment only.
//!
//! Nothing is kept on disk: a worker may not write, and the host stores answers by content. Whatever changes an answer is in
//! `OpenedModel::facts`, so that the host's key tells servers, models and ways of asking apart.
//!
//! Rooms, in the order data flows: [`settings`] what was asked; [`address`] where to, and whether that is allowed; [`secret`] the key;
//! [`picture`] pixels to a data URI; [`body`] a request; `http` one exchange; `pace` when; [`server`] exchanges with retries; [`reply`] an
//! answer read; [`score`] its token scores; `counter` what it cost; [`fault`] what can go wrong; `open` which
//! model and which scores; `call` questions in flight; [`generator`] the plugin.

#![forbid(unsafe_code)]

pub mod address;
pub mod body;
mod call;
pub mod card;
mod counter;
pub mod fault;
pub mod generator;
mod http;
mod open;
mod pace;
pub mod picture;
pub mod reply;
pub mod score;
pub mod secret;
pub mod server;
pub mod settings;

focus_plugin_sdk::register_model! { describe: card::descriptor, open: generator::open }
focus_plugin_sdk::export_plugin! { name: "openai", version: env!("CARGO_PKG_VERSION"), license: "MIT OR Apache-2.0" }
