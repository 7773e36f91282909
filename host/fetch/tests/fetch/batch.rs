//! Many files at once.

use crate::{
    server::{Server, file, whole},
    support::{Bench, body, checked, job, limits},
};
use focus_fetch::{Cancel, Context, FetchError, FileJob, Limits, Machine, fetch_all};
use std::{
    os::fd::BorrowedFd,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

fn jobs(server: &Server, count: usize) -> Vec<FileJob> {
    (0..count)
        .map(|i| FileJob {
            name: format!("d{}/f{i}", i % 3),
            ..checked(&server.url(&format!("/{i}")), &body(1000 + i))
        })
        .collect()
}

fn index(path: &str) -> usize {
    path[1..].parse().expect("a number")
}

#[test]
fn one_failure_loses_no_other_file_and_a_second_run_mends_it() {
    let broken = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let still = broken.clone();
    let server = Server::start(move |r, s| {
        let i = index(&r.path);
        if i == 5 && still.load(Ordering::Relaxed) {
            whole(s, "404 Not Found", &[], b"");
        } else {
            file(r, s, &body(1000 + i), "\"v\"", 600);
        }
    });
    let bench = Bench::new();
    let jobs = jobs(&server, 20);
    let run = || fetch_all(&bench.context(), &bench.folder(), &jobs).expect("runs");
    let summary = run();
    let failed: Vec<_> = summary.failed().map(|(n, _)| n).collect();
    assert_eq!(failed, ["d2/f5"]);
    assert_eq!((summary.fetched(), summary.present()), (19, 0));
    broken.store(false, Ordering::Relaxed);
    let before = server.seen().len();
    let summary = run();
    assert!(summary.is_complete());
    assert_eq!((summary.fetched(), summary.present()), (1, 19));
    assert_eq!(summary.received(), 1005);
    assert_eq!(
        server.seen().len() - before,
        2,
        "only the missing one is asked for"
    );
    let names: Vec<_> = summary.files.iter().map(|f| f.name.clone()).collect();
    let wanted: Vec<_> = jobs.iter().map(|j| j.name.clone()).collect();
    assert_eq!(names, wanted, "in the order of the jobs");
    for (i, job) in jobs.iter().enumerate() {
        assert_eq!(bench.read(&job.name), body(1000 + i));
    }
}

#[test]
fn few_files_of_a_host_at_once() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (n, m) = (now.clone(), most.clone());
    let server = Server::start(move |r, s| {
        m.fetch_max(n.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::sleep(std::time::Duration::from_millis(20));
        n.fetch_sub(1, Ordering::SeqCst);
        file(r, s, &body(1000 + index(&r.path)), "\"v\"", 9999);
    });
    let bench = Bench::with(Limits {
        parallel: 8,
        ..limits()
    });
    let summary = fetch_all(&bench.context(), &bench.folder(), &jobs(&server, 12)).expect("runs");
    assert!(summary.is_complete());
    assert_eq!(most.load(Ordering::SeqCst), 2);
}

#[test]
fn names_that_collide_are_refused_before_anything_is_asked() {
    let server = Server::start(|_, s| whole(s, "200 OK", &[], b"x"));
    let bench = Bench::new();
    for names in [["a", "a"], ["a", "a/b"], ["x/y/z", "x/y"], ["ok", "../up"]] {
        let jobs = names.map(|n| FileJob {
            name: n.into(),
            ..job(&server.url("/a"))
        });
        let error = fetch_all(&bench.context(), &bench.folder(), &jobs).expect_err("collides");
        let known = matches!(
            error,
            FetchError::NameTwice { .. } | FetchError::UnsafeName { .. }
        );
        assert!(known, "{error}");
    }
    assert!(server.seen().is_empty());
    assert!(bench.names().is_empty());
}

#[test]
fn the_space_for_all_is_looked_at_first() {
    let server = Server::start(|r, s| file(r, s, &body(1000 + index(&r.path)), "\"v\"", 9999));
    let bench = Bench::new();
    let jobs: Vec<_> = jobs(&server, 4)
        .into_iter()
        .enumerate()
        .map(|(i, j)| FileJob {
            size: Some(1000 + i as u64),
            ..j
        })
        .collect();
    let run = || fetch_all(&bench.context(), &bench.folder(), &jobs);
    // 4006 bytes and a reserve of 1000.
    bench.machine.free.store(5005, Ordering::Relaxed);
    let error = run().expect_err("full");
    assert!(
        error.to_string().contains("5006 bytes free, found 5005"),
        "{error}"
    );
    assert!(server.seen().is_empty());
    bench.machine.free.store(5006, Ordering::Relaxed);
    assert!(run().expect("runs").is_complete());
    bench.machine.free.store(0, Ordering::Relaxed);
    assert!(run().expect("nothing to write").is_complete());
}

#[test]
fn a_host_that_refuses_everything_is_not_asked_for_every_file() {
    let server = Server::start(|_, s| whole(s, "403 Forbidden", &[], b""));
    let bench = Bench::new();
    let summary = fetch_all(&bench.context(), &bench.folder(), &jobs(&server, 50)).expect("runs");
    assert_eq!(summary.failed().count(), 50);
    assert!(
        summary
            .failed()
            .all(|(_, e)| matches!(e, FetchError::Refused { status: 403, .. }))
    );
    assert!(
        (3..=4).contains(&server.seen().len()),
        "{}",
        server.seen().len()
    );
}

#[test]
fn cancelling_ends_all_and_loses_nothing() {
    let server = Server::start(|r, s| file(r, s, &body(1000 + index(&r.path)), "\"v\"", 9999));
    let mut bench = Bench::new();
    bench.ear.cancel_after = Some((3000, bench.cancel.clone()));
    let jobs = jobs(&server, 40);
    let summary = fetch_all(&bench.context(), &bench.folder(), &jobs).expect("runs");
    let cancelled = summary
        .failed()
        .filter(|(_, e)| matches!(e, FetchError::Cancelled))
        .count();
    assert!(cancelled >= 30, "{cancelled}");
    assert_eq!(summary.failed().count(), cancelled);
    let next = Bench::new();
    let summary = fetch_all(&next.context(), &bench.folder(), &jobs).expect("runs");
    assert!(summary.is_complete());
}

#[test]
fn a_wait_that_one_file_was_told_holds_for_the_host() {
    // A machine that does not sleep at all: the pause is still there when the next file comes.
    #[derive(Debug)]
    struct Sleepless(std::sync::Mutex<Vec<u64>>, Cancel);
    impl Machine for Sleepless {
        fn now(&self) -> SystemTime {
            SystemTime::UNIX_EPOCH
        }
        fn uptime(&self) -> Duration {
            Duration::ZERO
        }
        fn sleep(&self, time: Duration, _: &Cancel) {
            let mut slept = self.0.lock().expect("list");
            slept.push(time.as_secs());
            if slept.len() == 3 {
                self.1.cancel();
            }
        }
        fn jitter(&self) -> f64 {
            1.0
        }
        fn free_bytes(&self, _: BorrowedFd<'_>) -> std::io::Result<u64> {
            Ok(1 << 40)
        }
    }
    let server = Server::start(|r, s| {
        if r.number == 0 {
            whole(s, "429 Too Many", &[("Retry-After", "9")], b"");
        } else {
            file(r, s, &body(1000 + index(&r.path)), "\"v\"", 9999);
        }
    });
    let bench = Bench::with(Limits {
        parallel: 1,
        ..limits()
    });
    let machine = Sleepless(std::sync::Mutex::default(), bench.cancel.clone());
    let context = Context {
        machine: &machine,
        ..bench.context()
    };
    let summary = fetch_all(&context, &bench.folder(), &jobs(&server, 2)).expect("runs");
    // Back-off of the first file, its pause, and the pause again before the second file.
    assert_eq!(*machine.0.lock().expect("list"), [9, 9, 9]);
    assert_eq!(server.seen().len(), 2);
    assert_eq!((summary.fetched(), summary.failed().count()), (1, 1));
}
