//! The report as people see it in a terminal.

use super::{RENDERERS, Renderer, Report, table};
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, presets};
use linkme::distributed_slice;
use std::fmt::Write;

#[expect(unsafe_code, reason = "linkme places the element in a linker section")]
#[distributed_slice(RENDERERS)]
static TEXT: Renderer = Renderer {
    id: "text",
    file: None,
    render,
};

fn render(report: &Report) -> String {
    let mut out = String::new();
    let facts = &report.facts;
    let synthetic = if report.synthetic {
        "   SYNTHETIC: drawn by a program, says nothing about patients"
    } else {
        ""
    };
    line(
        &mut out,
        "model",
        &format!("{} ({})", facts.model.id, facts.model.title),
    );
    if let Some(control) = &report.control {
        line(&mut out, "", control);
    }
    if let Some(adapter) = &facts.adapter {
        line(&mut out, "adapter", &table::adapter_line(adapter));
    }
    line(
        &mut out,
        "plugin",
        &format!(
            "{} {} {}",
            facts.plugin.name,
            facts.plugin.version,
            short(&facts.plugin.digest)
        ),
    );
    line(
        &mut out,
        "dataset",
        &format!("{} ({}){synthetic}", facts.dataset.id, facts.dataset.title),
    );
    if let Some(prompting) = &facts.prompting {
        line(&mut out, "prompts", &table::prompts_line(prompting));
    }
    line(&mut out, "images", &table::images_line(report));
    for failure in table::failure_lines(report) {
        line(&mut out, "failed", &failure);
    }
    out.push('\n');
    grid(&mut out, &table::HEAD, &table::rows(report), 3..11);
    let gaps = table::gaps(report, false);
    if !gaps.is_empty() {
        out.push('\n');
        grid(&mut out, &table::GAP_HEAD, &gaps, 5..8);
    }
    for note in table::note_lines(report) {
        line(&mut out, "note", &note);
    }
    out
}

/// A table with a rule below its head; the columns `numbers` stand to the right.
pub(super) fn grid<R: AsRef<[String]>>(
    out: &mut String,
    head: &[impl ToString],
    rows: &[R],
    numbers: std::ops::Range<usize>,
) {
    let mut grid = Table::new();
    grid.load_style(presets::NOTHING.header_separator(LineStyle::none().fill('─').junction('─')))
        .set_content_arrangement(ContentArrangement::Disabled);
    grid.set_header(head.iter().map(ToString::to_string));
    for row in rows {
        grid.add_row(row.as_ref());
    }
    for column in numbers {
        if let Some(column) = grid.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for row in grid.to_string().lines() {
        out.push_str(row.trim_end());
        out.push('\n');
    }
}

fn line(out: &mut String, name: &str, value: &str) {
    writeln!(out, "{name:<9}{value}").expect("text takes text");
}

/// `sha256:` and twelve digits.
fn short(digest: &str) -> &str {
    let end = digest.find(':').map_or(12, |colon| colon + 13);
    digest.get(..end).unwrap_or(digest)
}
