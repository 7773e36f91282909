//! Answers that are wrong: sums, sizes, encodings, nonsense.

use crate::{
    server::{Server, answer, file, whole},
    support::{Bench, body, checked, job, limits, md5_hex},
};
use focus_fetch::{Algorithm, Checksum, FetchError, FileJob, Limits};
use std::{io::Write as _, sync::atomic::Ordering};

#[test]
fn a_wrong_sum_leaves_nothing_behind() {
    let server = Server::start(|r, s| file(r, s, &body(5000), "\"v1\"", 5000));
    let bench = Bench::new();
    let error = bench
        .fetch(&checked(&server.url("/a"), b"something else"))
        .expect_err("differs");
    assert!(
        matches!(error, FetchError::ChecksumDiffers { .. }),
        "{error}"
    );
    assert_eq!(
        server.seen().len(),
        1,
        "a whole answer is not asked for twice"
    );
    assert!(!bench.path("a.bin").exists());
    assert_eq!(
        std::fs::metadata(bench.path("a.bin.part"))
            .expect("emptied")
            .len(),
        0
    );
}

#[test]
fn every_sum_must_fit() {
    let server = Server::start(|r, s| file(r, s, &body(5000), "\"v1\"", 5000));
    let mut job = checked(&server.url("/a"), &body(5000));
    job.checksums
        .push(Checksum::new(Algorithm::Md5, &md5_hex(&body(5000))).expect("a sum"));
    Bench::new().fetch(&job).expect("fetches");
    job.checksums[1] = Checksum::new(Algorithm::Md5, &"0".repeat(32)).expect("a sum");
    let error = Bench::new().fetch(&job).expect_err("differs");
    assert!(error.to_string().contains("md5"), "{error}");
}

#[test]
fn a_size_unlike_the_lists_is_refused_before_the_body() {
    let server = Server::start(|r, s| file(r, s, &body(5000), "\"v1\"", 5000));
    let bench = Bench::new();
    let job = FileJob {
        size: Some(4999),
        ..job(&server.url("/a"))
    };
    let error = bench.fetch(&job).expect_err("differs");
    assert!(
        error
            .to_string()
            .contains("expected 4999 bytes, found 5000"),
        "{error}"
    );
    assert_eq!(bench.heard("Received"), 0);
}

#[test]
fn more_bytes_than_listed_are_cut_off() {
    let server = Server::start(|_, s| {
        answer(s, "200 OK", &[("Transfer-Encoding", "chunked")], b"");
        // Never ends by itself.
        while s.write_all(b"1000\r\n").is_ok()
            && s.write_all(&[0; 0x1000]).is_ok()
            && s.write_all(b"\r\n").is_ok()
        {}
    });
    let sized = FileJob {
        size: Some(10_000),
        ..job(&server.url("/a"))
    };
    let error = Bench::new().fetch(&sized).expect_err("too much");
    assert!(matches!(error, FetchError::SizeDiffers { .. }), "{error}");
    let bench = Bench::with(Limits {
        file_bytes: 50_000,
        ..limits()
    });
    let error = bench.fetch(&job(&server.url("/a"))).expect_err("too much");
    assert!(
        matches!(error, FetchError::TooLarge { limit: 50_000, .. }),
        "{error}"
    );
}

#[test]
fn a_length_too_long_gives_up_and_one_too_short_is_found_by_the_sum() {
    let server = Server::start(|r, s| {
        let from = r.from().unwrap_or(0);
        let range = format!("bytes {from}-9999/10000");
        if from > 0 {
            answer(
                s,
                "206 Partial Content",
                &[("Content-Range", &range), ("ETag", "\"v\"")],
                b"",
            );
        } else {
            answer(
                s,
                "200 OK",
                &[("Content-Length", "10000"), ("ETag", "\"v\"")],
                &body(5000),
            );
        }
    });
    let error = Bench::new()
        .fetch(&job(&server.url("/a")))
        .expect_err("never whole");
    assert!(matches!(error, FetchError::GaveUp { .. }), "{error}");
    assert!(
        error
            .to_string()
            .contains("expected 10000 bytes, found 5000"),
        "{error}"
    );

    let server = Server::start(|_, s| {
        answer(s, "200 OK", &[("Content-Length", "4000")], &body(5000));
    });
    let error = Bench::new()
        .fetch(&checked(&server.url("/a"), &body(5000)))
        .expect_err("cut");
    assert!(
        matches!(error, FetchError::ChecksumDiffers { .. }),
        "{error}"
    );
}

