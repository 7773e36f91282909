//! Separated values as people's tools leave them: with or without a byte order mark, UTF-8, UTF-16 or cp1252, commas,
//! semicolons or tabs, either kind of line end. It must not know what the columns mean.

use crate::error::{ExchangeError, Result, shorten};
use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use focus_store::ContentHash;
use std::{fs::File, io::Read, path::Path};

/// Bytes of one file. A result file of 100,000 rows with prompts is a few hundred megabytes at most.
const FILE_BYTES: u64 = 512 << 20;
/// Columns of one file.
const COLUMNS: usize = 1000;

/// A table as text.
pub(crate) struct TextTable {
    /// How messages name the file.
    pub name: String,
    /// Header cells, trimmed.
    pub header: Vec<String>,
    /// Rows with the line on which each starts; cells as written.
    pub rows: Vec<(u64, csv::StringRecord)>,
    /// Cells are separated by `;`, so that a number may have a decimal comma.
    pub semicolons: bool,
    /// `blake3:<hex>` of the file's bytes.
    pub digest: String,
    /// What was tolerated, in words.
    pub remarks: Vec<String>,
}

impl TextTable {
    /// Read the file at `path`; `name` is how messages call it.
    pub fn read(path: &Path, name: &str) -> Result<Self> {
        let file = File::open(path).map_err(ExchangeError::io("open", path))?;
        let mut bytes = Vec::new();
        file.take(FILE_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(ExchangeError::io("read", path))?;
        if bytes.len() as u64 > FILE_BYTES {
            return Err(text_error(name, format!("it has over {FILE_BYTES} bytes")));
        }
        Self::parse(&bytes, name)
    }

    /// The same from bytes.
    pub fn parse(bytes: &[u8], name: &str) -> Result<Self> {
        let digest = format!("blake3:{}", ContentHash::of(bytes));
        let mut remarks = Vec::new();
        let text = decode(bytes, name, &mut remarks)?;
        let text = text.as_ref();
        if let Some(at) = text.find('\0') {
            return Err(text_error(name, format!("byte {at} is zero")));
        }
        if text.trim().is_empty() {
            return Err(text_error(name, "it is empty".into()));
        }
        if !text.matches('"').count().is_multiple_of(2) {
            return Err(text_error(
                name,
                "a quote that opens is never closed; the file may be cut".into(),
            ));
        }
        if !text.ends_with(['\n', '\r']) {
            remarks.push("it does not end with a line break: its last row may be cut".into());
        }
        let separator = separator(text);
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(separator)
            .has_headers(false)
            .flexible(true)
            .from_reader(text.as_bytes());
        let mut lines = Lines {
            text: text.as_bytes(),
            at: 0,
            line: 1,
        };
        let mut header = None;
        let mut rows = Vec::new();
        let mut record = csv::StringRecord::new();
        while reader
            .read_record(&mut record)
            .map_err(|e| text_error(name, e.to_string()))?
        {
            let start = record.position().map_or(0, csv::Position::byte);
            let line = lines.of(start as usize);
            match header {
                None => {
                    header = Some(
                        record
                            .iter()
                            .map(|c| c.trim().to_owned())
                            .collect::<Vec<_>>(),
                    );
                }
                // A row of separators only, as spreadsheets leave them.
                Some(_) if record.iter().all(|c| c.trim().is_empty()) && record.len() > 1 => {}
                Some(_) => rows.push((line, record.clone())),
            }
        }
        let header = header.unwrap_or_default();
        if header.len() > COLUMNS {
            return Err(text_error(name, format!("it has over {COLUMNS} columns")));
        }
        Ok(Self {
            name: name.into(),
            header,
            rows,
            semicolons: separator == b';',
            digest,
            remarks,
        })
    }

    /// The place of column `name`, which may not be there twice.
    pub fn column(&self, name: &str) -> Result<Option<usize>> {
        let mut places = (0..self.header.len()).filter(|&i| self.header[i] == name);
        let first = places.next();
        if places.next().is_some() {
            return Err(ExchangeError::Columns {
                file: self.name.clone(),
                expected: format!("`{name}` once"),
                found: "it twice".into(),
            });
        }
        Ok(first)
    }

    /// A number as written in this file: with a decimal comma only where commas do not separate cells.
    pub fn number(&self, text: &str) -> Option<f64> {
        let plain = |t: &str| {
            t.bytes()
                .all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b))
        };
        if plain(text) {
            return text.parse().ok();
        }
        let dotted = text.replacen(',', ".", 1);
        (self.semicolons && !text.contains('.') && plain(&dotted))
            .then(|| dotted.parse().ok())
            .flatten()
    }
}

fn text_error(name: &str, what: String) -> ExchangeError {
    ExchangeError::Text {
        file: name.into(),
        what: shorten(&what, 200),
    }
}

