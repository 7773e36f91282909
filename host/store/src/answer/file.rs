//! Answers at rest: one Parquet file sorted by sample, streamed by row group, each verified before it is handed on.

use super::{
    batch::AnswerBatch,
    row::{Outcome, answer_schema},
};
use crate::{
    error::{Result, StoreError},
    limits::Limits,
    table::{Columns, TableReader, TableSpec, embedding_group},
};
use arrow_schema::DataType;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

const NAME: &str = "answers";
/// Version of the answers table.
const ANSWERS_VERSION: u32 = 1;

pub(super) fn spec(dim: usize) -> TableSpec {
    TableSpec {
        name: NAME,
        version: ANSWERS_VERSION,
        schema: answer_schema(dim),
        rows_per_group: embedding_group(dim),
    }
}

/// A finished answer file, open.
#[derive(Debug)]
pub struct AnswerFile {
    path: PathBuf,
    reader: TableReader,
    dim: usize,
    limits: Limits,
}

impl AnswerFile {
    /// Open and check everything but the values.
    pub fn open(path: &Path, limits: &Limits) -> Result<Self> {
        let reader = TableReader::open(path, NAME, ANSWERS_VERSION, limits)?;
        let dim = match reader
            .schema()
            .field_with_name("embedding")
            .map(|f| f.data_type().clone())
        {
            Ok(DataType::FixedSizeList(_, dim)) => usize::try_from(dim).unwrap_or_default(),
            Ok(other) => {
                return Err(StoreError::ColumnType {
                    file: path.into(),
                    column: "embedding".into(),
                    expected: "FixedSizeList".into(),
                    found: other.to_string(),
                });
            }
            Err(_) => {
                return Err(StoreError::MissingColumn {
                    file: path.into(),
                    column: "embedding".into(),
                });
            }
        };
        if dim == 0 || dim > limits.dim {
            let (limit, found) = (limits.dim as u64, dim as u64);
            return Err(StoreError::TooLarge {
                file: path.into(),
                what: "values of an embedding",
                limit,
                found,
            });
        }
        reader.expect(&answer_schema(dim))?;
        Ok(Self {
            path: path.into(),
            reader,
            dim,
            limits: *limits,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Values of an embedding.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Number of answers.
    pub fn rows(&self) -> usize {
        self.reader.rows()
    }

    /// All answers in order of sample, one row group (16 MiB of embeddings) in memory at a time.
    pub fn batches(&self) -> Result<impl Iterator<Item = Result<AnswerBatch>>> {
        let schema = answer_schema(self.dim);
        let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        let batches = self.reader.batches(&names, None)?;
        let (path, dim, string_bytes) = (self.path.clone(), self.dim, self.limits.string_bytes);
        let mut last = None;
        Ok(batches.map(move |item| {
            let (base, batch) = item?;
            let batch = AnswerBatch::checked(&path, base, batch, dim, string_bytes)?;
            for (i, sample) in batch.samples().iter().enumerate() {
                if last.is_some_and(|last| last >= *sample) {
                    let rule = "answers must be sorted by `sample`, each once";
                    return Err(StoreError::rule(&path, base + i, rule, sample));
                }
                last = Some(*sample);
            }
            Ok(batch)
        }))
    }

    /// How many answers had each outcome, without reading an embedding.
    pub fn outcomes(&self) -> Result<BTreeMap<Outcome, u64>> {
        let mut counts = BTreeMap::new();
        for item in self.reader.batches(&["outcome"], None)? {
            let (base, batch) = item?;
            let columns = Columns {
                file: &self.path,
                base,
                batch: &batch,
                string_bytes: self.limits.string_bytes,
            };
            for (i, word) in columns.texts("outcome")?.into_iter().enumerate() {
                let outcome = word.and_then(Outcome::parse).ok_or_else(|| {
                    StoreError::rule(&self.path, base + i, Outcome::RULE, format!("{word:?}"))
                })?;
                *counts.entry(outcome).or_default() += 1;
            }
        }
        Ok(counts)
    }
}
