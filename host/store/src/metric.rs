//! Metric values in long form: one row for each cell, track, subset and metric. A value is there or the reason is; NaN
//! never is. It computes none of them.

use crate::{
    error::{Result, StoreError},
    limits::Limits,
    name::CellKey,
    table::{
        self, Columns, PLAIN_GROUP, TableReader, TableSpec, floats, optional, required, texts,
        uints,
    },
};
use arrow_array::RecordBatch;
use arrow_schema::DataType;
use std::{path::Path, sync::Arc};

/// Version of the metrics table.
pub const METRICS_VERSION: u32 = 1;
const NAME: &str = "metrics";

/// One value of one metric.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricRow {
    /// Which cell.
    pub cell: CellKey,
    /// `as_published` or `corrected`.
    pub track: String,
    /// Which rows of the cell: `test`, or a subgroup (`age:older`).
    pub subset: String,
    /// Metric id (`auroc`).
    pub metric: String,
    /// The value; none when `missing` says why.
    pub value: Option<f64>,
    /// Why there is no value (`one_class`).
    pub missing: Option<String>,
    /// Lower end of the interval.
    pub ci_low: Option<f64>,
    /// Upper end of the interval.
    pub ci_high: Option<f64>,
    /// Two-sided p-value, in [0, 1].
    pub p_value: Option<f64>,
    /// Warnings about the value (`no_positive_predicted`), sorted, without `;`.
    pub flags: Vec<String>,
    /// Rows it was computed on.
    pub n: u32,
    /// Of these, positive.
    pub n_pos: u32,
    /// Of these, negative.
    pub n_neg: u32,
}

/// All metric values of a run, sorted by cell, track, subset and metric.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Metrics {
    /// The rows.
    pub rows: Vec<MetricRow>,
}

fn spec() -> TableSpec {
    use DataType::{Float64, UInt32, Utf8};
    let mut fields: Vec<_> = [
        "dataset", "task", "method", "model", "track", "subset", "metric",
    ]
    .iter()
    .map(|n| required(n, Utf8))
    .collect();
    fields.extend([
        optional("value", Float64),
        optional("missing", Utf8),
        optional("ci_low", Float64),
        optional("ci_high", Float64),
        optional("p_value", Float64),
        required("flags", Utf8),
        required("n", UInt32),
        required("n_pos", UInt32),
        required("n_neg", UInt32),
    ]);
    TableSpec {
        name: NAME,
        version: METRICS_VERSION,
        schema: table::schema(fields),
        rows_per_group: PLAIN_GROUP,
    }
}

fn place(row: &MetricRow) -> (&CellKey, &str, &str, &str) {
    (&row.cell, &row.track, &row.subset, &row.metric)
}

impl Metrics {
    /// Metric values, put in order and checked.
    pub fn new(mut rows: Vec<MetricRow>) -> Result<Self> {
        rows.sort_by(|a, b| place(a).cmp(&place(b)));
        let made = Self { rows };
        made.check(Path::new("metrics.parquet"))?;
        Ok(made)
    }

    /// Check the rules of `docs/formats.md`; `file` is only named in errors.
    pub fn check(&self, file: &Path) -> Result<()> {
        for (i, row) in self.rows.iter().enumerate() {
            check_row(row).map_err(|(rule, found)| StoreError::rule(file, i, rule, found))?;
            if i > 0 && place(&self.rows[i - 1]) >= place(row) {
                let rule = "rows must be sorted by cell, track, subset and metric, each once";
                return Err(StoreError::rule(file, i, rule, format!("{:?}", place(row))));
            }
        }
        Ok(())
    }

    /// Write the table, atomically, after `check`.
    pub fn write(&self, file: &Path) -> Result<()> {
        self.check(file)?;
        let spec = spec();
        table::write_table(file, &spec, self.rows.len(), |range| {
            let rows = &self.rows[range];
            let text = |get: fn(&MetricRow) -> &str| texts(rows.iter().map(|r| Some(get(r))));
            let flags: Vec<String> = rows.iter().map(|r| r.flags.join(";")).collect();
            let columns = vec![
                text(|r| &r.cell.dataset),
                text(|r| &r.cell.task),
                text(|r| &r.cell.method),
                text(|r| &r.cell.model),
                text(|r| &r.track),
                text(|r| &r.subset),
                text(|r| &r.metric),
                floats(rows.iter().map(|r| r.value)),
                texts(rows.iter().map(|r| r.missing.as_deref())),
                floats(rows.iter().map(|r| r.ci_low)),
                floats(rows.iter().map(|r| r.ci_high)),
                floats(rows.iter().map(|r| r.p_value)),
                texts(flags.iter().map(|f| Some(f.as_str()))),
                uints(rows.iter().map(|r| Some(r.n))),
                uints(rows.iter().map(|r| Some(r.n_pos))),
                uints(rows.iter().map(|r| Some(r.n_neg))),
            ];
            RecordBatch::try_new(Arc::clone(&spec.schema), columns)
                .expect("columns follow the schema")
        })
    }

    /// Read the table and check it.
    pub fn read(file: &Path, limits: &Limits) -> Result<Self> {
        let reader = TableReader::open(file, NAME, METRICS_VERSION, limits)?;
        let metrics = Self {
            rows: table::read_all(&reader, &spec(), parse)?,
        };
        metrics.check(file)?;
        Ok(metrics)
    }
}