fn decode<'a>(
    bytes: &'a [u8],
    name: &str,
    remarks: &mut Vec<String>,
) -> Result<std::borrow::Cow<'a, str>> {
    let (encoding, bytes) = match Encoding::for_bom(bytes) {
        Some((encoding, length)) => (encoding, &bytes[length..]),
        None => (UTF_8, bytes),
    };
    if let Some(text) = encoding.decode_without_bom_handling_and_without_replacement(bytes) {
        return Ok(text);
    }
    if encoding != UTF_8 {
        return Err(text_error(name, format!("it is no {}", encoding.name())));
    }
    remarks.push("it is no UTF-8 and was read as cp1252".into());
    let (text, _) = WINDOWS_1252.decode_without_bom_handling(bytes);
    Ok(text)
}

// Whichever the header line holds most of outside quotes.
fn separator(text: &str) -> u8 {
    let line = text.trim_start_matches(['\r', '\n']);
    let mut quoted = false;
    let mut counts = [(b',', 0), (b';', 0), (b'\t', 0)];
    for byte in line.bytes() {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' | b'\r' if !quoted => break,
            _ if quoted => {}
            _ => counts
                .iter_mut()
                .filter(|(separator, _)| *separator == byte)
                .for_each(|(_, n)| *n += 1),
        }
    }
    // The first wins a tie.
    counts
        .iter()
        .rev()
        .max_by_key(|(_, n)| *n)
        .map_or(b',', |(separator, _)| *separator)
}

// Line numbers of byte offsets that only grow. The parser's own count lags behind after CRLF and blank lines.
struct Lines<'a> {
    text: &'a [u8],
    at: usize,
    line: u64,
}

impl Lines<'_> {
    fn of(&mut self, offset: usize) -> u64 {
        let mut end = offset.min(self.text.len());
        while self
            .text
            .get(end)
            .is_some_and(|b| matches!(b, b'\n' | b'\r'))
        {
            end += 1;
        }
        let step = &self.text[self.at.min(end)..end];
        // A feed ends a line, and so does a return without one.
        let ends = step.iter().enumerate().filter(|(i, b)| match **b {
            b'\n' => true,
            b'\r' => step.get(i + 1) != Some(&b'\n'),
            _ => false,
        });
        self.line += ends.count() as u64;
        self.at = end;
        self.line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(bytes: &[u8]) -> Vec<(u64, Vec<String>)> {
        let table = TextTable::parse(bytes, "f").expect("reads");
        assert_eq!(table.header, ["id", "x"]);
        let own = |r: &csv::StringRecord| r.iter().map(str::to_owned).collect();
        table.rows.iter().map(|(line, r)| (*line, own(r))).collect()
    }

    #[test]
    fn lines_are_those_of_an_editor() {
        let wanted = |a, b, c| {
            vec![
                (a, vec!["é\"".to_owned(), "1\n2".to_owned()]),
                (b, vec!["b".to_owned(), "3".to_owned()]),
                (c, vec!["c".to_owned(), String::new()]),
            ]
        };
        let text = "id,x\n\"é\"\"\",\"1\n2\"\n\nb,3\nc,\n";
        assert_eq!(rows(text.as_bytes()), wanted(2, 5, 6));
        let crlf = text.replace('\n', "\r\n");
        let lines: Vec<u64> = rows(crlf.as_bytes()).iter().map(|r| r.0).collect();
        assert_eq!(lines, [2, 5, 6]);
        let bare = text.replace('\n', "\r");
        let lines: Vec<u64> = rows(bare.as_bytes()).iter().map(|r| r.0).collect();
        assert_eq!(lines, [2, 5, 6]);
        let marked = format!("\u{feff}{}", text.replace(',', ";"));
        assert_eq!(rows(marked.as_bytes()), wanted(2, 5, 6));
        let wide: Vec<u8> = format!("\u{feff}{text}")
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        assert_eq!(rows(&wide), wanted(2, 5, 6));
        let old = WINDOWS_1252.encode(text).0;
        assert_eq!(rows(&old), wanted(2, 5, 6));
    }

    #[test]
    fn files_that_are_no_tables_are_refused_and_doubts_are_said() {
        let refused = |bytes: &[u8]| {
            TextTable::parse(bytes, "f.csv")
                .err()
                .expect("refused")
                .to_string()
        };
        assert!(refused(b"").contains("`f.csv` cannot be read: it is empty"));
        assert!(refused(b"id,x\n\"a,1\n").contains("never closed"));
        assert!(refused(b"id,x\na\0,1\n").contains("zero"));
        let table = TextTable::parse(b"id,x\na,0.9", "f").expect("reads");
        assert!(table.remarks[0].contains("may be cut"));
        let twice = TextTable::parse(b"id,id\na,1\n", "f").expect("reads");
        assert!(twice.column("id").is_err());
    }

    #[test]
    fn a_decimal_comma_needs_other_separators() {
        let commas = TextTable::parse(b"id,x\n", "f").expect("reads");
        let semicolons = TextTable::parse(b"id;x\n", "f").expect("reads");
        assert_eq!(
            (commas.number("0.5"), commas.number("1e-3")),
            (Some(0.5), Some(0.001))
        );
        assert_eq!(
            (commas.number("0,5"), semicolons.number("0,5")),
            (None, Some(0.5))
        );
        for bad in ["nan", "inf", "", "0,5,1", "0.1,5", "1_0", "0x1"] {
            assert_eq!(semicolons.number(bad), None, "{bad}");
        }
    }
}
