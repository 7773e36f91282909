//! An open model behind the barrier: requests in, replies out. Must not know how it was registered.

use crate::barrier::guard;
use crate::{EncodeReply, EncodeRequest, Error, ErrorKind, Host, ImageBatch, Model};
use arrow_array::{Array as _, FixedSizeBinaryArray, FixedSizeListArray, Float32Array};
use arrow_schema::{DataType, Field};
use focus_plugin_abi::v1::export::ServedModel;
use focus_plugin_abi::v1::{Array, Interface, Message, PluginError};
use std::sync::Arc;

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
        let model = self.model.as_mut().expect("only `drop` takes the model");
        match (interface, method) {
            (Interface::IMAGE_ENCODER, "encode") => {
                let encoder = model
                    .image_encoder()
                    .ok_or_else(|| Error::unsupported("Model offers no image encoder"))?;
                encode(encoder, message, &self.host)
            }
            _ => Err(Error::unsupported(format!(
                "Unknown method: expected `encode` of interface 1, found `{method}` of interface {}",
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

fn encode(
    encoder: &mut dyn crate::ImageEncoder,
    message: Message,
    host: &Host,
) -> Result<Message, Error> {
    let (header, arrays) = message.into_parts();
    let request: EncodeRequest = serde_json::from_str(&header).map_err(|error| {
        Error::invalid_request(format!("Header of `encode` cannot be read: {error}"))
    })?;
    let count = arrays.len();
    let Ok([pixels]) = <[Array; 1]>::try_from(arrays) else {
        return Err(Error::invalid_request(format!(
            "Wrong number of arrays: expected 1, found {count}"
        )));
    };
    let pixels = pixels.import()?;
    let size = u64::from(request.width) * u64::from(request.height) * 3;
    let wanted = i32::try_from(size).map(DataType::FixedSizeBinary);
    let binary = pixels
        .as_any()
        .downcast_ref::<FixedSizeBinaryArray>()
        .filter(|a| wanted.as_ref() == Ok(a.data_type()));
    let Some(binary) = binary.filter(|a| a.len() == request.rows as usize && a.null_count() == 0)
    else {
        return Err(Error::invalid_request(format!(
            "Wrong pixel array: expected {} rows of FixedSizeBinary({size}) without nulls, found {} rows of {}",
            request.rows,
            pixels.len(),
            pixels.data_type()
        )));
    };
    let bytes = binary.value_data();
    let batch = ImageBatch::new(
        bytes,
        request.width as usize,
        request.height as usize,
        request.used as usize,
    )?;
    let embeddings = encoder.encode(&batch, host)?;
    let (dim, rows) = (embeddings.dim(), embeddings.rows());
    let mut values = embeddings.into_values();
    // The contract wants a row for each of the request; those of the padding are ignored. Any other count goes out as it is and is
    // for the host to judge.
    let rows = if rows == batch.used() {
        values.resize(batch.rows() * dim, 0.0);
        batch.rows()
    } else {
        rows
    };
    let length = i32::try_from(dim)
        .map_err(|_| Error::internal(format!("Embedding too long: {dim} values")))?;
    let item = Arc::new(Field::new("item", DataType::Float32, false));
    let list =
        FixedSizeListArray::try_new(item, length, Arc::new(Float32Array::from(values)), None)
            .map_err(Error::internal)?;
    let header = serde_json::to_string(&EncodeReply {
        rows: rows as u32,
        dim: dim as u32,
    })
    .map_err(Error::internal)?;
    Ok(Message::new(header, vec![Array::export(&list)?]))
}
