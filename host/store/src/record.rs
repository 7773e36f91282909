//! The harmonised records of a run: one row for each image that a mapper let through, in a fixed order that every other
//! file refers to. It knows no dataset's codings.

use crate::{
    error::{Result, StoreError},
    hash::ContentHash,
    limits::Limits,
    table::{
        self, Columns, PLAIN_GROUP, TableReader, TableSpec, bools, floats, ints, optional,
        required, texts, uints,
    },
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field};
use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    path::Path,
    sync::Arc,
};

/// Version of the records table.
pub const RECORDS_VERSION: u32 = 1;
const NAME: &str = "records";
const LABEL: &str = "label_";
const PUBLISHED: &str = "published_label_";

/// One image and what its dataset says about it. Its place in `Records::rows` is its sample index.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Record {
    /// Dataset id.
    pub dataset: String,
    /// Opaque id, unique within the dataset. Never a path.
    pub id: String,
    /// Path below the dataset's root, where the dataset has files.
    pub path: Option<String>,
    /// Hash of the image file's bytes, where it could be read.
    pub content_hash: Option<ContentHash>,
    /// Split as the source names it.
    pub source_split: Option<String>,
    /// Split as used: `train`, `validation` or `test`.
    pub split: Option<String>,
    /// Patient key, unique within the dataset.
    pub patient: Option<String>,
    /// `left` or `right`.
    pub eye: Option<String>,
    /// ICDR grade, 0 to 4.
    pub grade: Option<i32>,
    /// Suspicious macular edema.
    pub edema: Option<bool>,
    /// Age in years.
    pub age: Option<f64>,
    /// `female` or `male`.
    pub sex: Option<String>,
    /// `good` or `poor`.
    pub quality: Option<String>,
    /// Width of the source image, pixels.
    pub width: Option<u32>,
    /// Height of the source image, pixels.
    pub height: Option<u32>,
    /// What else the mapper gave (findings, boxes, landmarks), as JSON.
    pub extra: Option<String>,
    /// Labels that are known, by task. Absent is unknown, and unknown is never negative.
    pub labels: BTreeMap<String, bool>,
    /// The same as the published code derives them.
    pub published_labels: BTreeMap<String, bool>,
}

/// All records of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Records {
    /// Tasks that have label columns, known or not.
    pub tasks: BTreeSet<String>,
    /// Row `i` is sample `i`.
    pub rows: Vec<Record>,
}

fn fixed_fields() -> Vec<Field> {
    use DataType::{Boolean, Float64, Int32, UInt32, Utf8};
    vec![
        required("sample", UInt32),
        required("dataset", Utf8),
        required("id", Utf8),
        optional("path", Utf8),
        optional("content_hash", Utf8),
        optional("source_split", Utf8),
        optional("split", Utf8),
        optional("patient", Utf8),
        optional("eye", Utf8),
        optional("grade", Int32),
        optional("edema", Boolean),
        optional("age", Float64),
        optional("sex", Utf8),
        optional("quality", Utf8),
        optional("width", UInt32),
        optional("height", UInt32),
        optional("extra", Utf8),
    ]
}

fn spec(tasks: &BTreeSet<String>) -> TableSpec {
    let mut fields = fixed_fields();
    for prefix in [LABEL, PUBLISHED] {
        fields.extend(
            tasks
                .iter()
                .map(|task| optional(&format!("{prefix}{task}"), DataType::Boolean)),
        );
    }
    TableSpec {
        name: NAME,
        version: RECORDS_VERSION,
        schema: table::schema(fields),
        rows_per_group: PLAIN_GROUP,
    }
}

impl Records {
    /// Check the rules: ids unique within a dataset, values in their ranges, labels only of `tasks`.
    pub fn check(&self, file: &Path) -> Result<()> {
        let mut seen = HashSet::new();
        for (i, row) in self.rows.iter().enumerate() {
            let rule = |rule, found: &dyn ToString| {
                Err(StoreError::rule(file, i, rule, found.to_string()))
            };
            if row.dataset.is_empty() || row.id.is_empty() {
                return rule(
                    "`dataset` and `id` must not be empty",
                    &format!("`{}` and `{}`", row.dataset, row.id),
                );
            }
            if !seen.insert((&row.dataset, &row.id)) {
                return rule(
                    "`id` must be unique within its dataset",
                    &format!("`{}` again", row.id),
                );
            }
            if let Some(grade) = row.grade.filter(|g| !(0..=4).contains(g)) {
                return rule("`grade` must lie in [0, 4]", &grade);
            }
            if let Some(age) = row.age.filter(|a| !(0.0..=150.0).contains(a)) {
                return rule("`age` must lie in [0, 150] years", &age);
            }
            for (value, allowed, text) in [
                (
                    &row.split,
                    &["train", "validation", "test"][..],
                    "`split` must be `train`, `validation` or `test`",
                ),
                (
                    &row.eye,
                    &["left", "right"],
                    "`eye` must be `left` or `right`",
                ),
                (
                    &row.sex,
                    &["female", "male"],
                    "`sex` must be `female` or `male`",
                ),
                (
                    &row.quality,
                    &["good", "poor"],
                    "`quality` must be `good` or `poor`",
                ),
            ] {
                if let Some(value) = value.as_deref().filter(|v| !allowed.contains(v)) {
                    return rule(text, &format!("`{value}`"));
                }
            }
            if let Some(task) = row
                .labels
                .keys()
                .chain(row.published_labels.keys())
                .find(|t| !self.tasks.contains(*t))
            {
                return rule(
                    "a label must belong to one of the table's tasks",
                    &format!("`{task}`"),
                );
            }
        }
        Ok(())
    }