fn check_row(row: &MetricRow) -> Result<(), (&'static str, String)> {
    let CellKey {
        dataset,
        task,
        method,
        model,
    } = &row.cell;
    if [
        dataset,
        task,
        method,
        model,
        &row.track,
        &row.subset,
        &row.metric,
    ]
    .iter()
    .any(|name| name.is_empty())
    {
        return Err(("names must not be empty", format!("{:?}", place(row))));
    }
    let numbers = [row.value, row.ci_low, row.ci_high, row.p_value];
    if let Some(number) = numbers.into_iter().flatten().find(|v| !v.is_finite()) {
        return Err(("numbers must be finite or missing", number.to_string()));
    }
    if row.value.is_some() == row.missing.is_some() {
        return Err((
            "there must be either a `value` or the reason why it is `missing`",
            format!("{:?}, {:?}", row.value, row.missing),
        ));
    }
    if row.ci_low.is_some() != row.ci_high.is_some() || row.ci_low > row.ci_high {
        return Err((
            "`ci_low` and `ci_high` must come together and in order",
            format!("{:?}, {:?}", row.ci_low, row.ci_high),
        ));
    }
    if let Some(p) = row.p_value.filter(|p| !(0.0..=1.0).contains(p)) {
        return Err(("`p_value` must lie in [0, 1]", p.to_string()));
    }
    let sorted = row.flags.windows(2).all(|pair| pair[0] < pair[1]);
    if !sorted || row.flags.iter().any(|f| f.is_empty() || f.contains(';')) {
        return Err((
            "`flags` must be sorted words without `;`, each once",
            format!("{:?}", row.flags),
        ));
    }
    if u64::from(row.n_pos) + u64::from(row.n_neg) > u64::from(row.n) {
        return Err((
            "`n` must be at least `n_pos` plus `n_neg`",
            format!("{} < {} + {}", row.n, row.n_pos, row.n_neg),
        ));
    }
    Ok(())
}

fn parse(columns: &Columns<'_>, rows: &mut Vec<MetricRow>) -> Result<()> {
    let names = [
        "dataset", "task", "method", "model", "track", "subset", "metric",
    ];
    let named: Vec<_> = names
        .iter()
        .map(|name| columns.texts(name))
        .collect::<Result<_>>()?;
    let (value, missing) = (columns.floats("value")?, columns.texts("missing")?);
    let (low, high, p) = (
        columns.floats("ci_low")?,
        columns.floats("ci_high")?,
        columns.floats("p_value")?,
    );
    let flags = columns.texts("flags")?;
    let (n, n_pos, n_neg) = (
        columns.uints("n")?,
        columns.uints("n_pos")?,
        columns.uints("n_neg")?,
    );
    for i in 0..value.len() {
        let name = |at: usize| columns.must(names[at], i, named[at][i]);
        let flags = columns.must("flags", i, flags[i])?;
        rows.push(MetricRow {
            cell: CellKey::new(name(0)?, name(1)?, name(2)?, name(3)?),
            track: name(4)?.into(),
            subset: name(5)?.into(),
            metric: name(6)?.into(),
            value: value[i],
            missing: missing[i].map(str::to_owned),
            ci_low: low[i],
            ci_high: high[i],
            p_value: p[i],
            flags: flags
                .split(';')
                .filter(|f| !f.is_empty())
                .map(str::to_owned)
                .collect(),
            n: columns.must("n", i, n[i])?,
            n_pos: columns.must("n_pos", i, n_pos[i])?,
            n_neg: columns.must("n_neg", i, n_neg[i])?,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(metric: &str) -> MetricRow {
        MetricRow {
            cell: CellKey::new("d", "t", "m", "a/b"),
            track: "corrected".into(),
            subset: "test".into(),
            metric: metric.into(),
            value: Some(0.75),
            missing: None,
            ci_low: Some(0.5),
            ci_high: Some(0.9),
            p_value: Some(1.0),
            flags: vec!["a".into(), "b".into()],
            n: 10,
            n_pos: 3,
            n_neg: 6,
        }
    }

    #[test]
    fn metrics_survive_in_order() {
        let folder = tempfile::tempdir().expect("folder");
        let file = folder.path().join("metrics.parquet");
        let absent = MetricRow {
            value: None,
            missing: Some("one_class".into()),
            ci_low: None,
            ci_high: None,
            p_value: None,
            flags: vec![],
            ..row("auprc")
        };
        let metrics = Metrics::new(vec![row("ece"), absent.clone(), row("auroc")]).expect("sound");
        assert_eq!(metrics.rows[0], absent);
        metrics.write(&file).expect("writes");
        assert_eq!(
            Metrics::read(&file, &Limits::default()).expect("reads"),
            metrics
        );
        Metrics::default().write(&file).expect("writes none");
        assert_eq!(
            Metrics::read(&file, &Limits::default()).expect("reads none"),
            Metrics::default()
        );
    }

    #[test]
    fn each_rule_is_checked() {
        type Spoil = fn(&mut MetricRow);
        let broken: [(&str, Spoil); 9] = [
            ("empty", |r| r.track.clear()),
            ("finite", |r| r.value = Some(f64::NAN)),
            ("finite", |r| r.ci_high = Some(f64::INFINITY)),
            ("either", |r| r.missing = Some("one_class".into())),
            ("either", |r| r.value = None),
            ("together", |r| r.ci_low = None),
            ("p_value", |r| r.p_value = Some(1.1)),
            ("flags", |r| r.flags = vec!["b".into(), "a".into()]),
            ("n_pos", |r| r.n = 8),
        ];
        for (text, spoil) in broken {
            let mut bad = row("auroc");
            spoil(&mut bad);
            let error = Metrics::new(vec![row("accuracy"), bad])
                .expect_err(text)
                .to_string();
            assert!(error.contains("row ") && error.contains(text), "{error}");
        }
        assert!(
            Metrics::new(vec![row("ece"), row("ece")]).is_err(),
            "the same metric twice"
        );
    }
}
