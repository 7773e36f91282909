//! When to ask: the rate limit, pauses that the server asks for, and the waits between attempts. Knows no request.

use crate::fault::Fault;
use focus_plugin_sdk::Host;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// How much patience a request deserves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Attempts after the first.
    pub retries: u32,
    /// Of all attempts and waits together.
    pub total: Duration,
    /// Longest wait before the second attempt; doubles with each further one.
    pub first_wait: Duration,
    /// Longest wait.
    pub longest_wait: Duration,
}

impl Patience {
    /// Wait after the `failures`-th failure (from 1), for `jitter` in [0, 1): full jitter, so that requests that failed together do
    /// not come back together.
    pub(crate) fn wait(&self, failures: u32, jitter: f64) -> Duration {
        let doubled = 1_u32
            .checked_shl(failures.saturating_sub(1))
            .unwrap_or(u32::MAX);
        self.first_wait
            .saturating_mul(doubled)
            .min(self.longest_wait)
            .mul_f64(jitter)
    }
}

/// A random number in [0, 1).
pub(crate) fn jitter() -> f64 {
    // A fresh `RandomState` is randomly keyed; 53 bits fill the mantissa.
    (RandomState::new().hash_one(0_u8) >> 11) as f64 / (1_u64 << 53) as f64
}

/// `Retry-After`: seconds, or an HTTP date. A date in the past is no wait.
pub(crate) fn retry_after(text: &str, now: SystemTime) -> Option<Duration> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // Too many digits to count is longer than any patience.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

/// Longest pause that is counted: no run lives to see its end.
const YEAR: Duration = Duration::from_hours(365 * 24);

/// Turns of all threads at one server.
#[derive(Debug)]
pub(crate) struct Pace {
    /// Between the starts of two requests: the user's wish.
    gap: Duration,
    /// When the next may start, by `gap` alone.
    next: Mutex<Option<Instant>>,
    /// The server's wish: until then nobody asks.
    paused_until: Mutex<Option<Instant>>,
    /// After a pause the threads come back within this time, not all at its end.
    spread: Duration,
}

impl Pace {
    pub(crate) fn new(requests_per_minute: Option<f64>, spread: Duration) -> Self {
        let gap = requests_per_minute.map_or(Duration::ZERO, |n| {
            Duration::try_from_secs_f64(60.0 / n).unwrap_or(Duration::MAX)
        });
        Self {
            gap,
            next: Mutex::new(None),
            paused_until: Mutex::new(None),
            spread,
        }
    }

    /// Wait for a turn. A pause that the server wants may not reach past `latest`; the wait for the user's own rate moves `latest` on, for
    /// it says nothing of the server.
    pub(crate) fn turn(&self, host: &Host, latest: &mut Instant) -> Result<Turn, Fault> {
        let mut paused = Duration::ZERO;
        loop {
            if let Some(until) = self.paused_until() {
                let wait = until.saturating_duration_since(Instant::now());
                if until > *latest {
                    return Ok(Turn::TooLate { wait });
                }
                paused += wait;
                sleep_until(until + self.spread.mul_f64(jitter()), host)?;
                // Another request may have made the pause longer.
                continue;
            }
            let asked = Instant::now();
            let start = self.reserve(asked);
            if start > asked {
                sleep_until(start, host)?;
                *latest += asked.elapsed();
            }
            if self.paused_until().is_none() {
                return Ok(Turn::Now { paused });
            }
        }
    }

    /// The next free start by the user's rate, not before `now`.
    fn reserve(&self, now: Instant) -> Instant {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let start = next.map_or(now, |next| next.max(now));
        *next = start.checked_add(self.gap).or(Some(start));
        start
    }

    /// Nobody asks for this long.
    pub(crate) fn pause(&self, length: Duration) {
        let now = Instant::now();
        let until = now.checked_add(length).unwrap_or(now + YEAR);
        let mut paused = self
            .paused_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *paused = (*paused).max(Some(until));
    }

    /// End of the pause, if there is one now.
    fn paused_until(&self) -> Option<Instant> {
        let paused = self
            .paused_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        paused.filter(|&until| until > Instant::now())
    }
}

/// Whether a turn came in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Yes, after so long a pause that the server wanted.
    Now { paused: Duration },
    /// No: the server wants to be left alone for so long, and there is less time.
    TooLate { wait: Duration },
}

