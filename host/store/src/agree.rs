//! Whether predictions are about the records beside them: the same image under each number, and no label of their own.
//! Two arms that agree with one set of records agree with each other. It knows no method.

use crate::{
    error::{Result, StoreError},
    prediction::Predictions,
    record::Records,
};
use std::path::Path;

impl Records {
    /// Check `predictions` against these records; `file` is only named in errors. A label that predictions leave out
    /// (unknown to them) is no disagreement.
    pub fn check_predictions(&self, predictions: &Predictions, file: &Path) -> Result<()> {
        let cell = &predictions.cell;
        for (i, row) in predictions.rows.iter().enumerate() {
            let rule = |rule, found: String| Err(StoreError::rule(file, i, rule, found));
            let Some(record) = self.rows.get(row.sample as usize) else {
                let found = format!("{} of {} records", row.sample, self.rows.len());
                return rule("`sample` must be the number of a record", found);
            };
            if (&record.dataset, &record.id) != (&cell.dataset, &row.id) {
                let found = format!(
                    "`{}` of {}, record {} is `{}` of {}",
                    row.id, cell.dataset, row.sample, record.id, record.dataset
                );
                return rule("`sample` and `id` must mean the same image", found);
            }
            if row.patient != record.patient {
                let found = format!("{:?}, the record has {:?}", row.patient, record.patient);
                return rule("`patient` must be the record's", found);
            }
            for (ours, theirs, text) in [
                (
                    row.label,
                    record.labels.get(&cell.task),
                    "`label` must be the record's",
                ),
                (
                    row.published_label,
                    record.published_labels.get(&cell.task),
                    "`published_label` must be the record's",
                ),
            ] {
                let held = !(cell.is_published_reading() && text.starts_with("`published"));
                if held && ours.is_some() && ours != theirs.copied() {
                    let show = |label: Option<bool>| {
                        label.map_or("unknown".to_owned(), |known| known.to_string())
                    };
                    let found = format!(
                        "{} for `{}`, the record has {}",
                        show(ours),
                        row.id,
                        show(theirs.copied())
                    );
                    return rule(text, found);
                }
            }
        }
        Ok(())
    }
}
