//! Sections of single cells: performance, and subgroup gaps.

use super::Detail;
use super::section::{Section, gap};
use crate::report::number;
use focus_analysis::{CellAnalysis, CellStatus, GridAnalysis, Track, TrackAnalysis};

/// Cells that a terminal still shows one by one.
const FEW: usize = 24;
const SHOWN: [&str; 5] = ["auroc", "auprc", "accuracy", "f1", "ece"];
/// Gaps that a terminal shows: one column each.
const GAPS: [&str; 3] = ["gap_auroc", "gap_accuracy", "gap_equalized_odds"];

fn shown(analysis: &GridAnalysis, detail: Detail) -> bool {
    detail == Detail::Full || analysis.cells.len() <= FEW
}

/// The cells' tracks that a table lists, corrected first.
fn tracks(cell: &CellAnalysis) -> impl Iterator<Item = &TrackAnalysis> {
    Track::ALL.into_iter().filter_map(|track| cell.track(track))
}

pub(super) fn cells(analysis: &GridAnalysis, detail: Detail) -> Option<Section> {
    let head = [
        "dataset",
        "task",
        "method",
        "model",
        "track",
        "n+",
        "n-",
        "AUROC [95 %]",
        "AUPRC",
        "accuracy",
        "F1",
        "ECE",
        "",
    ];
    let mut section = Section::new("Cells", &head, 5);
    if !shown(analysis, detail) {
        return None;
    }
    for cell in &analysis.cells {
        for track in tracks(cell) {
            let mut row = vec![
                cell.cell.dataset.clone(),
                cell.cell.task.clone(),
                cell.cell.method.clone(),
                cell.cell.model.clone(),
                track.track.name().into(),
                track.n_pos.to_string(),
                track.n_neg.to_string(),
                number::metric_with_interval(track.metric(SHOWN[0])),
            ];
            row.extend(SHOWN[1..].iter().map(|id| number::metric(track.metric(id))));
            row.push(match cell.status {
                CellStatus::Ok => String::new(),
                CellStatus::Failed => "CELL FAILED".into(),
            });
            section.row(row);
        }
    }
    Some(section)
}

pub(super) fn gaps(analysis: &GridAnalysis, detail: Detail) -> Option<Section> {
    if !shown(analysis, detail) {
        return None;
    }
    let head = [
        "dataset",
        "task",
        "method",
        "model",
        "track",
        "attribute",
        "groups",
        "AUROC",
        "accuracy",
        "equalized odds",
    ];
    let mut section = Section::new("Subgroup gaps", &head, 7);
    for cell in &analysis.cells {
        for track in tracks(cell) {
            for row in gap_rows(track) {
                let mut all = vec![
                    cell.cell.dataset.clone(),
                    cell.cell.task.clone(),
                    cell.cell.method.clone(),
                    cell.cell.model.clone(),
                    track.track.name().into(),
                ];
                all.extend(row);
                section.row(all);
            }
        }
    }
    if !section.rows.is_empty() {
        section.note(GAP_NOTE);
    }
    Some(section)
}

/// How the gaps of a table are to be read.
pub(in crate::report) const GAP_NOTE: &str = "Gaps are the second group minus the first, with 95 % intervals in the corrected track; as published, and equalized odds, sizes alone";

/// One row for each attribute that is known of some image: attribute, groups, gaps.
pub(in crate::report) fn gap_rows(track: &TrackAnalysis) -> Vec<[String; 5]> {
    let mut rows = Vec::new();
    for found in &track.subgroups {
        if found.skipped == Some("attribute_absent") {
            continue;
        }
        let groups: Vec<_> = found
            .groups
            .iter()
            .map(|g| format!("{} {}+/{}-", g.group, g.counts.n_pos, g.counts.n_neg))
            .collect();
        let gaps = match found.skipped {
            Some(reason) => [format!("- ({reason})"), String::new(), String::new()],
            None => GAPS.map(|id| {
                found
                    .gaps
                    .iter()
                    .find(|g| g.id == id)
                    .map_or_else(String::new, gap)
            }),
        };
        let [auroc, accuracy, odds] = gaps;
        rows.push([
            found.attribute.into(),
            groups.join(", "),
            auroc,
            accuracy,
            odds,
        ]);
    }
    rows
}
