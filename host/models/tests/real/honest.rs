//! What a good plugin gets: the same embeddings from a worker and in process, a description, a refusal where it is due.

use crate::support::{batches, built, encode, failed, misdeed, open_options, worker_options};
use focus_models::{
    Answer, ImageEncoder, InProcessEncoder, ModelError, Plugin, WorkerClient, WorkerOptions,
    describe, describe_in_process,
};
use focus_wire::FailureKind;

#[test]
fn a_worker_and_the_own_process_answer_alike() {
    let mut client = WorkerClient::open(&misdeed("none", &[])).expect("opens");
    assert_eq!(
        (client.opened().embedding_dim, client.opened().batch_size),
        (8, 4)
    );
    let from_worker = encode(&mut client).expect("works");
    // The same encoder again: nothing is left over from the first stream.
    assert_eq!(encode(&mut client).expect("works"), from_worker);
    let record = client.close();
    assert_eq!((record.contract, record.restarts), (1, 0));
    assert!(record.peak_memory > 1 << 20, "{record:?}");
    assert!(
        record
            .sandbox
            .iter()
            .any(|line| line.contains("network: none")),
        "{record:?}"
    );
    let mut own = InProcessEncoder::open(&worker_options(), &open_options(&[])).expect("opens");
    let bits = |answers: &[Answer]| -> Vec<u32> {
        answers
            .iter()
            .flat_map(|answer| {
                answer
                    .result
                    .as_ref()
                    .expect("honest")
                    .iter()
                    .map(|value| value.to_bits())
            })
            .collect()
    };
    assert_eq!(bits(&encode(&mut own).expect("works")), bits(&from_worker));
}

#[test]
fn a_plugin_describes_itself_from_a_worker_and_in_process() {
    let options = worker_options();
    let described = describe(&options).expect("describes");
    assert_eq!(described.descriptor().name, "hostile");
    assert_eq!(described.digest(), options.digest);
    assert_eq!(
        describe_in_process(&options).expect("describes").descriptor,
        described.descriptor
    );
}

#[test]
fn what_the_plugin_refuses_is_its_own_words() {
    let refused = WorkerClient::open(&misdeed("no_such_misdeed", &[])).expect_err("refused");
    assert_eq!(
        refused.to_string(),
        "Plugin `libhostile.so`: Unknown misdeed `no_such_misdeed`"
    );
    let refused = InProcessEncoder::open(&worker_options(), &open_options(&[("misdeed", "other")]))
        .expect_err("refused");
    assert_eq!(
        refused.to_string(),
        "Plugin `libhostile.so`: Unknown misdeed `other`"
    );
}

#[test]
fn a_file_with_another_digest_is_never_loaded() {
    let mut options = worker_options();
    options.digest = format!("sha256:{}", "0".repeat(64));
    let Err(ModelError::Plugin { error, .. }) = describe(&options) else {
        panic!("loaded")
    };
    assert_eq!(error.kind, FailureKind::Load);
    assert!(describe_in_process(&options).is_err());
    // And the sidecar notices before any worker starts.
    let folder = tempfile::tempdir().expect("folder");
    let copy = folder.path().join("libhostile.so");
    std::fs::copy(&built().plugin, &copy).expect("copies");
    assert!(
        WorkerOptions::from_sidecar(&copy, &[]).is_err(),
        "no sidecar"
    );
    std::fs::copy(
        built().plugin.with_extension("toml"),
        copy.with_extension("toml"),
    )
    .expect("copies");
    WorkerOptions::from_sidecar(&copy, &[]).expect("sealed");
    let mut bytes = std::fs::read(&copy).expect("reads");
    *bytes.last_mut().expect("not empty") ^= 1;
    std::fs::write(&copy, bytes).expect("writes");
    assert!(WorkerOptions::from_sidecar(&copy, &[]).is_err(), "changed");
}

#[test]
fn a_missing_worker_program_is_named() {
    let mut options = misdeed("none", &[]);
    options.worker.program = "/nowhere/focus-worker".into();
    let error = WorkerClient::open(&options).expect_err("no program");
    assert!(
        matches!(error, ModelError::Worker { .. })
            && error.to_string().contains("/nowhere/focus-worker"),
        "{error}"
    );
}

#[test]
fn a_program_that_is_no_worker_is_told() {
    for (program, words) in [
        ("/bin/true", "exited with status 0"),
        ("/bin/false", "exited with status 1"),
    ] {
        let mut options = misdeed("none", &[]);
        options.worker.program = program.into();
        let error = WorkerClient::open(&options)
            .expect_err("no worker")
            .to_string();
        assert_eq!(
            error,
            format!("Plugin `libhostile.so`: The worker {words} while loading the plugin")
        );
    }
}

#[test]
fn in_process_typed_errors_cost_their_image_alone() {
    for (name, kind) in [
        ("error", FailureKind::Image),
        ("unknown_error", FailureKind::Internal),
        ("panic", FailureKind::Panic),
        ("short_rows", FailureKind::BadReply),
        ("wrong_dim", FailureKind::BadReply),
        ("nan", FailureKind::BadReply),
    ] {
        let open = open_options(&[("misdeed", name), ("marker", "fffefd")]);
        let mut own = InProcessEncoder::open(&worker_options(), &open).expect("opens");
        assert_eq!(
            failed(&encode(&mut own).expect("goes on")),
            [(crate::support::BAD, kind)],
            "{name}"
        );
    }
    let mut own = InProcessEncoder::open(
        &worker_options(),
        &open_options(&[("misdeed", "unknown_error")]),
    )
    .expect("opens");
    let result = own.encode_all(&mut batches(), &mut |_| Ok(()));
    assert!(
        matches!(result, Err(ModelError::FailsOnBlack { .. })),
        "{result:?}"
    );
}
