//! A sheet of an XLSX workbook as rows of text. The file is small or refused: what it unpacks to is counted before any of
//! it is parsed, and only the cells that are there are held, whatever range the sheet claims.

use std::io::{self, Cursor, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};

use calamine::{DataRef, Reader as _, Xlsx, XlsxError};

use crate::descriptor::Sheet;
use crate::error::TableFault;
use crate::limits::Limits;
use crate::table::whole::Found;
use crate::text;

/// A fault and the line (the sheet's row) it is on.
type Fault = (TableFault, Option<u64>);

pub(super) fn read(bytes: &[u8], sheet: &Sheet, limits: &Limits) -> Result<Found, Fault> {
    unpacked(bytes, limits).map_err(|fault| (fault, None))?;
    // The parser is another's, and some spoilt sheets make it panic (a merged range that runs backwards). Nothing that it
    // holds outlives the call.
    let parsed = catch_unwind(AssertUnwindSafe(|| parse(bytes, sheet, limits)));
    parsed.unwrap_or_else(|_| {
        let fault = TableFault::Workbook("its parser gave up".into());
        Err((fault, None))
    })
}

fn parse(bytes: &[u8], sheet: &Sheet, limits: &Limits) -> Result<Found, Fault> {
    let broken = |error: XlsxError| {
        let text = text::quote(&error.to_string(), limits.message_chars);
        (TableFault::Workbook(text), None)
    };
    let mut book = Xlsx::new(Cursor::new(bytes)).map_err(broken)?;
    let names = book.sheet_names();
    let name = match &sheet.name {
        Some(name) => names.iter().find(|n| *n == name),
        None => names.first(),
    };
    let Some(name) = name.cloned() else {
        let (wanted, seen) = (sheet.name.clone(), text::list(&names, 16));
        return Err((TableFault::NoSheet { wanted, seen }, None));
    };
    let merged = book.merge_cells_by_sheet_name(&name).map_err(broken)?;
    let mut rows: Vec<(u64, Vec<String>)> = Vec::new();
    let mut cells = book.worksheet_cells_reader(&name).map_err(broken)?;
    while let Some(cell) = cells.next_cell().map_err(broken)? {
        let (row, column) = cell.get_position();
        let (line, column) = (u64::from(row) + 1, column as usize);
        let at = Some(line);
        if column >= limits.columns {
            let limit = limits.columns;
            return Err((TableFault::TooManyColumns { limit }, at));
        }
        let text = text_of(cell.get_value(), column).map_err(|fault| (fault, at))?;
        if text.is_empty() {
            continue;
        }
        let full = rows.len() > limits.rows as usize;
        match rows.last() {
            Some((last, _)) if *last == line => {}
            Some((last, _)) if *last > line => {
                let fault = TableFault::Workbook(format!("row {line} comes after row {last}"));
                return Err((fault, at));
            }
            _ if full => {
                let limit = limits.rows;
                return Err((TableFault::TooManyRows { limit }, at));
            }
            _ => rows.push((line, Vec::new())),
        }
        let (_, row) = rows.last_mut().expect("a row was pushed");
        if row.len() <= column {
            row.resize(column + 1, String::new());
        }
        row[column] = text;
    }
    let header_rows = u64::from(sheet.header_rows);
    let data = rows.partition_point(|(line, _)| *line <= header_rows);
    let mut header: Vec<(u64, Vec<String>)> = rows.drain(..data).collect();
    if header.is_empty() {
        return Err((TableFault::Empty, None));
    }
    for region in &merged {
        spread(&mut header, region.start, region.end, limits.columns);
    }
    let width = header.iter().map(|(_, row)| row.len()).max().unwrap_or(0);
    let lowest = |column: usize| {
        let filled = header.iter().rev().filter_map(|(_, row)| row.get(column));
        filled.into_iter().find(|cell| !text::trim(cell).is_empty())
    };
    let names = (0..width).map(|column| lowest(column).cloned().unwrap_or_default());
    Ok(Found {
        names: names.collect(),
        header_line: header_rows,
        rows,
        encoding: None,
    })
}

