//! Arms of one dataset must agree about every image's label, or no mean, rank or difference over them means anything.

use crate::cell::CellRows;
use crate::cohort::Cohort;
use crate::error::{AnalysisError, Result};
use focus_store::CellKey;
use std::collections::HashMap;

/// What was first said of an image, and by which arm.
type Said = HashMap<u32, (bool, usize)>;

/// Checks all cells of one dataset; `run_of` names the run of the cell at a place.
pub(crate) fn check(
    cells: &[CellRows],
    cohort: &Cohort,
    run_of: impl Fn(usize) -> String,
) -> Result<()> {
    // By task: what the corrected and the published labels are.
    let mut known: HashMap<&str, [Said; 2]> = HashMap::new();
    for (place, rows) in cells.iter().enumerate() {
        let said = known.entry(&rows.cell.task).or_default();
        for row in &rows.test {
            let labels = [
                ("label", row.label),
                ("published label", row.published_label),
            ];
            // The published reading's merges bring labels of other photographs by design.
            let held = if rows.cell.is_published_reading() {
                1
            } else {
                2
            };
            for (said, (what, label)) in said.iter_mut().zip(labels).take(held) {
                let Some(label) = label else { continue };
                let &mut (first, by) = said.entry(row.image).or_insert((label, place));
                if first != label {
                    let name = |place: usize| {
                        let CellKey { method, model, .. } = &cells[place].cell;
                        format!("`{}` ({method} {model})", run_of(place))
                    };
                    return Err(AnalysisError::Disagree {
                        dataset: cohort.dataset().into(),
                        image: cohort.members()[row.image as usize].id.as_str().into(),
                        what: format!("the {what} of `{}`", rows.cell.task).into(),
                        first: first.to_string().into(),
                        first_run: name(by).into(),
                        second: label.to_string().into(),
                        second_run: name(place).into(),
                    });
                }
            }
        }
    }
    Ok(())
}
