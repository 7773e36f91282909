//! One misdeed a test: what reaches the host, and whether the process lives.

use crate::host::{Host, PATIENCE, timed};
use crate::support::{BATCH, MARKER, expected, hostile, image, load_request, marked};
use focus_os::spawn::ProcessEnd;
use focus_wire::{FailureKind, FromWorker, ToWorker};
use hostile::DIM;
use std::time::Duration;

fn with(misdeed: &str) -> Host {
    Host::opened(hostile(), &[("misdeed", misdeed), ("marker", MARKER)])
}

/// An honest batch is right, and so the process is alive and well.
fn honest(host: &mut Host) {
    let images = [image(1), image(2)];
    let (rows, dim, values) = host.encode(&images).expect("encodes");
    assert_eq!((rows as usize, dim as usize), (BATCH, DIM));
    assert_eq!(values[..2 * DIM], expected(&images));
}

#[test]
fn a_panic_is_an_error_with_its_place_and_the_process_lives() {
    let mut host = with("panic");
    honest(&mut host);
    let error = host.encode(&[image(0), marked()]).expect_err("panics");
    assert_eq!(error.kind, FailureKind::Panic);
    assert!(
        error.message.contains("asked to panic by image 1")
            && error.message.contains("misdeed.rs:"),
        "{error}"
    );
    assert!(error.hint.expect("advice").contains("fault of the plugin"));
    // The model's state is unknown: it is not asked again, even for a batch that would have gone well.
    let again = host.encode(&[image(1)]).expect_err("poisoned");
    assert_eq!(again.kind, FailureKind::Panic);
    assert!(again.message.contains("earlier call"), "{again}");
    host.lives();
    host.open(&[]).expect("a fresh model opens");
    honest(&mut host);
    host.send(&ToWorker::Shutdown);
    assert_eq!(host.ends(), ProcessEnd::Exited(0));
    let (_, err) = host.output();
    assert!(
        String::from_utf8_lossy(&err).contains("asked to panic by image 1"),
        "the panic's own text is in the log"
    );
}

#[test]
fn a_panic_while_opening_or_closing_is_caught_too() {
    let mut host = Host::loaded(&load_request(hostile()));
    host.attach();
    let error = host
        .open(&[("misdeed", "panic_in_open")])
        .expect_err("panics");
    assert_eq!(error.kind, FailureKind::Panic);
    assert!(error.message.contains("while opening"), "{error}");
    host.open(&[("misdeed", "panic_in_drop")]).expect("opens");
    host.log.clear();
    host.open(&[]).expect("opens over the other");
    let (level, line) = host.log.first().expect("the closing was heard of");
    assert!(
        *level == 2 && line.contains("while being closed") && line.contains("asked to panic"),
        "{line}"
    );
    honest(&mut host);
}

#[test]
fn a_death_ends_the_connection_and_names_its_signal() {
    let ends = [
        ("segfault", ProcessEnd::Killed(libc::SIGSEGV)),
        ("abort", ProcessEnd::Killed(libc::SIGABRT)),
        ("stack_overflow", ProcessEnd::Killed(libc::SIGABRT)),
        ("double_panic", ProcessEnd::Killed(libc::SIGABRT)),
        ("exit", ProcessEnd::Exited(0)),
    ];
    for (misdeed, end) in ends {
        let mut host = with(misdeed);
        honest(&mut host);
        host.request(0, &[image(1), marked()]);
        assert_eq!(host.ends(), end, "{misdeed}");
    }
}

