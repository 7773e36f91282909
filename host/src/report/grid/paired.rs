//! Sections of tables that compare cells on the same images: leaderboards and fine-tuning.

use super::Detail;
use super::section::{Section, interval, number, probability, signed};
use focus_analysis::{Board, Comparison, DomainRow, FineTuningTable, Leaderboards};

pub(super) fn boards(all: &Leaderboards, detail: Detail) -> Vec<Section> {
    let shown = |board: &&Board| {
        detail == Detail::Full || (board.dataset.is_none() && board.metric == "auroc")
    };
    all.boards.iter().filter(shown).map(board).collect()
}

fn board(board: &Board) -> Section {
    let scope = match (&board.dataset, &board.task) {
        (Some(dataset), Some(task)) => format!("{dataset} {task}, {} images", board.n),
        (Some(dataset), None) => format!("{dataset}, {} images", board.n),
        (None, Some(task)) => format!("{task}, mean over {} datasets", board.pairs),
        (None, None) => format!("mean over {} datasets and tasks", board.pairs),
    };
    let title = format!(
        "Leaderboard by {}: {scope}, {}",
        board.metric,
        board.track.name()
    );
    let head = ["rank", "95 %", "model", "method", board.metric, "first in"];
    let mut section = Section::new(title, &head, 4);
    for entry in &board.entries {
        section.row(vec![
            format!("{}", entry.rank),
            entry
                .interval
                .map_or_else(String::new, |[low, high]| format!("{low:.0} to {high:.0}")),
            entry.model.clone(),
            entry.method.clone(),
            format!("{:.3}", entry.value),
            entry
                .first
                .map_or_else(String::new, |share| format!("{:.0} %", share * 100.0)),
        ]);
    }
    for arm in &board.excluded {
        section.note(format!(
            "Not ranked: {} {}: {}",
            arm.model, arm.method, arm.reason
        ));
    }
    section
}

pub(super) fn fine_tuning(table: &FineTuningTable, detail: Detail) -> Vec<Section> {
    let track = table.track.name();
    let mut sections = Vec::new();
    let head = [
        "by",
        "which",
        "metric",
        "mean difference",
        "p",
        "q",
        "comparisons",
        "datasets",
    ];
    let mut means = Section::new(
        format!("Fine-tuning: adapter minus base, {track} (Tables 5 and 11)"),
        &head,
        3,
    );
    table
        .means
        .iter()
        .for_each(|row| means.row(domain_row(row.by, row)));
    table
        .one_eye
        .iter()
        .for_each(|row| means.row(domain_row("one eye each", row)));
    for family in &table.families {
        means.note(format!(
            "q of {}, {}: Benjamini-Hochberg over m = {}, B = {}; smallest q of a lone finding {}",
            family.family,
            family.metric,
            family.size,
            family.resamples,
            probability(family.smallest_lone_q)
        ));
    }
    if !table.unpaired.is_empty() {
        means.note(format!(
            "{} adapter cells have no base to compare with",
            table.unpaired.len()
        ));
    }
    sections.push(means);
    let mut levels = Section::new(
        format!("Fine-tuned models by domain, {track} (Table 10)"),
        &["domain", "metric", "mean", "cells"],
        2,
    );
    for row in &table.levels {
        levels.row(vec![
            row.domain.into(),
            row.metric.into(),
            number(row.mean.value),
            row.mean.n.to_string(),
        ]);
    }
    sections.push(levels);
    if detail == Detail::Full {
        sections.push(comparisons(track, &table.comparisons));
    }
    sections
}

fn domain_row(by: &str, row: &DomainRow) -> Vec<String> {
    vec![
        by.into(),
        row.value.clone(),
        row.metric.into(),
        format!("{:+.3}{}", row.delta, interval(row.interval)),
        probability(row.p),
        probability(row.q),
        row.comparisons.to_string(),
        row.sets.to_string(),
    ]
}

fn comparisons(track: &str, all: &[Comparison]) -> Section {
    let head = [
        "dataset",
        "task",
        "model",
        "trained on",
        "metric",
        "n",
        "base",
        "tuned",
        "difference",
        "p",
        "q",
    ];
    let mut section = Section::new(format!("Every adapter against its base, {track}"), &head, 5);
    for comparison in all {
        for delta in &comparison.deltas {
            section.row(vec![
                comparison.dataset.clone(),
                comparison.task.clone(),
                comparison.model.clone(),
                comparison.trained_on.clone(),
                delta.metric.into(),
                comparison.n.to_string(),
                number(delta.base),
                number(delta.other),
                format!("{}{}", signed(delta.delta), interval(delta.interval)),
                probability(delta.p),
                probability(delta.q),
            ]);
        }
    }
    section
}
