//! When to try again: exponential back-off with jitter, or what the server asks for. And a pause that all transfers from one host keep.

use crate::{
    Context,
    error::{FetchError, Result},
    limits::Limits,
    progress::Event,
};
use std::{
    collections::HashMap,
    sync::Mutex,
    time::{Duration, SystemTime},
};

/// `Retry-After`: seconds, or an HTTP date. A date in the past is no wait.
pub(crate) fn retry_after(text: &str, now: SystemTime) -> Option<Duration> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        // Too many digits to count is longer than any cap.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

/// Wait after the `failures`-th failure in a row (from 1): doubling, capped, and at least half of it kept by the jitter in [0, 1).
pub(crate) fn backoff(limits: &Limits, failures: u32, jitter: f64) -> Duration {
    let doubled = limits
        .backoff
        .saturating_mul(
            1_u32
                .checked_shl(failures.saturating_sub(1))
                .unwrap_or(u32::MAX),
        )
        .min(limits.backoff_cap);
    doubled.mul_f64(0.5 + 0.5 * jitter)
}

/// Until when each host wants to be left alone, by `Machine::uptime`.
#[derive(Debug, Default)]
pub(crate) struct Pauses(Mutex<HashMap<String, Duration>>);

impl Pauses {
    fn set(&self, host: &str, until: Duration) {
        let mut map = self
            .0
            .lock()
            .expect("no thread panics while it holds the pauses");
        let entry = map.entry(host.into()).or_default();
        *entry = (*entry).max(until);
    }

    fn left(&self, host: &str, now: Duration) -> Duration {
        let map = self
            .0
            .lock()
            .expect("no thread panics while it holds the pauses");
        map.get(host)
            .map_or(Duration::ZERO, |until| until.saturating_sub(now))
    }
}

/// How an attempt ended that was not an error.
pub(crate) enum Step<T> {
    /// Done.
    Done(T),
    /// What was there is of no use: try again from the start, without a wait.
    Again,
}

/// Try until done, or until nothing can be hoped for. `attempt` also tells whether it brought something new, which starts the count afresh.
pub(crate) fn persist<T>(
    context: &Context<'_>,
    name: &str,
    host: &str,
    mut attempt: impl FnMut() -> (Result<Step<T>>, bool),
) -> Result<(T, u32)> {
    let limits = context.client.limits();
    let pauses = context.client.pauses();
    let (mut in_all, mut barren) = (0, 0);
    loop {
        context.cancel.check()?;
        let left = pauses.left(host, context.machine.uptime());
        if !left.is_zero() {
            context.machine.sleep(left, context.cancel);
            context.cancel.check()?;
        }
        in_all += 1;
        let (result, fruitful) = attempt();
        barren = if fruitful { 1 } else { barren + 1 };
        let tired = barren >= limits.attempts || in_all >= limits.attempts_in_all;
        let error = match result {
            Ok(Step::Done(value)) => return Ok((value, in_all)),
            Ok(Step::Again) if !tired => continue,
            Ok(Step::Again) => FetchError::Protocol {
                address: host.into(),
                what: "the file changes with every request".into(),
            },
            Err(error) => error,
        };
        if !error.is_passing() {
            return Err(error);
        }
        if tired {
            return Err(FetchError::GaveUp {
                attempts: in_all,
                last: Box::new(error),
            });
        }
        let mut wait = backoff(limits, barren, context.machine.jitter());
        if let FetchError::Busy {
            address,
            retry_after: Some(asked),
            ..
        } = &error
        {
            if *asked > limits.retry_after_cap {
                return Err(FetchError::WaitTooLong {
                    address: address.clone(),
                    asked: *asked,
                    limit: limits.retry_after_cap,
                });
            }
            wait = wait.max(*asked);
            pauses.set(host, context.machine.uptime() + *asked);
        }
        tracing::debug!(name, in_all, ?wait, %error, "trying again");
        context.progress.event(&Event::Retrying {
            name,
            attempt: in_all,
            wait,
            error: &error,
        });
        context.machine.sleep(wait, context.cancel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_cap() {
        let limits = Limits::default();
        let full = |n| backoff(&limits, n, 1.0).as_secs();
        assert_eq!(
            [full(1), full(2), full(3), full(7), full(99)],
            [1, 2, 4, 60, 60]
        );
        assert_eq!(backoff(&limits, 2, 0.0), Duration::from_secs(1));
    }

    #[test]
    fn a_pause_is_the_hosts_and_only_grows() {
        let second = Duration::from_secs;
        let pauses = Pauses::default();
        pauses.set("a.org", second(9));
        pauses.set("a.org", second(5));
        assert_eq!(pauses.left("a.org", second(2)), second(7));
        assert_eq!(pauses.left("a.org", second(10)), second(0));
        assert_eq!(pauses.left("b.org", second(2)), second(0));
    }

    #[test]
    fn retry_after_in_both_forms() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").expect("date");
        let after = |text| retry_after(text, now);
        assert_eq!(after("120"), Some(Duration::from_mins(2)));
        assert_eq!(
            after("Sun, 06 Nov 1994 08:50:07 GMT"),
            Some(Duration::from_secs(30))
        );
        assert_eq!(after("Sun, 06 Nov 1994 08:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(
            after("99999999999999999999999"),
            Some(Duration::from_secs(u64::MAX))
        );
        for bad in ["", "-1", "soon", "1.5"] {
            assert_eq!(after(bad), None, "{bad}");
        }
    }
}
