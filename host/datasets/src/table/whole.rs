//! A small table that is read as a whole (a workbook, JSON) once its cells are text: its header, and rows one at a time.
//!
//! Knows nothing of the format that the cells came from. Rules of cells and rows are those of separated values: trimmed,
//! blank is none, empty rows skipped and counted, cells under a column without a name must be blank.

use crate::descriptor::Column;
use crate::error::{DatasetError, TableFault};
use crate::limits::Limits;
use crate::table::header::Header;
use crate::table::{Cells, Encoding};
use crate::text;

/// What a format's reader found.
#[derive(Default)]
pub(super) struct Found {
    /// Names of the columns, and the line that they are on.
    pub(super) names: Vec<String>,
    pub(super) header_line: u64,
    /// Rows with the line that each starts on. Cells beyond a row's end are blank.
    pub(super) rows: Vec<(u64, Vec<String>)>,
    pub(super) encoding: Option<Encoding>,
}

/// A table in memory.
pub(crate) struct Whole {
    header: Header,
    rows: std::vec::IntoIter<(u64, Vec<String>)>,
    label: String,
    pub(super) digest: blake3::Hash,
    pub(super) encoding: Option<Encoding>,
    pub(super) given: u64,
    pub(super) blank_rows: u64,
}

impl Whole {
    pub(super) fn new(
        label: &str,
        found: Found,
        digest: blake3::Hash,
        wanted: &[Column],
        closed: bool,
        limits: &Limits,
    ) -> Result<Self, DatasetError> {
        let at = Some(found.header_line);
        let fault = |fault| DatasetError::table(label, at, fault);
        if found.names.len() > limits.columns {
            let limit = limits.columns;
            return Err(fault(TableFault::TooManyColumns { limit }));
        }
        if found.rows.len() > limits.rows as usize {
            let limit = limits.rows;
            return Err(fault(TableFault::TooManyRows { limit }));
        }
        let names: Vec<&str> = found.names.iter().map(String::as_str).collect();
        let header = Header::read(&names, wanted, closed).map_err(fault)?;
        for (line, row) in &found.rows {
            let long = row.iter().position(|cell| cell.len() > limits.cell_bytes);
            if let Some(place) = long {
                let fault = TableFault::CellTooLong {
                    column: place + 1,
                    bytes: row[place].len(),
                    limit: limits.cell_bytes,
                };
                return Err(DatasetError::table(label, Some(*line), fault));
            }
        }
        Ok(Self {
            header,
            rows: found.rows.into_iter(),
            label: label.into(),
            digest,
            encoding: found.encoding,
            given: 0,
            blank_rows: 0,
        })
    }

    pub(super) fn ignored_columns(&self) -> &[String] {
        &self.header.ignored
    }

    pub(super) fn next_row(&mut self) -> Result<Option<Cells>, DatasetError> {
        for (line, row) in self.rows.by_ref() {
            let cells: Vec<&str> = row.iter().map(|cell| text::trim(cell)).collect();
            let Some(last) = cells.iter().rposition(|cell| !cell.is_empty()) else {
                self.blank_rows += 1;
                continue;
            };
            if last >= self.header.names.len() {
                let fault = TableFault::Ragged {
                    found: last + 1,
                    expected: self.header.names.len(),
                };
                return Err(DatasetError::table(&self.label, Some(line), fault));
            }
            self.given += 1;
            let cell = |place: usize| cells.get(place).filter(|cell| !cell.is_empty());
            let wanted = self.header.places.iter();
            let cells = wanted
                .map(|place| place.and_then(cell).map(|cell| (*cell).to_owned()))
                .collect();
            return Ok(Some(Cells { line, cells }));
        }
        Ok(None)
    }
}
