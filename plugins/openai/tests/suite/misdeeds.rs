//! Servers that answer wrongly: each a clear error of its group, naming what was expected and what came.

use crate::mock::{Act, Mock, completion, ok, scored, status};
use crate::support::{KEY, ask, ask_one, ended, error, open, request, scores_request};
use focus_plugin_sdk::ErrorKind;
use serde_json::json;

/// What one group's error, or that of the call, says about the answer `act`, and how many requests were sent.
fn said(act: impl Fn() -> Act + Send + Sync + 'static) -> (String, usize) {
    let mock = Mock::start(move |_, _| act());
    let mut model = open(&mock, &[]);
    let said = match ask(&mut model, &request(&[&["Q?"]])) {
        Ok(reply) => error(&reply.groups[0]),
        Err(end) => ended(&end),
    };
    (said, mock.asked().len())
}

#[test]
fn what_cannot_succeed_is_sent_once() {
    for code in [400, 401, 402, 403, 404, 405, 413, 418, 422, 501] {
        let (text, sent) = said(move || status(code, &json!({"error": {"message": "No way"}})));
        assert!(text.contains(&format!("status {code}: No way")), "{text}");
        assert_eq!(sent, 1, "{code}");
    }
}

#[test]
fn advice_follows_the_status() {
    for (code, message, advice) in [
        (401, "Bad key", "OPENAI_API_KEY"),
        (402, "No balance", "billing page"),
        (404, "No such model", "served_model"),
        (413, "Too large", "max_image_side"),
        (400, "top_logprobs must be at most 5", "top_logprobs=N"),
        (400, "use max_completion_tokens instead", "max_tokens_field"),
    ] {
        let (text, _) = said(move || status(code, &json!({"error": {"message": message}})));
        assert!(text.contains(advice), "{text}");
    }
}

