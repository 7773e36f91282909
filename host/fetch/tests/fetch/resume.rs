//! Broken transfers, and how they go on.

use crate::{
    server::{Server, answer, file, whole},
    support::{Bench, body, checked, job, limits},
};
use focus_fetch::{FetchError, FileJob, Limits, Proof};
use std::io::Write as _;

const LEN: usize = 300_000;

#[test]
fn a_whole_file_arrives_and_is_not_asked_for_again() {
    let server = Server::start(|r, s| file(r, s, &body(LEN), "\"v1\"", LEN));
    let bench = Bench::new();
    let job = checked(&server.url("/a"), &body(LEN));
    let outcome = bench.fetch(&job).expect("fetches");
    assert_eq!(
        (
            outcome.bytes,
            outcome.received,
            outcome.attempts,
            outcome.proof
        ),
        (LEN as u64, LEN as u64, 1, Proof::Checksum)
    );
    assert_eq!(bench.names(), ["a.bin"], "nothing left beside it");
    assert_eq!(bench.read("a.bin"), body(LEN));
    let again = bench.fetch(&job).expect("is there");
    assert_eq!((again.received, again.attempts), (0, 0));
    assert_eq!(server.seen().len(), 1);
    let agent = server.seen()[0]
        .header("user-agent")
        .expect("sent")
        .to_owned();
    assert_eq!(agent, concat!("focus-host/", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_dropped_connection_continues_where_it_broke() {
    let server = Server::start(|r, s| file(r, s, &body(LEN), "\"v1\"", 100_000));
    let bench = Bench::new();
    let outcome = bench
        .fetch(&checked(&server.url("/a"), &body(LEN)))
        .expect("fetches");
    assert_eq!(
        (outcome.received, outcome.attempts),
        (LEN as u64, 3),
        "no byte twice"
    );
    assert_eq!(bench.read("a.bin"), body(LEN));
    let seen = server.seen();
    assert_eq!(seen[1].header("range"), Some("bytes=100000-"));
    assert_eq!(seen[1].header("if-range"), Some("\"v1\""));
    // Each attempt brought something: the wait does not grow.
    assert_eq!(bench.slept(), [1000, 1000]);
}

#[test]
fn a_cancelled_download_continues_in_another_process() {
    let server = Server::start(|r, s| file(r, s, &body(LEN), "\"v1\"", LEN));
    // Without a checksum, so that the entity tag alone vouches.
    let job = job(&server.url("/a"));
    let mut bench = Bench::new();
    bench.ear.cancel_after = Some((100_000, bench.cancel.clone()));
    let error = bench.fetch(&job).expect_err("cancelled");
    assert!(matches!(error, FetchError::Cancelled), "{error}");
    assert_eq!(bench.names(), ["a.bin.part", "a.bin.part.json"]);
    let have = bench.read("a.bin.part").len();
    assert!((100_000..LEN).contains(&have), "{have}");

    let next = Bench::new();
    for name in bench.names() {
        std::fs::copy(bench.path(&name), next.path(&name)).expect("copies");
    }
    let outcome = next.fetch(&job).expect("continues");
    assert_eq!(outcome.received, (LEN - have) as u64);
    assert_eq!(outcome.proof, Proof::Transfer);
    assert_eq!(next.read("a.bin"), body(LEN));
    assert_eq!(next.names(), ["a.bin"]);
}

#[test]
fn a_changed_file_starts_again() {
    let server = Server::start(|r, s| {
        if r.number == 0 {
            file(r, s, &vec![7; LEN], "\"v1\"", 100_000);
        } else {
            file(r, s, &body(LEN), "\"v2\"", LEN);
        }
    });
    let bench = Bench::new();
    bench.fetch(&job(&server.url("/a"))).expect("fetches");
    assert_eq!(bench.read("a.bin"), body(LEN));
    assert_eq!(bench.heard("Restarted"), 1);
}

#[test]
fn a_part_of_another_version_is_refused_though_the_server_sends_it() {
    // Ignores If-Range: sends the rest of the new version after the start of the old one.
    let server = Server::start(|r, s| {
        let (bytes, tag) = if r.number == 0 {
            (vec![7; LEN], "\"v1\"")
        } else {
            (body(LEN), "\"v2\"")
        };
        let mut request = r.clone();
        request
            .headers
            .retain(|(n, _)| !n.eq_ignore_ascii_case("if-range"));
        file(
            &request,
            s,
            &bytes,
            tag,
            if r.number == 0 { 100_000 } else { LEN },
        );
    });
    let bench = Bench::new();
    bench.fetch(&job(&server.url("/a"))).expect("fetches");
    assert_eq!(bench.read("a.bin"), body(LEN));
}

#[test]
fn a_mixture_that_only_the_checksum_finds_is_fetched_again_whole() {
    // Same tag for two versions.
    let server = Server::start(|r, s| {
        let bytes = if r.number == 0 {
            vec![7; LEN]
        } else {
            body(LEN)
        };
        file(
            r,
            s,
            &bytes,
            "\"v\"",
            if r.number == 0 { 100_000 } else { LEN },
        );
    });
    let bench = Bench::new();
    bench
        .fetch(&checked(&server.url("/a"), &body(LEN)))
        .expect("fetches");
    assert_eq!(bench.read("a.bin"), body(LEN));
    assert_eq!(bench.heard("do not fit together"), 1);
}

#[test]
fn a_server_without_ranges_sends_everything_again() {
    let server = Server::start(|r, s| {
        let length = LEN.to_string();
        let cut = if r.number == 0 { 100_000 } else { LEN };
        answer(
            s,
            "200 OK",
            &[("Content-Length", &length), ("ETag", "\"v1\"")],
            &body(LEN)[..cut],
        );
    });
    let bench = Bench::new();
    let outcome = bench
        .fetch(&checked(&server.url("/a"), &body(LEN)))
        .expect("fetches");
    assert_eq!(outcome.received, LEN as u64 + 100_000);
    assert_eq!(bench.read("a.bin"), body(LEN));
    assert_eq!(server.seen().len(), 2, "the second answer is used as it is");
}

#[test]
fn a_wrong_part_is_not_used() {
    let server = Server::start(|r, s| match r.number {
        0 => file(r, s, &body(LEN), "\"v1\"", 100_000),
        1 => answer(
            s,
            "206 Partial Content",
            &[
                ("Content-Range", &format!("bytes 5-{}/{LEN}", LEN - 1)),
                ("ETag", "\"v1\""),
            ],
            &body(LEN)[5..],
        ),
        _ => file(r, s, &body(LEN), "\"v1\"", LEN),
    });
    let bench = Bench::new();
    bench.fetch(&job(&server.url("/a"))).expect("fetches");
    assert_eq!(bench.read("a.bin"), body(LEN));
    assert_eq!(bench.heard("another part"), 1);
}

#[test]
fn range_not_satisfiable_means_complete_or_stale() {
    // Chunked and without a length: the process died between the last byte and the new name.
    for (have, requests) in [(LEN, 1), (LEN + 5, 2)] {
        let server = Server::start(|r, s| file(r, s, &body(LEN), "\"v1\"", LEN));
        let bench = Bench::new();
        let mut part = body(LEN);
        part.resize(have, 0);
        std::fs::write(bench.path("a.bin.part"), part).expect("writes");
        let note = format!(
            r#"{{"version":1,"address":"{}","checksums":[],"validator":{{"etag":"\"v1\""}},"total":null}}"#,
            server.url("/a")
        );
        std::fs::write(bench.path("a.bin.part.json"), note).expect("writes");
        bench.fetch(&job(&server.url("/a"))).expect("fetches");
        assert_eq!(bench.read("a.bin"), body(LEN));
        assert_eq!(server.seen()[0].from(), Some(have));
        assert_eq!(server.seen().len(), requests);
    }
}

#[test]
fn a_part_that_belongs_to_something_else_is_not_used() {
    let server = Server::start(|r, s| file(r, s, &body(LEN), "\"v1\"", LEN));
    let note = |address: &str, version: u32, more: &str| {
        format!(
            r#"{{"version":{version},"address":"{address}","checksums":[],"validator":{{"etag":"\"v1\""}},"total":{LEN}{more}}}"#
        )
    };
    let here = server.url("/a");
    for text in [
        String::new(),
        "{".into(),
        note(&server.url("/b"), 1, ""),
        note(&here, 2, ""),
        note(&here, 1, ",\"extra\":1"),
        format!(
            r#"{{"version":1,"address":"{here}","checksums":[],"validator":null,"total":{LEN}}}"#
        ),
    ] {
        let bench = Bench::new();
        std::fs::write(bench.path("a.bin.part"), vec![7; 1000]).expect("writes");
        std::fs::write(bench.path("a.bin.part.json"), &text).expect("writes");
        bench.fetch(&job(&here)).expect("fetches");
        assert_eq!(bench.read("a.bin"), body(LEN), "{text}");
        assert_eq!(bench.names(), ["a.bin"]);
    }
    assert!(server.seen().iter().all(|r| r.from().is_none()));
}

#[test]
fn a_modification_time_vouches_only_when_it_is_old_enough() {
    for (date, resumes) in [
        ("Sun, 06 Nov 1994 08:49:40 GMT", true),
        ("Sun, 06 Nov 1994 08:49:37 GMT", false),
    ] {
        let server = Server::start(move |r, s| {
            let length = LEN.to_string();
            let from = r.from().unwrap_or(0);
            let rest = &body(LEN)[from..];
            let range = format!("bytes {from}-{}/{LEN}", LEN - 1);
            let rest_length = rest.len().to_string();
            let mut headers = vec![
                ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
                ("Date", date),
            ];
            if from > 0 {
                headers.extend([
                    ("Content-Range", &*range),
                    ("Content-Length", &*rest_length),
                ]);
                answer(s, "206 Partial Content", &headers, rest);
            } else {
                headers.push(("Content-Length", &length));
                let cut = if r.number == 0 { 100_000 } else { LEN };
                answer(s, "200 OK", &headers, &rest[..cut]);
            }
        });
        let job = job(&server.url("/a"));
        let mut bench = Bench::new();
        bench.ear.cancel_after = Some((100_000, bench.cancel.clone()));
        bench.fetch(&job).expect_err("cancelled");
        let next = Bench::new();
        for name in bench.names() {
            std::fs::copy(bench.path(&name), next.path(&name)).expect("copies");
        }
        next.fetch(&job).expect("fetches");
        assert_eq!(next.read("a.bin"), body(LEN));
        let second = &server.seen()[1];
        assert_eq!(second.from().is_some(), resumes);
        let sent = second.header("if-range").is_some();
        assert_eq!(sent, resumes);
    }
}

#[test]
fn chunked_bodies_arrive_and_cut_ones_are_noticed() {
    let server = Server::start(|r, s| {
        answer(s, "200 OK", &[("Transfer-Encoding", "chunked")], b"");
        for chunk in body(LEN).chunks(70_000) {
            let _ = write!(s, "{:x}\r\n", chunk.len());
            let _ = s.write_all(chunk);
            let _ = s.write_all(b"\r\n");
        }
        if r.number > 0 {
            let _ = s.write_all(b"0\r\n\r\n");
        }
    });
    let bench = Bench::new();
    let outcome = bench.fetch(&job(&server.url("/a"))).expect("fetches");
    assert_eq!(outcome.attempts, 2, "the end of the first was missing");
    assert_eq!(bench.read("a.bin"), body(LEN));
}

#[test]
fn a_body_that_ends_with_the_connection_needs_a_checksum_or_a_size() {
    let server = Server::start(|_, s| answer(s, "200 OK", &[], &body(LEN)));
    let url = server.url("/a");
    let error = Bench::new().fetch(&job(&url)).expect_err("unknown end");
    assert!(matches!(error, FetchError::Protocol { .. }), "{error}");
    Bench::new()
        .fetch(&checked(&url, &body(LEN)))
        .expect("fetches");
    let sized = FileJob {
        size: Some(LEN as u64),
        ..job(&url)
    };
    let outcome = Bench::new().fetch(&sized).expect("fetches");
    assert_eq!(outcome.proof, Proof::Size);
}

#[test]
fn an_empty_file_is_a_file() {
    let server = Server::start(|_, s| whole(s, "200 OK", &[], b""));
    let bench = Bench::new();
    bench
        .fetch(&checked(&server.url("/a"), b""))
        .expect("fetches");
    assert_eq!(bench.read("a.bin"), b"");
}

#[test]
fn a_byte_at_a_time_ends() {
    let server = Server::start(|r, s| file(r, s, &body(LEN), "\"v1\"", 1));
    let bench = Bench::with(Limits {
        attempts_in_all: 10,
        ..limits()
    });
    let error = bench.fetch(&job(&server.url("/a"))).expect_err("gives up");
    assert!(
        matches!(error, FetchError::GaveUp { attempts: 10, .. }),
        "{error}"
    );
    assert_eq!(
        bench.names(),
        ["a.bin.part", "a.bin.part.json"],
        "kept for another day"
    );
}

#[test]
fn an_old_note_does_not_vouch_for_new_bytes() {
    // The note is of a file that had a tag; the server now gives none, and breaks off.
    let server = Server::start(|r, s| {
        let length = LEN.to_string();
        let cut = if r.number == 0 { 100_000 } else { LEN };
        answer(
            s,
            "200 OK",
            &[("Content-Length", &length)],
            &body(LEN)[..cut],
        );
    });
    let bench = Bench::new();
    let note = format!(
        r#"{{"version":1,"address":"{}","checksums":[],"validator":{{"etag":"\"old\""}},"total":{LEN}}}"#,
        server.url("/a")
    );
    std::fs::write(bench.path("a.bin.part"), b"").expect("writes");
    std::fs::write(bench.path("a.bin.part.json"), note).expect("writes");
    bench.fetch(&job(&server.url("/a"))).expect("fetches");
    assert_eq!(bench.read("a.bin"), body(LEN));
    assert_eq!(server.seen()[1].header("if-range"), None);
}