    /// Write the table, atomically, after `check`.
    pub fn write(&self, file: &Path) -> Result<()> {
        self.check(file)?;
        self.write_unchecked(file)
    }

    fn write_unchecked(&self, file: &Path) -> Result<()> {
        let spec = spec(&self.tasks);
        table::write_table(file, &spec, self.rows.len(), |range| {
            let rows = &self.rows[range.clone()];
            let text =
                |get: fn(&Record) -> &Option<String>| texts(rows.iter().map(|r| get(r).as_deref()));
            let hashes: Vec<_> = rows
                .iter()
                .map(|r| r.content_hash.map(|h| h.to_string()))
                .collect();
            let mut columns: Vec<ArrayRef> = vec![
                uints(range.map(|i| Some(i as u32))),
                texts(rows.iter().map(|r| Some(r.dataset.as_str()))),
                texts(rows.iter().map(|r| Some(r.id.as_str()))),
                text(|r| &r.path),
                texts(hashes.iter().map(Option::as_deref)),
                text(|r| &r.source_split),
                text(|r| &r.split),
                text(|r| &r.patient),
                text(|r| &r.eye),
                ints(rows.iter().map(|r| r.grade)),
                bools(rows.iter().map(|r| r.edema)),
                floats(rows.iter().map(|r| r.age)),
                text(|r| &r.sex),
                text(|r| &r.quality),
                uints(rows.iter().map(|r| r.width)),
                uints(rows.iter().map(|r| r.height)),
                text(|r| &r.extra),
            ];
            columns.extend(
                self.tasks
                    .iter()
                    .map(|task| bools(rows.iter().map(|r| r.labels.get(task).copied()))),
            );
            columns.extend(
                self.tasks
                    .iter()
                    .map(|task| bools(rows.iter().map(|r| r.published_labels.get(task).copied()))),
            );
            RecordBatch::try_new(Arc::clone(&spec.schema), columns)
                .expect("columns follow the schema")
        })
    }

    /// Read the table and check it.
    pub fn read(file: &Path, limits: &Limits) -> Result<Self> {
        let reader = TableReader::open(file, NAME, RECORDS_VERSION, limits)?;
        let tasks = reader
            .schema()
            .fields()
            .iter()
            .filter_map(|f| f.name().strip_prefix(LABEL).map(str::to_owned))
            .collect();
        let spec = spec(&tasks);
        let rows = table::read_all(&reader, &spec, |columns, rows| parse(columns, &tasks, rows))?;
        let records = Self { tasks, rows };
        records.check(file)?;
        Ok(records)
    }
}

