//! The long form of cells for `metrics.parquet`.

use super::{AttributeAnalysis, CellAnalysis, Counts, GapEntry, MetricEntry, TrackAnalysis};
use focus_metrics::{Input, metric};
use focus_store::{CellKey, MetricRow};

/// One row for each cell, track, subset and metric. Subsets: `test`; a group (`age:older`); an attribute (`age`) for its
/// gaps. A gap's value is signed with its interval in the corrected track and its size as published; equalized odds is a
/// size in both; its p-value is that of the shuffled labels.
pub fn metric_rows(cells: &[CellAnalysis]) -> Vec<MetricRow> {
    let mut rows = Vec::new();
    for cell in cells {
        for track in &cell.tracks {
            let table = Table {
                cell: &cell.cell,
                track,
            };
            table.whole(&mut rows);
            for attribute in &track.subgroups {
                table.attribute(attribute, &mut rows);
            }
        }
    }
    rows
}

struct Table<'a> {
    cell: &'a CellKey,
    track: &'a TrackAnalysis,
}

impl Table<'_> {
    fn whole(&self, rows: &mut Vec<MetricRow>) {
        let calibration = self.track.calibration.iter();
        let more = calibration.flat_map(|found| {
            let shifted = found
                .prior_corrected
                .iter()
                .flat_map(|found| &found.metrics);
            found.metrics.iter().chain(shifted)
        });
        for entry in self.track.metrics.iter().chain(more) {
            let decisions = metric(entry.id).is_some_and(|spec| spec.input == Input::Decisions);
            rows.push(self.row("test", entry, self.track.counts(decisions)));
        }
    }

    fn attribute(&self, attribute: &AttributeAnalysis, rows: &mut Vec<MetricRow>) {
        let mut both = Counts::default();
        for group in &attribute.groups {
            both.n += group.counts.n;
            both.n_pos += group.counts.n_pos;
            both.n_neg += group.counts.n_neg;
            let subset = format!("{}:{}", attribute.attribute, group.group);
            for entry in &group.metrics {
                rows.push(self.row(&subset, entry, group.counts));
            }
        }
        for gap in &attribute.gaps {
            rows.push(self.gap(attribute.attribute, gap, both));
        }
        for gap in &attribute.standardised {
            let entry = MetricEntry {
                id: gap.id,
                value: gap.signed,
                interval: gap.interval,
                valid_resamples: None,
                missing: gap.missing,
                flag: None,
            };
            let mut row = self.row(attribute.attribute, &entry, both);
            row.metric.push_str("_by_grade");
            rows.push(row);
        }
    }

    fn gap(&self, subset: &str, gap: &GapEntry, counts: Counts) -> MetricRow {
        let entry = MetricEntry {
            id: gap.id,
            value: gap.signed.or(gap.absolute),
            interval: gap.interval,
            valid_resamples: gap.valid_resamples,
            missing: gap.missing,
            flag: None,
        };
        MetricRow {
            p_value: gap.null.map(|null| null.p),
            ..self.row(subset, &entry, counts)
        }
    }

    fn row(&self, subset: &str, entry: &MetricEntry, counts: Counts) -> MetricRow {
        MetricRow {
            cell: self.cell.clone(),
            track: self.track.track.name().into(),
            subset: subset.into(),
            metric: entry.id.into(),
            value: entry.value,
            missing: entry.missing.map(str::to_owned),
            ci_low: entry.interval.map(|[low, _]| low),
            ci_high: entry.interval.map(|[_, high]| high),
            p_value: None,
            flags: entry.flag.iter().map(|flag| (*flag).to_owned()).collect(),
            n: counts.n as u32,
            n_pos: counts.n_pos as u32,
            n_neg: counts.n_neg as u32,
        }
    }
}
