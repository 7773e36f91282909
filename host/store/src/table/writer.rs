//! Parquet whose bytes depend on the rows alone: fixed writer name, compression and row groups; no clock, no host, and
//! batches as they come do not show.

use super::{
    KEY_DIGEST, KEY_GROUP, KEY_ROWS, KEY_SCHEMA, KEY_VERSION, TableSpec, digest::column_digest,
};
use crate::{
    atomic::AtomicFile,
    error::{Result, StoreError},
};
use arrow_array::RecordBatch;
use arrow_schema::DataType;
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, ZstdLevel},
    file::{
        metadata::KeyValue,
        properties::{EnabledStatistics, WriterProperties},
    },
    schema::types::ColumnPath,
};
use std::{io::Write, path::Path};

/// Writes one table into any sink. Each batch given is one row group: full, but for the last.
pub(crate) struct Encoder<'a, W: Write + Send> {
    file: &'a Path,
    spec: &'a TableSpec,
    writer: ArrowWriter<W>,
    digests: Vec<Vec<String>>,
    rows: usize,
    ended: bool,
}

impl<'a, W: Write + Send> Encoder<'a, W> {
    /// Start a table in `sink`. `file` is only for errors, `more` for further key-value metadata.
    pub fn new(file: &'a Path, spec: &'a TableSpec, sink: W) -> Result<Self> {
        let level = ZstdLevel::try_new(3).expect("3 is a zstd level");
        let mut properties = WriterProperties::builder()
            .set_created_by("focus-host".into())
            .set_compression(Compression::ZSTD(level))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .set_max_row_group_row_count(Some(spec.rows_per_group));
        for field in spec.schema.fields() {
            // Dictionaries of floats and hashes only cost; statistics of embeddings say nothing.
            let path = match field.data_type() {
                DataType::FixedSizeList(_, _) => {
                    let path =
                        ColumnPath::from(vec![field.name().clone(), "list".into(), "item".into()]);
                    properties = properties
                        .set_column_statistics_enabled(path.clone(), EnabledStatistics::None);
                    path
                }
                DataType::Float64 | DataType::FixedSizeBinary(_) => {
                    ColumnPath::from(field.name().as_str())
                }
                _ => continue,
            };
            properties = properties.set_column_dictionary_enabled(path, false);
        }
        let writer = ArrowWriter::try_new(sink, spec.schema.clone(), Some(properties.build()))
            .map_err(StoreError::encode(file))?;
        let digests = vec![Vec::new(); spec.schema.fields().len()];
        Ok(Self {
            file,
            spec,
            writer,
            digests,
            rows: 0,
            ended: false,
        })
    }

    /// Write the next row group.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        debug_assert!(
            !self.ended && batch.num_rows() <= self.spec.rows_per_group,
            "groups are full but for the last"
        );
        self.ended = batch.num_rows() < self.spec.rows_per_group;
        if batch.num_rows() == 0 {
            return Ok(());
        }
        for ((field, column), digests) in self
            .spec
            .schema
            .fields()
            .iter()
            .zip(batch.columns())
            .zip(&mut self.digests)
        {
            let digest = column_digest(field.name(), column)
                .expect("the store writes only types it can digest");
            digests.push(digest.to_hex().to_string());
        }
        self.rows += batch.num_rows();
        self.writer
            .write(batch)
            .and_then(|()| self.writer.flush())
            .map_err(StoreError::encode(self.file))
    }

    /// End the table and give the sink back.
    pub fn finish(mut self) -> Result<W> {
        let mut keep = |key: String, value: String| {
            self.writer
                .append_key_value_metadata(KeyValue::new(key, value));
        };
        keep(KEY_SCHEMA.into(), self.spec.name.into());
        keep(KEY_VERSION.into(), self.spec.version.to_string());
        keep(KEY_ROWS.into(), self.rows.to_string());
        keep(KEY_GROUP.into(), self.spec.rows_per_group.to_string());
        for (field, digests) in self.spec.schema.fields().iter().zip(&self.digests) {
            keep(format!("{KEY_DIGEST}{}", field.name()), digests.join(","));
        }
        self.writer
            .into_inner()
            .map_err(StoreError::encode(self.file))
    }
}

/// Write a whole table to `file`, atomically. `batch_of` makes the batch of a range of rows.
pub(crate) fn write_table(
    file: &Path,
    spec: &TableSpec,
    rows: usize,
    batch_of: impl Fn(std::ops::Range<usize>) -> RecordBatch,
) -> Result<()> {
    let mut encoder = Encoder::new(file, spec, AtomicFile::create(file)?)?;
    for start in (0..rows).step_by(spec.rows_per_group) {
        encoder.write(&batch_of(start..rows.min(start + spec.rows_per_group)))?;
    }
    encoder.finish()?.commit()
}
