//! The source's own split, as the mapper read it. Changes nothing and repairs nothing.

use focus_store::Records;

use super::account::{Action, Defect, Notes, SplitKind};
use super::{Split, SplitPlan, dataset_of, name_of, tally};
use crate::{CurationError, Result};

/// The split that the source itself gives. Records without one are in no split; patients in two splits and missing patient keys are noted.
pub fn source(records: &Records) -> Result<SplitPlan> {
    let dataset = dataset_of(records)?;
    let mut splits = Vec::with_capacity(records.rows.len());
    for record in &records.rows {
        let split = match record.source_split.as_deref() {
            None => None,
            Some(word) => {
                Some(
                    Split::from_record(word).ok_or_else(|| CurationError::SourceSplit {
                        id: record.id.clone(),
                        found: word.chars().take(80).collect(),
                    })?,
                )
            }
        };
        splits.push(split);
    }
    if splits.iter().all(Option::is_none) {
        return Err(CurationError::NoSourceSplit { dataset });
    }
    let mut account = tally::account(
        records,
        &splits,
        SplitKind::Source,
        "The source's own split".into(),
    )?;
    let mut notes = Notes::default();
    let straddling = tally::straddling(records, &splits);
    notes.add(
        Defect::PatientInTwoSplits,
        Action::Kept,
        straddling.len(),
        "patients with photographs in more than one split",
        straddling,
    );
    let keyless = records.rows.iter().zip(&splits);
    let keyless = keyless.filter(|(r, split)| split.is_some() && r.patient.is_none());
    notes.add(
        Defect::NoPatientKey,
        Action::Kept,
        account.without_patient as usize,
        "photographs without a patient key: a patient in two splits cannot be excluded",
        keyless.map(|(r, _)| name_of(r)),
    );
    account.notes = notes.sorted();
    Ok(SplitPlan {
        splits,
        uses: Vec::new(),
        account,
    })
}
