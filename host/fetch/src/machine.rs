//! Clock, sleep, chance and free space behind one trait, so that tests replace them.

use crate::cancel::Cancel;
use rustix::fd::BorrowedFd;
use std::{
    fmt::Debug,
    hash::{BuildHasher, RandomState},
    io,
    sync::OnceLock,
    time::{Duration, Instant, SystemTime},
};

/// What a download asks of the computer it runs on, besides files and sockets.
pub trait Machine: Debug + Send + Sync {
    /// The time of day, for dates in `Retry-After`.
    fn now(&self) -> SystemTime;
    /// A clock that never goes back, from any origin.
    fn uptime(&self) -> Duration;
    /// Wait; returns early when `cancel` is set.
    fn sleep(&self, time: Duration, cancel: &Cancel);
    /// A number in [0, 1) that spreads the retries of many clients.
    fn jitter(&self) -> f64;
    /// Bytes that an ordinary user may still write on the file system of `folder`.
    fn free_bytes(&self, folder: BorrowedFd<'_>) -> io::Result<u64>;
}

/// The real one.
#[derive(Debug, Clone, Copy, Default)]
pub struct System;

impl Machine for System {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    fn uptime(&self) -> Duration {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    }

    fn sleep(&self, time: Duration, cancel: &Cancel) {
        let end = Instant::now() + time;
        while !cancel.is_cancelled() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(Duration::from_millis(100)));
        }
    }

    fn jitter(&self) -> f64 {
        // A fresh `RandomState` is randomly keyed; 53 bits fill the mantissa.
        (RandomState::new().hash_one(0_u8) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn free_bytes(&self, folder: BorrowedFd<'_>) -> io::Result<u64> {
        let stat = rustix::fs::fstatvfs(folder)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}