fn parse(columns: &Columns<'_>, tasks: &BTreeSet<String>, rows: &mut Vec<Record>) -> Result<()> {
    let samples = columns.uints("sample")?;
    let (dataset, id) = (columns.texts("dataset")?, columns.texts("id")?);
    let (path, hash) = (columns.texts("path")?, columns.texts("content_hash")?);
    let (source_split, split) = (columns.texts("source_split")?, columns.texts("split")?);
    let (patient, eye) = (columns.texts("patient")?, columns.texts("eye")?);
    let (grade, edema, age) = (
        columns.ints("grade")?,
        columns.bools("edema")?,
        columns.floats("age")?,
    );
    let (sex, quality) = (columns.texts("sex")?, columns.texts("quality")?);
    let (width, height, extra) = (
        columns.uints("width")?,
        columns.uints("height")?,
        columns.texts("extra")?,
    );
    let labels = |prefix: &str| -> Result<Vec<(String, Vec<Option<bool>>)>> {
        tasks
            .iter()
            .map(|task| Ok((task.clone(), columns.bools(&format!("{prefix}{task}"))?)))
            .collect()
    };
    let (ours, published) = (labels(LABEL)?, labels(PUBLISHED)?);
    let known = |of: &[(String, Vec<Option<bool>>)], i: usize| {
        of.iter()
            .filter_map(|(task, values)| Some((task.clone(), values[i]?)))
            .collect()
    };
    let own = |text: Option<&str>| text.map(str::to_owned);
    for (i, sample) in samples.into_iter().enumerate() {
        let row = columns.base + i;
        if sample.map(|s| s as usize) != Some(row) {
            return Err(StoreError::rule(
                columns.file,
                row,
                "`sample` must be the row's number",
                format!("{sample:?}"),
            ));
        }
        let content_hash = hash[i].map(str::parse).transpose().map_err(|_| {
            let rule = "`content_hash` must be 64 lower-case hexadecimal digits";
            StoreError::rule(
                columns.file,
                row,
                rule,
                format!("`{}`", hash[i].unwrap_or_default()),
            )
        })?;
        rows.push(Record {
            dataset: columns.must("dataset", i, dataset[i])?.into(),
            id: columns.must("id", i, id[i])?.into(),
            path: own(path[i]),
            content_hash,
            source_split: own(source_split[i]),
            split: own(split[i]),
            patient: own(patient[i]),
            eye: own(eye[i]),
            grade: grade[i],
            edema: edema[i],
            age: age[i],
            sex: own(sex[i]),
            quality: own(quality[i]),
            width: width[i],
            height: height[i],
            extra: own(extra[i]),
            labels: known(&ours, i),
            published_labels: known(&published, i),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records() -> Records {
        let full = Record {
            dataset: "idrid".into(),
            id: "a".into(),
            path: Some("images/a.jpg".into()),
            content_hash: Some(ContentHash::of(b"a")),
            source_split: Some("training".into()),
            split: Some("train".into()),
            patient: Some("p1".into()),
            eye: Some("left".into()),
            grade: Some(2),
            edema: Some(false),
            age: Some(61.5),
            sex: Some("female".into()),
            quality: Some("good".into()),
            width: Some(4288),
            height: Some(2848),
            extra: Some("{\"boxes\":[]}".into()),
            labels: BTreeMap::from([("binary_dr".into(), true)]),
            published_labels: BTreeMap::from([
                ("binary_dr".into(), true),
                ("glaucoma".into(), false),
            ]),
        };
        let bare = Record {
            dataset: "idrid".into(),
            id: "é\n\"".into(),
            ..Record::default()
        };
        Records {
            tasks: ["binary_dr", "glaucoma"].map(str::to_owned).into(),
            rows: vec![full, bare],
        }
    }

    #[test]
    fn records_survive_and_unknown_stays_unknown() {
        let folder = tempfile::tempdir().expect("folder");
        let file = folder.path().join("records.parquet");
        records().write(&file).expect("writes");
        assert_eq!(
            Records::read(&file, &Limits::default()).expect("reads"),
            records()
        );
        let none = Records::default();
        none.write(&file).expect("writes none");
        assert_eq!(
            Records::read(&file, &Limits::default()).expect("reads none"),
            none
        );
    }

    #[test]
    fn rules_are_checked_on_reading_too() {
        let folder = tempfile::tempdir().expect("folder");
        let file = folder.path().join("records.parquet");
        let mut records = records();
        records.rows[1].id = "a".into();
        records.write_unchecked(&file).expect("writes");
        let error = Records::read(&file, &Limits::default()).expect_err("twice");
        assert!(matches!(&error, StoreError::Rule { file: named, row: 1, .. } if *named == file));
        assert!(error.to_string().ends_with(
            "records.parquet`, row 1: `id` must be unique within its dataset, found `a` again"
        ));
    }

    #[test]
    fn each_rule_names_row_and_value() {
        type Spoil = fn(&mut Record);
        let broken: [(&str, Spoil); 9] = [
            ("unique", |r| r.id = "a".into()),
            ("empty", |r| r.id.clear()),
            ("[0, 4]", |r| r.grade = Some(5)),
            ("[0, 150]", |r| r.age = Some(f64::NAN)),
            ("`split`", |r| r.split = Some("val".into())),
            ("`eye`", |r| r.eye = Some("OD".into())),
            ("`sex`", |r| r.sex = Some("1".into())),
            ("`quality`", |r| r.quality = Some("Adequate".into())),
            ("tasks", |r| r.labels.extend([("other".into(), true)])),
        ];
        for (text, spoil) in broken {
            let mut records = records();
            spoil(&mut records.rows[1]);
            let error = records.check(Path::new("r")).expect_err(text);
            assert!(
                matches!(error, StoreError::Rule { row: 1, .. })
                    && error.to_string().contains(text),
                "{error}"
            );
        }
    }
}
