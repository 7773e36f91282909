//! Opening: grants, keys, which model, which scores, and what the run's key is told.

use crate::mock::{Act, Mock, ok, status};
use crate::support::{KEY, WAITS, ask, open, options, request, try_open};
use focus_plugin_sdk::{Error, ErrorKind, Host, Model as _};
use openai::generator::ChatModel;
use serde_json::json;

fn refused(settings: &[(&str, &str)], network: &[&str]) -> Error {
    let options = options(settings, network);
    ChatModel::open(&options, &Host::detached(), &|_| None, WAITS).expect_err("refused")
}

#[test]
fn hosts_that_were_not_granted_are_never_asked() {
    let mock = Mock::start(|_, _| Act::Close);
    let base = mock.base();
    for network in [
        &[][..],
        &["localhost"],
        &["127.0.0.2"],
        &["127.0.0.1.evil.org"],
    ] {
        let error = refused(&[("base_url", &base)], network);
        assert_eq!(error.kind(), ErrorKind::UNSUPPORTED);
        assert!(
            error.to_string().contains("`127.0.0.1` was not granted"),
            "{error}"
        );
        assert!(
            error
                .hint()
                .expect("advice")
                .contains("--allow-network 127.0.0.1")
        );
    }
    assert!(mock.asked().is_empty());
}

#[test]
fn a_key_that_was_named_must_be_there() {
    let mock = Mock::start(|_, _| Act::Close);
    let error = refused(
        &[("base_url", &mock.base()), ("api_key_env", "MY_KEY")],
        &["127.0.0.1"],
    );
    assert!(
        error.to_string().contains("`MY_KEY` holds no key"),
        "{error}"
    );
    assert!(mock.asked().is_empty());
}

#[test]
fn servers_without_keys_get_none() {
    let mock = Mock::start(|_, _| ok(&json!({"data": [{"id": "only"}]})));
    let options = options(
        &[("base_url", &mock.base()), ("token_scores", "top_logprobs")],
        &["127.0.0.1"],
    );
    ChatModel::open(&options, &Host::detached(), &|_| None, WAITS).expect("opens");
    assert!(mock.asked()[0].header("authorization").is_none());
}

#[test]
fn the_only_model_is_taken_and_several_are_listed() {
    let mock = Mock::start(|_, _| ok(&json!({"data": [{"id": "google/medgemma-4b-it"}]})));
    let model = open(&mock, &[("served_model", "")]);
    assert_eq!(
        model.opened().facts["served_model"],
        "google/medgemma-4b-it"
    );
    assert_eq!(mock.asked()[0].path, "/v1/models");

    for (list, words) in [
        (json!([{"id": "base"}, {"id": "my-lora"}]), "base, my-lora"),
        (json!([]), "served_model"),
    ] {
        let mock = Mock::start(move |_, _| ok(&json!({"data": list})));
        let error = try_open(&mock, &[("served_model", "")]).expect_err("which?");
        assert!(
            error.to_string().contains("`served_model` is missing"),
            "{error}"
        );
        assert!(error.hint().expect("advice").contains(words));
    }
}

#[test]
fn ids_are_used_where_the_server_has_a_tokenizer() {
    let with = Mock::start(|_, _| ok(&json!({"tokens": [7], "count": 1})));
    let model = open(&with, &[("token_scores", "auto")]);
    assert_eq!(model.opened().facts["token_scores"], "logprob_token_ids");
    assert_eq!(with.asked()[0].path, "/tokenize");

    let answers: [fn() -> Act; 5] = [
        || status(404, &json!({"error": {"message": "Unknown URL"}})),
        || status(405, &json!({"detail": "Method Not Allowed"})),
        || Act::Reply(200, Vec::new(), b"<html>".to_vec()),
        || ok(&json!({"tokens": []})),
        || {
            Act::Reply(
                302,
                vec![("Location", "https://elsewhere.org/".into())],
                Vec::new(),
            )
        },
    ];
    for answer in answers {
        let without = Mock::start(move |_, _| answer());
        let opened = open(&without, &[("token_scores", "auto")]).opened();
        assert_eq!(opened.facts["token_scores"], "top_logprobs");
        assert!(
            opened
                .notes
                .iter()
                .any(|note| note.contains("no token ids"))
        );
        let error = try_open(&without, &[("token_scores", "logprob_token_ids")]);
        assert!(error.is_err());
    }
}