#[test]
fn answers_that_are_none_say_what_they_are() {
    let whole = completion("yes").to_string();
    let half = whole[..whole.len() / 2].to_owned();
    let bodies: Vec<(Vec<u8>, &str, &str)> = vec![
        (half.into_bytes(), "expected JSON", "ends early"),
        (
            b"<!DOCTYPE html><html><body>Sign in</body></html>".to_vec(),
            "expected JSON",
            "<!DOCTYPE html>",
        ),
        (Vec::new(), "expected JSON", "found nothing"),
        (b"\xff\xfe\x00".to_vec(), "expected JSON", "found"),
        (b"{}".to_vec(), "a chat completion", "choices"),
        (b"[]".to_vec(), "a chat completion", "[]"),
        (br#"{"choices": []}"#.to_vec(), "one choice", "0 choices"),
        (b"null".to_vec(), "a chat completion", "null"),
    ];
    for (body, expected, found) in bodies {
        let (text, sent) = said(move || Act::Reply(200, Vec::new(), body.clone()));
        assert!(text.contains(expected) && text.contains(found), "{text}");
        assert_eq!(sent, 1);
    }
}

#[test]
fn errors_inside_good_answers_are_errors() {
    for (body, words) in [
        (
            json!({"error": {"message": "Model overheated", "type": "x"}}),
            "Model overheated (x)",
        ),
        (
            json!([{"error": {"code": 400, "message": "List of woes"}}]),
            "List of woes",
        ),
        (
            json!({"object": "error", "message": "Old style", "code": 400}),
            "Old style",
        ),
        (json!({"error": "just words"}), "just words"),
    ] {
        let (text, sent) = said(move || ok(&body));
        assert!(
            text.contains("error inside a good answer") && text.contains(words),
            "{text}"
        );
        assert_eq!(sent, 1);
    }
    // One that may pass is tried again.
    let mock = Mock::start(|number, _| match number {
        0 => ok(&json!({"error": {"code": 502, "message": "upstream"}})),
        _ => ok(&completion("yes")),
    });
    assert!(ask_one(&mut open(&mock, &[])).error.is_none());
    assert_eq!(mock.questions().len(), 2);
}

#[test]
fn servers_that_tell_texts_for_ids_end_the_run_and_impossible_scores_are_errors() {
    let mock = Mock::start(|_, asked| {
        if asked.path == "/tokenize" {
            return ok(&json!({"tokens": [7]}));
        }
        ok(&scored(
            "yes",
            &json!({"token": "yes", "logprob": -0.1, "top_logprobs": []}),
        ))
    });
    for wanted in ["auto", "logprob_token_ids"] {
        let mut model = open(&mock, &[("token_scores", wanted)]);
        let end = ask(&mut model, &scores_request(&["yes"])).expect_err("the end");
        assert_eq!(end.kind(), ErrorKind::UNSUPPORTED);
        let text = ended(&end);
        assert!(
            text.contains("`token_id:N`, found `yes`")
                && text.contains("token_scores=top_logprobs"),
            "{text}"
        );
    }

    let mock = Mock::start(|_, _| {
        ok(&scored(
            "yes",
            &json!({"token": "yes", "logprob": 0.7, "top_logprobs": []}),
        ))
    });
    let reply = ask(&mut open(&mock, &[]), &scores_request(&["yes"])).expect("a reply");
    assert!(error(&reply.groups[0]).contains("at most 0, found 0.7"));
}

#[test]
fn huge_answers_are_cut_off() {
    let (text, sent) = said(|| {
        let mut value = completion("yes");
        value["choices"][0]["message"]["content"] = json!("x".repeat(17 << 20));
        ok(&value)
    });
    assert!(
        text.contains("too long: expected at most 16777216 bytes"),
        "{text}"
    );
    assert_eq!(sent, 1);
    let (text, _) = said(|| status(400, &json!({"error": {"message": "x".repeat(100_000)}})));
    assert!(text.len() < 800, "{}", text.len());
}

#[test]
fn redirects_are_not_followed() {
    let thief = Mock::start(|_, _| ok(&completion("yes")));
    let to = format!("http://127.0.0.1:{}/v1/chat/completions?x=s3", thief.port);
    for code in [301, 302, 303, 307, 308] {
        let to = to.clone();
        let (text, sent) =
            said(move || Act::Reply(code, vec![("Location", to.clone())], Vec::new()));
        assert!(
            text.contains("redirects to `127.0.0.1`") && !text.contains("x=s3"),
            "{text}"
        );
        assert_eq!(sent, 1);
    }
    assert!(thief.asked().is_empty(), "key and picture stay at home");
    let (text, _) = said(|| Act::Reply(307, Vec::new(), Vec::new()));
    assert!(text.contains("redirects to `nowhere`"), "{text}");
}

#[test]
fn keys_that_a_server_repeats_are_not_shown() {
    let (text, _) = said(|| {
        status(
            401,
            &json!({"error": {"message": format!("Incorrect API key provided: {KEY}, sk-abc***xyz")}}),
        )
    });
    assert!(text.contains("[key]") && !text.contains("sk-abc"), "{text}");
    let (text, _) = said(|| Act::Reply(200, Vec::new(), format!("<p>{KEY}</p>").into_bytes()));
    assert!(text.contains("[key]"), "{text}");
}

#[test]
fn a_group_fails_alone_and_as_a_whole() {
    let mock = Mock::start(|_, asked| match asked.prompt().as_str() {
        "bad" => status(422, &json!({"error": {"message": "not this one"}})),
        other => ok(&completion(other)),
    });
    let mut model = open(&mock, &[("concurrency", "1")]);
    let reply = ask(
        &mut model,
        &request(&[&["a", "b"], &["c", "bad", "never"], &["d"]]),
    )
    .expect("a reply");
    assert_eq!(reply.groups[0].answers.len(), 2);
    assert!(error(&reply.groups[1]).contains("not this one"));
    assert_eq!(reply.groups[2].answers[0].text, "d");
    let asked: Vec<String> = mock
        .questions()
        .iter()
        .map(crate::mock::Asked::prompt)
        .collect();
    assert_eq!(
        asked,
        ["a", "b", "c", "bad", "d"],
        "a lost group costs nothing more"
    );
}

/// Nobody's picture is to blame for a key, a name or an address, so no group is: the call fails, and a later run asks again.
#[test]
fn what_no_request_can_pass_ends_the_run() {
    for (code, body) in [
        (401, json!({"error": {"message": "revoked"}})),
        (402, json!({"error": {"message": "no balance"}})),
        (404, json!({"error": {"message": "no such model"}})),
        (
            429,
            json!({"error": {"message": "pay first", "code": "insufficient_quota"}}),
        ),
    ] {
        let mock = Mock::start(move |_, _| status(code, &body));
        let mut model = open(&mock, &[("concurrency", "1")]);
        let end = ask(&mut model, &request(&[&["a"], &["b"], &["c"]])).expect_err("the end");
        assert_eq!(end.kind(), ErrorKind::UNSUPPORTED);
        assert!(ended(&end).contains(&format!("status {code}")), "{end}");
        assert_eq!(mock.questions().len(), 1);
    }
}
