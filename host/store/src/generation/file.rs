//! Generations at rest: one Parquet file sorted by sample and prompt, streamed by row group, each verified before it is handed on.

use super::row::{GENERATIONS_VERSION, GenerationLayout, GenerationRow};
use crate::{
    error::{Result, StoreError},
    limits::Limits,
    table::{Columns, TableReader, write_table},
};
use std::path::{Path, PathBuf};

/// A finished file of generations, open.
#[derive(Debug)]
pub struct GenerationFile {
    path: PathBuf,
    reader: TableReader,
    layout: GenerationLayout,
    limits: Limits,
}

impl GenerationFile {
    /// Open and check everything but the values.
    pub fn open(path: &Path, layout: &GenerationLayout, limits: &Limits) -> Result<Self> {
        layout.check(path)?;
        let reader = TableReader::open(path, layout.spec().name, GENERATIONS_VERSION, limits)?;
        reader.expect(&layout.schema())?;
        Ok(Self {
            path: path.into(),
            reader,
            layout: layout.clone(),
            limits: *limits,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Prompts and variants.
    pub fn layout(&self) -> &GenerationLayout {
        &self.layout
    }

    /// Number of rows: samples times prompts.
    pub fn rows(&self) -> usize {
        self.reader.rows()
    }

    /// All rows in order of sample and prompt, one row group in memory at a time.
    pub fn batches(&self) -> Result<impl Iterator<Item = Result<Vec<GenerationRow>>>> {
        let schema = self.layout.schema();
        let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        let batches = self.reader.batches(&names, None)?;
        let (path, layout) = (self.path.clone(), self.layout.clone());
        let string_bytes = self.limits.string_bytes;
        let mut last = None;
        Ok(batches.map(move |item| {
            let (base, batch) = item?;
            let rows = layout.rows(&Columns {
                file: &path,
                base,
                batch: &batch,
                string_bytes,
            })?;
            for (i, row) in rows.iter().enumerate() {
                let place = (row.sample, layout.place(&row.prompt));
                if last.is_some_and(|last| last >= place) {
                    let rule = "generations must be sorted by `sample` and prompt, each once";
                    let found = format!("sample {}, prompt `{}`", row.sample, row.prompt);
                    return Err(StoreError::rule(&path, base + i, rule, found));
                }
                last = Some(place);
            }
            Ok(rows)
        }))
    }

    /// Write rows that are in order already.
    pub(super) fn write(
        path: &Path,
        layout: &GenerationLayout,
        rows: &[GenerationRow],
    ) -> Result<()> {
        let spec = layout.spec();
        write_table(path, &spec, rows.len(), |range| {
            layout.batch(&spec.schema, &rows[range])
        })
    }
}
