//! An open model behind the barrier: requests in, replies out, one file an interface. Must not know how it was registered.

mod adapters;
mod generate;
mod images;
mod texts;

use crate::barrier::guard;
use crate::{Error, ErrorKind, Host, Model};
use focus_plugin_abi::v1::export::ServedModel;
use focus_plugin_abi::v1::{Array, Interface, Message, PluginError};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) struct Served {
    /// `None` once it was dropped.
    model: Option<Box<dyn Model>>,
    opened: String,
    host: Host,
    poisoned: bool,
}

impl Served {
    /// Under the caller's barrier: asks the model what it is.
    pub(crate) fn new(model: Box<dyn Model>, host: Host) -> Result<Self, Error> {
        let opened = serde_json::to_string(&model.opened()).map_err(Error::internal)?;
        Ok(Self {
            model: Some(model),
            opened,
            host,
            poisoned: false,
        })
    }

    fn answer(
        &mut self,
        interface: Interface,
        method: &str,
        message: Message,
    ) -> Result<Message, Error> {
        let host = &self.host;
        let model = self.model.as_mut().expect("only `drop` takes the model");
        let lacks = |what: &str| Error::unsupported(format!("Model offers no {what}"));
        match (interface, method) {
            (Interface::IMAGE_ENCODER, "encode") => {
                let encoder = model
                    .image_encoder()
                    .ok_or_else(|| lacks("image encoder"))?;
                images::encode(encoder, message, host)
            }
            (Interface::DUAL_ENCODER, "encode_texts") => {
                let encoder = model.dual_encoder().ok_or_else(|| lacks("dual encoder"))?;
                texts::encode(encoder, message, host)
            }
            (Interface::GENERATOR, "generate") => {
                let generator = model.generator().ok_or_else(|| lacks("generator"))?;
                generate::generate(generator, message, host)
            }
            (Interface::LORA_ADAPTABLE, "attach" | "detach") => {
                let adaptable = model
                    .lora_adaptable()
                    .ok_or_else(|| lacks("low-rank adapters"))?;
                if method == "attach" {
                    adapters::attach(adaptable, message, host)
                } else {
                    adapters::detach(adaptable, message, host)
                }
            }
            _ => Err(Error::unsupported(format!(
                "Unknown method `{method}` of interface {}: expected `encode` of 1, `encode_texts` of 2, `generate` of 3, `attach` or `detach` of 4",
                interface.0
            ))),
        }
    }
}

impl ServedModel for Served {
    fn opened(&self) -> String {
        self.opened.clone()
    }

    fn call(
        &mut self,
        interface: Interface,
        method: &str,
        message: Message,
    ) -> Result<Message, PluginError> {
        if self.poisoned {
            return Err(
                Error::new(ErrorKind::PANIC, "Model panicked in an earlier call")
                    .with_hint("Retire this process")
                    .into(),
            );
        }
        // Set before and taken back after: also right if something below should fail in a way nobody thought of.
        self.poisoned = true;
        let outcome = guard("while answering", || {
            self.answer(interface, method, message)
        });
        self.poisoned = matches!(&outcome, Err(error) if error.kind() == ErrorKind::PANIC);
        outcome.map_err(PluginError::from)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let model = self.model.take();
        if let Err(error) = guard("while being closed", || {
            drop(model);
            Ok(())
        }) {
            self.host.warn(error);
        }
    }
}

/// The header of a request and its arrays, `N` of them.
fn take<T: DeserializeOwned, const N: usize>(
    method: &str,
    message: Message,
) -> Result<(T, [Array; N]), Error> {
    let (header, arrays) = message.into_parts();
    let request = serde_json::from_str(&header).map_err(|error| {
        Error::invalid_request(format!("Header of `{method}` cannot be read: {error}"))
    })?;
    let count = arrays.len();
    let arrays = <[Array; N]>::try_from(arrays).map_err(|_| {
        Error::invalid_request(format!(
            "Wrong number of arrays: expected {N}, found {count}"
        ))
    })?;
    Ok((request, arrays))
}

/// A reply of a header alone.
fn say(reply: &impl Serialize) -> Result<Message, Error> {
    let header = serde_json::to_string(reply).map_err(Error::internal)?;
    Ok(Message::new(header, Vec::new()))
}
