//! A loaded plugin and its open model: the one place that calls through the contract. Behind the socket and behind plain calls alike.
//!
//! Must not know who asks.

use crate::failure::{failure, from_plugin};
use crate::library::{Plugin, Verified};
use crate::{reply, request};
use arrow_buffer::Buffer;
use focus_plugin_abi::v1::{HostEvents, Interface, Message, Model};
use focus_wire::{FailureKind, Method, Reply, WireError};
use std::sync::Arc;

/// Longest JSON text taken from a plugin when it describes itself or opens, bytes.
const MAX_JSON: usize = 4 << 20;

pub(crate) struct Session {
    plugin: Plugin,
    model: Option<Model>,
    events: Arc<dyn HostEvents>,
}

impl Session {
    pub(crate) fn load(library: Verified, events: Arc<dyn HostEvents>) -> Result<Self, WireError> {
        Ok(Self {
            plugin: library.load()?,
            model: None,
            events,
        })
    }

    pub(crate) fn contract(&self) -> u32 {
        self.plugin.contract()
    }

    pub(crate) fn describe(&self) -> Result<String, WireError> {
        let Plugin::V1(plugin) = &self.plugin;
        capped(plugin.describe().map_err(|e| from_plugin(&e))?)
    }

    /// Open a model. One that was open is closed first: two sets of weights may not fit.
    pub(crate) fn open(&mut self, options: &str) -> Result<String, WireError> {
        self.model = None;
        let Plugin::V1(plugin) = &self.plugin;
        let model = plugin
            .open(options, Arc::clone(&self.events))
            .map_err(|e| from_plugin(&e))?;
        let opened = capped(model.opened())?;
        self.model = Some(model);
        Ok(opened)
    }

    /// `pixels`: exactly the bytes of the request's array. The plugin reads them where they lie.
    pub(crate) fn call(
        &mut self,
        method: Method,
        header: String,
        pixels: Option<Buffer>,
    ) -> Result<Reply, WireError> {
        let Some(model) = self.model.as_mut() else {
            return Err(failure(
                FailureKind::InvalidRequest,
                "No model is open: expected `open` before a call",
            ));
        };
        let (interface, name) = crossed(method);
        let arrays = request::arrays(method, &header, pixels)?;
        let reply = model
            .call(interface, name, Message::new(header, arrays))
            .map_err(|e| from_plugin(&e))?;
        reply::read(method, reply)
    }

    /// Close the model, if one is open. The library stays.
    pub(crate) fn close(&mut self) {
        self.model = None;
    }
}

/// A method as the contract names it.
fn crossed(method: Method) -> (Interface, &'static str) {
    match method {
        Method::Encode => (Interface::IMAGE_ENCODER, "encode"),
        Method::EncodeTexts => (Interface::DUAL_ENCODER, "encode_texts"),
        Method::Generate => (Interface::GENERATOR, "generate"),
        Method::AttachAdapter => (Interface::LORA_ADAPTABLE, "attach"),
        Method::DetachAdapter => (Interface::LORA_ADAPTABLE, "detach"),
    }
}

fn capped(json: String) -> Result<String, WireError> {
    if json.len() > MAX_JSON {
        return Err(failure(
            FailureKind::BadReply,
            format!(
                "JSON of the plugin is too long: expected at most {MAX_JSON} bytes, found {}",
                json.len()
            ),
        ));
    }
    Ok(json)
}
