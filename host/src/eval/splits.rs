//! Which images are trained on and which are tested: the choice put into effect, and what a run folder keeps of it. The rules are
//! focus-curation's.

use super::{Advised, Dataset, EvalError};
use crate::config::SplitChoice;
use focus_curation::CurationError;
use focus_curation::splits::{self, OwnSplit, SplitAccount, SplitKind, SplitPlan, Track, Use};
use serde::{Deserialize, Serialize};

/// File name in the run folder.
pub const SPLITS_FILE: &str = "splits.json";

/// How a run's images came into their splits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SplitRecord {
    /// The split of the records: the corrected track's.
    pub account: SplitAccount,
    /// What the published code makes of the same file, where the split is a published file.
    pub published: Option<PublishedReading>,
}

/// The published code's reading of a split file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedReading {
    /// Counts and defects.
    pub account: SplitAccount,
    /// Every use of every photograph: what cells as published are fitted and scored on.
    pub uses: Vec<Use>,
}

/// Put each record into the split that is asked for.
pub fn split(mut dataset: Dataset, choice: &SplitChoice) -> Result<Dataset, EvalError> {
    let has_own = dataset
        .records
        .rows
        .iter()
        .any(|r| r.source_split.is_some());
    let records = &dataset.records;
    let mut published = None;
    let plan = match choice {
        SplitChoice::Auto(seed) if !has_own => splits::own(records, &seeded(*seed)),
        SplitChoice::Own(seed) => splits::own(records, &seeded(*seed)),
        SplitChoice::Auto(_) | SplitChoice::Source => splits::source(records),
        SplitChoice::Published(file, seed) => (|| {
            let file = splits::read_published(file)?;
            let own = seeded(*seed);
            published = Some(splits::published(records, &file, Track::AsPublished, &own)?);
            splits::published(records, &file, Track::Corrected, &own)
        })(),
    };
    let plan = plan.map_err(|error: CurationError| {
        EvalError::Input(Advised {
            message: error.to_string(),
            hint: error.hint(),
        })
    })?;
    plan.apply(&mut dataset.records)
        .expect("the plan was made from these records");
    dataset.split = Some(plan);
    dataset.published = published;
    Ok(dataset)
}

fn seeded(seed: u64) -> OwnSplit {
    OwnSplit {
        seed,
        ..OwnSplit::default()
    }
}

/// What the run folder keeps; `None` before a split was chosen.
pub fn record(dataset: &Dataset) -> Option<SplitRecord> {
    let reading = |plan: &SplitPlan| PublishedReading {
        account: plan.account.clone(),
        uses: plan.uses.clone(),
    };
    Some(SplitRecord {
        account: dataset.split.as_ref()?.account.clone(),
        published: dataset.published.as_ref().map(reading),
    })
}

impl SplitRecord {
    /// Remarks for a report: the rule, the counts of a published file in both readings, and every defect met.
    pub fn notes(&self) -> Vec<String> {
        // The source's own split is what everybody expects.
        if self.account.kind == SplitKind::Source {
            return Vec::new();
        }
        let mut notes = vec![format!("Split: {}", self.account.rule)];
        let Some(published) = &self.published else {
            return notes;
        };
        let account = &published.account;
        if let (Some(file), Some(rows), Some(merged)) =
            (&account.file, account.file_counts, account.effective_counts)
        {
            let by = |c: splits::SplitCounts| format!("{}/{}/{}", c.train, c.validation, c.test);
            notes.push(format!(
                "Split file `{}`: {} rows (train/validation/test); the published code works on {} after its merges and analyses {}; corrected: {} photographs",
                file.name,
                by(rows),
                by(merged),
                account.analysed_rows.unwrap_or(merged.test),
                by(self.account.counts),
            ));
        }
        for note in &account.notes {
            notes.push(format!(
                "Split file, as published: {} {}",
                note.count, note.detail
            ));
        }
        notes
    }
}
