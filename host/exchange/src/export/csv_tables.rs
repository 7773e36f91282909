//! The store's tables as CSV, with a dictionary of their columns: UTF-8, commas, line feeds, exact numbers, empty for
//! missing. It must not know what a metric means.

use super::{
    ExportSummary,
    folder::NewFolder,
    spreadsheet::{number, protect_text},
};
use crate::error::Result;
use focus_store::{CellKey, MetricRow, PredictionRow, Record, Records, RunView};
use std::{
    collections::BTreeSet,
    io::{self, Write},
};

/// Name, type and meaning of a column.
type Column = (&'static str, &'static str, &'static str);

const CELL: [Column; 4] = [
    ("dataset", "text", "dataset id"),
    ("task", "text", "task id"),
    ("method", "text", "method id"),
    ("model", "text", "model id"),
];
const PREDICTIONS: [Column; 13] = [
    (
        "sample",
        "whole number",
        "row of the image in records.csv, from 0",
    ),
    ("id", "text", "id of the image"),
    (
        "fold",
        "text",
        "train: the method was fitted on it; test: metrics are computed on it",
    ),
    (
        "copy",
        "whole number",
        "0, but for further rows of an image that the published code's merges make",
    ),
    ("split", "text", "the dataset's split"),
    ("patient", "text", "patient key"),
    ("label", "true/false", "true label; empty: unknown"),
    (
        "published_label",
        "true/false",
        "true label as the published code derives it; empty: unknown",
    ),
    (
        "score",
        "number",
        "score of the positive class, 0 to 1; empty: none",
    ),
    ("predicted", "true/false", "predicted label; empty: none"),
    (
        "outcome",
        "text",
        "ok, unparseable, refused, score_unavailable, image_error, model_error",
    ),
    ("reason", "text", "kind of failure"),
    ("text", "text", "generated text"),
];
const RECORDS: [Column; 17] = [
    ("sample", "whole number", "number of the row, from 0"),
    ("dataset", "text", "dataset id"),
    ("id", "text", "id of the image, unique within the dataset"),
    ("path", "text", "path below the dataset's folder"),
    ("content_hash", "text", "BLAKE3 of the image file"),
    ("source_split", "text", "split as the source names it"),
    ("split", "text", "train, validation or test, as used"),
    ("patient", "text", "patient key, unique within the dataset"),
    ("eye", "text", "left or right"),
    ("grade", "whole number", "ICDR grade, 0 to 4"),
    ("edema", "true/false", "suspicious macular edema"),
    ("age", "number", "years"),
    ("sex", "text", "female or male"),
    ("quality", "text", "good or poor"),
    ("width", "whole number", "pixels of the source image"),
    ("height", "whole number", "pixels of the source image"),
    ("extra", "text", "what else the mapper gave, JSON"),
];
const METRICS: [Column; 12] = [
    ("track", "text", "as_published or corrected"),
    ("subset", "text", "test, or a subgroup of it"),
    ("metric", "text", "metric id"),
    ("value", "number", "the value; empty: missing"),
    ("missing", "text", "why there is no value"),
    ("ci_low", "number", "lower end of the interval"),
    ("ci_high", "number", "upper end of the interval"),
    ("p_value", "number", "two-sided, 0 to 1"),
    ("flags", "text", "warnings, joined by ;"),
    ("n", "whole number", "rows used"),
    ("n_pos", "whole number", "of these, positive"),
    ("n_neg", "whole number", "of these, negative"),
];

pub(super) fn write(
    run: &RunView,
    folder: &NewFolder,
    per_cell: bool,
    summary: &mut ExportSummary,
) -> Result<()> {
    let mut dictionary = Vec::new();
    let known = records(run, folder, &mut dictionary)?;
    summary.files += 1;
    if run.metrics_path().exists() {
        let metrics = run.metrics()?;
        folder.file("metrics.csv", |sink| {
            let mut sheet = Sheet::new(sink);
            sheet.header(CELL.iter().chain(&METRICS).map(|c| c.0))?;
            metrics
                .rows
                .iter()
                .try_for_each(|row| sheet.row(metric_cells(row)))?;
            sheet.end()
        })?;
        summary.files += 1;
        note(&mut dictionary, "metrics", CELL.iter().chain(&METRICS));
    }
    predictions(run, &known, folder, per_cell, summary, &mut dictionary)?;
    folder.file("columns.csv", |sink| {
        let mut sheet = Sheet::new(sink);
        sheet.header(["table", "column", "type", "meaning"].into_iter())?;
        dictionary
            .iter()
            .try_for_each(|row| sheet.row(row.iter().map(|cell| text(Some(cell)))))?;
        sheet.end()
    })?;
    summary.files += 1;
    Ok(())
}

type Dictionary = Vec<[String; 4]>;

fn note<'a>(dictionary: &mut Dictionary, table: &str, columns: impl Iterator<Item = &'a Column>) {
    dictionary.extend(
        columns.map(|(name, kind, meaning)| [table, name, kind, meaning].map(str::to_owned)),
    );
}