#[test]
fn a_dead_server_and_a_refused_key_show_at_once() {
    let mock = Mock::start(|_, _| status(401, &json!({"error": {"message": "Who are you"}})));
    let error = try_open(&mock, &[("token_scores", "auto")]).expect_err("refused");
    assert!(error.to_string().contains("Who are you"), "{error}");
    let port = mock.port;
    drop(mock);
    // The listener needs a moment to go.
    std::thread::sleep(std::time::Duration::from_millis(50));
    let base = format!("http://127.0.0.1:{port}/v1");
    // For `/models`, and for `/tokenize`.
    for further in [("retries", "1"), ("served_model", "m")] {
        let error = refused(
            &[("base_url", &base), ("retries", "1"), further],
            &["127.0.0.1"],
        );
        // A plain no: the host would start the worker again after anything else.
        assert_eq!(error.kind(), ErrorKind::UNSUPPORTED);
        assert!(
            error.to_string().contains("Gave up after 2 attempts"),
            "{error}"
        );
    }
}

#[test]
fn servers_that_cannot_answer_at_the_start_are_a_plain_no() {
    let answers: [fn() -> Act; 5] = [
        || status(401, &json!({"error": {"message": "Who are you"}})),
        || status(402, &json!({"error": {"message": "No balance"}})),
        || status(503, &json!({"error": {"message": "Loading"}})),
        || {
            status(
                429,
                &json!({"error": {"message": "Pay", "code": "insufficient_quota"}}),
            )
        },
        || Act::Close,
    ];
    for answer in answers {
        let mock = Mock::start(move |_, _| answer());
        for settings in [
            [("served_model", ""), ("token_scores", "top_logprobs")],
            [("served_model", "m"), ("token_scores", "auto")],
            [("served_model", "m"), ("token_scores", "logprob_token_ids")],
        ] {
            let error = try_open(&mock, &settings).expect_err("no server");
            assert_eq!(error.kind(), ErrorKind::UNSUPPORTED, "{error}");
        }
    }
    let mock = Mock::start(|_, _| Act::Reply(200, Vec::new(), b"<html>".to_vec()));
    let error = try_open(&mock, &[("served_model", "")]).expect_err("no list");
    assert_eq!(error.kind(), ErrorKind::UNSUPPORTED, "{error}");
}

#[test]
fn calls_have_as_many_pictures_as_fit() {
    let mock = Mock::start(|_, _| Act::Close);
    for (concurrency, pictures) in [("4", 4), ("16", 16), ("256", 16)] {
        let opened = open(&mock, &[("concurrency", concurrency)]).opened();
        assert_eq!(opened.batch_size, pictures);
    }
}

#[test]
fn a_rate_that_no_call_survives_is_refused() {
    let mock = Mock::start(|_, _| Act::Close);
    let settings = [("requests_per_minute", "1.5")];
    let error = try_open(&mock, &settings).expect_err("too slow");
    assert!(
        error
            .to_string()
            .contains("at least 2 for the 8 questions of one call, found `1.5`"),
        "{error}"
    );
    assert!(error.hint().expect("advice").contains("--batch-size N"));
    // Several questions for each picture show in the call.
    let settings = [("requests_per_minute", "1.5"), ("concurrency", "4")];
    let mut model = open(&mock, &settings);
    let prompts: &[&str] = &["a", "b"];
    let error = ask(&mut model, &request(&[prompts; 4])).expect_err("too slow");
    assert_eq!(error.kind(), ErrorKind::UNSUPPORTED);
    assert!(error.to_string().contains("at least 2"), "{error}");
    assert!(mock.asked().is_empty());
}

