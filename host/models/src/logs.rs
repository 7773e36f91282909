//! What a worker prints: lines of its stdout and stderr become log records, and the last ones are kept for error messages.
//!
//! A plugin can print without end and without line breaks: length, rate and what is kept are all capped.

use crate::error::capped;
use std::collections::VecDeque;
use std::io::Read;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Longest line kept, bytes; the rest of it is skipped.
const LINE_CAP: usize = 2000;
/// Lines a second that become log records; the others are counted.
const RATE_CAP: u32 = 200;
/// Lines kept for error messages.
const KEPT: usize = 20;
/// Bytes of a kept line that an error message shows.
const SHOWN: usize = 200;

/// Where a line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Logged at debug.
    Stdout,
    /// Logged at info.
    Stderr,
    /// The plugin's log callback, with its level: 1 error to 5 trace.
    Callback(u8),
}

/// The lines of one worker's life.
#[derive(Debug)]
pub(crate) struct LogTail {
    plugin: String,
    state: Mutex<State>,
    closed: Condvar,
}

#[derive(Debug)]
struct State {
    last: VecDeque<String>,
    open: usize,
    second: Instant,
    in_second: u32,
    skipped: u64,
}

impl LogTail {
    pub(crate) fn new(plugin: &str) -> Arc<Self> {
        let state = State {
            last: VecDeque::new(),
            open: 0,
            second: Instant::now(),
            in_second: 0,
            skipped: 0,
        };
        Arc::new(Self {
            plugin: plugin.to_owned(),
            state: Mutex::new(state),
            closed: Condvar::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Read `pipe` to its end on a thread of its own.
    pub(crate) fn follow(self: &Arc<Self>, origin: Origin, pipe: impl Read + Send + 'static) {
        self.state().open += 1;
        let tail = Arc::clone(self);
        let started = std::thread::Builder::new()
            .name("focus-log".into())
            .spawn(move || {
                split_lines(pipe, &mut |line| tail.line(origin, line));
                tail.close();
            });
        if started.is_err() {
            self.close();
        }
    }

    fn close(&self) {
        self.state().open -= 1;
        self.closed.notify_all();
    }

    /// One line: kept, and logged within the rate.
    pub(crate) fn line(&self, origin: Origin, line: &str) {
        let line = capped(line, LINE_CAP);
        let mut state = self.state();
        if state.last.len() == KEPT {
            state.last.pop_front();
        }
        state.last.push_back(line.clone());
        let mut skipped = 0;
        if state.second.elapsed() >= Duration::from_secs(1) {
            skipped = std::mem::take(&mut state.skipped);
            state.second = Instant::now();
            state.in_second = 0;
        }
        state.in_second += 1;
        let log = state.in_second <= RATE_CAP;
        if !log {
            state.skipped += 1;
        }
        drop(state);
        let plugin = self.plugin.as_str();
        if skipped > 0 {
            tracing::warn!(target: "focus::plugin", plugin, skipped, "Plugin prints too much: lines were skipped");
        }
        if !log {
            return;
        }
        match origin {
            Origin::Callback(1) => tracing::error!(target: "focus::plugin", plugin, "{line}"),
            Origin::Callback(2) => tracing::warn!(target: "focus::plugin", plugin, "{line}"),
            Origin::Callback(3) | Origin::Stderr => {
                tracing::info!(target: "focus::plugin", plugin, "{line}");
            }
            Origin::Callback(4) | Origin::Stdout => {
                tracing::debug!(target: "focus::plugin", plugin, "{line}");
            }
            Origin::Callback(_) => tracing::trace!(target: "focus::plugin", plugin, "{line}"),
        }
    }

    /// The last lines, capped, after giving the pipes of a dead worker a moment to run dry.
    pub(crate) fn last_words(&self, patience: Duration) -> Option<String> {
        let state = self.state();
        // A grandchild may hold a pipe open: no waiting without end.
        let (state, _) = self
            .closed
            .wait_timeout_while(state, patience, |state| state.open > 0)
            .unwrap_or_else(PoisonError::into_inner);
        if state.last.is_empty() {
            return None;
        }
        let lines: Vec<String> = state.last.iter().map(|line| capped(line, SHOWN)).collect();
        Some(format!("The worker's last output:\n{}", lines.join("\n")))
    }
}

/// Cut a stream into lines without ever holding more than a line's cap.
fn split_lines(mut pipe: impl Read, each: &mut dyn FnMut(&str)) {
    let mut chunk = [0; 8192];
    let mut line: Vec<u8> = Vec::new();
    loop {
        let got = match pipe.read(&mut chunk) {
            Ok(0) => break,
            Ok(got) => got,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        for part in chunk[..got].split_inclusive(|byte| *byte == b'\n') {
            let (text, ended) = match part.split_last() {
                Some((b'\n', text)) => (text, true),
                _ => (part, false),
            };
            // One byte over the cap lets the cut be seen and marked.
            let room = (LINE_CAP + 1).saturating_sub(line.len());
            line.extend_from_slice(&text[..text.len().min(room)]);
            if ended {
                emit(&mut line, each);
            }
        }
    }
    if !line.is_empty() {
        emit(&mut line, each);
    }
}

fn emit(line: &mut Vec<u8>, each: &mut dyn FnMut(&str)) {
    let text = String::from_utf8_lossy(line);
    let text = text.trim_end();
    if !text.is_empty() {
        each(text);
    }
    line.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8]) -> Vec<String> {
        let mut found = Vec::new();
        split_lines(bytes, &mut |line| found.push(line.to_owned()));
        found
    }

    #[test]
    fn lines_are_cut_capped_and_made_text() {
        assert_eq!(lines(b"one\r\n\ntwo\nthree"), ["one", "two", "three"]);
        assert_eq!(lines(b"\xff\xfe\n"), ["\u{fffd}\u{fffd}"]);
        let mut long = vec![b'x'; 100_000];
        long.extend_from_slice(b"\nafter");
        let found = lines(&long);
        assert_eq!(
            (found.len(), found[0].len(), found[1].as_str()),
            (2, LINE_CAP + 1, "after")
        );
    }

    #[test]
    fn the_last_lines_are_kept_however_many_there_are() {
        let tail = LogTail::new("libx.so");
        let text = (0..1000)
            .map(|line| format!("line {line}"))
            .collect::<Vec<_>>()
            .join("\n");
        tail.follow(Origin::Stdout, std::io::Cursor::new(text.into_bytes()));
        let words = tail.last_words(Duration::from_secs(20)).expect("lines");
        assert!(words.ends_with("line 998\nline 999"), "{words}");
        assert!(
            words.contains("line 980") && !words.contains("line 979"),
            "{words}"
        );
        let long = LogTail::new("libx.so");
        long.line(Origin::Stderr, &"y".repeat(50_000));
        assert!(long.last_words(Duration::ZERO).expect("line").len() < 300);
    }

    #[test]
    fn an_open_pipe_is_not_waited_for_without_end() {
        let tail = LogTail::new("libx.so");
        let (reader, writer) = std::io::pipe().expect("pipe");
        tail.follow(Origin::Stdout, reader);
        assert_eq!(tail.last_words(Duration::from_millis(20)), None);
        drop(writer);
    }
}