/// Sleep, waking to see whether the host still wants an answer.
pub(crate) fn sleep_until(end: Instant, host: &Host) -> Result<(), Fault> {
    const SLICE: Duration = Duration::from_millis(50);
    loop {
        if host.cancelled() {
            return Err(Fault::Cancelled);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(SLICE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const AT_ONCE: Turn = Turn::Now {
        paused: Duration::ZERO,
    };

    const PATIENCE: Patience = Patience {
        retries: 5,
        total: Duration::from_mins(1),
        first_wait: Duration::from_secs(1),
        longest_wait: Duration::from_secs(20),
    };

    #[test]
    fn waits_double_up_to_the_longest() {
        let longest: Vec<f64> = (1..8)
            .map(|n| PATIENCE.wait(n, 0.5).as_secs_f64() * 2.0)
            .collect();
        assert_eq!(longest, [1.0, 2.0, 4.0, 8.0, 16.0, 20.0, 20.0]);
    }

    proptest! {
        #[test]
        fn no_wait_is_longer_than_the_longest(failures in 0_u32..10_000, jitter in 0.0..1.0_f64) {
            prop_assert!(PATIENCE.wait(failures, jitter) <= PATIENCE.longest_wait);
        }

        #[test]
        fn any_retry_after_is_read_or_ignored(text in ".{0,40}") {
            let _ = retry_after(&text, SystemTime::UNIX_EPOCH);
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let read = |text| retry_after(text, now).map(|wait| wait.as_secs());
        assert_eq!(read(" 7 "), Some(7));
        assert_eq!(read("Sun, 06 Nov 1994 08:49:47 GMT"), Some(10));
        assert_eq!(read("Sun, 06 Nov 1994 08:49:27 GMT"), Some(0));
        assert_eq!(read("99999999999999999999999"), Some(u64::MAX));
        for odd in ["", "soon", "-1", "1.5"] {
            assert_eq!(read(odd), None, "{odd}");
        }
    }

    #[test]
    fn turns_keep_their_distance() {
        let host = Host::detached();
        let pace = Pace::new(Some(6000.0), Duration::ZERO);
        let start = Instant::now();
        for _ in 0..4 {
            // The rate alone makes nobody late.
            let mut latest = start;
            assert_eq!(pace.turn(&host, &mut latest), Ok(AT_ONCE));
        }
        assert!(start.elapsed() >= Duration::from_millis(30));
    }

    #[test]
    fn the_wait_for_the_rate_is_no_slowness() {
        let host = Host::detached();
        let pace = Pace::new(Some(300.0), Duration::ZERO);
        let first = Instant::now();
        let mut latest = first;
        assert_eq!(pace.turn(&host, &mut latest), Ok(AT_ONCE));
        assert_eq!(latest, first);
        assert_eq!(pace.turn(&host, &mut latest), Ok(AT_ONCE));
        // 200 ms, less what this test took between the turns.
        let moved = latest - first;
        assert!(!moved.is_zero() && moved <= first.elapsed(), "{moved:?}");
    }

    #[test]
    fn pauses_that_are_too_long_are_told() {
        let host = Host::detached();
        for length in [Duration::from_mins(2), Duration::MAX] {
            let pace = Pace::new(None, Duration::ZERO);
            let now = Instant::now();
            pace.pause(length);
            // A shorter one later does not end it.
            pace.pause(Duration::ZERO);
            let mut latest = now + Duration::from_mins(1);
            let Ok(Turn::TooLate { wait }) = pace.turn(&host, &mut latest) else {
                panic!("a pause of {length:?} was cut short");
            };
            assert!(wait + now.elapsed() >= length.min(Duration::from_mins(2)));
        }
    }

    #[test]
    fn threads_come_back_from_a_pause_one_by_one() {
        const THREADS: usize = 8;
        let pace = Pace::new(None, Duration::from_millis(200));
        let end = Instant::now() + Duration::from_millis(200);
        pace.pause(Duration::from_millis(200));
        let back = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    let mut latest = Instant::now() + Duration::from_mins(1);
                    let turn = pace.turn(&Host::detached(), &mut latest);
                    let Ok(Turn::Now { paused }) = turn else {
                        panic!("there was time: {turn:?}");
                    };
                    assert!(!paused.is_zero());
                    back.lock().expect("no panic").push(Instant::now());
                });
            }
        });
        let back = back.into_inner().expect("no panic");
        let (first, last) = (back.iter().min(), back.iter().max());
        let (first, last) = (*first.expect("threads"), *last.expect("threads"));
        assert!(first >= end);
        // Eight draws from 200 ms lie within 10 ms of each other once in a hundred million times.
        assert!(
            last - first > Duration::from_millis(10),
            "{:?}",
            last - first
        );
    }

    #[test]
    fn jitter_stays_in_range_and_varies() {
        let draws: Vec<f64> = (0..100).map(|_| jitter()).collect();
        assert!(draws.iter().all(|x| (0.0..1.0).contains(x)));
        assert!(draws.iter().any(|x| *x != draws[0]));
    }
}
