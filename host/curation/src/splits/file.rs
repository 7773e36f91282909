//! The published split files, as rows: three known headers, nothing else. Knows no records and matches nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Split;
use crate::{CurationError, Result};

/// Largest split file that is read, in bytes; the largest published one has half a megabyte.
pub const MAX_SPLIT_FILE: u64 = 64 << 20;

/// Which header a split file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileShape {
    /// `dataset,image_id,split,image_path,Task_DR_Binary,Task_Referable,Task_Glaucoma`.
    SevenColumns,
    /// `patient_id,image_id,split`.
    Brset,
    /// `patient,file,split`.
    Mbrset,
}

const SHAPES: [(FileShape, &[&str]); 3] = [
    (
        FileShape::SevenColumns,
        &[
            "dataset",
            "image_id",
            "split",
            "image_path",
            "Task_DR_Binary",
            "Task_Referable",
            "Task_Glaucoma",
        ],
    ),
    (FileShape::Brset, &["patient_id", "image_id", "split"]),
    (FileShape::Mbrset, &["patient", "file", "split"]),
];

/// Label columns and the tasks that they are of.
const TASKS: [(&str, &str); 3] = [
    ("Task_DR_Binary", "binary_dr"),
    ("Task_Referable", "referable_dr"),
    ("Task_Glaucoma", "glaucoma"),
];

/// A row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedRow {
    /// Line in the file, from 1.
    pub line: u64,
    /// Its split.
    pub split: Split,
    /// Patient, in the two shapes that have one.
    pub patient: Option<String>,
    /// Image id or file name.
    pub image: String,
    /// Path on the machine that the file was made on, as spelt.
    pub path: Option<String>,
    /// Known labels by task.
    pub labels: BTreeMap<&'static str, bool>,
}

/// A split file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedFile {
    /// Where it was read from.
    pub file: PathBuf,
    /// `blake3:` and the hash of its bytes.
    pub digest: String,
    /// Its header.
    pub shape: FileShape,
    /// The dataset that it names, in the shape that names one.
    pub dataset: Option<String>,
    /// Rows in the file's order; at least one.
    pub rows: Vec<PublishedRow>,
}

/// Read a split file.
pub fn read_published(file: &Path) -> Result<PublishedFile> {
    let fault = |source| CurationError::Io {
        action: "read",
        path: file.into(),
        source,
    };
    let bytes = fs::metadata(file).map_err(fault)?.len();
    if bytes > MAX_SPLIT_FILE {
        return Err(CurationError::SplitFileTooLarge {
            file: file.into(),
            bytes,
            limit: MAX_SPLIT_FILE,
        });
    }
    parse_published(file, &fs::read(file).map_err(fault)?)
}

/// Where a row's text begins. The reader places a row after the carriage return, before the line feed, of the row above, and its line with it.
fn row_start(body: &[u8], position: &csv::Position) -> usize {
    let mut start = (position.byte() as usize).min(body.len());
    while body
        .get(start)
        .is_some_and(|byte| matches!(byte, b'\r' | b'\n'))
    {
        start += 1;
    }
    start
}

fn newlines(body: &[u8], from: usize, to: usize) -> u64 {
    body[from..to].split(|byte| *byte == b'\n').count() as u64 - 1
}

