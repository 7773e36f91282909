//! The append-only log of generations: whole groups in, recovered after a kill, compacted to Parquet. One process at a time.

use super::{
    file::GenerationFile,
    row::{GenerationLayout, GenerationRow},
};
use crate::{
    atomic::AtomicFile,
    error::{Result, StoreError},
    log::{AnswerLogOptions, FrameLog, TornTail, schema_bytes},
    table::{Columns, Encoder},
};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

/// An open log of generations.
#[derive(Debug)]
pub struct GenerationLog {
    log: FrameLog,
    layout: GenerationLayout,
    schema: SchemaRef,
    index: Index,
    torn: Option<TornTail>,
}

/// Sample, place of the prompt, frame and row of each generation.
#[derive(Debug, Default)]
struct Index {
    rows: Vec<(u32, u32, u32, u32)>,
    first_rows: Vec<usize>,
    done: BTreeSet<u32>,
}

impl Index {
    fn note(
        &mut self,
        file: &Path,
        limit: u64,
        frame: u32,
        rows: &[GenerationRow],
        width: usize,
    ) -> Result<()> {
        let found = (self.rows.len() + rows.len()) as u64;
        if found > limit {
            return Err(StoreError::TooLarge {
                file: file.into(),
                what: "rows",
                limit,
                found,
            });
        }
        self.first_rows.push(self.rows.len());
        for (row, said) in rows.iter().enumerate() {
            if row % width == 0 && !self.done.insert(said.sample) {
                return Err(StoreError::DuplicateSample {
                    file: file.into(),
                    sample: said.sample,
                });
            }
            self.rows
                .push((said.sample, (row % width) as u32, frame, row as u32));
        }
        Ok(())
    }
}

/// Every sample with all its prompts, in the layout's order.
fn check_groups(
    file: &Path,
    base: usize,
    layout: &GenerationLayout,
    rows: &[GenerationRow],
) -> Result<()> {
    let width = layout.prompts.len();
    for (i, row) in rows.iter().enumerate() {
        let first = &rows[i - i % width];
        if row.sample != first.sample
            || row.id != first.id
            || row.prompt != layout.prompts[i % width]
        {
            let rule = "a sample's rows must lie together, one for each prompt in order";
            let found = format!("sample {}, prompt `{}`", row.sample, row.prompt);
            return Err(StoreError::rule(file, base + i, rule, found));
        }
    }
    if !rows.len().is_multiple_of(width) {
        let rule = "a sample must have a row for each prompt";
        return Err(StoreError::rule(
            file,
            base + rows.len(),
            rule,
            "the last has fewer",
        ));
    }
    Ok(())
}

impl GenerationLog {
    /// Open the log at `path`, or start one. Every whole frame is read and checked; a torn tail is cut off with a warning.
    pub fn open_with(
        path: &Path,
        layout: &GenerationLayout,
        options: AnswerLogOptions,
    ) -> Result<Self> {
        layout.check(path)?;
        let schema = layout.schema();
        let mut log = FrameLog::open(path, &schema, options, |bytes| {
            if bytes == schema_bytes(&schema) {
                return Ok(());
            }
            Err(StoreError::damaged(
                path,
                "its columns are not those of a log of these generations",
            ))
        })?;
        let mut index = Index::default();
        let limits = options.limits;
        let width = layout.prompts.len();
        let torn = log.recover(&mut |frame, batch| {
            let base = index.rows.len();
            let rows = rows_of(path, base, layout, &batch, limits.string_bytes)?;
            index.note(path, limits.rows, frame, &rows, width)
        })?;
        Ok(Self {
            log,
            layout: layout.clone(),
            schema,
            index,
            torn,
        })
    }

    /// Where the log is.
    pub fn path(&self) -> &Path {
        self.log.path()
    }

    /// Samples that are answered, whatever the outcome.
    pub fn done(&self) -> &BTreeSet<u32> {
        &self.index.done
    }

    /// What was cut off on opening, if the last write had not ended.
    pub fn torn(&self) -> Option<TornTail> {
        self.torn
    }

