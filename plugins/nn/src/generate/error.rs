//! Errors of the tensor library and of adapters as errors of a model.

use crate::lora::LoraError;
use focus_plugin_sdk::Error;

/// A failed computation: out of memory where it says so.
#[expect(clippy::needless_pass_by_value, reason = "used with map_err")]
pub fn compute(error: candle_core::Error) -> Error {
    let text = error.to_string();
    let lower = text.to_lowercase();
    if lower.contains("out of memory") || lower.contains("out_of_memory") {
        Error::out_of_memory(format!("The device is out of memory: {text}"))
            .with_hint("Ask for fewer groups in one call, or a smaller picture")
    } else {
        Error::internal(format!("The model could not be computed: {text}"))
    }
}

/// An adapter that does not fit, or is not there.
#[expect(clippy::needless_pass_by_value, reason = "used with map_err")]
pub fn lora(error: LoraError) -> Error {
    let crossed = match &error {
        LoraError::NameTaken(_) | LoraError::NoSuchAdapter { .. } => Error::invalid_request(&error),
        LoraError::Compute(_) => Error::internal(&error),
        _ => Error::weights(&error),
    };
    match error.hint() {
        Some(hint) => crossed.with_hint(hint),
        None => crossed,
    }
}
