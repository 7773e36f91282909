//! Adapters over real workers: attached once, there again after a restart.

use crate::generate::{BAD, ask, failed, generate, options};
use crate::support::{generator_options, worker_options};
use focus_models::{Generator, InProcessEncoder, ModelError, WorkerClient};
use focus_plugin_abi::v1::message::AttachRequest;
use focus_wire::FailureKind;

fn request(name: &str) -> AttachRequest {
    AttachRequest {
        name: name.into(),
        folder: env!("CARGO_MANIFEST_DIR").into(),
    }
}

fn life(model: &mut dyn Generator) {
    let error = generate(model, &ask(Some("dr"))).expect_err("not yet");
    assert!(
        error.to_string().ends_with("No adapter `dr` is attached"),
        "{error}"
    );
    let reply = model.attach(&request("dr")).expect("attaches");
    assert_eq!(
        (reply.name.as_str(), reply.digest.as_str()),
        ("dr", "fixed:1")
    );
    model.attach(&request("amd")).expect("a second one");
    let error = model.attach(&request("dr")).expect_err("taken");
    assert!(
        error
            .to_string()
            .ends_with("Adapter `dr` is attached already"),
        "{error}"
    );
    let error = model
        .attach(&AttachRequest {
            folder: "/nowhere".into(),
            ..request("x")
        })
        .expect_err("no folder");
    assert!(
        error.to_string().ends_with("No folder `/nowhere`"),
        "{error}"
    );
    generate(model, &ask(Some("dr"))).expect("works");
    generate(model, &ask(Some("amd"))).expect("works");
    generate(model, &ask(None)).expect("works");
    model.detach("dr").expect("detaches");
    assert!(model.detach("dr").is_err());
    assert!(generate(model, &ask(Some("dr"))).is_err());
    generate(model, &ask(Some("amd"))).expect("is still there");
}

#[test]
fn they_come_and_go() {
    let mut client = WorkerClient::open(&options("none", &[])).expect("opens");
    life(&mut client);
    assert_eq!(client.close().restarts, 0);
    let mut own =
        InProcessEncoder::open(&worker_options(), &generator_options(&[])).expect("opens");
    life(&mut own);
}

#[test]
fn they_are_there_again_after_a_restart() {
    for name in ["segfault", "panic"] {
        let mut client = WorkerClient::open(&options(name, &[])).expect("opens");
        client.attach(&request("dr")).expect("attaches");
        client.attach(&request("gone")).expect("attaches");
        client.detach("gone").expect("detaches");
        let answers = generate(&mut client, &ask(Some("dr"))).expect("goes on");
        assert_eq!(failed(&answers).len(), 1);
        assert_eq!(failed(&answers)[0].0, BAD);
        assert_eq!(client.close().restarts, 3);
    }
    let settings = generator_options(&[("misdeed", "panic"), ("marker", "fffefd")]);
    let mut own = InProcessEncoder::open(&worker_options(), &settings).expect("opens");
    own.attach(&request("dr")).expect("attaches");
    let answers = generate(&mut own, &ask(Some("dr"))).expect("goes on");
    assert_eq!(failed(&answers)[0].1, FailureKind::Panic);
}

#[test]
fn another_adapter_after_a_restart_is_refused() {
    let mut client = WorkerClient::open(&options("fickle_adapter", &[])).expect("opens");
    client.attach(&request("dr")).expect("attaches");
    generate(&mut client, &ask(Some("dr"))).expect("works");
    let process = client.worker_id().expect("lives") as i32;
    // Not the adapter's doing: somebody ends the process.
    std::process::Command::new("kill")
        .args(["-9", &process.to_string()])
        .status()
        .expect("runs");
    let error = generate(&mut client, &ask(Some("dr"))).expect_err("another digest");
    let ModelError::ChangedAdapter {
        adapter,
        expected,
        found,
        ..
    } = &error
    else {
        panic!("{error}")
    };
    assert_eq!(adapter, "dr");
    assert!(
        expected != found && expected.contains("process:"),
        "{error}"
    );
    assert!(error.hint().is_some());
}
