//! The rows that text and Markdown tables share: one per cell and track, tracks that agree merged.

use super::grid::{GAP_NOTE, gap_rows};
use super::{CellReport, Report, number};
use crate::eval::{AdapterFacts, PROMPTING, PromptingFacts};
use focus_analysis::{CellStatus, RESAMPLES, Track, TrackAnalysis, plain_method};
use std::collections::BTreeSet;

/// Column titles.
pub(super) const HEAD: [&str; 12] = [
    "task",
    "method",
    "track",
    "train",
    "n+",
    "n-",
    "AUROC [95 %]",
    "AUPRC",
    "accuracy",
    "F1",
    "ECE",
    "fit",
];
/// The metrics behind columns 6 to 10.
const SHOWN: [&str; 5] = ["auroc", "auprc", "accuracy", "f1", "ece"];

/// All rows.
pub(super) fn rows(report: &Report) -> Vec<[String; 12]> {
    report.cells.iter().flat_map(cell_rows).collect()
}

fn cell_rows(cell: &CellReport) -> Vec<[String; 12]> {
    let tracks = &cell.analysis.tracks;
    let shown = |track: &TrackAnalysis| {
        SHOWN.map(|id| number::metric(track.metrics.iter().find(|m| m.id == id)))
    };
    let with_interval = |track: &TrackAnalysis| {
        let mut all = shown(track);
        all[0] = number::metric_with_interval(track.metrics.iter().find(|m| m.id == SHOWN[0]));
        all
    };
    let agree = tracks
        .windows(2)
        .all(|pair| shown(&pair[0]) == shown(&pair[1]) && pair[0].n == pair[1].n);
    let groups: Vec<(&TrackAnalysis, String)> = if tracks.len() > 1 && agree {
        vec![(&tracks[0], "both".into())]
    } else {
        tracks
            .iter()
            .map(|track| (track, track.track.name().into()))
            .collect()
    };
    groups
        .into_iter()
        .map(|(track, name)| row(cell, track, name, with_interval(track)))
        .collect()
}

/// Column titles of the subgroup table.
pub(super) const GAP_HEAD: [&str; 8] = [
    "task",
    "method",
    "track",
    "attribute",
    "groups",
    "AUROC gap",
    "accuracy gap",
    "equalized odds",
];

/// Subgroup gaps of every cell, in all its tracks or the corrected one alone.
pub(super) fn gaps(report: &Report, all_tracks: bool) -> Vec<[String; 8]> {
    let mut rows = Vec::new();
    for cell in &report.cells {
        for track in &cell.analysis.tracks {
            if !all_tracks && track.track != Track::Corrected {
                continue;
            }
            for [attribute, groups, auroc, accuracy, odds] in gap_rows(track) {
                rows.push([
                    cell.analysis.cell.task.clone(),
                    cell.analysis.cell.method.clone(),
                    track.track.name().into(),
                    attribute,
                    groups,
                    auroc,
                    accuracy,
                    odds,
                ]);
            }
        }
    }
    rows
}

fn row(cell: &CellReport, track: &TrackAnalysis, name: String, shown: [String; 5]) -> [String; 12] {
    let key = &cell.analysis.cell;
    let fit = match &cell.fit {
        None => String::new(),
        Some(fit) => serde_json::to_value(fit.status)
            .ok()
            .and_then(|word| word.as_str().map(str::to_owned))
            .unwrap_or_default(),
    };
    let fit = if cell.analysis.status == CellStatus::Failed {
        let end = if fit.is_empty() { "" } else { "; " };
        format!("CELL FAILED{end}{fit}")
    } else {
        fit
    };
    let [auroc, auprc, accuracy, f1, ece] = shown;
    [
        key.task.clone(),
        key.method.clone(),
        name,
        cell.analysis.train.to_string(),
        track.n_pos.to_string(),
        track.n_neg.to_string(),
        auroc,
        auprc,
        accuracy,
        f1,
        ece,
        fit,
    ]
}

/// One line on where the images went.
pub(super) fn images_line(report: &Report) -> String {
    let splits: Vec<_> = report
        .splits
        .iter()
        .map(|(split, count)| {
            format!(
                "{split} {} ({} asked, {} answered)",
                count.images, count.asked, count.answered
            )
        })
        .collect();
    splits.join(", ")
}

