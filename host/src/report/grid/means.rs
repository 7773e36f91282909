//! Sections of tables that average over cells: coverage, means, types, encoders, trade-offs; and contamination.

use super::section::{Section, figure, number, probability, signed, word};
use focus_analysis::{
    Contamination, Coverage, CoverageStatus, EncoderTable, Expectation, MeansRow, MeansTable, Seen,
    TradeOff, TypeTable,
};
use std::collections::BTreeMap;

/// Absent cells named in a section.
const NAMED: usize = 8;

pub(super) fn coverage(all: &[Coverage]) -> Section {
    let head = [
        "track",
        "held against",
        "expected",
        "fine-tuned",
        "present",
        "failed",
        "skipped",
        "missing",
    ];
    let mut section = Section::new("Coverage", &head, 2);
    for coverage in all {
        let count = |status| {
            coverage
                .counts
                .get(&status)
                .copied()
                .unwrap_or(0)
                .to_string()
        };
        let against = match coverage.against {
            Expectation::Benchmark => "the benchmark's grid",
            Expectation::Seen => "models, methods and pairs seen",
        };
        section.row(vec![
            coverage.track.name().into(),
            against.into(),
            coverage.expected.to_string(),
            coverage.expected_fine_tuned.to_string(),
            count(CoverageStatus::Present),
            count(CoverageStatus::Failed),
            count(CoverageStatus::Skipped),
            count(CoverageStatus::Missing),
        ]);
        if coverage.against == Expectation::Seen {
            for row in coverage.absent.iter().take(NAMED) {
                section.note(format!(
                    "{}: {} {}: {}",
                    coverage.track.name(),
                    row.cell,
                    word(&row.status),
                    row.reason
                ));
            }
            if coverage.absent.len() > NAMED {
                section.note(format!(
                    "{}: {} more cells are absent; the JSON report names them",
                    coverage.track.name(),
                    coverage.absent.len() - NAMED
                ));
            }
        }
    }
    section
}

pub(super) fn means(table: &MeansTable) -> Section {
    let head = [
        "task",
        "family",
        "group",
        "method",
        "models",
        "cells",
        "accuracy",
        "AUROC",
        "AUPRC",
        "ECE",
        "fairness",
        "quality",
        "shift",
        "SD between datasets",
    ];
    let title = format!("Method-aware means, {} (Table 3)", table.track.name());
    let mut section = Section::new(title, &head, 4);
    let row = |row: &MeansRow| {
        vec![
            row.task.clone(),
            word(&row.family),
            word(&row.group),
            row.method.clone(),
            row.models.to_string(),
            row.cells.to_string(),
            figure(&row.accuracy),
            figure(&row.auroc),
            figure(&row.auprc),
            figure(&row.ece),
            figure(&row.fairness),
            figure(&row.quality),
            figure(&row.shift),
            row.between_dataset_sd
                .as_ref()
                .map_or(String::new(), figure),
        ]
    };
    for found in table.rows.iter().chain(&table.overall) {
        section.row(row(found));
    }
    if table
        .rows
        .iter()
        .any(|row| row.fairness.filled || row.quality.filled)
    {
        section.note("~: missing; as published the median of the others stands in for it");
    }
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for cell in &table.left_out {
        *reasons.entry(cell.reason).or_default() += 1;
    }
    for (reason, count) in reasons {
        section.note(format!("{count} cells are in no mean: {reason}"));
    }
    section
}

pub(super) fn types(table: &TypeTable) -> Section {
    let mut head = vec!["family", "group"];
    head.extend(table.tasks.iter().map(String::as_str));
    let title = format!(
        "Mean AUROC by model type, methods pooled, {} (Table 9)",
        table.track.name()
    );
    let mut section = Section::new(title, &head, 2);
    for row in &table.rows {
        let mut cells = vec![word(&row.family), word(&row.group)];
        cells.extend(row.auroc.iter().map(figure));
        section.row(cells);
    }
    section
}

pub(super) fn encoders(table: &EncoderTable) -> Section {
    let head = [
        "dataset",
        "country",
        "device",
        "general",
        "ophthalmic",
        "difference",
    ];
    let title = format!(
        "Mean AUROC of vision encoders by dataset, {} (Table 4)",
        table.track.name()
    );
    let mut section = Section::new(title, &head, 3);
    for row in &table.rows {
        section.row(vec![
            row.title.clone(),
            row.country.clone().unwrap_or_default(),
            row.device.clone().unwrap_or_default(),
            figure(&row.general),
            figure(&row.ophthalmic),
            signed(row.difference),
        ]);
    }
    section
}

pub(super) fn trade_offs(all: &[TradeOff]) -> Section {
    let head = [
        "track",
        "family",
        "AUROC against",
        "points",
        "r",
        "p",
        "slope",
        "intercept",
    ];
    let mut section = Section::new("Trade-offs (Fig. 3)", &head, 3);
    for panel in all {
        section.row(vec![
            panel.track.name().into(),
            word(&panel.family),
            panel.against.into(),
            panel.points.len().to_string(),
            panel.r.map_or_else(
                || format!("- ({})", panel.missing.unwrap_or("unknown")),
                |r| format!("{r:+.3}"),
            ),
            probability(panel.p),
            signed(panel.slope),
            number(panel.intercept),
        ]);
    }
    if all
        .iter()
        .any(|panel| panel.r.is_some() && panel.p.is_none())
    {
        section.note("Families of fewer than 10 points have no p-value");
    }
    section
}

pub(super) fn contamination(matrix: &Contamination) -> Section {
    let mut head = vec!["model"];
    head.extend(matrix.datasets.iter().map(String::as_str));
    let mut section = Section::new("Test datasets that models are known to have seen", &head, 1);
    for row in &matrix.rows {
        let mut cells = vec![row.model.clone()];
        cells.extend(row.seen.iter().map(|seen| {
            match seen {
                Seen::Listed => "SEEN",
                Seen::NotListed => "no",
                Seen::Unknown => "?",
            }
            .to_owned()
        }));
        section.row(cells);
    }
    if !matrix.rows.is_empty() {
        section.note("?: its training data are not published, or it is not in the catalogue");
    }
    section
}
