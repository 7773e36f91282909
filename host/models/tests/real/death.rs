//! A worker never outlives its host, however the host ends.
//!
//! The host that dies is this test binary again, told by a variable to open a client, say who its worker is, and wait.

use crate::support::{misdeed, open_options, worker_options};
use focus_models::{ClientOptions, WorkerClient};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ROLE: &str = "FOCUS_MODELS_DYING_HOST";

#[test]
#[expect(
    clippy::print_stdout,
    reason = "the host that dies answers the test on stdout"
)]
fn host_that_dies() {
    let Ok(library) = std::env::var(ROLE) else {
        return;
    };
    let mut worker = focus_models::WorkerOptions::from_sidecar(library, &[])
        .expect("sealed")
        .0;
    worker.program = std::env::var_os("FOCUS_MODELS_WORKER")
        .expect("told")
        .into();
    worker.args.clear();
    let mut client = WorkerClient::open(&ClientOptions::new(
        worker,
        open_options(&[("misdeed", "hang")]),
    ))
    .expect("opens");
    println!("\nWORKER {}", client.worker_id().expect("lives"));
    // Hangs in the plugin until the host is killed.
    drop(crate::support::encode(&mut client));
}

fn gone(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
}

#[test]
fn a_killed_host_takes_its_hanging_worker_along() {
    let options = worker_options();
    let mut host = Command::new(std::env::current_exe().expect("test binary"))
        .args([
            "--exact",
            "death::host_that_dies",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(ROLE, &options.library)
        .env("FOCUS_MODELS_WORKER", &options.program)
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let out = BufReader::new(host.stdout.take().expect("piped"));
    let pid = out
        .lines()
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("WORKER ")?.parse::<u32>().ok())
        .expect("worker's id");
    assert!(!gone(pid));
    std::thread::sleep(Duration::from_millis(100));
    host.kill().expect("kills");
    host.wait().expect("reaps");
    let until = Instant::now() + Duration::from_secs(10);
    while !gone(pid) {
        assert!(Instant::now() < until, "worker {pid} is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_dropped_client_leaves_no_process() {
    let client = WorkerClient::open(&misdeed("none", &[])).expect("opens");
    let pid = client.worker_id().expect("lives");
    drop(client);
    assert!(gone(pid));
    let client = WorkerClient::open(&misdeed("none", &[])).expect("opens");
    let pid = client.worker_id().expect("lives");
    client.close();
    assert!(gone(pid));
}