/// The same from bytes; `file` is named in errors.
pub fn parse_published(file: &Path, bytes: &[u8]) -> Result<PublishedFile> {
    let digest = format!("blake3:{}", blake3::hash(bytes).to_hex());
    let body = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .from_reader(body);
    let broken = |error: csv::Error| CurationError::SplitRow {
        file: file.into(),
        line: error.position().map_or(1, |position| {
            1 + newlines(body, 0, row_start(body, position))
        }),
        rule: "every row must be UTF-8 text with as many fields as the header",
        found: error.to_string(),
    };
    let header = reader.headers().map_err(broken)?.clone();
    let mut found: Vec<&str> = header.iter().collect();
    found.sort_unstable();
    let shape = SHAPES.iter().find(|(_, columns)| {
        let mut columns = columns.to_vec();
        columns.sort_unstable();
        columns == found
    });
    let Some((shape, _)) = shape else {
        let expected: Vec<String> = SHAPES
            .iter()
            .map(|(_, columns)| format!("`{}`", columns.join(",")))
            .collect();
        let found: String = header.iter().collect::<Vec<_>>().join(",");
        return Err(CurationError::SplitHeader {
            file: file.into(),
            expected: expected.join(" or "),
            found: format!("`{}`", found.chars().take(300).collect::<String>()),
        });
    };
    let place = |name: &str| header.iter().position(|column| column == name);
    let image_at = place("image_id")
        .or_else(|| place("file"))
        .expect("every shape has one");
    let split_at = place("split").expect("every shape has it");
    let (patient_at, path_at) = (
        place("patient_id").or_else(|| place("patient")),
        place("image_path"),
    );
    let labels_at: Vec<(usize, &str)> = TASKS
        .iter()
        .filter_map(|(column, task)| Some((place(column)?, *task)))
        .collect();

    let (mut line, mut counted) = (1, 0);
    let mut dataset: Option<String> = None;
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(broken)?;
        if let Some(position) = record.position() {
            let start = row_start(body, position);
            line += newlines(body, counted, start);
            counted = start;
        }
        if record.iter().all(str::is_empty) {
            continue;
        }
        let rule = |rule, found: &str| CurationError::SplitRow {
            file: file.into(),
            line,
            rule,
            found: format!("`{}`", found.chars().take(120).collect::<String>()),
        };
        let cell = |at: usize| record.get(at).unwrap_or_default();
        let split = match cell(split_at) {
            "train" => Split::Train,
            "val" | "valid" | "validation" => Split::Validation,
            "test" => Split::Test,
            other => return Err(rule("`split` must be `train`, `val` or `test`", other)),
        };
        let image = cell(image_at);
        if image.is_empty() {
            return Err(rule("the image's name must not be empty", image));
        }
        if let Some(at) = place("dataset") {
            match &dataset {
                None => dataset = Some(cell(at).to_owned()),
                Some(known) if known == cell(at) => {}
                Some(_) => {
                    return Err(rule("all rows must be of one dataset", cell(at)));
                }
            }
        }
        let mut labels = BTreeMap::new();
        for &(at, task) in &labels_at {
            match cell(at) {
                "" | "nan" | "NaN" => {}
                "0" | "0.0" => {
                    labels.insert(task, false);
                }
                "1" | "1.0" => {
                    labels.insert(task, true);
                }
                other => return Err(rule("a label must be 0, 1 or blank", other)),
            }
        }
        let own = |at: Option<usize>| {
            at.map(cell)
                .filter(|text| !text.is_empty())
                .map(str::to_owned)
        };
        rows.push(PublishedRow {
            line,
            split,
            // A numeric column that passed through a table library: `9001.0`.
            patient: own(patient_at).map(|p| p.strip_suffix(".0").map_or(p.clone(), str::to_owned)),
            image: image.to_owned(),
            path: own(path_at),
            labels,
        });
    }
    if rows.is_empty() {
        return Err(CurationError::SplitRow {
            file: file.into(),
            line: 2,
            rule: "a split file must have rows",
            found: "none".into(),
        });
    }
    Ok(PublishedFile {
        file: file.into(),
        digest,
        shape: *shape,
        dataset,
        rows,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<PublishedFile> {
        parse_published(Path::new("f.csv"), text.as_bytes())
    }

    #[test]
    fn the_three_shapes_are_read_with_their_oddities() {
        let seven = parse("\u{feff}dataset,image_id,split,image_path,Task_DR_Binary,Task_Referable,Task_Glaucoma\r\ng,a,val,/x/a.jpg,1.0,,0\r\n,,,,,,\r\n").expect("reads");
        assert_eq!(
            (seven.shape, seven.dataset.as_deref()),
            (FileShape::SevenColumns, Some("g"))
        );
        let row = &seven.rows[0];
        assert_eq!(
            (row.line, row.split, row.path.as_deref()),
            (2, Split::Validation, Some("/x/a.jpg"))
        );
        assert_eq!(
            row.labels,
            BTreeMap::from([("binary_dr", true), ("glaucoma", false)])
        );
        let brset = parse("patient_id,image_id,split\n9001.0,img1,train\n").expect("reads");
        assert_eq!(
            (brset.shape, brset.rows[0].patient.as_deref()),
            (FileShape::Brset, Some("9001"))
        );
        let mbrset = parse("split,file,patient\ntest,1.1.jpg,1\n").expect("order is free");
        assert_eq!(
            (mbrset.shape, mbrset.rows[0].image.as_str()),
            (FileShape::Mbrset, "1.1.jpg")
        );
    }

    #[test]
    fn everything_else_is_refused_with_its_line() {
        let cases = [
            ("a,b\n1,2\n", "found `a,b`"),
            (
                "patient,file,split\n1,1.jpg,dev\n",
                "line 2: `split` must be `train`, `val` or `test`, found `dev`",
            ),
            (
                "patient,file,split\n1,,train\n",
                "line 2: the image's name must not be empty",
            ),
            ("patient,file,split\n1,a,train\n2,b\n", "line 3: every row"),
            ("patient,file,split\n", "must have rows"),
            (
                "dataset,image_id,split,image_path,Task_DR_Binary,Task_Referable,Task_Glaucoma\ng,a,val,,2,,\n",
                "line 2: a label must be 0, 1 or blank, found `2`",
            ),
            (
                "dataset,image_id,split,image_path,Task_DR_Binary,Task_Referable,Task_Glaucoma\ng,a,val,,,,\nh,a,val,,,,\n",
                "line 3: all rows must be of one dataset",
            ),
        ];
        for (text, expected) in cases {
            let error = parse(text).expect_err(expected);
            assert!(error.to_string().contains(expected), "{error}");
            assert!(error.hint().is_some());
        }
        assert!(parse_published(Path::new("f"), b"patient,file,split\n1,\xff,train\n").is_err());
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_give_rows_or_an_error(tail in proptest::collection::vec(proptest::num::u8::ANY, 0..200), shape in 0usize..3) {
            let mut bytes = SHAPES[shape].1.join(",").into_bytes();
            bytes.push(b'\n');
            bytes.extend(tail);
            if let Ok(file) = parse_published(Path::new("f"), &bytes) {
                proptest::prop_assert!(!file.rows.is_empty() && file.rows.iter().all(|row| row.line >= 2));
            }
        }
    }
}