fn records(run: &RunView, folder: &NewFolder, dictionary: &mut Dictionary) -> Result<Records> {
    let records = run.records()?;
    let labels: Vec<(String, String, bool)> = [("label", false), ("published_label", true)]
        .iter()
        .flat_map(|(prefix, published)| {
            records
                .tasks
                .iter()
                .map(move |task| (format!("{prefix}_{task}"), task.clone(), *published))
        })
        .collect();
    folder.file("records.csv", |sink| {
        let mut sheet = Sheet::new(sink);
        sheet.header(
            RECORDS
                .iter()
                .map(|c| c.0)
                .chain(labels.iter().map(|l| l.0.as_str())),
        )?;
        for (i, record) in records.rows.iter().enumerate() {
            let known = labels.iter().map(|(_, task, published)| {
                let of = if *published {
                    &record.published_labels
                } else {
                    &record.labels
                };
                truth(of.get(task).copied())
            });
            sheet.row(record_cells(i, record).into_iter().chain(known))?;
        }
        sheet.end()
    })?;
    note(dictionary, "records", RECORDS.iter());
    for (name, task, published) in &labels {
        let how = if *published {
            ", as the published code derives it"
        } else {
            ""
        };
        let meaning = format!("label of {task}{how}; empty: unknown");
        dictionary.push(["records".into(), name.clone(), "true/false".into(), meaning]);
    }
    Ok(records)
}

fn predictions(
    run: &RunView,
    known: &Records,
    folder: &NewFolder,
    per_cell: bool,
    summary: &mut ExportSummary,
    dictionary: &mut Dictionary,
) -> Result<()> {
    // One file needs all columns in its header before its first row: the tables are read twice, one at a time.
    let mut extra = BTreeSet::new();
    for (file, cell) in run.prediction_files()?.iter().zip(run.all_predictions()?) {
        let cell = cell?;
        known.check_predictions(&cell, file)?;
        summary.cells += 1;
        summary.rows += cell.rows.len() as u64;
        extra.extend(cell.extra.iter().map(|(name, _)| name.clone()));
        if per_cell {
            let names: Vec<&str> = cell.extra.iter().map(|(name, _)| name.as_str()).collect();
            folder.file(
                &format!("predictions/{}.csv", cell.cell.file_stem()),
                |sink| {
                    let mut sheet = Sheet::new(sink);
                    sheet.header(prediction_header(&names))?;
                    prediction_rows(&mut sheet, &cell, &names)?;
                    sheet.end()
                },
            )?;
            summary.files += 1;
        }
    }
    if !per_cell {
        let names: Vec<&str> = extra.iter().map(String::as_str).collect();
        let mut failed = None;
        let all = run.all_predictions()?;
        folder.file("predictions.csv", |sink| {
            let mut sheet = Sheet::new(sink);
            sheet.header(prediction_header(&names))?;
            for cell in all {
                match cell {
                    Ok(cell) => prediction_rows(&mut sheet, &cell, &names)?,
                    Err(error) => {
                        failed = Some(error);
                        break;
                    }
                }
            }
            sheet.end()
        })?;
        if let Some(error) = failed {
            return Err(error.into());
        }
        summary.files += 1;
    }
    note(dictionary, "predictions", CELL.iter().chain(&PREDICTIONS));
    for name in extra {
        dictionary.push([
            "predictions".into(),
            format!("x_{name}"),
            "number".into(),
            "further number of the method".into(),
        ]);
    }
    Ok(())
}

