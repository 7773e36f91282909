//! Servers that keep one waiting.

use crate::{
    server::{Server, answer, file},
    support::{Bench, body, job, limits},
};
use focus_fetch::{FetchError, Limits};
use std::{io::Write as _, sync::atomic::Ordering, time::Duration};

/// Limits of real time that a test can wait for.
fn quick() -> Limits {
    Limits {
        silence: Duration::from_millis(400),
        headers: Duration::from_millis(800),
        ..limits()
    }
}

fn pause(millis: u64) {
    std::thread::sleep(Duration::from_millis(millis));
}

#[test]
fn silence_before_and_within_the_answer_is_cut_short() {
    for within in [false, true] {
        let server = Server::start(move |r, s| {
            if r.number == 0 {
                if within {
                    answer(
                        s,
                        "200 OK",
                        &[("Content-Length", "1000"), ("ETag", "\"v1\"")],
                        &body(1000)[..500],
                    );
                }
                pause(3000);
            } else {
                file(r, s, &body(1000), "\"v1\"", 1000);
            }
        });
        let bench = Bench::with(quick());
        let start = std::time::Instant::now();
        let outcome = bench.fetch(&job(&server.url("/a"))).expect("fetches");
        assert_eq!(outcome.attempts, 2);
        assert_eq!(
            outcome.received, 1000,
            "what came before the silence is kept"
        );
        assert_eq!(bench.read("a.bin"), body(1000));
        assert!(
            start.elapsed() < Duration::from_millis(2900),
            "did not wait for the server"
        );
        assert_eq!(bench.heard("too slow") + bench.heard("Slow"), 1);
    }
}

#[test]
fn headers_a_byte_at_a_time_meet_the_limit() {
    let server = Server::start(|_, s| {
        let _ = s.write_all(b"HTTP/1.1 200 OK\r\n");
        while s.write_all(b"X: y\r\n").is_ok() {
            pause(100);
        }
    });
    let bench = Bench::with(Limits {
        attempts: 1,
        ..quick()
    });
    let error = bench.fetch(&job(&server.url("/a"))).expect_err("too slow");
    assert!(error.to_string().contains("too slow"), "{error}");
}

#[test]
fn a_trickle_meets_the_limit_of_speed() {
    let server = Server::start(|_, s| {
        answer(
            s,
            "200 OK",
            &[("Content-Length", "1000000"), ("ETag", "\"v1\"")],
            b"",
        );
        while s.write_all(b"x").is_ok() {
            pause(5);
        }
    });
    let bench = Bench::with(Limits {
        attempts: 1,
        attempts_in_all: 1,
        ..limits()
    });
    // Each look at the clock takes ten seconds.
    bench.machine.tick.store(10_000, Ordering::Relaxed);
    let error = bench.fetch(&job(&server.url("/a"))).expect_err("too slow");
    let FetchError::GaveUp { last, .. } = error else {
        panic!("{error}");
    };
    assert!(last.to_string().contains("bytes in"), "{last}");
}
