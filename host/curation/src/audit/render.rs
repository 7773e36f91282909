//! A report as text and as Markdown: pure functions of the report. Looks for nothing and prints nothing.

use std::fmt::Write as _;

use super::finding::{AuditReport, Severity};

/// Text of one line, safe for terminals: control characters become spaces.
fn line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

fn summary(report: &AuditReport) -> String {
    let failed: u64 = report.images_failed.values().sum();
    let kinds: Vec<String> = report
        .images_failed
        .iter()
        .map(|(kind, n)| format!("{n} {kind}"))
        .collect();
    let kinds = if kinds.is_empty() {
        String::new()
    } else {
        format!(" ({})", kinds.join(", "))
    };
    format!(
        "{} records of {}; {} images read, {failed} not{kinds}; {} patient keys; {} errors, {} warnings, {} notes",
        report.records,
        report.datasets.join(", "),
        report.images_read,
        report.patients,
        report.count(Severity::Error),
        report.count(Severity::Warning),
        report.count(Severity::Note),
    )
}

/// For a terminal.
pub fn text(report: &AuditReport) -> String {
    let mut out = format!("{}\n", line(&summary(report)));
    for finding in &report.findings {
        let _ = writeln!(
            out,
            "\n{}[{}]: {} {}",
            finding.severity.as_str(),
            finding.kind.as_str(),
            finding.count,
            line(&finding.detail)
        );
        for example in &finding.examples {
            let _ = writeln!(out, "  - {}", line(example));
        }
        let more = finding.count.saturating_sub(finding.examples.len() as u64);
        if more > 0 && !finding.examples.is_empty() {
            let _ = writeln!(out, "  - and {more} more");
        }
        let _ = writeln!(out, "  hint: {}", line(&finding.advice));
    }
    let _ = writeln!(out, "\n{}", report.exit_policy);
    out
}

/// A cell or list item of Markdown: one line, nothing that Markdown or HTML would act on but code marks.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in line(text).chars() {
        match c {
            '|' | '<' | '>' | '*' | '_' | '[' | ']' | '\\' | '#' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

/// For a file.
pub fn markdown(report: &AuditReport) -> String {
    let mut out = format!(
        "# Audit of {}\n\n{}.\n",
        escape(&report.datasets.join(", ")),
        escape(&summary(report))
    );
    for severity in Severity::ALL {
        let findings: Vec<_> = report
            .findings
            .iter()
            .filter(|f| f.severity == severity)
            .collect();
        if findings.is_empty() {
            continue;
        }
        let title = match severity {
            Severity::Error => "Errors",
            Severity::Warning => "Warnings",
            Severity::Note => "Notes",
        };
        let _ = write!(
            out,
            "\n## {title}\n\n| finding | count | what | examples | advice |\n| --- | ---: | --- | --- | --- |\n"
        );
        for finding in findings {
            let examples: Vec<String> = finding.examples.iter().map(|e| escape(e)).collect();
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | {} |",
                escape(finding.kind.as_str()),
                finding.count,
                escape(&finding.detail),
                examples.join("<br>"),
                escape(&finding.advice)
            );
        }
    }
    if !report.labels.is_empty() {
        out.push_str("\n## Labels\n\n| task | split | positive | negative | unknown |\n| --- | --- | ---: | ---: | ---: |\n");
        for (task, by_split) in &report.labels {
            for (split, n) in by_split {
                let _ = writeln!(
                    out,
                    "| {} | {split} | {} | {} | {} |",
                    escape(task),
                    n.positive,
                    n.negative,
                    n.unknown
                );
            }
        }
    }
    out.push_str("\n## Thresholds\n\n");
    for (name, value) in &report.thresholds {
        let _ = writeln!(out, "- {}: {value}", escape(name));
    }
    let _ = writeln!(out, "\n{}", report.exit_policy);
    out
}
