//! One face for the rows of a table's file, whatever its format.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::descriptor::{Table, TableSource};
use crate::error::{DatasetError, TableFault};
use crate::limits::Limits;
use crate::record::{JoinReport, TableReport};
use crate::table::whole::Whole;
use crate::table::{Cells, CsvTable, json, sheet};

pub(crate) enum Reader {
    Csv(Box<CsvTable>),
    Whole(Box<Whole>),
}

impl Reader {
    /// Opens a table's file. `label` names it in messages.
    pub(crate) fn open(
        path: &Path,
        label: &str,
        table: &Table,
        limits: &Limits,
    ) -> Result<Self, DatasetError> {
        let (wanted, closed) = (&table.columns, table.closed);
        let whole = match &table.source {
            TableSource::Xlsx(_) | TableSource::Json(_) => bytes(path, label, limits)?,
            TableSource::Csv(_) | TableSource::Listing(_) => {
                let csv = CsvTable::open(path, label, wanted, closed, limits)?;
                return Ok(Self::Csv(Box::new(csv)));
            }
        };
        let found = match &table.source {
            TableSource::Xlsx(source) => sheet::read(&whole, source, limits),
            _ => json::read(&whole, wanted, limits),
        };
        let found = found.map_err(|(fault, line)| DatasetError::table(label, line, fault))?;
        let digest = blake3::hash(&whole);
        let whole = Whole::new(label, found, digest, wanted, closed, limits)?;
        Ok(Self::Whole(Box::new(whole)))
    }

    /// The next row with something in it; `None` at the end.
    pub(crate) fn next_row(&mut self) -> Result<Option<Cells>, DatasetError> {
        match self {
            Self::Csv(csv) => csv.next_row(),
            Self::Whole(whole) => whole.next_row(),
        }
    }

    /// The account of the table, once it is read.
    pub(crate) fn report(&self, id: &str, file: &str, join: Option<JoinReport>) -> TableReport {
        let (rows, blank_rows, digest, encoding, separator, ignored) = match self {
            Self::Csv(csv) => (
                csv.rows(),
                csv.blank_rows(),
                csv.digest(),
                Some(csv.encoding()),
                Some(csv.separator()),
                csv.ignored_columns(),
            ),
            Self::Whole(whole) => (
                whole.given,
                whole.blank_rows,
                whole.digest.to_hex().to_string(),
                whole.encoding,
                None,
                whole.ignored_columns(),
            ),
        };
        TableReport {
            id: id.into(),
            path: file.into(),
            rows,
            blank_rows,
            digest,
            encoding,
            separator,
            ignored_columns: ignored.to_vec(),
            join,
        }
    }
}

/// The file, if it is small.
fn bytes(path: &Path, label: &str, limits: &Limits) -> Result<Vec<u8>, DatasetError> {
    let limit = limits.document_bytes;
    let file = File::open(path).map_err(|e| DatasetError::io(path, e))?;
    let mut bytes = Vec::new();
    let mut part = file.take(limit + 1);
    part.read_to_end(&mut bytes)
        .map_err(|e| DatasetError::io(path, e))?;
    let size = bytes.len() as u64;
    if size > limit {
        let fault = TableFault::FileTooLarge { bytes: size, limit };
        return Err(DatasetError::table(label, None, fault));
    }
    Ok(bytes)
}
