//! Sections as text for a terminal, and as Markdown.

use super::section::Section;
use crate::report::escape;
use crate::report::text::grid;
use std::fmt::Write;

pub(super) fn text(head: &[(&'static str, String)], sections: &[Section]) -> String {
    let mut out = String::new();
    for (name, value) in head {
        writeln!(out, "{name:<9}{value}").expect("text takes text");
    }
    for section in sections {
        writeln!(out, "\n{}", section.title).expect("text takes text");
        if !section.rows.is_empty() {
            let numbers = section.numbers_from..section.head.len();
            grid(&mut out, &section.head, &section.rows, numbers);
        }
        for note in &section.notes {
            writeln!(out, "note     {note}").expect("text takes text");
        }
    }
    out
}

pub(super) fn markdown(head: &[(&'static str, String)], sections: &[Section]) -> String {
    let mut out = String::from("# Evaluation over many cells\n\n");
    for (name, value) in head {
        writeln!(out, "* {name}: {}", escape(value)).expect("text takes text");
    }
    for section in sections {
        writeln!(out, "\n## {}\n", escape(&section.title)).expect("text takes text");
        if !section.rows.is_empty() {
            let line = |cells: &[String]| {
                let cells: Vec<_> = cells.iter().map(|cell| escape(cell)).collect();
                format!("| {} |\n", cells.join(" | "))
            };
            out.push_str(&line(&section.head));
            let rule: Vec<_> = (0..section.head.len())
                .map(|i| {
                    if i >= section.numbers_from {
                        "---:"
                    } else {
                        "---"
                    }
                })
                .collect();
            writeln!(out, "| {} |", rule.join(" | ")).expect("text takes text");
            section.rows.iter().for_each(|row| out.push_str(&line(row)));
            out.push('\n');
        }
        for note in &section.notes {
            writeln!(out, "* {}", escape(note)).expect("text takes text");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section() -> Section {
        let mut section = Section::new("A | title", &["model", "value"], 1);
        section.row(vec!["a|b".into(), "0.500".into()]);
        section.note("a note");
        section
    }

    #[test]
    fn names_do_not_break_out_of_a_markdown_table() {
        let out = markdown(&[("runs", "a".into())], &[section()]);
        assert!(out.contains("| a\\|b | 0.500 |"), "{out}");
        assert!(
            out.contains("| --- | ---: |") && out.contains("* a note"),
            "{out}"
        );
    }

    #[test]
    fn text_has_title_table_and_notes() {
        let out = text(&[("runs", "a".into())], &[section()]);
        let lines: Vec<_> = out.lines().collect();
        assert_eq!(lines[0], "runs     a");
        assert_eq!(lines[2], "A | title");
        assert_eq!(lines.last(), Some(&"note     a note"));
    }
}
