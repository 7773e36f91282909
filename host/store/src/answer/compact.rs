//! From log to Parquet, sorted by sample: the same bytes however the answers came. One row group in memory, and one frame.

use super::{
    file::{AnswerFile, spec},
    log::AnswerLog,
    row::{AnswerRow, to_batch},
};
use crate::{atomic::AtomicFile, error::Result, table::Encoder};
use std::{collections::BTreeMap, path::Path};

impl AnswerLog {
    /// Write all answers to `target`, sorted by sample.
    ///
    /// A row group takes each frame that has a row in it from disk once: answers appended roughly in order cost one pass,
    /// those in random order up to one pass for each row group.
    pub fn compact(&self, target: &Path) -> Result<AnswerFile> {
        let mut index = self.index().to_vec();
        index.sort_unstable();
        let spec = spec(self.dim);
        let mut encoder = Encoder::new(target, &spec, AtomicFile::create(target)?)?;
        for group in index.chunks(spec.rows_per_group) {
            let mut by_frame: BTreeMap<u32, Vec<(usize, usize)>> = BTreeMap::new();
            for (place, (_, frame, row)) in group.iter().enumerate() {
                by_frame
                    .entry(*frame)
                    .or_default()
                    .push((place, *row as usize));
            }
            let mut rows: Vec<Option<AnswerRow>> = vec![None; group.len()];
            for (frame, wanted) in by_frame {
                let batch = self.batch(frame as usize)?;
                for (place, row) in wanted {
                    rows[place] = Some(batch.row(row));
                }
            }
            let rows: Vec<AnswerRow> = rows
                .into_iter()
                .map(|row| row.expect("the index names each row"))
                .collect();
            encoder.write(&to_batch(&self.schema, self.dim, &rows))?;
        }
        encoder.finish()?.commit()?;
        AnswerFile::open(target, self.log.limits())
    }
}