/// One line on an adapter.
pub(super) fn adapter_line(adapter: &AdapterFacts) -> String {
    let found = &adapter.attached;
    let list = |values: Vec<String>| values.join(" and ");
    let mut line = format!(
        "{}, {}, rank {}, scale {}, {} layers, largest change of a first-token logit on the plugin's own picture {:.3e}",
        adapter.name,
        adapter.digest,
        list(found.ranks.iter().map(u32::to_string).collect()),
        list(found.scales.iter().map(f64::to_string).collect()),
        found.targets.len(),
        found.probe_change
    );
    if !found.modules_to_save.is_empty() {
        line.push_str(&format!(", replaces {}", found.modules_to_save.join(", ")));
    }
    if let Some(base) = &found.base {
        line.push_str(&format!(", made for {base}"));
    }
    line
}

/// One line on what a generative model was asked.
pub(super) fn prompts_line(prompting: &PromptingFacts) -> String {
    let own: Vec<_> = prompting
        .prompts
        .iter()
        .filter(|p| p.replaced)
        .map(|p| format!("{} ({})", p.task, p.digest))
        .collect();
    let whose = if own.is_empty() {
        "the paper's".to_owned()
    } else {
        format!("NOT the paper's: {}", own.join(", "))
    };
    let stop = if prompting.stop_words.is_empty() {
        String::new()
    } else {
        format!(", stopped at {}", prompting.stop_words.join(" or "))
    };
    format!(
        "{whose}; greedy, at most {} tokens{stop}; {} token variants, those that are one token count",
        prompting.max_new_tokens,
        prompting.variants.len()
    )
}

/// One line per kind of failure.
pub(super) fn failure_lines(report: &Report) -> Vec<String> {
    let line = |f: &super::FailureCount| {
        let more = if f.count > f.examples.len() {
            ", ..."
        } else {
            ""
        };
        format!(
            "{} {} ({}): {}{more}",
            f.count,
            f.outcome,
            f.reason,
            f.examples.join(", ")
        )
    };
    report.failures.iter().map(line).collect()
}

fn prompted(cell: &CellReport) -> bool {
    plain_method(&cell.analysis.cell.method) == PROMPTING
}

/// What each track makes of a prompted model's incomplete answers.
fn rules(cell: &CellReport) -> Option<String> {
    prompted(cell).then(|| {
        let counted = |track: &TrackAnalysis| {
            let decided = track.decided.map_or(track.n, |counts| counts.n);
            format!(
                "{}: {} images in metrics of scores, {decided} in metrics of labels",
                track.track.name(),
                track.n
            )
        };
        let counts: Vec<_> = cell.analysis.tracks.iter().map(counted).collect();
        format!(
            "{} / {}: {}. As published, a row without label, answer or score leaves every metric; corrected, every scored row stays in metrics of scores, and an unparseable or refused answer is a wrong one",
            cell.analysis.cell.task,
            cell.analysis.cell.method,
            counts.join("; ")
        )
    })
}

/// One line per remark, exclusions of cells among them.
pub(super) fn note_lines(report: &Report) -> Vec<String> {
    let mut lines = report.notes.clone();
    for cell in &report.cells {
        if cell.analysis.train_failed > 0 {
            lines.push(format!(
                "{} / {}: {} labelled training images have no answer and are not in the fit",
                cell.analysis.cell.task, cell.analysis.cell.method, cell.analysis.train_failed
            ));
        }
        if !cell.analysis.excluded.is_empty() {
            let reasons: Vec<_> = cell
                .analysis
                .excluded
                .iter()
                .map(|(reason, n)| format!("{n} {reason}"))
                .collect();
            lines.push(format!(
                "{} / {}: {} of {} labelled test images have no {} ({})",
                cell.analysis.cell.task,
                cell.analysis.cell.method,
                cell.analysis.excluded.values().sum::<usize>(),
                cell.analysis.test,
                if prompted(cell) {
                    "complete answer"
                } else {
                    "score"
                },
                reasons.join(", ")
            ));
            lines.extend(rules(cell));
        }
    }
    let units: BTreeSet<_> = report
        .cells
        .iter()
        .flat_map(|c| &c.analysis.tracks)
        .filter_map(|t| t.resampled)
        .collect();
    for unit in units {
        lines.push(format!(
            "Intervals: percentile bootstrap, {RESAMPLES} resamples of {unit}s"
        ));
    }
    if !gaps(report, false).is_empty() {
        lines.push(format!(
            "{GAP_NOTE}; n+ and n- of each group beside its name"
        ));
    }
    if report
        .cells
        .iter()
        .any(|cell| cell.analysis.tracks.len() == 2)
    {
        lines.push(
            "Track `both`: labels and rules of `as_published` and `corrected` agree on these images; the published split files are not part of this run"
                .into(),
        );
    }
    lines
}
