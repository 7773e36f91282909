//! The report as Markdown: `report.md`, for papers' supplements and issue trackers.

use super::{RENDERERS, Renderer, Report, escape, table};
use linkme::distributed_slice;
use std::fmt::Write;

#[expect(unsafe_code, reason = "linkme places the element in a linker section")]
#[distributed_slice(RENDERERS)]
static MARKDOWN: Renderer = Renderer {
    id: "markdown",
    file: Some("report.md"),
    render,
};

fn render(report: &Report) -> String {
    let facts = &report.facts;
    let mut out = format!(
        "# {} on {}\n\n",
        escape(&facts.model.id),
        escape(&facts.dataset.title)
    );
    if report.synthetic {
        out.push_str("**Synthetic images: drawn by a program. Nothing here says anything about patients.**\n\n");
    }
    if let Some(control) = &report.control {
        writeln!(out, "**{}.**\n", escape(control)).expect("text takes text");
    }
    write_table(&mut out, &table::HEAD, &table::rows(report), 3..11);
    out.push('\n');
    bullet(&mut out, "Images", &table::images_line(report));
    for failure in table::failure_lines(report) {
        bullet(&mut out, "Failed", &failure);
    }
    for note in table::note_lines(report) {
        bullet(&mut out, "Note", &note);
    }
    let gaps = table::gaps(report, true);
    if !gaps.is_empty() {
        out.push_str("\n## Subgroups\n\n");
        write_table(&mut out, &table::GAP_HEAD, &gaps, 5..8);
    }
    out.push_str("\n## What was run\n\n");
    bullet(
        &mut out,
        "Model",
        &format!("{}, {}", facts.model.id, facts.model.title),
    );
    for paper in &facts.model.papers {
        bullet(&mut out, "Literature", paper);
    }
    bullet(
        &mut out,
        "Plugin",
        &format!(
            "{} {}, `{}`",
            facts.plugin.name, facts.plugin.version, facts.plugin.digest
        ),
    );
    bullet(&mut out, "Opened", &opened_line(report));
    for (name, value) in &facts.opened.facts {
        bullet(&mut out, &format!("Model's `{name}`"), value);
    }
    if let Some(adapter) = &facts.adapter {
        bullet(&mut out, "Adapter", &table::adapter_line(adapter));
        bullet(
            &mut out,
            "Adapter's layers",
            &adapter.attached.targets.join(", "),
        );
        for note in &adapter.attached.notes {
            bullet(&mut out, "Adapter's note", note);
        }
    }
    if let Some(prompting) = &facts.prompting {
        for prompt in &prompting.prompts {
            let whose = if prompt.replaced {
                "not the paper's"
            } else {
                "the paper's"
            };
            let text = format!("{whose}, `{}`: {}", prompt.digest, prompt.text);
            bullet(&mut out, &format!("Prompt of {}", prompt.task), &text);
        }
        bullet(&mut out, "Answers", &table::prompts_line(prompting));
    }
    bullet(&mut out, "Pixels", &format!("`{}`", facts.preprocessing));
    if !report.permissions.is_empty() {
        bullet(
            &mut out,
            "Permissions granted",
            &report.permissions.join(", "),
        );
    }
    let dataset = &facts.dataset;
    bullet(
        &mut out,
        "Dataset",
        &format!(
            "{} ({}), licence {}",
            dataset.title, dataset.id, dataset.licence
        ),
    );
    bullet(&mut out, "Citation", &dataset.citation);
    bullet(
        &mut out,
        "Mapper",
        &format!(
            "{} {}, `{}`",
            dataset.id, dataset.mapper_version, dataset.mapper_digest
        ),
    );
    for (reason, count) in &dataset.dropped {
        bullet(&mut out, "Rows dropped", &format!("{count}: {reason}"));
    }
    if dataset.missing_images > 0 {
        bullet(
            &mut out,
            "Rows without an image file",
            &dataset.missing_images.to_string(),
        );
    }
    if dataset.unusable_parts > 0 {
        bullet(
            &mut out,
            "Masks and contours that cannot be used",
            &dataset.unusable_parts.to_string(),
        );
    }
    if dataset.unlisted_images > 0 {
        bullet(
            &mut out,
            "Image files without a row",
            &dataset.unlisted_images.to_string(),
        );
    }
    bullet(
        &mut out,
        "Program",
        &format!("focus-host {}", report.tool_version),
    );
    out.push_str("\nn+ and n-: positive and negative test images behind the metrics. ECE: positive class, 10 equal-width bins. ");
    out.push_str("`*`: flagged value, reason in report.json.\n");
    out
}

fn opened_line(report: &Report) -> String {
    let opened = &report.facts.opened;
    let values = match opened.embedding_dim {
        0 => String::new(),
        dim => format!(", {dim} values an embedding"),
    };
    format!(
        "{} on {}{values}, {} images a call",
        opened.dtype, report.device_kind, opened.batch_size
    )
}

fn write_table<const N: usize>(
    out: &mut String,
    head: &[&str; N],
    rows: &[[String; N]],
    numbers: std::ops::Range<usize>,
) {
    writeln!(out, "| {} |", head.join(" | ")).expect("text takes text");
    let rule: Vec<_> = (0..head.len())
        .map(|i| if numbers.contains(&i) { "---:" } else { "---" })
        .collect();
    writeln!(out, "| {} |", rule.join(" | ")).expect("text takes text");
    for row in rows {
        let cells: Vec<_> = row.iter().map(|cell| escape(cell)).collect();
        writeln!(out, "| {} |", cells.join(" | ")).expect("text takes text");
    }
}

fn bullet(out: &mut String, name: &str, value: &str) {
    writeln!(out, "* {name}: {}", escape(value)).expect("text takes text");
}