fn prediction_header<'a>(extra: &[&str]) -> impl Iterator<Item = std::borrow::Cow<'a, str>> {
    let fixed = CELL
        .iter()
        .chain(&PREDICTIONS)
        .map(|c| std::borrow::Cow::Borrowed(c.0));
    let extra: Vec<_> = extra
        .iter()
        .map(|name| std::borrow::Cow::Owned(format!("x_{name}")))
        .collect();
    fixed.chain(extra)
}

fn prediction_rows(
    sheet: &mut Sheet<'_>,
    cell: &focus_store::Predictions,
    extra: &[&str],
) -> io::Result<()> {
    let columns: Vec<Option<&Vec<Option<f64>>>> = extra
        .iter()
        .map(|name| {
            cell.extra
                .iter()
                .find(|(own, _)| own == name)
                .map(|(_, values)| values)
        })
        .collect();
    for (i, row) in cell.rows.iter().enumerate() {
        let extra = columns
            .iter()
            .map(|values| float(values.and_then(|v| v[i])));
        sheet.row(
            key_cells(&cell.cell)
                .into_iter()
                .chain(row_cells(row))
                .chain(extra),
        )?;
    }
    Ok(())
}

fn key_cells(cell: &CellKey) -> [String; 4] {
    [&cell.dataset, &cell.task, &cell.method, &cell.model].map(|name| text(Some(name)))
}

fn row_cells(row: &PredictionRow) -> [String; 13] {
    [
        row.sample.to_string(),
        text(Some(&row.id)),
        row.fold.as_str().into(),
        row.copy.to_string(),
        text(row.split.as_deref()),
        text(row.patient.as_deref()),
        truth(row.label),
        truth(row.published_label),
        float(row.score),
        truth(row.predicted),
        row.outcome.as_str().into(),
        text(row.reason.as_deref()),
        text(row.text.as_deref()),
    ]
}

fn record_cells(sample: usize, record: &Record) -> [String; 17] {
    let whole = |n: Option<u32>| n.map_or_else(String::new, |n| n.to_string());
    [
        sample.to_string(),
        text(Some(&record.dataset)),
        text(Some(&record.id)),
        text(record.path.as_deref()),
        record
            .content_hash
            .map_or_else(String::new, |hash| hash.to_string()),
        text(record.source_split.as_deref()),
        text(record.split.as_deref()),
        text(record.patient.as_deref()),
        text(record.eye.as_deref()),
        record.grade.map_or_else(String::new, |g| g.to_string()),
        truth(record.edema),
        float(record.age),
        text(record.sex.as_deref()),
        text(record.quality.as_deref()),
        whole(record.width),
        whole(record.height),
        text(record.extra.as_deref()),
    ]
}

fn metric_cells(row: &MetricRow) -> impl Iterator<Item = String> {
    key_cells(&row.cell).into_iter().chain([
        text(Some(&row.track)),
        text(Some(&row.subset)),
        text(Some(&row.metric)),
        float(row.value),
        text(row.missing.as_deref()),
        float(row.ci_low),
        float(row.ci_high),
        float(row.p_value),
        if row.flags.is_empty() {
            String::new()
        } else {
            text(Some(&row.flags.join(";")))
        },
        row.n.to_string(),
        row.n_pos.to_string(),
        row.n_neg.to_string(),
    ])
}

fn text(value: Option<&str>) -> String {
    value.map_or_else(String::new, |text| protect_text(text).into_owned())
}

fn truth(value: Option<bool>) -> String {
    value
        .map_or("", |v| if v { "true" } else { "false" })
        .into()
}

fn float(value: Option<f64>) -> String {
    value.map_or_else(String::new, number)
}

struct Sheet<'a> {
    writer: csv::Writer<&'a mut dyn Write>,
}

impl<'a> Sheet<'a> {
    fn new(sink: &'a mut dyn Write) -> Self {
        Self {
            writer: csv::Writer::from_writer(sink),
        }
    }

    fn header<S: AsRef<str>>(&mut self, names: impl Iterator<Item = S>) -> io::Result<()> {
        self.row(names.map(|name| name.as_ref().to_owned()))
    }

    fn row(&mut self, cells: impl IntoIterator<Item = String>) -> io::Result<()> {
        self.writer
            .write_record(cells.into_iter().map(String::into_bytes))
            .map_err(io::Error::from)
    }

    fn end(mut self) -> io::Result<()> {
        self.writer.flush()
    }
}