    /// Append whole groups. When this returns, they survive the death of the process. On an error none of them is in the log.
    pub fn append(&mut self, rows: &[GenerationRow]) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        self.log.writable()?;
        let longest = self.log.limits().string_bytes;
        for (i, row) in rows.iter().enumerate() {
            self.layout
                .check_row(row)
                .map_err(|(rule, found)| StoreError::rule(self.path(), i, rule, found))?;
            let text = row.generated.iter().map(|said| &said.text);
            let texts = [Some(&row.id), row.reason.as_ref(), row.message.as_ref()];
            if let Some(long) = texts
                .into_iter()
                .flatten()
                .chain(text)
                .find(|text| text.len() > longest)
            {
                let rule = "a text must be no longer than `Limits::string_bytes`";
                let found = format!("{} bytes", long.len());
                return Err(StoreError::rule(self.path(), i, rule, found));
            }
        }
        check_groups(self.path(), 0, &self.layout, rows)?;
        let mut samples = BTreeSet::new();
        for group in rows.chunks(self.layout.prompts.len()) {
            let sample = group[0].sample;
            if self.done().contains(&sample) || !samples.insert(sample) {
                return Err(StoreError::DuplicateSample {
                    file: self.path().into(),
                    sample,
                });
            }
        }
        let frame = self.log.append(&self.layout.batch(&self.schema, rows))?;
        let (limit, width) = (self.log.limits().rows, self.layout.prompts.len());
        self.index.note(self.log.path(), limit, frame, rows, width)
    }

    /// Force everything appended to disk.
    pub fn sync(&mut self) -> Result<()> {
        self.log.sync()
    }

    /// Rows frame by frame as they were appended, one frame in memory at a time, checked again.
    pub fn batches(&self) -> impl Iterator<Item = Result<Vec<GenerationRow>>> {
        (0..self.log.frames()).map(|frame| self.frame(frame))
    }

    fn frame(&self, number: usize) -> Result<Vec<GenerationRow>> {
        let bytes = self.log.limits().string_bytes;
        let base = self.index.first_rows[number];
        rows_of(
            self.path(),
            base,
            &self.layout,
            &self.log.batch(number)?,
            bytes,
        )
    }

    /// Write all rows to `target`, sorted by sample and prompt: the same bytes however they came.
    pub fn compact(&self, target: &Path) -> Result<GenerationFile> {
        let mut index = self.index.rows.clone();
        index.sort_unstable();
        let spec = self.layout.spec();
        let mut encoder = Encoder::new(target, &spec, AtomicFile::create(target)?)?;
        for group in index.chunks(spec.rows_per_group) {
            let mut by_frame: BTreeMap<u32, Vec<(usize, usize)>> = BTreeMap::new();
            for (place, (.., frame, row)) in group.iter().enumerate() {
                by_frame
                    .entry(*frame)
                    .or_default()
                    .push((place, *row as usize));
            }
            let mut rows: Vec<Option<GenerationRow>> = vec![None; group.len()];
            for (frame, wanted) in by_frame {
                let said = self.frame(frame as usize)?;
                for (place, row) in wanted {
                    rows[place] = Some(said[row].clone());
                }
            }
            let rows: Vec<GenerationRow> = rows
                .into_iter()
                .map(|row| row.expect("the index names each row"))
                .collect();
            encoder.write(&self.layout.batch(&spec.schema, &rows))?;
        }
        encoder.finish()?.commit()?;
        GenerationFile::open(target, &self.layout, self.log.limits())
    }
}

fn rows_of(
    path: &Path,
    base: usize,
    layout: &GenerationLayout,
    batch: &RecordBatch,
    string_bytes: usize,
) -> Result<Vec<GenerationRow>> {
    let columns = Columns {
        file: path,
        base,
        batch,
        string_bytes,
    };
    let rows = layout.rows(&columns)?;
    check_groups(path, base, layout, &rows)?;
    Ok(rows)
}
