//! A plugin that misbehaves on image k costs image k alone, whatever it does.

use crate::support::{BAD, encode, failed, message, misdeed};
use focus_models::{ClientOptions, ModelError, WorkerClient, WorkerRecord};
use focus_wire::FailureKind;
use std::time::Duration;

/// Run the misdeed; returns the bad image's message and the record.
fn costs_its_image(
    options: &ClientOptions,
    name: &str,
    kind: FailureKind,
) -> (String, WorkerRecord) {
    let mut client = WorkerClient::open(options).expect("opens");
    let answers = encode(&mut client).expect("goes on");
    assert_eq!(failed(&answers), [(BAD, kind)], "{name}");
    (message(&answers).to_owned(), client.close())
}

#[test]
fn deaths() {
    for (name, words) in [
        ("segfault", "was killed by SIGSEGV"),
        ("stack_overflow", "was killed by SIGABRT"),
        ("abort", "was killed by SIGABRT"),
        ("double_panic", "was killed by SIGABRT"),
        ("exit", "exited with status 0"),
    ] {
        let (message, record) = costs_its_image(&misdeed(name, &[]), name, FailureKind::Crash);
        assert_eq!(
            message,
            format!("The worker {words} while encoding"),
            "{name}"
        );
        assert_eq!(
            record.restarts, 3,
            "{name}: in the batch, in its half, alone"
        );
    }
}

#[test]
fn panics_are_caught_and_the_process_is_retired() {
    let (message, record) = costs_its_image(&misdeed("panic", &[]), "panic", FailureKind::Panic);
    assert!(message.contains("asked to panic by image"), "{message}");
    assert_eq!(record.restarts, 3);
}

#[test]
fn false_replies() {
    for (name, words, restarts) in [
        ("short_rows", "", 3),
        ("extra_rows", "", 3),
        ("wrong_dim", "", 3),
        (
            "nan",
            "Embedding is not finite: found NaN at position 2 of 8",
            0,
        ),
        (
            "infinity",
            "Embedding is not finite: found -inf at position 5 of 8",
            0,
        ),
    ] {
        let (message, record) = costs_its_image(&misdeed(name, &[]), name, FailureKind::BadReply);
        assert!(message.contains(words), "{name}: {message}");
        assert_eq!(record.restarts, restarts, "{name}");
    }
}

#[test]
fn typed_errors_cost_no_restart() {
    for (name, kind) in [
        ("error", FailureKind::Image),
        ("unknown_error", FailureKind::Internal),
    ] {
        assert_eq!(
            costs_its_image(&misdeed(name, &[]), name, kind).1.restarts,
            0
        );
    }
}

#[test]
fn a_hang_is_killed() {
    let mut options = misdeed("hang", &[]);
    options.worker.timeouts.batch = Duration::from_secs(2);
    let (message, record) = costs_its_image(&options, "hang", FailureKind::Hang);
    assert_eq!(
        (message.as_str(), record.restarts),
        (
            "The worker gave no answer within 2s while encoding and was killed",
            3
        )
    );
}

#[test]
fn a_leak_is_killed_at_its_limit() {
    let mut options = misdeed("leak", &[("amount", "4000")]);
    options.worker.memory_limit = Some(256 << 20);
    let (message, record) = costs_its_image(&options, "leak", FailureKind::MemoryKill);
    assert_eq!(
        message,
        "The worker grew past its memory limit while encoding and was killed"
    );
    assert!(
        record.peak_memory > 256 << 20 && record.peak_memory < 1 << 30,
        "{record:?}"
    );
}

#[test]
fn floods_of_output_harm_nobody() {
    for (name, amount) in [
        ("stdout_spam", "4"),
        ("stderr_spam", "4"),
        ("log_spam", "2000"),
    ] {
        let mut client = WorkerClient::open(&misdeed(name, &[("amount", amount)])).expect("opens");
        assert_eq!(failed(&encode(&mut client).expect("works")), [], "{name}");
        assert_eq!(client.close().restarts, 0, "{name}");
    }
}

#[test]
fn a_plugin_that_never_works_is_an_error_not_a_list_of_images() {
    let mut options = misdeed("segfault", &[]);
    options.open.settings.remove("marker");
    let mut client = WorkerClient::open(&options).expect("opens");
    let error = encode(&mut client).expect_err("broken");
    assert!(matches!(error, ModelError::FailsOnBlack { .. }), "{error}");
    assert!(error.to_string().contains("SIGSEGV"), "{error}");
}

#[test]
fn restarts_are_bounded() {
    let mut client = WorkerClient::open(&ClientOptions {
        max_restarts: 2,
        ..misdeed("abort", &[])
    })
    .expect("opens");
    let error = encode(&mut client).expect_err("used up");
    assert!(
        matches!(error, ModelError::RestartsUsedUp { restarts: 2, .. }),
        "{error}"
    );
}

#[test]
fn open_has_its_own_time_and_panics_there_are_told() {
    let mut options = misdeed("hang_in_open", &[]);
    options.worker.timeouts.open = Duration::from_millis(500);
    let error = WorkerClient::open(&options).expect_err("hangs").to_string();
    assert!(
        error.ends_with(
            "The worker gave no answer within 500ms while opening the model and was killed"
        ),
        "{error}"
    );
    let error = WorkerClient::open(&misdeed("panic_in_open", &[]))
        .expect_err("panics")
        .to_string();
    assert!(error.contains("asked to panic while opening"), "{error}");
    let mut client = WorkerClient::open(&misdeed("panic_in_drop", &[])).expect("opens");
    assert_eq!(failed(&encode(&mut client).expect("works")), []);
    client.close();
}
