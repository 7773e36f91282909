//! What a method made of a model's answers: one row for each image of a cell, with its label and all that an analysis
//! needs to know of it, so that one file can be scored by itself. It computes no metric.

use crate::{
    answer::Outcome,
    error::{Result, StoreError},
    limits::Limits,
    name::CellKey,
    table::{
        self, Columns, PLAIN_GROUP, TableReader, TableSpec, bools, floats, optional, required,
        texts, uints,
    },
};
use arrow_array::RecordBatch;
use arrow_schema::DataType;
use std::{collections::HashSet, path::Path, sync::Arc};

/// Version of the predictions table.
pub const PREDICTIONS_VERSION: u32 = 1;
const NAME: &str = "predictions";

/// Which side of its cell's fit an image was on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fold {
    /// The method was fitted on it.
    Train,
    /// The method was not: metrics are computed on these.
    Test,
}

impl Fold {
    /// Its spelling in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Test => "test",
        }
    }
}

/// One image of a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct PredictionRow {
    /// Index in the records.
    pub sample: u32,
    /// The image's opaque id.
    pub id: String,
    /// Train or test.
    pub fold: Fold,
    /// 0, but for further rows of the same image in the same fold: the published code's merges double some.
    pub copy: u32,
    /// The dataset's split, as used.
    pub split: Option<String>,
    /// Patient key.
    pub patient: Option<String>,
    /// True label; none when unknown.
    pub label: Option<bool>,
    /// True label as the published code derives it.
    pub published_label: Option<bool>,
    /// Positive-class score in [0, 1]. One computed in f32 is its shortest decimal form read as f64.
    pub score: Option<f64>,
    /// Predicted label.
    pub predicted: Option<bool>,
    /// How it went.
    pub outcome: Outcome,
    /// Kind of failure, a short word; always there when `outcome` is an error.
    pub reason: Option<String>,
    /// The generated text, where there was one.
    pub text: Option<String>,
}

/// The predictions of one cell, sorted by sample, then fold, then copy.
#[derive(Debug, Clone, PartialEq)]
pub struct Predictions {
    /// Which cell.
    pub cell: CellKey,
    /// Its rows.
    pub rows: Vec<PredictionRow>,
    /// Further numbers for each row, by name (`cosine_positive`, `candidate_mass`), each as long as `rows`.
    pub extra: Vec<(String, Vec<Option<f64>>)>,
}

const EXTRA: &str = "x_";
/// Column of [`PredictionRow::copy`], in tables that have one above 0.
const COPY: &str = "copy";
const EXTRA_RULE: &str = "an extra column must have a name of its own and a value for each row";
const NOT_EMPTY: &str = "a cell must have at least one row";

fn spec<'a>(copies: bool, extra: impl Iterator<Item = &'a str>) -> TableSpec {
    use DataType::{Boolean, Float64, UInt32, Utf8};
    let mut fields = vec![
        required("dataset", Utf8),
        required("task", Utf8),
        required("method", Utf8),
        required("model", Utf8),
        required("sample", UInt32),
        required("id", Utf8),
        required("fold", Utf8),
        optional("split", Utf8),
        optional("patient", Utf8),
        optional("label", Boolean),
        optional("published_label", Boolean),
        optional("score", Float64),
        optional("predicted", Boolean),
        required("outcome", Utf8),
        optional("reason", Utf8),
        optional("text", Utf8),
    ];
    fields.extend(copies.then(|| required(COPY, UInt32)));
    fields.extend(extra.map(|name| optional(&format!("{EXTRA}{name}"), Float64)));
    TableSpec {
        name: NAME,
        version: PREDICTIONS_VERSION,
        schema: table::schema(fields),
        rows_per_group: PLAIN_GROUP,
    }
}

impl Predictions {
    /// Predictions of `cell`, put in order and checked. `extra` as in the struct.
    pub fn new(
        cell: CellKey,
        rows: Vec<PredictionRow>,
        extra: Vec<(String, Vec<Option<f64>>)>,
    ) -> Result<Self> {
        if let Some((name, values)) = extra.iter().find(|(_, values)| values.len() != rows.len()) {
            return Err(StoreError::rule(
                cell.file_stem(),
                0,
                EXTRA_RULE,
                misfit(name, values.len(), rows.len()),
            ));
        }
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by_key(|&i| (rows[i].sample, rows[i].fold, rows[i].copy));
        let mut sorted: Vec<Option<PredictionRow>> = rows.into_iter().map(Some).collect();
        let rows = order
            .iter()
            .map(|&i| sorted[i].take().expect("an order names each row once"))
            .collect();
        let mut extra: Vec<_> = extra
            .into_iter()
            .map(|(name, values)| (name, order.iter().map(|&i| values[i]).collect()))
            .collect();
        extra.sort_by(|a, b| a.0.cmp(&b.0));
        let made = Self { cell, rows, extra };
        made.check(Path::new(&format!("{}.parquet", made.cell.file_stem())))?;
        Ok(made)
    }

