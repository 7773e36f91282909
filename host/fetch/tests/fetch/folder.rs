//! The target folder: what is in the way stays, and nothing is written outside.

use crate::{
    server::{Server, file},
    support::{Bench, body, checked, job},
};
use focus_fetch::{FetchError, FileJob, Proof};
use std::os::unix::fs::symlink;

fn server() -> Server {
    Server::start(|r, s| file(r, s, &body(100), "\"v1\"", 100))
}

#[test]
fn names_that_climb_are_refused_before_anything_is_asked() {
    let server = server();
    let bench = Bench::new();
    for name in ["../a", "/tmp/a", "a/../../b", "", "a\\b", "a.part"] {
        let job = FileJob {
            name: name.into(),
            ..job(&server.url("/a"))
        };
        let error = bench.fetch(&job).expect_err(name);
        assert!(matches!(error, FetchError::UnsafeName { .. }), "{error}");
    }
    assert!(server.seen().is_empty());
}

#[test]
fn links_lead_nowhere() {
    let server = server();
    let outside = tempfile::tempdir().expect("folder");
    std::fs::write(outside.path().join("f"), b"precious").expect("writes");
    let target = |name: &str| outside.path().join(name);
    let bench = Bench::new();
    symlink(outside.path(), bench.path("sub")).expect("links");
    symlink(target("f"), bench.path("f")).expect("links");
    symlink(target("new"), bench.path("g.part")).expect("links");
    symlink(target("f"), bench.path("h.part.json")).expect("links");
    for name in ["sub/x", "f", "g", "h"] {
        let job = FileJob {
            name: name.into(),
            ..job(&server.url("/a"))
        };
        let error = bench.fetch(&job).expect_err(name);
        assert!(error.to_string().contains("symbolic link"), "{error}");
    }
    assert_eq!(std::fs::read(target("f")).expect("reads"), b"precious");
    assert_eq!(std::fs::read_dir(outside.path()).expect("lists").count(), 1);
}

#[test]
fn a_file_of_the_users_is_not_replaced() {
    let server = server();
    let bench = Bench::new();
    std::fs::write(bench.path("a.bin"), b"mine").expect("writes");
    for job in [
        checked(&server.url("/a"), &body(100)),
        FileJob {
            size: Some(100),
            ..job(&server.url("/a"))
        },
    ] {
        let error = bench.fetch(&job).expect_err("differs");
        assert!(
            matches!(error, FetchError::ExistingDiffers { .. }),
            "{error}"
        );
        assert!(error.hint().is_some());
    }
    assert_eq!(bench.read("a.bin"), b"mine");
    let outcome = bench
        .fetch(&job(&server.url("/a")))
        .expect("nothing to compare with");
    assert_eq!(outcome.proof, Proof::None);
    assert!(server.seen().is_empty());
}

#[test]
fn two_processes_do_not_write_one_file() {
    let server = server();
    let bench = Bench::new();
    let part = std::fs::File::create(bench.path("a.bin.part")).expect("creates");
    part.lock().expect("locks");
    let error = bench.fetch(&job(&server.url("/a"))).expect_err("in use");
    assert!(matches!(error, FetchError::InUse { .. }), "{error}");
    drop(part);
    bench.fetch(&job(&server.url("/a"))).expect("fetches");
}

#[test]
fn plain_http_needs_a_checksum_beyond_this_computer() {
    let error = Bench::new()
        .fetch(&job("http://192.0.2.1/a"))
        .expect_err("no TLS");
    assert!(error.to_string().contains("needs a checksum"), "{error}");
}
