//! Texts in the worker that embeds images: honest rows, false ones, deaths.

use crate::support::{encode, failed, misdeed, open_options, worker_options};
use focus_models::{DualEncoder, InProcessEncoder, ModelError, TextRows, WorkerClient};
use focus_wire::FailureKind;

fn texts(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn honest(found: &TextRows, words: &[&str]) {
    for (row, word) in found.rows.iter().zip(words) {
        assert_eq!(row, &hostile::text_embedding(word), "{word}");
    }
    assert_eq!(found.rows.len(), words.len());
    assert_eq!(found.tokens[0].len(), words[0].len());
    assert_eq!(found.truncated, vec![false; words.len()]);
}

#[test]
fn one_process_serves_images_and_texts() {
    let words = ["a photograph", "caf\u{e9}", ""];
    let mut client = WorkerClient::open(&misdeed("none", &[])).expect("opens");
    let process = client.worker_id();
    assert_eq!(failed(&encode(&mut client).expect("works")), []);
    let found = client.encode_texts(&texts(&words)).expect("embeds");
    honest(&found, &words);
    assert_eq!(failed(&encode(&mut client).expect("works")), []);
    assert_eq!(client.worker_id(), process);
    let mut own = InProcessEncoder::open(&worker_options(), &open_options(&[])).expect("opens");
    assert_eq!(own.encode_texts(&texts(&words)).expect("embeds"), found);
}

#[test]
fn false_rows_and_panics_are_errors_and_the_next_call_is_well() {
    for (name, kind, word) in [
        (
            "short_rows",
            FailureKind::BadReply,
            "number of rows: expected 2, found 1",
        ),
        ("extra_rows", FailureKind::BadReply, "expected 2, found 102"),
        (
            "wrong_dim",
            FailureKind::BadReply,
            "width: expected 8, found 7",
        ),
        (
            "nan",
            FailureKind::BadReply,
            "text 1 is not finite: found NaN at position 2",
        ),
        (
            "lying_rows",
            FailureKind::BadReply,
            "token lists: expected 2, found 3",
        ),
        ("panic", FailureKind::Panic, "asked to panic"),
        ("error", FailureKind::Image, "Asked to refuse"),
        (
            "segfault",
            FailureKind::Crash,
            "was killed by SIGSEGV while encoding texts",
        ),
    ] {
        let mut client = WorkerClient::open(&misdeed(name, &[])).expect("opens");
        let error = client.encode_texts(&texts(&["a", "b!"])).expect_err(name);
        let ModelError::Plugin { error, .. } = error else {
            panic!("{name}: {error}")
        };
        assert_eq!(error.kind, kind, "{name}: {error}");
        assert!(error.message.contains(word), "{name}: {error}");
        let found = client.encode_texts(&texts(&["a", "b"])).expect("goes on");
        honest(&found, &["a", "b"]);
        // A death is given a second chance; what was said twice is believed.
        let restarts = if name == "error" { 0 } else { 2 };
        assert_eq!(client.record().restarts, restarts, "{name}");
    }
}

#[test]
fn a_generator_embeds_nothing() {
    let mut options = misdeed("none", &[]);
    options.open = crate::support::generator_options(&[]);
    let mut client = WorkerClient::open(&options).expect("opens");
    assert_eq!(client.opened().embedding_dim, 0);
    let error = client.encode_texts(&texts(&["a"])).expect_err("cannot");
    assert!(
        error.to_string().contains("has no image encoder"),
        "{error}"
    );
    let error = encode(&mut client).expect_err("cannot");
    assert!(
        error.to_string().contains("has no image encoder"),
        "{error}"
    );
}
