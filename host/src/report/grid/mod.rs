//! The report over many cells: every table of the benchmark. Sections are built once and written as text or Markdown; JSON
//! holds everything. It computes nothing and prints nothing.

mod cells;
mod means;
mod paired;
mod section;
mod write;

pub(super) use cells::{GAP_NOTE, gap_rows};

use focus_analysis::GridAnalysis;
use section::Section;
use serde::Serialize;

/// Version of the JSON form.
pub const GRID_SCHEMA: &str = "focus-grid-report/1";

/// How much of the long tables people get to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    /// What fits a terminal: means, overall boards.
    Short,
    /// Every cell and comparison too.
    Full,
}

#[derive(Serialize)]
struct Json<'a> {
    schema: &'static str,
    tool_version: &'static str,
    #[serde(flatten)]
    analysis: &'a GridAnalysis,
}

/// The report in the form `text`, `markdown` or `json`; none for another.
pub fn render_grid(analysis: &GridAnalysis, form: &str) -> Option<String> {
    match form {
        "text" => Some(write::text(
            &head(analysis),
            &sections(analysis, Detail::Short),
        )),
        "markdown" => Some(write::markdown(
            &head(analysis),
            &sections(analysis, Detail::Full),
        )),
        "json" => {
            let json = Json {
                schema: GRID_SCHEMA,
                tool_version: env!("CARGO_PKG_VERSION"),
                analysis,
            };
            let mut text = serde_json::to_string_pretty(&json).expect("plain data is JSON");
            text.push('\n');
            Some(text)
        }
        _ => None,
    }
}

/// Lines above the tables.
fn head(analysis: &GridAnalysis) -> Vec<(&'static str, String)> {
    let mut lines = vec![("runs", analysis.runs.join(", "))];
    lines.push(("cells", analysis.cells.len().to_string()));
    if analysis.synthetic {
        lines.push((
            "images",
            "SYNTHETIC, some or all: drawn by a program, says nothing about patients".into(),
        ));
    }
    let options = &analysis.options;
    lines.push((
        "draws",
        format!(
            "intervals from {} resamples, families from {}, nulls from {} permutations, seed {}",
            options.resamples, options.family_resamples, options.permutations, options.seed
        ),
    ));
    lines.extend(analysis.notes.iter().map(|note| ("note", note.clone())));
    lines
}

fn sections(analysis: &GridAnalysis, detail: Detail) -> Vec<Section> {
    let summary = &analysis.summary;
    let mut all = vec![means::coverage(&summary.coverage)];
    all.extend(summary.means.iter().map(means::means));
    all.extend(summary.types.iter().map(means::types));
    all.extend(summary.encoders.iter().map(means::encoders));
    all.push(means::trade_offs(&summary.trade_offs));
    all.extend(paired::boards(&summary.leaderboards, detail));
    for table in &summary.fine_tuning.tables {
        all.extend(paired::fine_tuning(table, detail));
    }
    all.push(means::contamination(&summary.contamination));
    all.extend(cells::cells(analysis, detail));
    all.extend(cells::gaps(analysis, detail));
    all.retain(|section| !section.rows.is_empty() || !section.notes.is_empty());
    all
}
