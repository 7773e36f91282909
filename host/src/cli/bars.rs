//! Progress for people: bars on a terminal, a line per stage elsewhere (logs of batch systems stay readable).

use crate::progress::Progress;
use indicatif::{ProgressBar, ProgressStyle};
use std::cell::RefCell;

/// Draws on stderr.
pub(crate) struct Bars {
    speak: bool,
    terminal: bool,
    bar: RefCell<Option<ProgressBar>>,
    stage: RefCell<String>,
}

impl Bars {
    /// `speak`: say anything at all; `terminal`: stderr is one.
    pub(crate) fn new(speak: bool, terminal: bool) -> Self {
        Self {
            speak,
            terminal,
            bar: RefCell::new(None),
            stage: RefCell::default(),
        }
    }
}

impl Progress for Bars {
    fn begin(&self, stage: &str, total: u64) {
        stage.clone_into(&mut self.stage.borrow_mut());
        if !self.speak || !self.terminal {
            return;
        }
        let bar = if total == 0 {
            ProgressBar::new_spinner()
        } else {
            ProgressBar::new(total)
        };
        let template = if total == 0 {
            "{spinner} {msg:<28} {elapsed}"
        } else {
            "{msg:<28} {bar:30} {pos:>6}/{len} {per_sec:>10} {eta:>4} left"
        };
        bar.set_style(ProgressStyle::with_template(template).expect("the template is valid"));
        bar.set_message(stage.to_owned());
        bar.enable_steady_tick(std::time::Duration::from_millis(200));
        *self.bar.borrow_mut() = Some(bar);
    }

    fn advance(&self, units: u64) {
        if let Some(bar) = self.bar.borrow().as_ref() {
            bar.inc(units);
        }
    }

    fn end(&self, summary: &str) {
        if let Some(bar) = self.bar.borrow_mut().take() {
            bar.finish_and_clear();
        }
        self.note(&format!("{:<12} {summary}", self.stage.borrow()));
    }

    #[expect(clippy::print_stderr, reason = "this room prints")]
    fn note(&self, line: &str) {
        if !self.speak {
            return;
        }
        match self.bar.borrow().as_ref() {
            Some(bar) => bar.println(line),
            None => eprintln!("{line}"),
        }
    }
}
