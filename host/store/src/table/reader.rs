//! Parquet read with suspicion: sizes before anything is reserved, names and types before any value, a digest for each
//! column of each row group before it is handed on. It knows no rule of any table.

use super::{
    KEY_DIGEST, KEY_GROUP, KEY_ROWS, KEY_SCHEMA, KEY_VERSION, TableSpec, column::Columns,
    digest::column_digest, page_guard::check_pages,
};
use crate::{
    error::{Result, StoreError, shorten},
    limits::Limits,
};
use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef};
use parquet::{
    arrow::{
        ProjectionMask,
        arrow_reader::{
            ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
            ParquetRecordBatchReaderBuilder,
        },
    },
    file::metadata::ParquetMetaData,
};
use std::{
    collections::HashMap,
    fs::File,
    os::unix::fs::FileExt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

/// One table, opened and checked but for its values.
#[derive(Debug)]
pub(crate) struct TableReader {
    path: PathBuf,
    file: File,
    metadata: ArrowReaderMetadata,
    keys: HashMap<String, String>,
    rows: usize,
    rows_per_group: usize,
    limits: Limits,
}

// The Parquet library has panicked on damaged input in the past; here that is one more kind of damage.
fn guarded<T>(path: &Path, work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(StoreError::damaged(path, "the Parquet decoder gave up")))
}

impl TableReader {
    /// Open the table `name`, version `version`. Column checks follow with `expect`.
    pub fn open(path: &Path, name: &str, version: u32, limits: &Limits) -> Result<Self> {
        let file = File::open(path).map_err(StoreError::io("open", path))?;
        let size = file.metadata().map_err(StoreError::io("read", path))?.len();
        if size > limits.file_bytes {
            return Err(StoreError::TooLarge {
                file: path.into(),
                what: "bytes",
                limit: limits.file_bytes,
                found: size,
            });
        }
        check_footer(path, &file, size, limits)?;
        let metadata = guarded(path, || {
            ArrowReaderMetadata::load(&file, ArrowReaderOptions::default())
                .map_err(|e| StoreError::damaged(path, e))
        })?;
        let mut keys = HashMap::new();
        for pair in metadata
            .metadata()
            .file_metadata()
            .key_value_metadata()
            .into_iter()
            .flatten()
        {
            keys.insert(pair.key.clone(), pair.value.clone().unwrap_or_default());
        }
        let found = keys
            .get(KEY_SCHEMA)
            .cloned()
            .unwrap_or_else(|| "none".into());
        if found != name {
            return Err(StoreError::SchemaName {
                file: path.into(),
                expected: name.into(),
                found: shorten(&found, 80),
            });
        }
        let found = keys
            .get(KEY_VERSION)
            .cloned()
            .unwrap_or_else(|| "none".into());
        if found != version.to_string() {
            return Err(StoreError::SchemaVersion {
                file: path.into(),
                expected: version,
                found: shorten(&found, 80),
            });
        }
        let number = |key: &str| {
            let text = keys
                .get(key)
                .ok_or_else(|| StoreError::damaged(path, format!("`{key}` is missing")))?;
            text.parse::<u64>().map_err(|_| {
                StoreError::damaged(path, format!("`{key}` is no number: {}", shorten(text, 40)))
            })
        };
        let rows = number(KEY_ROWS)?;
        if rows > limits.rows {
            return Err(StoreError::TooLarge {
                file: path.into(),
                what: "rows",
                limit: limits.rows,
                found: rows,
            });
        }
        let rows_per_group = number(KEY_GROUP)?;
        if rows_per_group == 0 || rows_per_group > limits.row_group_rows {
            return Err(StoreError::damaged(
                path,
                format!("`{KEY_GROUP}` is {rows_per_group}"),
            ));
        }
        check_groups(path, metadata.metadata(), rows, rows_per_group)?;
        let (rows, rows_per_group) = (rows as usize, rows_per_group as usize);
        Ok(Self {
            path: path.into(),
            file,
            metadata,
            keys,
            rows,
            rows_per_group,
            limits: *limits,
        })
    }