    /// Rows of one fold.
    pub fn fold(&self, fold: Fold) -> impl Iterator<Item = &PredictionRow> {
        self.rows.iter().filter(move |row| row.fold == fold)
    }

    /// Check the rules of `docs/formats.md`; `file` is only named in errors.
    pub fn check(&self, file: &Path) -> Result<()> {
        let cell = &self.cell;
        let names = [&cell.dataset, &cell.task, &cell.method, &cell.model];
        if names.iter().any(|name| name.is_empty()) {
            return Err(StoreError::rule(
                file,
                0,
                "a cell's four names must not be empty",
                cell,
            ));
        }
        if self.rows.is_empty() {
            return Err(StoreError::rule(file, 0, NOT_EMPTY, "none"));
        }
        let mut seen = HashSet::with_capacity(self.rows.len());
        let mut last = None;
        for (i, row) in self.rows.iter().enumerate() {
            check_row(row).map_err(|(rule, found)| StoreError::rule(file, i, rule, found))?;
            let place = (row.sample, row.fold, row.copy);
            if last.is_some_and(|last| last >= place) {
                let rule = "rows must be sorted by `sample`, `fold` and `copy`, each once";
                return Err(StoreError::rule(
                    file,
                    i,
                    rule,
                    format!(
                        "sample {} ({}, copy {})",
                        row.sample,
                        row.fold.as_str(),
                        row.copy
                    ),
                ));
            }
            last = Some(place);
            if !seen.insert((row.fold, row.id.as_str(), row.copy)) {
                return Err(StoreError::rule(
                    file,
                    i,
                    "`id` must be unique within its fold",
                    format!("`{}` again", row.id),
                ));
            }
        }
        for (n, (name, values)) in self.extra.iter().enumerate() {
            let twice = self.extra[..n].iter().any(|(other, _)| other == name);
            if name.is_empty() || twice || values.len() != self.rows.len() {
                return Err(StoreError::rule(
                    file,
                    0,
                    EXTRA_RULE,
                    misfit(name, values.len(), self.rows.len()),
                ));
            }
            if let Some(i) = values
                .iter()
                .position(|v| v.is_some_and(|v| !v.is_finite()))
            {
                return Err(StoreError::rule(
                    file,
                    i,
                    "an extra number must be finite or missing",
                    format!("{:?} in `{name}`", values[i]),
                ));
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
        let copies = self.rows.iter().any(|row| row.copy > 0);
        let spec = spec(copies, self.extra.iter().map(|(name, _)| name.as_str()));
        table::write_table(file, &spec, self.rows.len(), |range| {
            let rows = &self.rows[range.clone()];
            let same = |of: &str| texts(rows.iter().map(|_| Some(of)));
            let mut columns = vec![
                same(&self.cell.dataset),
                same(&self.cell.task),
                same(&self.cell.method),
                same(&self.cell.model),
                uints(rows.iter().map(|r| Some(r.sample))),
                texts(rows.iter().map(|r| Some(r.id.as_str()))),
                texts(rows.iter().map(|r| Some(r.fold.as_str()))),
                texts(rows.iter().map(|r| r.split.as_deref())),
                texts(rows.iter().map(|r| r.patient.as_deref())),
                bools(rows.iter().map(|r| r.label)),
                bools(rows.iter().map(|r| r.published_label)),
                floats(rows.iter().map(|r| r.score)),
                bools(rows.iter().map(|r| r.predicted)),
                texts(rows.iter().map(|r| Some(r.outcome.as_str()))),
                texts(rows.iter().map(|r| r.reason.as_deref())),
                texts(rows.iter().map(|r| r.text.as_deref())),
            ];
            columns.extend(copies.then(|| uints(rows.iter().map(|r| Some(r.copy)))));
            columns.extend(
                self.extra
                    .iter()
                    .map(|(_, values)| floats(values[range.clone()].iter().copied())),
            );
            RecordBatch::try_new(Arc::clone(&spec.schema), columns)
                .expect("columns follow the schema")
        })
    }

    /// Read one cell's table and check it: it must hold exactly one cell.
    pub fn read(file: &Path, limits: &Limits) -> Result<Self> {
        let reader = TableReader::open(file, NAME, PREDICTIONS_VERSION, limits)?;
        let names: Vec<String> = reader
            .schema()
            .fields()
            .iter()
            .filter_map(|f| f.name().strip_prefix(EXTRA).map(str::to_owned))
            .collect();
        let copies = reader.schema().field_with_name(COPY).is_ok();
        let spec = spec(copies, names.iter().map(String::as_str));
        let mut extra: Vec<(String, Vec<Option<f64>>)> =
            names.into_iter().map(|name| (name, Vec::new())).collect();
        let mut cell = None;
        let rows = table::read_all(&reader, &spec, |columns, rows| {
            for (name, values) in &mut extra {
                values.extend(columns.floats(&format!("{EXTRA}{name}"))?);
            }
            let copies = copies.then(|| columns.uints(COPY)).transpose()?;
            parse(columns, copies.as_deref(), &mut cell, rows)
        })?;
        let cell = cell.ok_or_else(|| StoreError::rule(file, 0, NOT_EMPTY, "none"))?;
        let predictions = Self { cell, rows, extra };
        predictions.check(file)?;
        Ok(predictions)
    }
}

fn misfit(name: &str, values: usize, rows: usize) -> String {
    format!("`{name}` with {values} values for {rows} rows")
}

fn check_row(row: &PredictionRow) -> Result<(), (&'static str, String)> {
    if row.id.is_empty() {
        return Err(("`id` must not be empty", "nothing".into()));
    }
    if let Some(score) = row.score.filter(|s| !(0.0..=1.0).contains(s)) {
        return Err((
            "`score` must be finite and lie in [0, 1]",
            score.to_string(),
        ));
    }
    let there = (row.score.is_some(), row.predicted.is_some());
    let (rule, holds) = match row.outcome {
        Outcome::Ok => (
            "an `ok` row must have `score` and `predicted`",
            there == (true, true),
        ),
        Outcome::Unparseable | Outcome::Refused => (
            "an `unparseable` or `refused` row must not have `predicted`",
            !there.1,
        ),
        Outcome::ScoreUnavailable => ("a `score_unavailable` row must not have `score`", !there.0),
        Outcome::ImageError | Outcome::ModelError => (
            "an error row must have neither `score` nor `predicted`",
            there == (false, false),
        ),
    };
    if !holds {
        return Err((
            rule,
            format!("score {:?}, predicted {:?}", row.score, row.predicted),
        ));
    }
    if row.outcome.is_error() && row.reason.as_deref().unwrap_or_default().is_empty() {
        return Err(("an error row must have a `reason`", "none".into()));
    }
    Ok(())
}

fn parse(
    columns: &Columns<'_>,
    copies: Option<&[Option<u32>]>,
    one: &mut Option<CellKey>,
    rows: &mut Vec<PredictionRow>,
) -> Result<()> {
    let (dataset, task) = (columns.texts("dataset")?, columns.texts("task")?);
    let (method, model) = (columns.texts("method")?, columns.texts("model")?);
    let (sample, id, fold) = (
        columns.uints("sample")?,
        columns.texts("id")?,
        columns.texts("fold")?,
    );
    let (split, patient) = (columns.texts("split")?, columns.texts("patient")?);
    let (label, published) = (columns.bools("label")?, columns.bools("published_label")?);
    let (score, predicted) = (columns.floats("score")?, columns.bools("predicted")?);
    let (outcome, reason, text) = (
        columns.texts("outcome")?,
        columns.texts("reason")?,
        columns.texts("text")?,
    );
    let own = |text: Option<&str>| text.map(str::to_owned);
    for i in 0..sample.len() {
        let rule = |rule, found: &str| {
            StoreError::rule(columns.file, columns.base + i, rule, format!("`{found}`"))
        };
        let names = [
            columns.must("dataset", i, dataset[i])?,
            columns.must("task", i, task[i])?,
            columns.must("method", i, method[i])?,
            columns.must("model", i, model[i])?,
        ];
        let cell = one.get_or_insert_with(|| CellKey::new(names[0], names[1], names[2], names[3]));
        if names != [&cell.dataset, &cell.task, &cell.method, &cell.model] {
            return Err(rule("all rows must be of one cell", &names.join(" ")));
        }
        let fold = match columns.must("fold", i, fold[i])? {
            "train" => Fold::Train,
            "test" => Fold::Test,
            other => return Err(rule("`fold` must be `train` or `test`", other)),
        };
        let word = columns.must("outcome", i, outcome[i])?;
        let outcome = Outcome::parse(word).ok_or_else(|| rule(Outcome::RULE, word))?;
        rows.push(PredictionRow {
            sample: columns.must("sample", i, sample[i])?,
            id: columns.must("id", i, id[i])?.into(),
            fold,
            copy: match copies {
                Some(copies) => columns.must(COPY, i, copies[i])?,
                None => 0,
            },
            split: own(split[i]),
            patient: own(patient[i]),
            label: label[i],
            published_label: published[i],
            score: score[i],
            predicted: predicted[i],
            outcome,
            reason: own(reason[i]),
            text: own(text[i]),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
