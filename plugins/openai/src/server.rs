//! The server: exchanges with retries, at its pace, and its errors told apart. Knows no picture and no score.

use crate::address::Address;
use crate::counter::Counter;
use crate::fault::Fault;
use crate::http::{Exchange, Http};
use crate::pace::{Pace, Patience, Turn, jitter, sleep_until};
use crate::reply::{Complaint, Misread, models, tokens};
use crate::secret::Key;
use focus_plugin_sdk::Host;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Longest wait to hear whether the server is there: the host has a limit of its own for a call, and blames pictures when that is met.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);

/// A server. Shared by threads.
#[derive(Debug)]
pub struct Server {
    http: Http,
    timeout: Duration,
    /// Longest wait to hear whether it is there.
    sign_of_life: Duration,
    pace: Pace,
    patience: Patience,
    counter: Counter,
}

impl Server {
    /// Nothing is sent yet.
    pub fn new(
        address: Address,
        key: Option<Key>,
        timeout: Duration,
        patience: Patience,
        requests_per_minute: Option<f64>,
    ) -> Self {
        Self {
            http: Http::new(address, key),
            timeout,
            sign_of_life: timeout.min(SIGN_OF_LIFE),
            pace: Pace::new(requests_per_minute, patience.first_wait),
            patience,
            counter: Counter::default(),
        }
    }

    /// Where it is.
    pub fn address(&self) -> &Address {
        self.http.address()
    }

    pub(crate) fn counter(&self) -> &Counter {
        &self.counter
    }

    /// A text of the server as a log or message may show it.
    pub(crate) fn quoted(&self, text: &str) -> String {
        self.http.quoted(text)
    }

    /// Post `body` to a URL of this server, or get where there is none, until there is an answer that `read` takes, or no hope; within
    /// the patience's total, which starts with the first turn at the user's own rate.
    pub fn ask<T>(
        &self,
        host: &Host,
        url: &str,
        body: Option<&[u8]>,
        read: impl Fn(Value) -> Result<T, Misread>,
    ) -> Result<T, Fault> {
        let start = Instant::now();
        // A total too long to count is no limit that a run could meet.
        let mut latest = start
            .checked_add(self.patience.total)
            .unwrap_or(start + Duration::from_hours(24));
        let mut failures = 0;
        let mut last: Option<Fault> = None;
        let mut paused = Duration::ZERO;
        loop {
            match self.pace.turn(host, &mut latest)? {
                Turn::Now { paused: wait } => paused += wait,
                Turn::TooLate { wait } => {
                    let last = last
                        .filter(Fault::is_busy)
                        .unwrap_or_else(|| self.paused(wait));
                    return Err(gave_up(failures, last));
                }
            }
            self.counter.request(failures > 0);
            // Waiting for the turn may have used up the time; the attempt then fails at once.
            let left = latest.saturating_duration_since(Instant::now());
            let limit = self.timeout.min(left).max(Duration::from_millis(1));
            let fault = match self.once(url, body, limit, &read) {
                Ok(answer) => return Ok(answer),
                Err(fault) if !fault.is_passing() => return Err(fault),
                // The time that is missing went by in the pause.
                Err(Fault::Slow { .. }) if limit < self.timeout && !paused.is_zero() => {
                    self.paused(paused)
                }
                Err(fault) => fault,
            };
            failures += 1;
            if let Some(asked) = fault.retry_after() {
                self.pace.pause(asked);
            }
            // A server that was busy took time and attempts from this request: what fails after that is not the picture's fault.
            let fault = match last.take() {
                Some(busy) if busy.is_busy() && !fault.is_busy() => busy,
                _ => fault,
            };
            let until = Instant::now() + self.patience.wait(failures, jitter());
            if failures > self.patience.retries || until > latest {
                return Err(gave_up(failures, fault));
            }
            last = Some(fault);
            sleep_until(until, host)?;
        }
    }

    fn paused(&self, wait: Duration) -> Fault {
        Fault::Paused {
            server: self.address().shown().to_owned(),
            wait,
        }
    }