    /// Columns as they are in the file.
    pub fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Rows in each row group but the last.
    pub fn rows_per_group(&self) -> usize {
        self.rows_per_group
    }

    // Missing embeddings take nothing in the file and their full width in memory.
    fn check_width(&self, columns: &[&str]) -> Result<()> {
        for field in self
            .schema()
            .fields()
            .iter()
            .filter(|f| columns.contains(&f.name().as_str()))
        {
            if let DataType::FixedSizeList(_, dim) = field.data_type() {
                let bytes =
                    u64::from(dim.unsigned_abs()) * 4 * self.rows_per_group.min(self.rows) as u64;
                if bytes > self.limits.row_group_bytes {
                    return Err(StoreError::TooLarge {
                        file: self.path.clone(),
                        what: "bytes of a row group's embeddings",
                        limit: self.limits.row_group_bytes,
                        found: bytes,
                    });
                }
            }
        }
        Ok(())
    }

    /// Each column of `spec` must be there with its type. Others may be there too: a later minor addition.
    pub fn expect(&self, spec: &SchemaRef) -> Result<()> {
        for wanted in spec.fields() {
            let Ok(found) = self.schema().field_with_name(wanted.name()) else {
                return Err(StoreError::MissingColumn {
                    file: self.path.clone(),
                    column: wanted.name().clone(),
                });
            };
            if found.data_type() != wanted.data_type() {
                return Err(StoreError::ColumnType {
                    file: self.path.clone(),
                    column: wanted.name().clone(),
                    expected: wanted.data_type().to_string(),
                    found: found.data_type().to_string(),
                });
            }
        }
        Ok(())
    }

    /// Stream the named columns, one batch for each of `groups` (all of them by default), verified.
    pub fn batches(&self, columns: &[&str], groups: Option<Vec<usize>>) -> Result<Batches> {
        self.check_width(columns)?;
        let descriptor = self.metadata.parquet_schema();
        let mask = ProjectionMask::roots(
            descriptor,
            (0..descriptor.root_schema().get_fields().len())
                .filter(|i| columns.contains(&descriptor.root_schema().get_fields()[*i].name())),
        );
        check_pages(
            &self.path,
            &self.file,
            self.metadata.metadata(),
            &self.limits,
            |i| mask.leaf_included(i),
        )?;
        let mut digests = HashMap::new();
        for name in columns {
            let key = format!("{KEY_DIGEST}{name}");
            let text = self
                .keys
                .get(&key)
                .ok_or_else(|| StoreError::damaged(&self.path, format!("`{key}` is missing")))?;
            digests.insert(
                (*name).to_owned(),
                text.split(',').map(str::to_owned).collect(),
            );
        }
        let groups =
            groups.unwrap_or_else(|| (0..self.metadata.metadata().num_row_groups()).collect());
        let file = self
            .file
            .try_clone()
            .map_err(StoreError::io("open", &self.path))?;
        let reader = guarded(&self.path, || {
            ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone())
                .with_projection(mask)
                .with_batch_size(self.rows_per_group)
                .with_row_groups(groups.clone())
                .build()
                .map_err(|e| StoreError::damaged(&self.path, e))
        })?;
        Ok(Batches {
            path: self.path.clone(),
            reader,
            groups: groups.into_iter(),
            digests,
            rows: self.rows,
            rows_per_group: self.rows_per_group,
            failed: false,
        })
    }
}

/// Batches of one table, each a whole row group with the number of its first row. Ends after the first error.
#[derive(Debug)]
pub(crate) struct Batches {
    path: PathBuf,
    reader: ParquetRecordBatchReader,
    groups: std::vec::IntoIter<usize>,
    digests: HashMap<String, Vec<String>>,
    rows: usize,
    rows_per_group: usize,
    failed: bool,
}

