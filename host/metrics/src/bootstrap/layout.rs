//! Which unit each row belongs to, numbered in an order that follows from content. Owns the canonical order. It must not
//! know random numbers or metrics.

use crate::bootstrap::Units;
use crate::error::MetricError;
use crate::scored::Scored;
use crate::tally::key;

/// Each row's unit.
pub(crate) struct Arrangement {
    /// Number of units, at least 1.
    pub(crate) count: usize,
    /// Unit of each row, in the order of the rows given.
    pub(crate) unit: Vec<u32>,
}

/// Numbers the units of these rows. `columns` are further properties of rows (subgroups, strata), which break ties only:
/// rows that the arms cannot tell apart may still differ in them.
pub(crate) fn arrange(
    arms: &[&Scored<'_>],
    columns: &[Vec<u32>],
    units: Units<'_>,
) -> Result<Arrangement, MetricError> {
    let labels = arms.first().map_or(&[][..], |arm| arm.labels());
    if labels.is_empty() {
        return Err(MetricError::NoRows);
    }
    for arm in arms {
        same_labels(labels, arm.labels())?;
    }
    let arrangement = match units {
        Units::Images => Ok(rows_by_content(&Contents::new(arms, columns))),
        Units::Patients(patients) => {
            same_length("patients", labels.len(), patients.len())?;
            Ok(patients_by_content(&Contents::new(arms, columns), patients))
        }
        Units::Numbered { count, of_row } => {
            same_length("units", labels.len(), of_row.len())?;
            match of_row.iter().position(|&unit| unit >= count) {
                Some(row) => Err(MetricError::UnitNumber {
                    row,
                    count,
                    found: of_row[row],
                }),
                None => Ok(Arrangement {
                    count: count as usize,
                    unit: of_row.to_vec(),
                }),
            }
        }
    };
    let arrangement = arrangement?;
    countable(&arrangement)?;
    Ok(arrangement)
}

/// Counts of a resample are 32 bits wide: the largest unit drawn every time must fit.
fn countable(arrangement: &Arrangement) -> Result<(), MetricError> {
    let mut rows = vec![0_usize; arrangement.count];
    arrangement
        .unit
        .iter()
        .for_each(|&unit| rows[unit as usize] += 1);
    let (limit, largest) = (u32::MAX as usize, rows.into_iter().max().unwrap_or(0));
    let found = largest.saturating_mul(arrangement.count);
    if found > limit {
        return Err(MetricError::TooManyRows { limit, found });
    }
    Ok(())
}

pub(crate) fn same_length(
    column: &'static str,
    expected: usize,
    found: usize,
) -> Result<(), MetricError> {
    if expected == found {
        Ok(())
    } else {
        Err(MetricError::Length {
            column,
            expected,
            found,
        })
    }
}

fn same_labels(expected: &[bool], found: &[bool]) -> Result<(), MetricError> {
    same_length("arm", expected.len(), found.len())?;
    match expected.iter().zip(found).position(|(a, b)| a != b) {
        Some(row) => Err(MetricError::LabelMismatch {
            row,
            expected: expected[row],
            found: found[row],
        }),
        None => Ok(()),
    }
}

/// What rows hold, as integers that compare the same everywhere: label, then score and decision of each arm, then the
/// further columns.
pub(crate) struct Contents {
    cells: Vec<u64>,
    width: usize,
    /// Cells of a row that the arms see.
    seen: usize,
}

impl Contents {
    pub(crate) fn new(arms: &[&Scored<'_>], columns: &[Vec<u32>]) -> Self {
        let rows = arms[0].len();
        let seen = 1 + 2 * arms.len();
        let width = seen + columns.len();
        let mut cells = Vec::with_capacity(rows * width);
        for row in 0..rows {
            cells.push(u64::from(arms[0].labels()[row]));
            for arm in arms {
                cells.push(arm.scores().map_or(0, |scores| key(scores[row])));
                cells.push(u64::from(arm.predicted()[row]));
            }
            cells.extend(columns.iter().map(|column| u64::from(column[row])));
        }
        Self { cells, width, seen }
    }

    fn rows(&self) -> u32 {
        (self.cells.len() / self.width) as u32
    }

    fn all(&self, row: u32) -> &[u64] {
        &self.cells[row as usize * self.width..][..self.width]
    }

    /// What the arms see of a row.
    pub(crate) fn seen(&self, row: u32) -> &[u64] {
        &self.all(row)[..self.seen]
    }
}

fn rows_by_content(contents: &Contents) -> Arrangement {
    let mut order: Vec<u32> = (0..contents.rows()).collect();
    order.sort_unstable_by_key(|&row| contents.all(row));
    let mut unit = vec![0; order.len()];
    for (position, row) in order.iter().enumerate() {
        unit[*row as usize] = position as u32;
    }
    Arrangement {
        count: order.len(),
        unit,
    }
}

/// Rows sorted within each patient, patients sorted by their rows. Two patients that compare equal hold the same rows, so
/// it does not matter which of them is drawn; their numbers play no part.
fn patients_by_content(contents: &Contents, patients: &[u32]) -> Arrangement {
    let mut order: Vec<u32> = (0..contents.rows()).collect();
    order.sort_unstable_by_key(|&row| (patients[row as usize], contents.all(row)));
    let mut blocks: Vec<&[u32]> = order
        .chunk_by(|&a, &b| patients[a as usize] == patients[b as usize])
        .collect();
    blocks.sort_unstable_by(|a, b| {
        // The further columns of all rows come after what the arms see of all rows: they break ties only.
        let (seen, all) = (
            |row: &u32| contents.seen(*row),
            |row: &u32| contents.all(*row),
        );
        let by_arms = a.iter().map(seen).cmp(b.iter().map(seen));
        by_arms.then_with(|| a.iter().map(all).cmp(b.iter().map(all)))
    });
    let mut unit = vec![0; order.len()];
    for (position, block) in blocks.iter().enumerate() {
        for &row in *block {
            unit[row as usize] = position as u32;
        }
    }
    Arrangement {
        count: blocks.len(),
        unit,
    }
}