/// `OPENAI_API_KEY` may be another service's key: it goes over a readable connection only if it was named for this server.
#[test]
fn the_default_key_is_not_sent_where_it_can_be_read() {
    let mock = Mock::start(|_, _| ok(&json!({"data": [{"id": "only"}]})));
    // This machine again, by an address that is none of a loopback.
    let elsewhere = format!("http://0.0.0.0:{}/v1", mock.port);
    let here = mock.base();
    for (base, named, sent) in [
        (&elsewhere, None, false),
        (&elsewhere, Some("OPENAI_API_KEY"), true),
        (&elsewhere, Some("MINE"), true),
        (&here, None, true),
    ] {
        let mut settings = vec![
            ("base_url", base.as_str()),
            ("token_scores", "top_logprobs"),
        ];
        settings.extend(named.map(|name| ("api_key_env", name)));
        let options = options(&settings, &["0.0.0.0", "127.0.0.1"]);
        let key = |_: &str| Some(KEY.to_owned());
        let model = ChatModel::open(&options, &Host::detached(), &key, WAITS).expect("opens");
        let asked = mock.asked();
        let header = asked.last().expect("the list").header("authorization");
        assert_eq!(header.is_some(), sent, "{base} {named:?}");
        let notes = model.opened().notes;
        let told = notes.iter().any(|note| note.contains("was not sent"));
        assert_eq!(told, !sent, "{notes:?}");
    }
}

#[test]
fn whatever_changes_an_answer_is_a_fact() {
    let mock = Mock::start(|_, _| Act::Close);
    let base = mock.base();
    let plain = open(&mock, &[]).opened();
    assert_eq!(plain.facts["server"], base);
    assert_eq!(plain.batch_size, 8);
    assert!(plain.weights_digest.is_none());
    for (key, value) in [
        ("served_model", "other"),
        ("top_logprobs", "5"),
        ("max_image_side", "512"),
        ("image_format", "jpeg:90"),
        ("detail", "low"),
        ("seed", "3"),
        (
            "extra_body",
            r#"{"chat_template_kwargs": {"enable_thinking": false}}"#,
        ),
    ] {
        let opened = open(&mock, &[(key, value)]).opened();
        assert_ne!(opened.facts, plain.facts, "{key}");
    }
    for (key, value) in [
        ("retries", "1"),
        ("timeout", "7"),
        ("price_in", "3"),
        ("requests_per_minute", "9"),
    ] {
        assert_eq!(open(&mock, &[(key, value)]).opened(), plain, "{key}");
    }
}

#[test]
fn what_can_be_read_on_the_way_is_noted() {
    let open = |base: &str, host: &str| {
        let options = options(
            &[
                ("base_url", base),
                ("served_model", "m"),
                ("token_scores", "top_logprobs"),
            ],
            &[host],
        );
        ChatModel::open(&options, &Host::detached(), &|_| None, WAITS)
            .expect("opens")
            .opened()
            .notes
    };
    let unencrypted = |notes: &[String]| notes.iter().any(|note| note.contains("not encrypted"));
    assert!(unencrypted(&open(
        "http://gpu7.example.org:8000/v1",
        "gpu7.example.org"
    )));
    assert!(!unencrypted(&open(
        "https://gpu7.example.org/v1",
        "gpu7.example.org"
    )));
    assert!(!unencrypted(&open("http://localhost:8000/v1", "localhost")));
}

#[test]
fn the_card_wants_no_weights() {
    let card = openai::card::descriptor();
    assert_eq!(card.id, "chat-completions");
    assert!(card.weight_files.is_empty() && card.hub.is_none());
}
