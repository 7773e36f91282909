//! Rows of a separated-values file, one at a time, in bounded memory, with the line each starts on.
//!
//! Separator: `,`, `;` or tab, whichever the header holds most of outside quotes. Quotes as in RFC 4180. Cells are
//! trimmed and stay text; a blank one is none. Rows with nothing in them are skipped and counted. A row longer than the
//! header is an error unless what is over is blank; a shorter one, unless what lacks has no name.

use std::path::Path;

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use crate::descriptor::Column;
use crate::error::{DatasetError, TableFault};
use crate::limits::Limits;
use crate::table::Encoding;
use crate::table::decode::{self, Text};
use crate::table::header::Header;
use crate::text;

/// One row: the wanted columns in the order asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cells {
    /// Line on which it starts, from 1.
    pub line: u64,
    /// Trimmed text; `None` where blank or absent.
    pub cells: Vec<Option<String>>,
}

/// A separated-values file opened for a list of columns.
pub struct CsvTable {
    label: String,
    text: Text,
    /// What the decoder gave and the parser has not taken.
    pending: Vec<u8>,
    taken: usize,
    parser: Reader,
    /// Cells of the record at hand, one after the other, and where each ends.
    output: Vec<u8>,
    ends: Vec<usize>,
    line: u64,
    header: Header,
    encoding: Encoding,
    separator: u8,
    digest: blake3::Hash,
    rows: u32,
    blank_rows: u64,
    cell_bytes: usize,
    record_bytes: usize,
    columns: usize,
    row_limit: u32,
}

impl CsvTable {
    /// Opens a file and finds the columns in its header. `label` names the file in messages; `closed` refuses columns
    /// that were not asked for.
    pub fn open(
        path: &Path,
        label: &str,
        wanted: &[Column],
        closed: bool,
        limits: &Limits,
    ) -> Result<Self, DatasetError> {
        let scan = decode::scan(path, label, limits)?;
        let text = Text::open(path, label, &scan)?;
        let mut table = Self {
            label: label.into(),
            text,
            pending: Vec::new(),
            taken: 0,
            parser: Reader::new(),
            output: vec![0; 4096],
            ends: vec![0; 64],
            line: 1,
            header: Header {
                places: Vec::new(),
                names: Vec::new(),
                ignored: Vec::new(),
            },
            encoding: scan.encoding,
            separator: b',',
            digest: scan.digest,
            rows: 0,
            blank_rows: 0,
            cell_bytes: limits.cell_bytes,
            record_bytes: limits.record_bytes,
            columns: limits.columns,
            row_limit: limits.rows,
        };
        table.find_separator()?;
        let Some((line, cells)) = table.record()? else {
            return Err(DatasetError::table(label, None, TableFault::Empty));
        };
        let at = Some(line);
        let header = {
            let cells = table.slices(cells)?;
            Header::read(&cells, wanted, closed)
                .map_err(|fault| DatasetError::table(label, at, fault))?
        };
        table.header = header;
        Ok(table)
    }

    /// The next row with something in it; `None` at the end.
    pub fn next_row(&mut self) -> Result<Option<Cells>, DatasetError> {
        loop {
            let Some((line, count)) = self.record()? else {
                return Ok(None);
            };
            let found = {
                let cells = self.slices(count).map_err(|error| at_line(error, line))?;
                let cells: Vec<&str> = cells.iter().map(|cell| text::trim(cell)).collect();
                let filled = cells
                    .iter()
                    .rposition(|cell| !cell.is_empty())
                    .map_or(0, |last| last + 1);
                if filled == 0 {
                    None
                } else {
                    let names = &self.header.names;
                    let lacking = names.get(cells.len()..).unwrap_or_default();
                    if filled > names.len() || lacking.iter().any(|name| !name.is_empty()) {
                        let fault = TableFault::Ragged {
                            found: cells.len(),
                            expected: names.len(),
                        };
                        return Err(DatasetError::table(&self.label, Some(line), fault));
                    }
                    let cell = |place: usize| cells.get(place).filter(|cell| !cell.is_empty());
                    Some(
                        self.header
                            .places
                            .iter()
                            .map(|p| p.and_then(cell).map(|c| (*c).to_owned()))
                            .collect(),
                    )
                }
            };
            match found {
                None => self.blank_rows += 1,
                Some(cells) => {
                    if self.rows == self.row_limit {
                        let fault = TableFault::TooManyRows {
                            limit: self.row_limit,
                        };
                        return Err(DatasetError::table(&self.label, Some(line), fault));
                    }
                    self.rows += 1;
                    return Ok(Some(Cells { line, cells }));
                }
            }
        }
    }

    /// How the bytes are read.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// `,`, `;` or tab.
    pub fn separator(&self) -> char {
        self.separator.into()
    }

    /// BLAKE3 of the file.
    pub fn digest(&self) -> String {
        self.digest.to_hex().to_string()
    }

    /// Named columns that were not asked for.
    pub fn ignored_columns(&self) -> &[String] {
        &self.header.ignored
    }

    /// Rows given so far.
    pub fn rows(&self) -> u64 {
        self.rows.into()
    }