#[test]
fn compressed_answers_were_not_asked_for() {
    let server = Server::start(|_, s| {
        whole(s, "200 OK", &[("Content-Encoding", "gzip")], b"\x1f\x8b");
    });
    let error = Bench::new()
        .fetch(&job(&server.url("/a")))
        .expect_err("compressed");
    assert!(error.to_string().contains("compressed"), "{error}");
    assert_eq!(server.seen()[0].header("accept-encoding"), Some("identity"));
    let server = Server::start(|_, s| {
        whole(s, "200 OK", &[("Content-Encoding", "identity")], b"x");
    });
    Bench::new()
        .fetch(&job(&server.url("/a")))
        .expect("fetches");
}

#[test]
fn nonsense_is_an_error_and_not_a_file() {
    for nonsense in [
        "",
        "\r\n\r\n",
        "SSH-2.0-OpenSSH\r\n",
        "HTTP/1.1 abc\r\n\r\n",
        "HTTP/1.1 206 Partial\r\nContent-Length: 1\r\n\r\nx",
    ] {
        let server = Server::start(move |_, s| {
            let _ = s.write_all(nonsense.as_bytes());
        });
        let bench = Bench::new();
        bench.fetch(&job(&server.url("/a"))).expect_err(nonsense);
        assert!(!bench.path("a.bin").exists(), "{nonsense}");
    }
}

/// The disk fills up with the first bytes.
struct Filling<'a>(&'a Bench);
impl focus_fetch::Progress for Filling<'_> {
    fn event(&self, event: &focus_fetch::Event<'_>) {
        if matches!(event, focus_fetch::Event::Received { .. }) {
            self.0.machine.free.store(10, Ordering::Relaxed);
        }
        focus_fetch::Progress::event(&self.0.ear, event);
    }
}

#[test]
fn space_is_looked_at_before_and_while_writing() {
    let len = 40 << 20;
    let server = Server::start(move |_, s| {
        answer(
            s,
            "200 OK",
            &[("Transfer-Encoding", "chunked"), ("ETag", "\"v\"")],
            b"",
        );
        let block = vec![7_u8; 1 << 20];
        for _ in 0..40 {
            let _ = s.write_all(b"100000\r\n");
            let _ = s.write_all(&block);
            let _ = s.write_all(b"\r\n");
        }
        let _ = s.write_all(b"0\r\n\r\n");
    });
    let bench = Bench::new();
    bench.machine.free.store(20_000, Ordering::Relaxed);
    let sized = FileJob {
        size: Some(len),
        ..job(&server.url("/a"))
    };
    let error = bench.fetch(&sized).expect_err("full");
    assert!(
        error
            .to_string()
            .contains("41944040 bytes free, found 20000"),
        "{error}"
    );
    assert_eq!(bench.heard("Received"), 0);
    // Of unknown size: starts, and stops at the first look after the disk has filled up.
    let filling = Filling(&bench);
    let context = focus_fetch::Context {
        progress: &filling,
        ..bench.context()
    };
    let error = focus_fetch::fetch_file(&context, &bench.folder(), &job(&server.url("/a")))
        .expect_err("full");
    assert!(
        matches!(error, FetchError::NoSpace { free: 10, .. }),
        "{error}"
    );
    assert!(!bench.path("a.bin").exists());
    let kept = std::fs::metadata(bench.path("a.bin.part"))
        .expect("kept")
        .len();
    assert!((16 << 20..len).contains(&kept), "{kept}");
}
