//! Good servers: texts, scores, order, counts.

use crate::mock::{Act, Mock, completion, ok, scored};
use crate::support::{ask, ask_one, open, request, scores_request};
use focus_plugin_sdk::{Finish, VariantScore};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

fn variant(token: Option<u32>, logprob: Option<f64>) -> VariantScore {
    VariantScore { token, logprob }
}

#[test]
fn answers_come_in_order_whatever_the_order_of_arrival() {
    let here = AtomicUsize::new(0);
    let mock = Mock::start(move |_, asked| {
        let prompt = asked.prompt();
        // The first waits for company, which a client that asks one by one never brings.
        here.fetch_add(1, SeqCst);
        let start = Instant::now();
        while here.load(SeqCst) < 2 && start.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(1));
        }
        // Later questions are answered sooner.
        let wait = 40_u64.saturating_sub(prompt.bytes().map(u64::from).sum::<u64>() % 40);
        std::thread::sleep(Duration::from_millis(wait));
        ok(&completion(&format!("re: {prompt}")))
    });
    let mut model = open(&mock, &[("concurrency", "4")]);
    let names: Vec<Vec<String>> = (0..5)
        .map(|group| (0..3).map(|prompt| format!("{group}{prompt}")).collect())
        .collect();
    let borrowed: Vec<Vec<&str>> = names
        .iter()
        .map(|group| group.iter().map(String::as_str).collect())
        .collect();
    let prompts: Vec<&[&str]> = borrowed.iter().map(Vec::as_slice).collect();
    let reply = ask(&mut model, &request(&prompts)).expect("answers");
    for (group, asked) in reply.groups.iter().zip(&names) {
        assert!(group.error.is_none());
        assert!(group.timings.decode > 0.0);
        let texts: Vec<_> = group.answers.iter().map(|answer| &answer.text).collect();
        let wanted: Vec<_> = asked.iter().map(|prompt| format!("re: {prompt}")).collect();
        assert_eq!(texts, wanted.iter().collect::<Vec<_>>());
    }
    assert_eq!(mock.questions().len(), 15);
    assert!(
        (2..=4).contains(&mock.most_at_once()),
        "{}",
        mock.most_at_once()
    );
}

#[test]
fn texts_counts_and_endings_are_the_servers() {
    let mock = Mock::start(|number, _| {
        let mut value = completion("\n Yes.  ");
        match number {
            0 => {}
            1 => value["choices"][0]["finish_reason"] = json!("length"),
            2 => {
                value["choices"][0]["message"] =
                    json!({"role": "assistant", "content": null, "refusal": "I am unable"});
            }
            3 => value["choices"][0]["finish_reason"] = json!("content_filter"),
            4 => value["choices"][0]["message"]["content"] = json!(""),
            _ => value["usage"] = Value::Null,
        }
        ok(&value)
    });
    let mut model = open(&mock, &[]);
    for (text, finish, lengths) in [
        ("\n Yes.  ", Finish::End, (300, 2)),
        ("\n Yes.  ", Finish::Length, (300, 2)),
        ("", Finish::Refused, (300, 2)),
        ("\n Yes.  ", Finish::Refused, (300, 2)),
        ("", Finish::End, (300, 2)),
        ("\n Yes.  ", Finish::End, (0, 0)),
    ] {
        let group = ask_one(&mut model);
        let answer = &group.answers[0];
        assert_eq!((answer.text.as_str(), answer.finish), (text, finish));
        assert_eq!((answer.prompt_length, answer.new_length), lengths);
        assert!(answer.scores.is_empty());
    }
}

/// Scores by text: exact bytes, and what the list lacks is unavailable.
#[test]
fn scores_by_text_leave_out_what_the_list_lacks() {
    let mock = Mock::start(|_, asked| {
        let body = asked.json();
        assert_eq!(
            (&body["logprobs"], &body["top_logprobs"]),
            (&json!(true), &json!(5))
        );
        assert!(
            body.get("logprob_token_ids").is_none()
                && body.get("return_tokens_as_token_ids").is_none()
        );
        ok(&scored(
            "Yes",
            &json!({"token": "Yes", "logprob": -0.1, "bytes": [89, 101, 115], "top_logprobs": [
                {"token": "Yes", "logprob": -0.1, "bytes": [89, 101, 115]},
                {"token": " no", "logprob": -3.5, "bytes": [32, 110, 111]},
                {"token": "no", "logprob": -9999.0, "bytes": [110, 111]}]}),
        ))
    });
    let mut model = open(&mock, &[("top_logprobs", "5")]);
    let reply = ask(&mut model, &scores_request(&["yes", "Yes", " no", "no"])).expect("answers");
    assert_eq!(
        reply.groups[0].answers[0].scores,
        [
            variant(Some(0), None),
            variant(Some(1), Some(-0.1)),
            variant(Some(2), Some(-3.5)),
            variant(Some(3), None),
        ]
    );
}

