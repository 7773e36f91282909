//! A table of what is known of each image: age, sex, quality, patient and so on, by dataset and id. Its words are the
//! store's own and nothing is recoded: datasets code sex in opposite ways. It must not know result files.

use super::{roster::last_part, text::TextTable};
use crate::error::{BadRow, BadRows, ExchangeError, Result, shorten};
use focus_store::Record;
use std::{
    collections::{BTreeSet, HashSet},
    path::Path,
};

const COLUMNS: [&str; 11] = [
    "dataset", "id", "age", "sex", "quality", "patient", "eye", "grade", "edema", "split", "path",
];
const LABEL: &str = "label_";

/// The rows of a metadata file.
pub(crate) struct Metadata {
    pub records: Vec<Record>,
    /// Tasks that have a label column.
    pub tasks: BTreeSet<String>,
    pub digest: String,
    pub name: String,
}

/// Read `path`. Every bad row is listed; none is passed over.
pub(crate) fn read_metadata(path: &Path) -> Result<Metadata> {
    let name = path
        .file_name()
        .map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    parse(&TextTable::read(path, &name)?)
}

fn parse(table: &TextTable) -> Result<Metadata> {
    let columns_error = |expected: String, found: String| ExchangeError::Columns {
        file: table.name.clone(),
        expected,
        found,
    };
    let mut places = Vec::new();
    let mut tasks = BTreeSet::new();
    for (at, column) in table.header.iter().enumerate() {
        table.column(column)?;
        if let Some(task) = column.strip_prefix(LABEL).filter(|t| !t.is_empty()) {
            tasks.insert(task.to_owned());
        } else if !COLUMNS.contains(&column.as_str()) {
            return Err(columns_error(
                format!(
                    "only {} and `label_<task>`",
                    COLUMNS.map(|c| format!("`{c}`")).join(", ")
                ),
                format!("`{}`", shorten(column, 60)),
            ));
        }
        places.push((at, column.as_str()));
    }
    for needed in ["dataset", "id"] {
        if table.column(needed)?.is_none() {
            return Err(columns_error(format!("`{needed}`"), "none".into()));
        }
    }
    let mut bad = BadRows::default();
    let mut seen = HashSet::new();
    let mut records: Vec<Record> = Vec::with_capacity(table.rows.len());
    for (line, cells) in &table.rows {
        let mut record = Record::default();
        let mut fault = (cells.len() != table.header.len()).then(|| {
            (
                "a row must have as many cells as the header",
                format!("{} for {}", cells.len(), table.header.len()),
            )
        });
        for (at, column) in &places {
            let text = cells.get(*at).unwrap_or_default().trim();
            if fault.is_none() && !text.is_empty() {
                fault = set(&mut record, column, text, table)
                    .err()
                    .map(|rule| (rule, text.to_owned()));
            }
        }
        if fault.is_none() && (record.dataset.is_empty() || record.id.is_empty()) {
            fault = Some(("`dataset` and `id` must not be empty", "nothing".into()));
        }
        // Never a path in the store's ids: the last part is the id, as for result files.
        if record.id.contains(['/', '\\']) {
            let id = last_part(&record.id).to_owned();
            let path = std::mem::replace(&mut record.id, id);
            // Nor one of somebody's machine.
            if !path.starts_with('/') && !path.contains(['\\', ':']) {
                record.path.get_or_insert(path);
            }
        }
        if fault.is_none() && !seen.insert((record.dataset.clone(), record.id.clone())) {
            fault = Some((
                "`id` must be there once for each dataset",
                record.id.clone(),
            ));
        }
        match fault {
            Some((rule, found)) => bad.push(BadRow {
                file: table.name.clone(),
                line: *line,
                rule,
                found: format!("`{}`", shorten(&found, 60)),
            }),
            None => records.push(record),
        }
    }
    if bad.total > 0 {
        return Err(ExchangeError::BadRows {
            shown: bad.shown,
            total: bad.total,
        });
    }
    Ok(Metadata {
        records,
        tasks,
        digest: table.digest.clone(),
        name: table.name.clone(),
    })
}

