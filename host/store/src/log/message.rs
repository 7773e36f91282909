//! Arrow IPC messages to and from a frame's payload. Payloads that pass their checksum may still be hostile: sizes inside
//! are checked against what is there before Arrow sees them.

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::{
    MessageHeader,
    reader::read_record_batch,
    root_as_message,
    writer::{
        DictionaryTracker, IpcDataGenerator, IpcWriteContext, IpcWriteOptions, write_message,
    },
};
use arrow_schema::{ArrowError, SchemaRef};
use std::{
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// The schema as an encapsulated IPC message.
pub(crate) fn schema_bytes(schema: &SchemaRef) -> Vec<u8> {
    let options = IpcWriteOptions::default();
    let mut dictionaries = DictionaryTracker::new(true);
    let encoded = IpcDataGenerator {}.schema_to_bytes_with_dictionary_tracker(
        schema,
        &mut dictionaries,
        &options,
    );
    let mut bytes = Vec::new();
    write_message(&mut bytes, encoded, &options).expect("memory takes it");
    bytes
}

/// One batch as an encapsulated IPC message.
pub(crate) fn encode(batch: &RecordBatch) -> std::result::Result<Vec<u8>, ArrowError> {
    let options = IpcWriteOptions::default();
    let mut dictionaries = DictionaryTracker::new(true);
    let (_, encoded) = IpcDataGenerator {}.encode(
        batch,
        &mut dictionaries,
        &options,
        &mut IpcWriteContext::default(),
    )?;
    let mut bytes = Vec::with_capacity(encoded.ipc_message.len() + encoded.arrow_data.len() + 64);
    write_message(&mut bytes, encoded, &options)?;
    Ok(bytes)
}

/// The batch in a payload; what is wrong with it otherwise.
pub(crate) fn decode(
    payload: Vec<u8>,
    schema: &SchemaRef,
) -> std::result::Result<RecordBatch, String> {
    // Arrow checks the message's shape and each array, but asserts on some out-of-range buffers.
    catch_unwind(AssertUnwindSafe(|| decode_message(payload, schema)))
        .unwrap_or_else(|_| Err("Arrow's decoder gave up".into()))
}

fn decode_message(
    payload: Vec<u8>,
    schema: &SchemaRef,
) -> std::result::Result<RecordBatch, String> {
    let [a, b, c, d, e, f, g, h, ..] = payload[..] else {
        return Err("its message is cut short".into());
    };
    let length = u32::from_le_bytes([e, f, g, h]) as usize;
    if [a, b, c, d] != [0xff; 4] || length > payload.len() - 8 {
        return Err("it does not begin as an Arrow message does".into());
    }
    let buffer = Buffer::from_vec(payload);
    let message = root_as_message(&buffer[8..8 + length]).map_err(|e| e.to_string())?;
    let body = buffer.slice(8 + length);
    if message.header_type() != MessageHeader::RecordBatch
        || usize::try_from(message.bodyLength()) != Ok(body.len())
    {
        return Err("its message is no record batch of its size".into());
    }
    let batch = message
        .header_as_record_batch()
        .ok_or("its message holds no record batch")?;
    if batch.compression().is_some() {
        return Err("its message is compressed".into());
    }
    read_record_batch(
        &body,
        batch,
        SchemaRef::clone(schema),
        &HashMap::new(),
        None,
        &message.version(),
    )
    .map_err(|e| e.to_string())
}
