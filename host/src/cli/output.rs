//! How a command speaks: results on stdout, everything else on stderr; people or JSON.

use super::CommandResult;
use super::args::Global;
use super::bars::Bars;
use super::failure::Failure;
use comfy_table::{ContentArrangement, LineStyle, Table, presets};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

/// Where a command's words go.
pub(crate) struct Output {
    json: bool,
    quiet: bool,
}

impl Output {
    /// As the global options say.
    pub(crate) fn new(global: &Global) -> Self {
        Self {
            json: global.json,
            quiet: global.quiet,
        }
    }

    /// Whether results are wanted as JSON.
    pub(crate) fn json(&self) -> bool {
        self.json
    }

    /// Print a result. A closed pipe (`| head`) is no failure.
    #[expect(
        clippy::unused_self,
        reason = "printing is the output's, whatever it looks at"
    )]
    pub(crate) fn result(&self, text: &str) -> CommandResult {
        let mut stdout = std::io::stdout().lock();
        let end = if text.ends_with('\n') { "" } else { "\n" };
        // Names of files and plugins may hold anything; a terminal must not obey them.
        let text = text.replace('\u{1b}', "\\u{1b}");
        match write!(stdout, "{text}{end}").and_then(|()| stdout.flush()) {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::internal(
                format!("Cannot write to stdout: {error}"),
            )),
            _ => Ok(ExitCode::SUCCESS),
        }
    }

    /// Print JSON, or the text for people.
    pub(crate) fn either<T: serde::Serialize>(
        &self,
        value: &T,
        text: impl FnOnce() -> String,
    ) -> CommandResult {
        if self.json {
            let json = serde_json::to_string_pretty(value)
                .map_err(|e| Failure::internal(e.to_string()))?;
            self.result(&json)
        } else {
            self.result(&text())
        }
    }

    /// A line for people on stderr; silent with `--quiet`.
    #[expect(clippy::print_stderr, reason = "this room prints")]
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            eprintln!("{text}");
        }
    }

    /// Progress bars on a terminal, plain lines elsewhere, nothing with `--quiet`.
    pub(crate) fn progress(&self) -> Bars {
        Bars::new(!self.quiet, std::io::stderr().is_terminal())
    }

    /// A bar of bytes on a terminal, nothing elsewhere.
    pub(crate) fn byte_bar(&self) -> Option<ProgressBar> {
        if self.quiet || !std::io::stderr().is_terminal() {
            return None;
        }
        let bar = ProgressBar::new(0);
        let style = ProgressStyle::with_template(
            "{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta} left",
        );
        bar.set_style(style.expect("the template is valid"));
        Some(bar)
    }

    /// A bar of images on a terminal, nothing elsewhere.
    pub(crate) fn image_bar(&self, total: u64) -> Option<ProgressBar> {
        if self.quiet || !std::io::stderr().is_terminal() {
            return None;
        }
        let bar = ProgressBar::new(total);
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {per_sec} {eta} left");
        bar.set_style(style.expect("the template is valid"));
        Some(bar)
    }

    /// Say what failed. With `--json` also as an object on stdout, so that a script gets one document either way.
    #[expect(clippy::print_stderr, reason = "this room prints")]
    pub(crate) fn failure(&self, failure: &Failure) {
        eprintln!("{}", failure.for_people(colour()));
        if self.json {
            // Nothing better is left to do when stdout is closed as well.
            let _ = self.result(&failure.to_json());
        }
    }
}

/// A table with a rule below its head and nothing else, wrapped to COLUMNS, or to 120 where that is not set.
pub(crate) fn plain_table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING.header_separator(LineStyle::none().fill('─').junction('─')));
    let width = std::env::var("COLUMNS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(120);
    table
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width);
    table
}

/// Whether stderr takes colours (NO_COLOR is honoured).
fn colour() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::io::stderr().is_terminal()
}

/// Log lines go to stderr: warnings by default, more with `-v`, filters with FOCUS_LOG.
pub(crate) fn start_logging(global: &Global) {
    let level = match (global.quiet, global.verbose) {
        (true, _) => "error",
        (false, 0) => "warn",
        // Our own rooms and the plugins' logs (targets that begin with `focus`); FOCUS_LOG can ask for the rest.
        (false, 1) => "warn,focus=info",
        (false, 2) => "warn,focus=debug",
        (false, _) => "warn,focus=trace",
    };
    let filter = tracing_subscriber::EnvFilter::try_from_env("FOCUS_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(level));
    // A second start (tests calling in) keeps the first.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(colour())
        .without_time()
        .with_target(false)
        .try_init();
}
