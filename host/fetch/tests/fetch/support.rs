//! A machine of our own making, a bench that puts the parts together, and bodies to send.

use focus_fetch::{
    Cancel, Client, Context, Event, FetchError, FileJob, Folder, Limits, Machine, Outcome,
    Progress, Proxies, fetch_file,
};
use std::{
    io,
    os::fd::BorrowedFd,
    path::PathBuf,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

/// Sleeps at once and notes it; its clock goes on by what it slept, and by `tick` each time it is read.
#[derive(Debug)]
pub struct Fake {
    pub slept: Mutex<Vec<Duration>>,
    pub free: AtomicU64,
    pub tick: AtomicU64,
    millis: AtomicU64,
}

impl Machine for Fake {
    fn now(&self) -> SystemTime {
        // Sun, 06 Nov 1994 08:49:37 GMT.
        SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777)
    }

    fn uptime(&self) -> Duration {
        let tick = self.tick.load(Ordering::Relaxed);
        Duration::from_millis(self.millis.fetch_add(tick, Ordering::Relaxed))
    }

    fn sleep(&self, time: Duration, _: &Cancel) {
        self.slept.lock().expect("list").push(time);
        self.millis
            .fetch_add(time.as_millis() as u64, Ordering::Relaxed);
    }

    fn jitter(&self) -> f64 {
        1.0
    }

    fn free_bytes(&self, _: BorrowedFd<'_>) -> io::Result<u64> {
        Ok(self.free.load(Ordering::Relaxed))
    }
}

/// Notes events as text; cancels after so many bytes.
#[derive(Default)]
pub struct Ear {
    pub heard: Mutex<Vec<String>>,
    pub cancel_after: Option<(u64, Cancel)>,
    bytes: AtomicU64,
}

impl Progress for Ear {
    fn event(&self, event: &Event<'_>) {
        if let Event::Received { bytes, .. } = event {
            let all = self.bytes.fetch_add(*bytes, Ordering::Relaxed) + bytes;
            if let Some((limit, cancel)) = &self.cancel_after
                && all >= *limit
            {
                cancel.cancel();
            }
        }
        self.heard.lock().expect("list").push(format!("{event:?}"));
    }
}

pub struct Bench {
    pub dir: tempfile::TempDir,
    pub machine: Fake,
    pub client: Client,
    pub cancel: Cancel,
    pub ear: Ear,
}

impl Bench {
    pub fn new() -> Self {
        Self::with(limits())
    }

    pub fn with(limits: Limits) -> Self {
        Self {
            dir: tempfile::tempdir().expect("folder"),
            machine: Fake {
                slept: Mutex::default(),
                free: AtomicU64::new(1 << 50),
                tick: AtomicU64::new(0),
                millis: AtomicU64::new(0),
            },
            client: Client::new(limits, Proxies::None),
            cancel: Cancel::new(),
            ear: Ear::default(),
        }
    }

    pub fn context(&self) -> Context<'_> {
        Context {
            client: &self.client,
            machine: &self.machine,
            progress: &self.ear,
            cancel: &self.cancel,
        }
    }

    pub fn folder(&self) -> Folder {
        Folder::open(self.dir.path()).expect("opens")
    }

    pub fn fetch(&self, job: &FileJob) -> Result<Outcome, FetchError> {
        fetch_file(&self.context(), &self.folder(), job)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).expect("reads")
    }

    /// Everything below the target folder, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.dir.path()).expect("lists");
        let mut names: Vec<_> = entries
            .map(|e| e.expect("entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    pub fn slept(&self) -> Vec<u64> {
        let list = self.machine.slept.lock().expect("list");
        list.iter().map(|d| d.as_millis() as u64).collect()
    }

    pub fn heard(&self, what: &str) -> usize {
        let list = self.ear.heard.lock().expect("list");
        list.iter().filter(|e| e.contains(what)).count()
    }
}

/// Patient enough for a busy machine: waits that a test is about are waited by the fake clock.
pub fn limits() -> Limits {
    Limits {
        silence: Duration::from_secs(20),
        headers: Duration::from_secs(20),
        connect: Duration::from_secs(20),
        reserve_bytes: 1000,
        ..Limits::default()
    }
}

/// Bytes of which no two stretches are alike.
pub fn body(len: usize) -> Vec<u8> {
    let mut state = 1_u64;
    (0..len)
        .map(|_| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 56) as u8
        })
        .collect()
}

pub fn sha256(bytes: &[u8]) -> focus_fetch::Checksum {
    use sha2::{Digest as _, Sha256};
    let hex = format!("{:x}", Sha256::digest(bytes));
    focus_fetch::Checksum::new(focus_fetch::Algorithm::Sha256, &hex).expect("a checksum")
}

pub fn md5_hex(bytes: &[u8]) -> String {
    use md5::{Digest as _, Md5};
    format!("{:x}", Md5::digest(bytes))
}

pub fn job(url: &str) -> FileJob {
    FileJob::new("a.bin", url).expect("a job")
}

pub fn checked(url: &str, bytes: &[u8]) -> FileJob {
    FileJob {
        checksums: vec![sha256(bytes)],
        ..job(url)
    }
}