/// A merged cell's text, in every header cell that it covers.
fn spread(header: &mut [(u64, Vec<String>)], start: (u32, u32), end: (u32, u32), columns: usize) {
    let (first, last) = (
        start.1 as usize,
        (end.1 as usize).min(columns.saturating_sub(1)),
    );
    let line = u64::from(start.0) + 1;
    let text = header.iter().find(|(l, _)| *l == line);
    let Some(text) = text.and_then(|(_, row)| row.get(first)).cloned() else {
        return;
    };
    for (line, row) in header.iter_mut() {
        if (u64::from(start.0)..=u64::from(end.0)).contains(&(*line - 1)) {
            for column in first..=last {
                if row.len() <= column {
                    row.resize(column + 1, String::new());
                }
                if row[column].is_empty() {
                    row[column].clone_from(&text);
                }
            }
        }
    }
}

fn text_of(value: &DataRef<'_>, column: usize) -> Result<String, TableFault> {
    Ok(match value {
        DataRef::Int(number) => number.to_string(),
        DataRef::Float(number) => number.to_string(),
        DataRef::String(text) | DataRef::DateTimeIso(text) | DataRef::DurationIso(text) => {
            text.clone()
        }
        DataRef::SharedString(text) => (*text).to_owned(),
        DataRef::Bool(value) => value.to_string(),
        // A number that somebody gave a date format: the number is what the column means.
        DataRef::DateTime(date) => date.as_f64().to_string(),
        DataRef::Error(error) => {
            let found = error.to_string();
            return Err(TableFault::CellError {
                column: column + 1,
                found,
            });
        }
        DataRef::Empty => String::new(),
    })
}

/// Unpacks every part, to know how large it is: sizes that an archive claims are not believed. Nor is the number of shared
/// strings, for which the parser would set memory aside.
fn unpacked(bytes: &[u8], limits: &Limits) -> Result<(), TableFault> {
    let broken = |text: String| TableFault::Workbook(text::quote(&text, limits.message_chars));
    let mut archive =
        zip::ZipArchive::new(Cursor::new(bytes)).map_err(|e| broken(e.to_string()))?;
    let mut left = limits.document_bytes;
    for index in 0..archive.len() {
        let part = archive.by_index(index).map_err(|e| broken(e.to_string()))?;
        let name = part.name().map_err(|e| broken(e.to_string()))?;
        let strings = name.to_lowercase().ends_with("sharedstrings.xml");
        let mut text = Vec::new();
        let mut part = part.take(left + 1);
        let size = if strings {
            part.read_to_end(&mut text).map(|size| size as u64)
        } else {
            io::copy(&mut part, &mut io::sink())
        };
        let size = size.map_err(|e| broken(e.to_string()))?;
        left = left.checked_sub(size).ok_or(TableFault::Unpacked {
            limit: limits.document_bytes,
        })?;
        if let Some(claimed) = claimed_strings(&text).filter(|claimed| *claimed > size) {
            return Err(broken(format!(
                "it claims {claimed} strings in {size} bytes"
            )));
        }
    }
    Ok(())
}

/// The largest number that a part gives as its count of strings. Every string takes more than a byte.
fn claimed_strings(part: &[u8]) -> Option<u64> {
    const NAME: &[u8] = b"uniqueCount";
    // In UTF-16 the name would not be found.
    if part.contains(&0) {
        return Some(u64::MAX);
    }
    let after = |at: usize| {
        let rest = part[at + NAME.len()..]
            .iter()
            .skip_while(|b| !b.is_ascii_digit());
        let digits: Vec<u8> = rest.take_while(|b| b.is_ascii_digit()).copied().collect();
        let digits = String::from_utf8(digits).ok()?;
        Some(
            digits
                .parse()
                .unwrap_or(if digits.is_empty() { 0 } else { u64::MAX }),
        )
    };
    let places = part.windows(NAME.len()).enumerate();
    let found = places.filter(|(_, window)| *window == NAME);
    found.filter_map(|(at, _)| after(at)).max()
}
