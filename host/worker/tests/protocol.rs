//! The conversation itself: order, slots, frames that make no sense.

use crate::host::Host;
use crate::support::{BATCH, EDGE, IMAGE, batch, expected, hostile, image, load_request, worker};
use focus_os::spawn::ProcessEnd;
use focus_plugin_abi::v1::message::{OpenedModel, PluginDescriptor};
use focus_wire::{Area, FailureKind, FromWorker, Method, ToWorker};
use focus_worker::{EXIT_BAD_SOCKET, EXIT_PROTOCOL};
use hostile::DIM;
use std::io::Write;

#[test]
fn describe_open_and_pipelined_batches() {
    let mut host = Host::loaded(&load_request(hostile()));
    let FromWorker::Described { descriptor } = host.ask(&ToWorker::Describe) else {
        panic!("describes")
    };
    let descriptor: PluginDescriptor = serde_json::from_str(&descriptor).expect("JSON");
    assert_eq!(
        (descriptor.name.as_str(), descriptor.models[0].id.as_str()),
        ("hostile", "hostile")
    );
    assert_eq!(descriptor.license, "MIT OR Apache-2.0");
    let opened: OpenedModel = serde_json::from_str(&host.open(&[]).expect("opens")).expect("JSON");
    assert_eq!(
        (opened.embedding_dim as usize, opened.batch_size as usize),
        (DIM, BATCH)
    );
    assert_eq!(opened.preprocessing.width as usize, EDGE);
    assert!(
        host.log
            .iter()
            .any(|(level, line)| *level == 3 && line.contains("opened")),
        "{:?}",
        host.log
    );
    host.attach();
    let mut waiting = std::collections::VecDeque::new();
    for round in 0..50 {
        if waiting.len() == 2 {
            let (asked, images): (u64, Vec<Vec<u8>>) = waiting.pop_front().expect("two");
            let FromWorker::Answered { call, reply } = host.answer() else {
                panic!("encodes")
            };
            let found = reply.matrix.expect("embeddings");
            assert_eq!(
                (call, found.rows as usize, found.dim as usize),
                (asked, BATCH, DIM)
            );
            assert_eq!(found.values[..images.len() * DIM], expected(&images));
        }
        let images: Vec<_> = (0..=round % BATCH).map(|n| image(round * 10 + n)).collect();
        let asked = host.request((round % 2) as u32, &images);
        waiting.push_back((asked, images));
    }
    for (asked, _) in waiting {
        assert!(matches!(host.answer(), FromWorker::Answered { call, .. } if call == asked));
    }
    host.send(&ToWorker::Shutdown);
    assert_eq!(host.ends(), ProcessEnd::Exited(0));
}

#[test]
fn requests_out_of_order_are_refused_and_cost_nothing() {
    let mut host = Host::loaded(&load_request(hostile()));
    let error = host.encode(&[image(1)]).expect_err("no slots");
    assert!(error.message.contains("expected `Attach`"), "{error}");
    host.attach();
    let error = host.encode(&[image(1)]).expect_err("no model");
    assert!(error.message.contains("No model is open"), "{error}");
    let error = host.fails(&ToWorker::Load(load_request(hostile())));
    assert!(error.message.contains("`Load` cannot come here"), "{error}");
    host.open(&[]).expect("opens");
    host.encode(&[image(1)]).expect("encodes");
}

#[test]
fn batches_that_do_not_fit_are_refused() {
    let mut host = Host::opened(hostile(), &[]);
    let (pixels, header) = batch(&[image(1)]);
    let bytes = pixels.len() as u64;
    let request = |width: u64, rows: u64, used: u64| {
        format!("{{\"width\":{width},\"height\":{EDGE},\"rows\":{rows},\"used\":{used}}}")
    };
    let edge = EDGE as u64;
    let cases = [
        (2, header.clone(), bytes, "No slot 2"),
        (0, header.clone(), 0, "does not fit its slot"),
        (0, header.clone(), u64::MAX, "does not fit its slot"),
        (0, header.clone(), bytes - 1, "does not fit its pixels"),
        (0, request(edge, 5, 1), bytes, "does not fit its pixels"),
        (0, request(edge, 4, 5), bytes, "does not fit its pixels"),
        (0, request(u64::from(u32::MAX), 4, 1), bytes, "out of range"),
        (0, request(0, 4, 1), bytes, "out of range"),
        (0, "{}".to_owned(), bytes, "cannot be read"),
    ];
    for (call, (slot, header, bytes, word)) in (100_u64..).zip(cases) {
        let FromWorker::Failed {
            call: answered,
            error,
        } = host.ask(&ToWorker::Call {
            call,
            method: Method::Encode,
            header,
            pixels: Some(Area { slot, bytes }),
        })
        else {
            panic!("{word}")
        };
        assert_eq!(
            (answered, error.kind),
            (Some(call), FailureKind::InvalidRequest)
        );
        assert!(error.message.contains(word), "{word}: {error}");
    }
    // A batch of another size than the model's is the plugin's to accept: this one does.
    let header = request(edge, 1, 1);
    let reply = host.call(Method::Encode, &header, &pixels[..IMAGE]);
    assert_eq!(reply.expect("encodes").matrix.expect("rows").rows, 1);
}

