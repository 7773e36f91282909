//! What a plugin must not do is refused by the kernel, and the plugin goes on.

use crate::support::{encode, failed, log, misdeed};
use focus_models::WorkerClient;
use std::time::{Duration, Instant};

/// Run and wait for a log line with `words`.
fn says(options: &focus_models::ClientOptions, words: &str) -> Vec<String> {
    log();
    let mut client = WorkerClient::open(options).expect("opens");
    assert_eq!(failed(&encode(&mut client).expect("works")), []);
    let sandbox = client.close().sandbox;
    let until = Instant::now() + Duration::from_secs(20);
    while !log()
        .lines()
        .any(|line| line.contains("focus::plugin") && line.contains(words))
    {
        assert!(Instant::now() < until, "no line with `{words}`");
        std::thread::sleep(Duration::from_millis(10));
    }
    sandbox
}

#[test]
fn an_inet_socket_is_refused() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").expect("listens");
    let address = server.local_addr().expect("bound").to_string();
    let mut options = misdeed("open_socket", &[("address", &address)]);
    says(&options, "open_socket: denied: Permission denied");
    server.set_nonblocking(true).expect("sets");
    assert!(server.accept().is_err(), "somebody called");
    // Granted, it works: the refusal above was the sandbox's.
    options.worker.network = vec!["127.0.0.1".into()];
    says(&options, "open_socket: done");
    assert!(server.accept().is_ok(), "nobody called");
}

#[test]
fn variables_reach_only_a_plugin_that_gets_the_network() {
    // Every test runner has it, and no worker by itself.
    let mut options = misdeed("read_variable", &[("path", "PATH")]);
    says(&options, "read_variable: PATH absent");
    options.worker.environment = vec!["PATH".into(), "FOCUS_NOT_SET_ANYWHERE".into()];
    let seen = log().matches("read_variable: PATH absent").count();
    says(&options, "read_variable: PATH absent");
    assert!(log().matches("read_variable: PATH absent").count() > seen);
    options.worker.network = vec!["127.0.0.1".into()];
    says(&options, "read_variable: PATH there");
    options
        .open
        .settings
        .insert("path".into(), "FOCUS_NOT_SET_ANYWHERE".into());
    says(&options, "read_variable: FOCUS_NOT_SET_ANYWHERE absent");
}

#[test]
fn a_write_is_refused() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("hostile.txt");
    let mut options = misdeed("write_file", &[("path", path.to_str().expect("UTF-8"))]);
    // Without the sandbox it works: the refusal below is the sandbox's.
    options.worker.sandbox = false;
    says(&options, "write_file: done");
    std::fs::remove_file(&path).expect("was written");
    options.worker.sandbox = true;
    let client = WorkerClient::open(&options).expect("opens");
    let read_only = client
        .record()
        .sandbox
        .iter()
        .any(|line| line.contains("read-only"));
    drop(client);
    if read_only {
        says(&options, "write_file: denied: Permission denied");
        assert!(!path.exists());
    }
}
