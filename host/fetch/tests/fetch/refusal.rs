//! Statuses: what is tried again, how long is waited, and what is not tried again.

use crate::{
    server::{Server, file, whole},
    support::{Bench, body, checked, job},
};
use focus_fetch::{FetchError, FileJob};
use std::io::Write as _;

fn always(status: &'static str, headers: &'static [(&'static str, &'static str)]) -> Server {
    Server::start(move |_, s| whole(s, status, headers, b"no"))
}

#[test]
fn what_cannot_succeed_is_asked_once() {
    for (status, hint) in [
        ("401 Unauthorized", "sign here"),
        ("403 Forbidden", "sign here"),
        ("404 Not Found", "newer version"),
        ("410 Gone", "newer version"),
    ] {
        let server = always(status, &[]);
        let bench = Bench::new();
        let job = FileJob {
            advice: Some("sign here".into()),
            ..job(&server.url("/a"))
        };
        let error = bench.fetch(&job).expect_err("refused");
        assert_eq!(server.seen().len(), 1, "{status}");
        assert_eq!(bench.slept(), [0; 0]);
        assert!(error.to_string().contains(&status[..3]), "{error}");
        assert!(error.hint().expect("advice").contains(hint), "{error:?}");
    }
    for status in [
        "400 Bad Request",
        "405 Not Allowed",
        "418 Teapot",
        "204 No Content",
        "501 Not Implemented",
    ] {
        let server = always(status, &[]);
        let error = Bench::new()
            .fetch(&job(&server.url("/a")))
            .expect_err("refused");
        assert_eq!(server.seen().len(), 1, "{status}");
        assert!(matches!(error, FetchError::Status { .. }), "{error}");
    }
}

#[test]
fn a_busy_server_is_left_alone_for_longer_and_longer() {
    let server = always("503 Service Unavailable", &[]);
    let bench = Bench::new();
    let error = bench.fetch(&job(&server.url("/a"))).expect_err("gives up");
    assert!(
        matches!(error, FetchError::GaveUp { attempts: 6, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("status 503"), "{error}");
    assert!(error.hint().expect("advice").contains("later"));
    assert_eq!(bench.slept(), [1000, 2000, 4000, 8000, 16000]);
}

#[test]
fn retry_after_is_obeyed_in_both_forms() {
    for (value, wait) in [
        ("7", 7000),
        ("Sun, 06 Nov 1994 08:50:07 GMT", 30_000),
        ("soon", 1000),
    ] {
        let server = Server::start(move |r, s| {
            if r.number == 0 {
                whole(s, "429 Too Many Requests", &[("Retry-After", value)], b"");
            } else {
                file(r, s, &body(10), "\"v1\"", 10);
            }
        });
        let bench = Bench::new();
        bench.fetch(&job(&server.url("/a"))).expect("fetches");
        assert_eq!(bench.slept(), [wait], "{value}");
    }
}

#[test]
fn a_wait_beyond_the_cap_is_told_and_not_waited() {
    let server = always("429 Too Many Requests", &[("Retry-After", "86400")]);
    let bench = Bench::new();
    let error = bench.fetch(&job(&server.url("/a"))).expect_err("too long");
    assert!(
        error
            .to_string()
            .contains("86400 s: expected at most 600 s"),
        "{error}"
    );
    assert_eq!(bench.slept(), [0; 0]);
}

#[test]
fn no_server_at_all_is_a_connection_error() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/a", listener.local_addr().expect("bound"));
    drop(listener);
    let error = Bench::new().fetch(&job(&url)).expect_err("nobody there");
    let FetchError::GaveUp { last, .. } = error else {
        panic!("{error}");
    };
    assert!(matches!(*last, FetchError::Connection { .. }), "{last}");
    assert!(last.hint().expect("advice").contains("HTTPS_PROXY"));
}

#[test]
fn a_login_page_is_not_a_file() {
    let server = Server::start(|r, s| {
        if r.path == "/login" {
            whole(
                s,
                "200 OK",
                &[("Content-Type", "text/html; charset=utf-8")],
                b"<html>",
            );
        } else {
            whole(s, "302 Found", &[("Location", "/login")], b"");
        }
    });
    let bench = Bench::new();
    let error = bench
        .fetch(&checked(&server.url("/a.csv"), b"x"))
        .expect_err("a page");
    assert!(matches!(error, FetchError::WebPage { .. }), "{error}");
    assert!(error.to_string().contains("/login"), "{error}");
    assert!(!bench.path("a.bin").exists());
}

#[test]
fn a_server_without_tls_is_not_tried_again() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("https://{}/a", listener.local_addr().expect("bound"));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        }
    });
    let bench = Bench::new();
    let error = bench.fetch(&job(&url)).expect_err("no TLS");
    assert!(matches!(error, FetchError::Tls { .. }), "{error:?}");
    assert!(error.hint().expect("advice").contains("SSL_CERT_FILE"));
    assert_eq!(bench.slept(), [0; 0]);
}