fn set(
    record: &mut Record,
    column: &str,
    text: &str,
    table: &TextTable,
) -> Result<(), &'static str> {
    let word = |allowed: &[&str], rule| {
        allowed
            .contains(&text)
            .then(|| Some(text.to_owned()))
            .ok_or(rule)
    };
    let own = || Some(text.to_owned());
    match column {
        "dataset" => record.dataset = text.into(),
        "id" => record.id = text.into(),
        "path" => record.path = own(),
        "patient" => record.patient = own(),
        "age" => {
            let age = table.number(text).filter(|a| (0.0..=150.0).contains(a));
            record.age = Some(age.ok_or("`age` must be a number of years in [0, 150]")?);
        }
        "sex" => {
            record.sex = word(
                &["female", "male"],
                "`sex` must be `female` or `male` (numbers mean opposite things in different datasets)",
            )?;
        }
        "quality" => {
            record.quality = word(&["good", "poor"], "`quality` must be `good` or `poor`")?;
        }
        "eye" => record.eye = word(&["left", "right"], "`eye` must be `left` or `right`")?,
        "split" => {
            record.split = word(
                &["train", "validation", "test"],
                "`split` must be `train`, `validation` or `test`",
            )?;
        }
        "grade" => {
            // 2.0 is what a column with blanks becomes in pandas.
            let grade = table
                .number(text)
                .filter(|g| [0.0, 1.0, 2.0, 3.0, 4.0].contains(g));
            record.grade = Some(grade.ok_or("`grade` must be an ICDR grade, 0 to 4")? as i32);
        }
        "edema" => {
            record.edema = super::file::label_of(text).map_err(|_| "`edema` must be 0 or 1")?;
        }
        label => {
            let task = label.strip_prefix(LABEL).expect("other columns are labels");
            if let Some(value) = super::file::label_of(text)
                .map_err(|_| "a label must be 0 or 1, or blank where it is unknown")?
            {
                record.labels.insert(task.into(), value);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Metadata> {
        parse(&TextTable::parse(text.as_bytes(), "m.csv").expect("text"))
    }

    #[test]
    fn what_is_known_is_read_and_blanks_stay_unknown() {
        let data = read("dataset,id,age,sex,quality,patient,eye,grade,edema,split,label_glaucoma\nbrset,a,61.5,female,good,p1,left,2.0,1,test,1\nbrset,b,,,,,,,,,\n").expect("reads");
        let a = &data.records[0];
        assert_eq!(
            (a.age, a.sex.as_deref(), a.grade, a.edema),
            (Some(61.5), Some("female"), Some(2), Some(true))
        );
        assert!(a.labels["glaucoma"]);
        let paths = read("dataset,id\nbrset,a/x.jpg\nbrset,/home/y.jpg\n").expect("reads");
        let named: Vec<_> = paths
            .records
            .iter()
            .map(|r| (r.id.as_str(), r.path.as_deref()))
            .collect();
        assert_eq!(named, [("x.jpg", Some("a/x.jpg")), ("y.jpg", None)]);
        assert_eq!(
            data.records[1],
            Record {
                dataset: "brset".into(),
                id: "b".into(),
                ..Record::default()
            }
        );
    }

    #[test]
    fn codings_are_not_guessed_and_every_bad_row_is_listed() {
        let error = read("dataset,id,age,sex,quality\nbrset,a,61,1,good\nbrset,b,200,,\nbrset,c,,,Adequate\nbrset,d,,,\nbrset,d,,,\n,e,,,\n").err().expect("refused");
        let text = error.to_string();
        for part in [
            "found 5",
            "line 2: `sex` must be",
            "line 3: `age`",
            "line 4: `quality`",
            "line 6: `id` must be there once",
            "line 7: `dataset`",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert!(read("dataset,id,gender\n").is_err() && read("id,age\n").is_err());
    }
}
