//! Texts, generation and adapters through a real worker: what crosses, and what is refused before it does.

use crate::host::Host;
use crate::support::{hostile, load_request};
use focus_plugin_abi::v1::message::{AttachReply, GenerateReply, TextReply};
use focus_wire::{FailureKind, FromWorker, Method, ToWorker};
use hostile::DIM;

/// A worker with the generator open.
fn generator(misdeed: &str) -> Host {
    let mut host = Host::loaded(&load_request(hostile()));
    let options = serde_json::json!({
        "model": "hostile-generator", "device": "cpu", "threads": 1,
        "settings": { "misdeed": misdeed, "marker": "fffefd" }
    });
    let answer = host.ask(&ToWorker::Open {
        options: options.to_string(),
    });
    assert!(matches!(answer, FromWorker::Opened { .. }), "{answer:?}");
    host.attach();
    host
}

/// Two groups; the second shows both pictures.
const REQUEST: &str = r#"{"images":[{"width":1,"height":1},{"width":2,"height":1}],"max_new_tokens":1,"score":["yes"],
    "groups":[{"images":[0],"prompts":["a"]},{"images":[1,0],"prompts":["b","c"]}]}"#;
const PICTURES: [u8; 9] = [1, 2, 3, 0xff, 0xfe, 0xfd, 7, 8, 9];

#[test]
fn texts_need_no_memory() {
    let mut host = Host::loaded(&load_request(hostile()));
    host.open(&[]).expect("opens");
    let reply = host
        .call(Method::EncodeTexts, r#"{"texts":["a","bc"]}"#, &[])
        .expect("embeds");
    let said: TextReply = serde_json::from_str(&reply.header).expect("JSON");
    assert_eq!((said.rows, said.dim as usize), (2, DIM));
    assert_eq!(said.tokens, [vec![97], vec![98, 99]]);
    let values = reply.matrix.expect("rows").values;
    assert_eq!(values[DIM..], hostile::text_embedding("bc"));
}

#[test]
fn groups_are_answered_over_pictures_where_they_lie() {
    let mut host = generator("none");
    let reply = host
        .call(Method::Generate, REQUEST, &PICTURES)
        .expect("answers");
    assert!(reply.matrix.is_none());
    let said: GenerateReply = serde_json::from_str(&reply.header).expect("JSON");
    let texts: Vec<Vec<&str>> = said
        .groups
        .iter()
        .map(|group| group.answers.iter().map(|a| a.text.as_str()).collect())
        .collect();
    assert_eq!(
        texts,
        [vec!["1x1:6 a"], vec!["2x1:786 1x1:6 b", "2x1:786 1x1:6 c"]]
    );
}

#[test]
fn pictures_and_arrays_that_do_not_fit_are_refused_before_the_plugin() {
    let mut host = generator("abort");
    for (method, header, bytes, word) in [
        (
            Method::Generate,
            REQUEST,
            &PICTURES[..8],
            "expected 9 bytes, found 8",
        ),
        (Method::Generate, REQUEST, &[], "expected 9 bytes, found 0"),
        (Method::Generate, "{}", &PICTURES[..], "cannot be read"),
        (
            Method::EncodeTexts,
            r#"{"texts":["a"]}"#,
            &PICTURES[..],
            "takes no array",
        ),
        (Method::AttachAdapter, "{}", &PICTURES[..], "takes no array"),
    ] {
        let error = host.call(method, header, bytes).expect_err(word);
        assert_eq!(error.kind, FailureKind::InvalidRequest);
        assert!(error.message.contains(word), "{word}: {error}");
    }
    host.lives();
}

#[test]
fn what_a_model_does_not_offer_is_unsupported() {
    let mut host = generator("none");
    let error = host
        .call(Method::EncodeTexts, r#"{"texts":["a"]}"#, &[])
        .expect_err("a generator");
    assert_eq!(error.kind, FailureKind::Unsupported);
    let mut host = Host::opened(hostile(), &[]);
    for (method, header, bytes) in [
        (Method::Generate, REQUEST, &PICTURES[..]),
        (Method::AttachAdapter, r#"{"name":"a","folder":"/"}"#, &[]),
    ] {
        let error = host.call(method, header, bytes).expect_err("an encoder");
        assert_eq!(error.kind, FailureKind::Unsupported, "{error}");
    }
}

#[test]
fn a_panic_in_one_group_is_an_error_of_the_call_and_the_process_lives() {
    let mut host = generator("panic");
    let error = host
        .call(Method::Generate, REQUEST, &PICTURES)
        .expect_err("panics");
    assert_eq!(error.kind, FailureKind::Panic);
    assert!(error.message.contains("misdeed.rs:"), "{error}");
    host.lives();
}

#[test]
fn a_group_that_fails_by_itself_leaves_the_others_alone() {
    for (misdeed, kind) in [("error", 4), ("unknown_error", 4711), ("nan", 9)] {
        let reply = generator(misdeed).call(Method::Generate, REQUEST, &PICTURES);
        let said: GenerateReply =
            serde_json::from_str(&reply.expect("answers").header).expect("JSON");
        assert_eq!(said.groups[0].answers.len(), 1);
        let error = said.groups[1].error.as_ref().expect(misdeed);
        assert_eq!(error.kind, kind, "{misdeed}");
    }
}

#[test]
fn a_reply_that_is_too_long_does_not_cross() {
    let mut host = Host::loaded(&load_request(hostile()));
    let options = serde_json::json!({
        "model": "hostile-generator", "device": "cpu", "threads": 1,
        "settings": { "misdeed": "huge_text", "amount": "17" }
    });
    host.ask(&ToWorker::Open {
        options: options.to_string(),
    });
    host.attach();
    let error = host
        .call(Method::Generate, REQUEST, &PICTURES)
        .expect_err("long");
    assert_eq!(error.kind, FailureKind::BadReply);
    assert!(
        error.message.contains("expected at most 16777216 bytes"),
        "{error}"
    );
    host.lives();
}

#[test]
fn adapters_are_attached_and_detached() {
    let mut host = generator("none");
    let request = serde_json::json!({ "name": "dr", "folder": env!("CARGO_MANIFEST_DIR") });
    let reply = host
        .call(Method::AttachAdapter, &request.to_string(), &[])
        .expect("attaches");
    let said: AttachReply = serde_json::from_str(&reply.header).expect("JSON");
    assert_eq!((said.name.as_str(), said.ranks), ("dr", vec![8]));
    let with = REQUEST.replace("\"images\":[{", "\"adapter\":\"dr\",\"images\":[{");
    let reply = host
        .call(Method::Generate, &with, &PICTURES)
        .expect("answers");
    assert!(reply.header.contains("dr: 1x1:6 a"), "{}", reply.header);
    let gone = r#"{"name":"dr"}"#;
    assert_eq!(
        host.call(Method::DetachAdapter, gone, &[])
            .expect("detaches")
            .header,
        "{}"
    );
    let error = host
        .call(Method::Generate, &with, &PICTURES)
        .expect_err("gone");
    assert!(error.message.contains("No adapter `dr`"), "{error}");
}