    /// Blank rows skipped so far. Lines without a single character are not counted.
    pub fn blank_rows(&self) -> u64 {
        self.blank_rows
    }

    /// Reads up to the end of the header and counts separators in it.
    fn find_separator(&mut self) -> Result<(), DatasetError> {
        let mut counts = [(b',', 0u32), (b';', 0), (b'\t', 0)];
        let (mut quoted, mut started, mut seen) = (false, false, 0);
        loop {
            let start = self.pending.len();
            let mut piece = self.text.next()?;
            if piece.is_empty() {
                break;
            }
            if !started {
                // Any number of empty lines may come first: they are counted, not kept.
                let empty = piece.iter().take_while(|byte| **byte == b'\n').count();
                self.line += empty as u64;
                piece = &piece[empty..];
            }
            self.pending.extend_from_slice(piece);
            let mut ended = false;
            for &byte in &self.pending[start..] {
                seen += 1;
                match byte {
                    b'"' => quoted = !quoted,
                    b'\n' if started && !quoted => ended = true,
                    _ if !quoted => counts
                        .iter_mut()
                        .filter(|(s, _)| *s == byte)
                        .for_each(|(_, n)| *n += 1),
                    _ => {}
                }
                started |= byte != b'\n';
                if ended {
                    break;
                }
            }
            if ended {
                break;
            }
            if seen > self.record_bytes {
                let fault = TableFault::RecordTooLong {
                    limit: self.record_bytes,
                };
                return Err(DatasetError::table(&self.label, Some(1), fault));
            }
        }
        // Of equal counts the first listed wins; a header without any is a single column.
        let best = counts.iter().rev().max_by_key(|(_, count)| *count);
        self.separator = best.map_or(
            b',',
            |(separator, count)| if *count == 0 { b',' } else { *separator },
        );
        self.parser = ReaderBuilder::new().delimiter(self.separator).build();
        Ok(())
    }

    /// Parses one record into `output` and `ends`: its first line and the number of its cells.
    fn record(&mut self) -> Result<Option<(u64, usize)>, DatasetError> {
        let (mut written, mut cells, mut raw) = (0, 0, 0usize);
        let (mut first_line, mut started, mut quotes, mut lines) = (self.line, false, 0usize, 0u64);
        let mut at_end = false;
        loop {
            if self.taken == self.pending.len() {
                self.taken = 0;
                self.pending.clear();
                let piece = self.text.next()?;
                at_end = piece.is_empty();
                self.pending.extend_from_slice(piece);
            }
            let input = &self.pending[self.taken..];
            let (result, read, wrote, ended) = self.parser.read_record(
                input,
                &mut self.output[written..],
                &mut self.ends[cells..],
            );
            for &byte in &input[..read] {
                if byte == b'\n' {
                    if !started {
                        first_line += 1;
                    }
                    lines += 1;
                } else {
                    started = true;
                    raw += 1;
                    quotes += usize::from(byte == b'"');
                }
            }
            self.taken += read;
            written += wrote;
            cells += ended;
            let fault = match result {
                _ if raw > self.record_bytes => TableFault::RecordTooLong {
                    limit: self.record_bytes,
                },
                ReadRecordResult::InputEmpty => continue,
                ReadRecordResult::OutputFull => {
                    self.output.resize(self.output.len() * 2, 0);
                    continue;
                }
                ReadRecordResult::OutputEndsFull if self.ends.len() <= self.columns => {
                    self.ends.resize(self.ends.len() * 2, 0);
                    continue;
                }
                ReadRecordResult::OutputEndsFull => TableFault::TooManyColumns {
                    limit: self.columns,
                },
                ReadRecordResult::Record if cells > self.columns => TableFault::TooManyColumns {
                    limit: self.columns,
                },
                // Ended by the end of the file and not by a line's end, with one quote too many.
                ReadRecordResult::Record if at_end && quotes % 2 == 1 => TableFault::OpenQuote,
                ReadRecordResult::Record => {
                    self.line += lines;
                    return Ok(Some((first_line, cells)));
                }
                ReadRecordResult::End => return Ok(None),
            };
            return Err(DatasetError::table(&self.label, Some(first_line), fault));
        }
    }

    fn slices(&self, count: usize) -> Result<Vec<&str>, DatasetError> {
        let mut start = 0;
        let mut cells = Vec::with_capacity(count);
        for (place, &end) in self.ends[..count].iter().enumerate() {
            let bytes = &self.output[start..end];
            if bytes.len() > self.cell_bytes {
                let fault = TableFault::CellTooLong {
                    column: place + 1,
                    bytes: bytes.len(),
                    limit: self.cell_bytes,
                };
                return Err(DatasetError::table(&self.label, None, fault));
            }
            cells.push(
                std::str::from_utf8(bytes).expect("the decoder gives UTF-8 and cells end at ASCII"),
            );
            start = end;
        }
        Ok(cells)
    }
}

fn at_line(error: DatasetError, line: u64) -> DatasetError {
    match error {
        DatasetError::Table { mut place, fault } => {
            place.line.get_or_insert(line);
            DatasetError::Table { place, fault }
        }
        other => other,
    }
}