#[test]
fn a_worker_leaves_with_its_host_even_when_the_plugin_hangs() {
    let mut host = with("hang");
    host.request(0, &[marked()]);
    std::thread::sleep(Duration::from_millis(100));
    host.process
        .socket()
        .shutdown(std::net::Shutdown::Both)
        .expect("closes");
    let took = timed(|| assert_eq!(host.end(), ProcessEnd::Exited(0)));
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[test]
fn cancel_stops_the_call_in_progress_and_those_waiting_but_no_later_one() {
    let mut host = with("slow");
    let (first, second) = (host.request(0, &[marked()]), host.request(1, &[image(3)]));
    // The first progress message says that the call has begun.
    std::thread::sleep(Duration::from_millis(100));
    host.send(&ToWorker::Cancel);
    let took = timed(|| {
        for (asked, word) in [
            (first, "Cancelled by the host"),
            (second, "before it began"),
        ] {
            let FromWorker::Failed { call, error } = host.answer() else {
                panic!("answered")
            };
            assert_eq!((call, error.kind), (Some(asked), FailureKind::Cancelled));
            assert!(error.message.contains(word), "{error}");
        }
    });
    assert!(took < PATIENCE / 3, "{took:?}");
    assert!(
        host.progress
            .iter()
            .any(|(stage, _, total)| stage == "slow" && *total == 30)
    );
    honest(&mut host);
}

#[test]
fn false_shapes_and_values_go_out_as_they_are_for_the_host_to_judge() {
    let images = [image(1), marked(), image(2)];
    for (misdeed, rows, dim) in [("short_rows", 2, DIM), ("extra_rows", 103, DIM)] {
        let found = with(misdeed).encode(&images).expect("answers");
        assert_eq!(
            (found.0 as usize, found.1 as usize, found.2.len()),
            (rows, dim, rows * dim),
            "{misdeed}"
        );
    }
    let found = with("wrong_dim").encode(&images).expect("answers");
    assert_eq!((found.0 as usize, found.1 as usize), (BATCH, DIM - 1));
    for (misdeed, at) in [("nan", DIM + 2), ("infinity", DIM + 5)] {
        let values = with(misdeed).encode(&images).expect("answers").2;
        let bad: Vec<_> = values
            .iter()
            .enumerate()
            .filter(|(_, v)| !v.is_finite())
            .map(|(at, _)| at)
            .collect();
        assert_eq!(bad, [at], "{misdeed}");
    }
}

#[test]
fn errors_keep_kind_message_and_hint() {
    let error = with("error")
        .encode(&[image(0), marked()])
        .expect_err("refuses");
    assert_eq!(
        (error.kind, error.message.as_str()),
        (FailureKind::Image, "Asked to refuse image 1")
    );
    assert_eq!(error.hint.as_deref(), Some("Ask for another misdeed"));
    let error = with("unknown_error")
        .encode(&[marked()])
        .expect_err("refuses");
    assert_eq!(error.kind, FailureKind::Internal);
    assert!(error.message.contains("4711"), "{error}");
}

#[test]
fn the_sandbox_denies_files_and_sockets() {
    let folder = tempfile::tempdir().expect("folder");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("listens");
    let (path, address) = (
        folder.path().join("new"),
        listener.local_addr().expect("bound").to_string(),
    );
    for (sandbox, word) in [(true, "denied"), (false, "done")] {
        let mut host = Host::start();
        let request = focus_wire::LoadRequest {
            sandbox,
            ..load_request(hostile())
        };
        let FromWorker::Loaded { sandbox: words, .. } = host.ask(&ToWorker::Load(request)) else {
            panic!("loads")
        };
        host.attach();
        // A kernel without Landlock says so in the words, and then files are not protected.
        let files = if words.iter().any(|line| line.contains("read-only")) {
            word
        } else {
            "done"
        };
        for (settings, word) in [
            (
                [
                    ("misdeed", "write_file"),
                    ("path", path.to_str().expect("UTF-8")),
                ],
                files,
            ),
            (
                [("misdeed", "open_socket"), ("address", address.as_str())],
                word,
            ),
        ] {
            host.open(&settings).expect("opens");
            host.log.clear();
            honest(&mut host);
            let line = &host.log[0].1;
            assert!(
                line.starts_with(&format!("{}: {word}", settings[0].1)),
                "sandbox {sandbox}: {line}; {words:?}"
            );
        }
        assert_eq!(path.exists(), files == "done");
        assert!(
            words.iter().any(|line| line.contains("sealed copy")),
            "{words:?}"
        );
    }
}

#[test]
fn output_is_the_plugins_log_and_nobody_elses() {
    let mut host = Host::opened(
        hostile(),
        &[
            ("misdeed", "stdout_spam"),
            ("marker", MARKER),
            ("amount", "1"),
        ],
    );
    honest(&mut host);
    host.encode(&[marked()]).expect("answers");
    host.send(&ToWorker::Shutdown);
    assert_eq!(host.ends(), ProcessEnd::Exited(0));
    let (out, err) = host.output();
    assert_eq!(out.len(), 1 << 20);
    assert_eq!(String::from_utf8_lossy(&err), "");
}

#[test]
fn log_lines_are_capped_and_all_arrive() {
    let mut host = Host::opened(
        hostile(),
        &[
            ("misdeed", "log_spam"),
            ("marker", MARKER),
            ("amount", "500"),
        ],
    );
    host.log.clear();
    host.encode(&[marked()]).expect("answers");
    assert_eq!(host.log.len(), 500);
    assert!(
        host.log
            .iter()
            .enumerate()
            .all(|(n, (level, line))| *level == 3
                && line.len() == 4096
                && line.starts_with(&format!("{n} ")))
    );
}

#[test]
fn a_child_left_behind_dies_with_the_worker() {
    let mut host = Host::opened(hostile(), &[("misdeed", "fork"), ("marker", MARKER)]);
    host.encode(&[marked()]).expect("answers");
    let line = host.log.last().expect("a line").1.clone();
    let child: i32 = line
        .strip_prefix("fork: child ")
        .and_then(|id| id.parse().ok())
        .expect("an id");
    assert!(
        child > 0 && std::path::Path::new(&format!("/proc/{child}")).exists(),
        "{line}"
    );
    drop(host);
    // Reaped by init in its own time: dead is enough.
    let dead = || {
        std::fs::read_to_string(format!("/proc/{child}/stat"))
            .map_or(true, |stat| stat.contains(") Z "))
    };
    assert!(
        (0..200).any(|_| dead() || {
            std::thread::sleep(Duration::from_millis(20));
            false
        }),
        "child {child} lives"
    );
}
