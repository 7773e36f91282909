//! Every bound of a download in one place.

use std::time::Duration;

/// Bounds; `Default` suits a large dataset over a slow line.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Redirects followed per request. 8.
    pub redirects: u32,
    /// Attempts per file, or per list of files, that bring nothing new. 6.
    pub attempts: u32,
    /// Attempts per file in all, however much each brings: ends a server that gives a byte at a time. 200.
    pub attempts_in_all: u32,
    /// Wait before the second attempt; doubles each time, with jitter. 1 s.
    pub backoff: Duration,
    /// Longest wait that back-off reaches. 60 s.
    pub backoff_cap: Duration,
    /// Longest `Retry-After` obeyed; a longer one ends the file with an error that says so. 10 min.
    pub retry_after_cap: Duration,
    /// Time for a connection, TLS included. 20 s.
    pub connect: Duration,
    /// Time between sending a request and the end of the response's headers. 60 s.
    pub headers: Duration,
    /// Longest silence while receiving. 30 s.
    pub silence: Duration,
    /// Slowest transfer put up with, in bytes per second, averaged over `slow_window`. 256.
    pub slow_bytes: u64,
    /// Window of `slow_bytes`. 60 s.
    pub slow_window: Duration,
    /// Largest list of files or answer of an API, in bytes. 64 MiB.
    pub listing_bytes: u64,
    /// Most files in one list. 2,000,000.
    pub listed_files: usize,
    /// Largest single file, in bytes. 1 TiB.
    pub file_bytes: u64,
    /// Free space left untouched on the target's file system, in bytes. 256 MiB.
    pub reserve_bytes: u64,
    /// Most bytes that an archive may hold unpacked. 256 GiB.
    pub archive_bytes: u64,
    /// Most bytes unpacked for each byte packed, for archives of more than 64 MiB unpacked. 200.
    pub archive_ratio: u64,
    /// Files in transfer at once. 4.
    pub parallel: usize,
    /// Files in transfer at once from one host. 2.
    pub parallel_per_host: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            redirects: 8,
            attempts: 6,
            attempts_in_all: 200,
            backoff: Duration::from_secs(1),
            backoff_cap: Duration::from_mins(1),
            retry_after_cap: Duration::from_mins(10),
            connect: Duration::from_secs(20),
            headers: Duration::from_mins(1),
            silence: Duration::from_secs(30),
            slow_bytes: 256,
            slow_window: Duration::from_mins(1),
            listing_bytes: 64 << 20,
            listed_files: 2_000_000,
            file_bytes: 1 << 40,
            reserve_bytes: 256 << 20,
            archive_bytes: 256 << 30,
            archive_ratio: 200,
            parallel: 4,
            parallel_per_host: 2,
        }
    }
}