#[test]
fn open_says_what_it_does_not_like() {
    let mut host = Host::loaded(&load_request(hostile()));
    let open = |host: &mut Host, text: &str| {
        host.fails(&ToWorker::Open {
            options: text.to_owned(),
        })
    };
    let cases = [
        (
            r#"{"model":"other","device":"cpu","threads":1}"#,
            FailureKind::InvalidRequest,
            "Unknown model `other`",
        ),
        (
            r#"{"model":"hostile","device":"cuda:0","threads":1}"#,
            FailureKind::Unsupported,
            "expected one of `cpu`, found `cuda:0`",
        ),
        (
            r#"{"model":"hostile","device":"cpu","threads":1,"dtype":"f16"}"#,
            FailureKind::Unsupported,
            "expected one of `f32`, found `f16`",
        ),
        (
            r#"{"model":"hostile","device":"cpu","threads":1,"settings":{"misded":"panic"}}"#,
            FailureKind::InvalidRequest,
            "Unknown setting `misded`",
        ),
        ("not JSON", FailureKind::InvalidRequest, "cannot be read"),
    ];
    for (text, kind, word) in cases {
        let error = open(&mut host, text);
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.message.contains(word), "{error}");
    }
}

#[test]
fn an_attach_without_memory_fails_alone() {
    let mut host = Host::loaded(&load_request(hostile()));
    host.send(&ToWorker::Attach {
        slots: 2,
        slot_bytes: 4096,
    });
    host.process.socket().write_all(&[0xFD]).expect("sends");
    let FromWorker::Failed { call: None, error } = host.answer() else {
        panic!("fails")
    };
    assert_eq!(error.kind, FailureKind::Wire);
    host.send(&ToWorker::Attach {
        slots: 99,
        slot_bytes: 4096,
    });
    focus_os::send_with_fd(host.process.socket(), &[0xFD], host.slots.as_fd()).expect("sends");
    let FromWorker::Failed { call: None, error } = host.answer() else {
        panic!("fails")
    };
    assert!(error.message.contains("wrong size"), "{error}");
    host.attach();
}

#[test]
fn frames_that_make_no_sense_end_the_process() {
    let mut host = Host::start();
    let error = host.fails(&ToWorker::Describe);
    assert!(
        error.kind == FailureKind::Wire && error.message.contains("First message must be `Load`"),
        "{error}"
    );
    assert_eq!(host.ends(), ProcessEnd::Exited(EXIT_PROTOCOL));
    let mut host = Host::loaded(&load_request(hostile()));
    host.process
        .socket()
        .write_all(&[1, 0, 0, 0, 0xff])
        .expect("sends");
    assert!(
        matches!(host.answer(), FromWorker::Failed { call: None, error } if error.kind == FailureKind::Wire)
    );
    assert_eq!(host.ends(), ProcessEnd::Exited(EXIT_PROTOCOL));
}

#[test]
fn a_worker_without_a_socket_leaves_at_once() {
    for args in [
        vec![],
        vec!["--socket-fd"],
        vec!["--socket-fd", "999"],
        vec!["--socket-fd", "0"],
        vec!["--socket-fd", "-1"],
    ] {
        let out = std::process::Command::new(worker())
            .args(&args)
            .stdin(std::process::Stdio::null())
            .output()
            .expect("runs");
        assert_eq!(out.status.code(), Some(EXIT_BAD_SOCKET), "{args:?}");
        assert!(out.stdout.is_empty() && out.stderr.is_empty());
    }
}