    fn once<T>(
        &self,
        url: &str,
        body: Option<&[u8]>,
        limit: Duration,
        read: &impl Fn(Value) -> Result<T, Misread>,
    ) -> Result<T, Fault> {
        let exchange = self.http.exchange(url, body, limit)?;
        let good = (200..300).contains(&exchange.status);
        let value = match serde_json::from_slice::<Value>(&exchange.bytes) {
            Ok(value) => value,
            Err(_) if !good => return Err(self.refused(&exchange, None)),
            Err(error) => {
                let text = String::from_utf8_lossy(&exchange.bytes);
                let found = if text.trim().is_empty() {
                    "nothing".to_owned()
                } else if error.is_eof() {
                    format!("JSON that ends early, after {} bytes: {text}", text.len())
                } else {
                    text.into_owned()
                };
                return Err(self.malformed(&Misread::new("JSON", found)));
            }
        };
        let complaint = Complaint::find(&value);
        if !good || complaint.is_some() {
            return Err(self.refused(&exchange, complaint));
        }
        read(value).map_err(|misread| self.malformed(&misread))
    }

    fn refused(&self, exchange: &Exchange, complaint: Option<Complaint>) -> Fault {
        let inside = (200..300).contains(&exchange.status);
        let (said, code, exhausted) = match complaint {
            Some(complaint) => (complaint.said, complaint.status, complaint.exhausted),
            None => (
                String::from_utf8_lossy(&exchange.bytes).into_owned(),
                None,
                false,
            ),
        };
        let said = self.quoted(&said);
        Fault::Refused {
            server: self.address().shown().to_owned(),
            status: code.filter(|_| inside).unwrap_or(exchange.status),
            inside,
            said: if said.is_empty() {
                "no explanation".to_owned()
            } else {
                said
            },
            retry_after: exchange.retry_after,
            exhausted,
        }
    }

    pub(crate) fn malformed(&self, misread: &Misread) -> Fault {
        Fault::Malformed {
            server: self.address().shown().to_owned(),
            expected: misread.expected.clone(),
            found: self.quoted(&misread.found),
        }
    }

    /// Names of the models served.
    pub fn models(&self, host: &Host) -> Result<Vec<String>, Fault> {
        let url = self.address().below("/models");
        self.ask(host, &url, None, models)
    }

    /// Whether the server is there at all, after a request that was given up: it answers something, and not that it is out of order.
    pub(crate) fn is_alive(&self) -> bool {
        let url = self.address().below("/models");
        self.counter.request(false);
        match self.http.exchange(&url, None, self.sign_of_life) {
            Ok(exchange) => exchange.status < 500 && exchange.status != 429,
            Err(fault) => matches!(fault, Fault::Redirect { .. }),
        }
    }

    /// The id of a text, if it is exactly one token (vLLM's `/tokenize`).
    pub fn token(&self, host: &Host, model: &str, text: &str) -> Result<Option<u32>, Fault> {
        let url = self.address().beside("/tokenize");
        let body = json!({"model": model, "prompt": text, "add_special_tokens": false}).to_string();
        let ids = self.ask(host, &url, Some(body.as_bytes()), tokens)?;
        Ok(match ids[..] {
            [id] => Some(id),
            _ => None,
        })
    }
}

fn gave_up(attempts: u32, last: Fault) -> Fault {
    Fault::GaveUp {
        attempts,
        last: Box::new(last),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request that was given up and the question after it must not take as long as the host allows a call.
    #[test]
    fn a_sign_of_life_is_not_waited_for_long() {
        let patience = Patience {
            retries: 5,
            total: Duration::from_hours(1),
            first_wait: Duration::from_secs(1),
            longest_wait: Duration::from_secs(30),
        };
        for (timeout, wanted) in [(3600, 10), (10, 10), (2, 2)] {
            let address = Address::check("http://localhost/v1", &["localhost".into()]);
            let timeout = Duration::from_secs(timeout);
            let server = Server::new(address.expect("granted"), None, timeout, patience, None);
            assert_eq!(server.sign_of_life, Duration::from_secs(wanted));
        }
    }
}
