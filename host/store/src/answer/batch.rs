//! A batch of answers in Arrow columns, read by row without copying embeddings. Checked once, when made.

use super::row::{AnswerRow, Outcome, RULE_FINITE, answer_schema, check};
use crate::{
    error::{Result, StoreError},
    hash::ContentHash,
    table::Columns,
};
use arrow_array::{Array, FixedSizeListArray, Float32Array, RecordBatch, StringArray, UInt32Array};
use std::path::Path;

/// Some answers of one model, each keeping the rules of an answer.
#[derive(Debug, Clone)]
pub struct AnswerBatch {
    batch: RecordBatch,
    dim: usize,
}

impl AnswerBatch {
    // `base` is the number of the batch's first row in `file`.
    pub(crate) fn checked(
        file: &Path,
        base: usize,
        batch: RecordBatch,
        dim: usize,
        string_bytes: usize,
    ) -> Result<Self> {
        let schema = answer_schema(dim);
        for field in schema.fields() {
            let column = batch.column_by_name(field.name());
            if column.is_some_and(|c| {
                c.data_type() == field.data_type() && (field.is_nullable() || c.null_count() == 0)
            }) {
                continue;
            }
            let found = column.map_or("nothing".into(), |c| {
                format!("{} with {} nulls", c.data_type(), c.null_count())
            });
            let expected = field.data_type().to_string();
            return Err(StoreError::ColumnType {
                file: file.into(),
                column: field.name().clone(),
                expected,
                found,
            });
        }
        let columns = Columns {
            file,
            base,
            batch: &batch,
            string_bytes,
        };
        let (outcomes, reasons) = (columns.texts("outcome")?, columns.texts("reason")?);
        let hashes = columns.texts("content_hash")?;
        columns.texts("id")?;
        columns.texts("message")?;
        let (lists, values) = columns.embeddings("embedding")?;
        let whole = Self {
            batch: batch.clone(),
            dim,
        };
        for row in 0..batch.num_rows() {
            let rule = |rule, found: String| StoreError::rule(file, base + row, rule, found);
            let word = outcomes[row].unwrap_or_default();
            let outcome =
                Outcome::parse(word).ok_or_else(|| rule(Outcome::RULE, format!("`{word}`")))?;
            // Under a missing embedding Parquet gives missing values; in one that is there none may be.
            let start = lists.value_offset_at(row);
            if lists.is_valid(row) && (start..start + dim).any(|i| values.is_null(i)) {
                return Err(rule(RULE_FINITE, "a missing value".into()));
            }
            check(outcome, reasons[row], whole.embedding(row), dim)
                .map_err(|(text, found)| rule(text, found))?;
            if let Some(bad) = hashes[row].filter(|h| h.parse::<ContentHash>().is_err()) {
                return Err(rule(
                    "`content_hash` must be 64 lower-case hexadecimal digits",
                    format!("`{bad}`"),
                ));
            }
        }
        Ok(whole)
    }

    fn column<A: Array + 'static>(&self, name: &str) -> &A {
        let column = self
            .batch
            .column_by_name(name)
            .expect("columns were checked");
        column.as_any().downcast_ref().expect("types were checked")
    }

    fn text(&self, name: &str, row: usize) -> Option<&str> {
        let column: &StringArray = self.column(name);
        column.is_valid(row).then(|| column.value(row))
    }

    /// Number of answers.
    pub fn len(&self) -> usize {
        self.batch.num_rows()
    }

    /// No answers at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Values of an embedding.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Sample index of each row.
    pub fn samples(&self) -> &[u32] {
        self.column::<UInt32Array>("sample").values()
    }

    /// The image's id.
    pub fn id(&self, row: usize) -> &str {
        self.text("id", row).unwrap_or_default()
    }

    /// Hash of the image file's bytes.
    pub fn content_hash(&self, row: usize) -> Option<ContentHash> {
        self.text("content_hash", row).and_then(|h| h.parse().ok())
    }

    /// How it went.
    pub fn outcome(&self, row: usize) -> Outcome {
        Outcome::parse(self.text("outcome", row).unwrap_or_default())
            .expect("outcomes were checked")
    }

    /// Kind of failure.
    pub fn reason(&self, row: usize) -> Option<&str> {
        self.text("reason", row)
    }

    /// What the failing part said.
    pub fn message(&self, row: usize) -> Option<&str> {
        self.text("message", row)
    }

    /// The embedding, where the outcome is `ok`.
    pub fn embedding(&self, row: usize) -> Option<&[f32]> {
        let lists: &FixedSizeListArray = self.column("embedding");
        let values = lists
            .values()
            .as_any()
            .downcast_ref::<Float32Array>()
            .expect("types were checked");
        let start = lists.value_offset_at(row);
        lists
            .is_valid(row)
            .then(|| &values.values()[start..start + self.dim])
    }

    /// A row of its own.
    pub fn row(&self, row: usize) -> AnswerRow {
        AnswerRow {
            sample: self.samples()[row],
            id: self.id(row).to_owned(),
            content_hash: self.content_hash(row),
            outcome: self.outcome(row),
            reason: self.reason(row).map(str::to_owned),
            message: self.message(row).map(str::to_owned),
            embedding: self.embedding(row).map(<[f32]>::to_vec),
        }
    }

    /// All rows, each of its own.
    pub fn rows(&self) -> impl Iterator<Item = AnswerRow> {
        (0..self.len()).map(|row| self.row(row))
    }

    /// The Arrow columns: `sample`, `id`, `content_hash`, `outcome`, `reason`, `message`, `embedding`.
    pub fn record_batch(&self) -> &RecordBatch {
        &self.batch
    }
}
