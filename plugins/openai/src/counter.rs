//! What the questions cost: requests, retries, tokens, money. Knows no server.

use crate::reply::Usage;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counts of a run so far. Shared by threads.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    requests: AtomicU64,
    retries: AtomicU64,
    tokens_in: AtomicU64,
    tokens_out: AtomicU64,
    untold: AtomicU64,
    unscored: AtomicU64,
}

/// Counts at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Sent, retries too.
    pub(crate) requests: u64,
    /// Sent again after a failure.
    pub(crate) retries: u64,
    /// Of prompts, pictures too, as the server counts.
    pub(crate) tokens_in: u64,
    /// Generated.
    pub(crate) tokens_out: u64,
    /// Answers without a count of tokens.
    pub(crate) untold: u64,
    /// Variants whose log-probability the server did not tell.
    pub(crate) unscored: u64,
}

impl Counter {
    pub(crate) fn request(&self, again: bool) {
        self.requests.fetch_add(1, Relaxed);
        self.retries.fetch_add(u64::from(again), Relaxed);
    }

    pub(crate) fn answer(&self, usage: Option<&Usage>, unscored: u64) {
        match usage {
            Some(usage) => {
                self.tokens_in
                    .fetch_add(u64::from(usage.prompt_tokens), Relaxed);
                self.tokens_out
                    .fetch_add(u64::from(usage.completion_tokens), Relaxed);
            }
            None => drop(self.untold.fetch_add(1, Relaxed)),
        }
        self.unscored.fetch_add(unscored, Relaxed);
    }

    pub(crate) fn counts(&self) -> Counts {
        Counts {
            requests: self.requests.load(Relaxed),
            retries: self.retries.load(Relaxed),
            tokens_in: self.tokens_in.load(Relaxed),
            tokens_out: self.tokens_out.load(Relaxed),
            untold: self.untold.load(Relaxed),
            unscored: self.unscored.load(Relaxed),
        }
    }
}

impl Counts {
    /// One line for the log; prices are of a million tokens.
    pub(crate) fn line(&self, price_in: f64, price_out: f64) -> String {
        let mut line = format!(
            "So far {} requests ({} of them retries), {} tokens in, {} out",
            self.requests, self.retries, self.tokens_in, self.tokens_out
        );
        if price_in > 0.0 || price_out > 0.0 {
            let cost =
                (self.tokens_in as f64 * price_in + self.tokens_out as f64 * price_out) / 1e6;
            // Writing to a string cannot fail.
            let _ = write!(line, ", cost {cost:.4} at the prices given");
        }
        for (count, what) in [
            (self.untold, "answers without a count of tokens"),
            (
                self.unscored,
                "token variants without a log-probability (outside the server's list)",
            ),
        ] {
            if count > 0 {
                let _ = write!(line, "; {count} {what}");
            }
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_adds_up() {
        let counter = Counter::default();
        counter.request(false);
        counter.request(true);
        let usage = Usage {
            prompt_tokens: 1_000_000,
            completion_tokens: 500_000,
        };
        counter.answer(Some(&usage), 0);
        let line = counter.counts().line(2.0, 10.0);
        assert_eq!(
            line,
            "So far 2 requests (1 of them retries), 1000000 tokens in, 500000 out, cost 7.0000 at the prices given"
        );
        counter.answer(None, 3);
        let line = counter.counts().line(0.0, 0.0);
        assert!(
            line.contains("1 answers without a count")
                && line.contains("3 token variants")
                && !line.contains("cost"),
            "{line}"
        );
    }
}
