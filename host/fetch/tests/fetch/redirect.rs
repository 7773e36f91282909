//! Redirects: followed, counted, and never a way to a credential.

use crate::{
    server::{Server, file, whole},
    support::{Bench, body, checked, job},
};
use focus_fetch::{FetchError, FileJob, Login, Origin, Secret, Service};
use std::sync::Arc;

fn with_login(server: &Server, path: &str) -> FileJob {
    let job = checked(&server.url(path), &body(50));
    let origin = Origin::of(&job.url).expect("origin");
    let login = Login::new(
        Service::Web,
        origin,
        Secret::new("ann"),
        Secret::new("hunter2"),
    )
    .expect("within this computer");
    FileJob {
        login: Some(login),
        ..job
    }
}

fn to(
    location: String,
) -> impl Fn(&crate::server::Request, &mut std::net::TcpStream) + Send + Sync {
    move |_, s| whole(s, "302 Found", &[("Location", &location)], b"")
}

#[test]
fn credentials_stay_with_the_host() {
    let server = Server::start(|r, s| {
        if r.path == "/a" {
            whole(s, "307 Temporary Redirect", &[("Location", "b?c=d")], b"");
        } else {
            file(r, s, &body(50), "\"v1\"", 50);
        }
    });
    Bench::new()
        .fetch(&with_login(&server, "/a"))
        .expect("fetches");
    let seen = server.seen();
    assert_eq!(seen[1].path, "/b?c=d");
    for request in seen {
        assert_eq!(
            request.header("authorization"),
            Some("Basic YW5uOmh1bnRlcjI=")
        );
    }
}

#[test]
fn credentials_do_not_reach_another_port_nor_come_back() {
    // first -> other -> first: the second visit came by way of a stranger.
    let home = Arc::new(std::sync::OnceLock::<String>::new());
    let back = home.clone();
    let other = Server::start(move |_, s| {
        let location = format!("{}/end", back.get().expect("set"));
        whole(s, "302 Found", &[("Location", &location)], b"");
    });
    let away = other.url("/x");
    let first = Server::start(move |r, s| {
        if r.path == "/end" {
            file(r, s, &body(50), "\"v1\"", 50);
        } else {
            whole(s, "302 Found", &[("Location", &away)], b"");
        }
    });
    home.set(first.base.clone()).expect("once");
    Bench::new()
        .fetch(&with_login(&first, "/a"))
        .expect("fetches");
    assert!(first.seen()[0].header("authorization").is_some());
    assert_eq!(other.seen()[0].header("authorization"), None);
    assert_eq!(first.seen()[1].header("authorization"), None);
    for request in other.seen() {
        let text = format!("{:?}", request.headers);
        assert!(
            !text.contains("hunter2") && !text.contains("YW5uOmh1bnRlcjI"),
            "{text}"
        );
    }
}

#[test]
fn credentials_of_one_host_are_not_sent_to_another_by_a_job() {
    let server = Server::start(|r, s| file(r, s, &body(50), "\"v1\"", 50));
    let other = Server::start(|r, s| file(r, s, &body(50), "\"v1\"", 50));
    let job = FileJob {
        login: with_login(&server, "/a").login,
        ..checked(&other.url("/a"), &body(50))
    };
    Bench::new().fetch(&job).expect("fetches");
    assert_eq!(other.seen()[0].header("authorization"), None);
}

#[test]
fn loops_end() {
    let server = Server::start(|_, s| whole(s, "301 Moved", &[("Location", "/a")], b""));
    let error = Bench::new()
        .fetch(&job(&server.url("/a")))
        .expect_err("a loop");
    assert!(error.to_string().contains("at most 8"), "{error}");
    assert_eq!(server.seen().len(), 9);
}

#[test]
fn addresses_that_are_none_are_not_followed() {
    for location in [
        "file:///etc/passwd",
        "ftp://127.0.0.1/a",
        "http://u:pw123@127.0.0.1/a",
        "http://[",
        "javascript:0",
    ] {
        let server = Server::start(to(location.into()));
        let error = Bench::new()
            .fetch(&job(&server.url("/a")))
            .expect_err(location);
        let known = matches!(
            error,
            FetchError::Address { .. } | FetchError::Protocol { .. }
        );
        assert!(known, "{error}");
        assert!(!error.to_string().contains("pw123"), "{error}");
        assert_eq!(server.seen().len(), 1);
    }
    let server = Server::start(|_, s| whole(s, "302 Found", &[], b""));
    let error = Bench::new()
        .fetch(&job(&server.url("/a")))
        .expect_err("no Location");
    assert!(error.to_string().contains("Location"), "{error}");
}

#[test]
fn a_signed_link_is_used_but_not_shown() {
    let other = Server::start(|r, s| {
        let cut = if r.number == 0 { 20 } else { 50 };
        file(r, s, &body(50), "\"v1\"", cut);
    });
    let server = Server::start(to(other.url("/b?X-Signature=s1gned")));
    let bench = Bench::new();
    bench.fetch(&job(&server.url("/a"))).expect("fetches");
    assert_eq!(other.seen()[1].path, "/b?X-Signature=s1gned");
    assert_eq!(other.seen()[1].from(), Some(20), "the range travels along");
    assert_eq!(bench.heard("s1gned"), 0);
    assert_eq!(bench.heard("Retrying"), 1);
}