impl Batches {
    fn read(&mut self, group: usize) -> Result<(usize, RecordBatch)> {
        let (path, reader) = (&self.path, &mut self.reader);
        let batch = guarded(path, || match reader.next() {
            Some(batch) => batch.map_err(|e| StoreError::damaged(path, e)),
            None => Err(StoreError::damaged(path, "a row group is missing")),
        })?;
        let first = group * self.rows_per_group;
        let expected = self.rows_per_group.min(self.rows.saturating_sub(first));
        if batch.num_rows() != expected {
            let what = format!(
                "row group {group} should have {expected} rows and has {}",
                batch.num_rows()
            );
            return Err(StoreError::damaged(path, what));
        }
        for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
            let wanted = self
                .digests
                .get(field.name())
                .and_then(|all| all.get(group));
            let found = column_digest(field.name(), column).map(|d| d.to_hex().to_string());
            if wanted.is_none() || wanted != found.as_ref() {
                let what = format!(
                    "the values of column `{}` in row group {group} are not those written",
                    field.name()
                );
                return Err(StoreError::damaged(path, what));
            }
        }
        Ok((first, batch))
    }
}

impl Iterator for Batches {
    type Item = Result<(usize, RecordBatch)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let group = self.groups.next()?;
        let item = self.read(group);
        self.failed = item.is_err();
        Some(item)
    }
}

/// Read a whole table of rows. `parse` turns one batch into rows.
pub(crate) fn read_all<T>(
    reader: &TableReader,
    spec: &TableSpec,
    mut parse: impl FnMut(&Columns<'_>, &mut Vec<T>) -> Result<()>,
) -> Result<Vec<T>> {
    reader.expect(&spec.schema)?;
    let names: Vec<&str> = spec
        .schema
        .fields()
        .iter()
        .map(|f| f.name().as_str())
        .collect();
    let mut rows = Vec::new();
    for item in reader.batches(&names, None)? {
        let (base, batch) = item?;
        let columns = Columns {
            file: &reader.path,
            base,
            batch: &batch,
            string_bytes: reader.limits.string_bytes,
        };
        parse(&columns, &mut rows)?;
    }
    Ok(rows)
}

// The library reserves what the last eight bytes claim.
fn check_footer(path: &Path, file: &File, size: u64, limits: &Limits) -> Result<()> {
    let mut tail = [0; 8];
    if size < 12 {
        return Err(StoreError::damaged(
            path,
            format!("{size} bytes are too few for a Parquet file"),
        ));
    }
    file.read_exact_at(&mut tail, size - 8)
        .map_err(StoreError::io("read", path))?;
    if tail[4..] != *b"PAR1" {
        return Err(StoreError::damaged(
            path,
            "it does not end as a Parquet file does; it may have been cut short",
        ));
    }
    let footer = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
    if footer > limits.footer_bytes {
        return Err(StoreError::TooLarge {
            file: path.into(),
            what: "bytes of the footer",
            limit: limits.footer_bytes,
            found: footer,
        });
    }
    if footer + 12 > size {
        return Err(StoreError::damaged(
            path,
            "its footer is longer than the file",
        ));
    }
    Ok(())
}

fn check_groups(
    path: &Path,
    metadata: &ParquetMetaData,
    rows: u64,
    rows_per_group: u64,
) -> Result<()> {
    let expected = rows.div_ceil(rows_per_group);
    if metadata.num_row_groups() as u64 != expected {
        let what = format!(
            "{rows} rows should lie in {expected} row groups, found {}",
            metadata.num_row_groups()
        );
        return Err(StoreError::damaged(path, what));
    }
    for (number, group) in metadata.row_groups().iter().enumerate() {
        let wanted = rows_per_group.min(rows - number as u64 * rows_per_group);
        if u64::try_from(group.num_rows()) != Ok(wanted) {
            let what = format!(
                "row group {number} should have {wanted} rows, found {}",
                group.num_rows()
            );
            return Err(StoreError::damaged(path, what));
        }
    }
    Ok(())
}