/// A server with token ids, as vLLM is.
fn vllm(honours_list: bool) -> Mock {
    Mock::start(move |_, asked| {
        let body = asked.json();
        if asked.path == "/tokenize" {
            assert_eq!(body["add_special_tokens"], json!(false));
            assert_eq!(body["model"], json!("m"));
            let ids = match body["prompt"].as_str().expect("a text") {
                "yes" => json!([10]),
                "Yes" => json!([11]),
                "no" => json!([20]),
                " no" => json!([21]),
                _ => json!([5, 6]),
            };
            return ok(&json!({"tokens": ids, "count": 1, "max_model_len": 4096}));
        }
        assert_eq!(body["logprob_token_ids"], json!([10, 11, 20]));
        assert_eq!(body["return_tokens_as_token_ids"], json!(true));
        let mut list = vec![json!({"token": "token_id:11", "logprob": -0.2, "bytes": []})];
        if honours_list {
            list.push(json!({"token": "token_id:10", "logprob": -7.25, "bytes": []}));
            list.push(json!({"token": "token_id:20", "logprob": -30.5, "bytes": []}));
        }
        let mut value = scored(
            "Yes",
            &json!({"token": "token_id:11", "logprob": -0.2, "bytes": [], "top_logprobs": list}),
        );
        value["prompt_token_ids"] = json!([1, 7, 7, 7, 2]);
        value["choices"][0]["token_ids"] = json!([11, 99]);
        ok(&value)
    })
}

#[test]
fn scores_by_id_are_of_single_tokens() {
    for (honours_list, yes, no) in [(true, Some(-7.25), Some(-30.5)), (false, None, None)] {
        let mock = vllm(honours_list);
        let mut model = open(&mock, &[("token_scores", "auto")]);
        let request = scores_request(&["yes", "Yes", "\nyes", "no", "yes"]);
        for _ in 0..2 {
            let reply = ask(&mut model, &request).expect("answers");
            let answer = &reply.groups[0].answers[0];
            assert_eq!(
                answer.scores,
                [
                    variant(Some(10), yes),
                    variant(Some(11), Some(-0.2)),
                    variant(None, None),
                    variant(Some(20), no),
                    variant(Some(10), yes),
                ]
            );
            assert_eq!(answer.prompt_tokens, [(1, 1), (7, 3), (2, 1)]);
            assert_eq!(answer.new_tokens, [11, 99]);
        }
        let tokenized = mock
            .asked()
            .iter()
            .filter(|asked| asked.path == "/tokenize")
            .count();
        assert_eq!(tokenized, 4, "each variant is asked for once");
    }
}

#[test]
fn without_log_probabilities_every_variant_is_unavailable() {
    for logprobs in [
        json!(null),
        json!({}),
        json!({"content": null}),
        json!({"content": []}),
    ] {
        let mock = Mock::start(move |_, _| {
            let mut value = completion("yes");
            value["choices"][0]["logprobs"] = logprobs.clone();
            ok(&value)
        });
        let mut model = open(&mock, &[]);
        let reply = ask(&mut model, &scores_request(&["yes", "no"])).expect("answers");
        let answer = &reply.groups[0].answers[0];
        assert_eq!(
            answer.scores,
            [variant(Some(0), None), variant(Some(1), None)]
        );
        assert_eq!(answer.text, "yes");
    }
}

#[test]
fn scores_alone_need_one_token_and_keep_no_text() {
    let mock = Mock::start(|_, asked| {
        assert_eq!(asked.json()["max_tokens"], json!(1));
        ok(&scored(
            "Yes",
            &json!({"token": "Yes", "logprob": -0.5, "bytes": [89, 101, 115], "top_logprobs": []}),
        ))
    });
    let mut model = open(&mock, &[]);
    let mut request = scores_request(&["Yes"]);
    request.max_new_tokens = 0;
    let reply = ask(&mut model, &request).expect("answers");
    let answer = &reply.groups[0].answers[0];
    assert_eq!(answer.scores, [variant(Some(0), Some(-0.5))]);
    assert_eq!(
        (answer.text.as_str(), answer.finish, answer.new_length),
        ("", Finish::Length, 0)
    );
    assert!(reply.groups[0].timings.prefill > 0.0 && reply.groups[0].timings.decode == 0.0);
}

#[test]
fn pieces_and_connections_that_end_early_are_no_trouble() {
    let mock = Mock::start(|number, _| {
        let body = completion(&format!("answer {number}"))
            .to_string()
            .into_bytes();
        if number % 2 == 0 {
            Act::Chunked(body)
        } else {
            Act::ReplyAndClose(body)
        }
    });
    let mut model = open(&mock, &[("concurrency", "1")]);
    for _ in 0..6 {
        let group = ask_one(&mut model);
        assert!(group.answers[0].text.starts_with("answer "), "{group:?}");
    }
}

#[test]
fn adapters_are_models_of_the_server() {
    let mock = Mock::start(|_, _| ok(&completion("yes")));
    let mut model = open(&mock, &[("served_model", "my-lora")]);
    let mut with_adapter = request(&[&["Q?"]]);
    with_adapter.adapter = Some("my-lora".into());
    let refused = ask(&mut model, &with_adapter).expect_err("refused");
    assert!(refused.hint().expect("advice").contains("served_model"));
    ask_one(&mut model);
    assert_eq!(mock.questions()[0].json()["model"], json!("my-lora"));
}
