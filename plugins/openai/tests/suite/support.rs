//! Opening the plugin on a mock, and asking it.

use crate::mock::Mock;
use focus_plugin_sdk::{
    Error, GenerateBatch, GenerateReply, GenerateRequest, Generator as _, GroupReply, Host,
    ImageSize, OpenOptions, PromptGroup, StopRule,
};
use openai::generator::ChatModel;
use std::time::Duration;

/// Waits of a test: short.
pub const WAITS: (Duration, Duration) = (Duration::from_millis(4), Duration::from_millis(10));

pub const KEY: &str = "s3cretKEY0123456789";

pub fn options(settings: &[(&str, &str)], network: &[&str]) -> OpenOptions {
    OpenOptions {
        model: "chat-completions".into(),
        device: "cpu".into(),
        dtype: None,
        weights: None,
        threads: 1,
        settings: settings
            .iter()
            .map(|&(key, value)| (key.to_owned(), value.to_owned()))
            .collect(),
        network: network.iter().map(|&host| host.to_owned()).collect(),
    }
}

/// Open on a mock with a key; `settings` go before the defaults (model `m`, scores by text), and an empty one leaves the setting out.
pub fn try_open(mock: &Mock, settings: &[(&str, &str)]) -> Result<ChatModel, Error> {
    let base = mock.base();
    let mut all = vec![
        ("base_url", base.as_str()),
        ("served_model", "m"),
        ("token_scores", "top_logprobs"),
        ("retries", "3"),
    ];
    all.retain(|(key, _)| settings.iter().all(|(other, _)| key != other));
    all.extend(settings.iter().filter(|(_, value)| !value.is_empty()));
    let key = |name: &str| (name == "OPENAI_API_KEY").then(|| KEY.to_owned());
    let options = options(&all, &["127.0.0.1"]);
    ChatModel::open(&options, &Host::detached(), &key, WAITS)
}

pub fn open(mock: &Mock, settings: &[(&str, &str)]) -> ChatModel {
    try_open(mock, settings).expect("opens")
}

/// A request of groups with these prompts; group n sees picture n, of size 2 x 1.
pub fn request(prompts: &[&[&str]]) -> GenerateRequest {
    GenerateRequest {
        images: vec![
            ImageSize {
                width: 2,
                height: 1
            };
            prompts.len()
        ],
        groups: prompts
            .iter()
            .enumerate()
            .map(|(number, prompts)| PromptGroup {
                images: vec![number as u32],
                prompts: prompts.iter().map(|&text| text.to_owned()).collect(),
            })
            .collect(),
        adapter: None,
        score: Vec::new(),
        max_new_tokens: 16,
        stop: StopRule::FirstWord {
            words: vec!["yes".into(), "no".into()],
        },
    }
}

pub fn ask(model: &mut ChatModel, request: &GenerateRequest) -> Result<GenerateReply, Error> {
    let pictures: Vec<[u8; 6]> = (0..request.images.len())
        .map(|n| [n as u8, 1, 2, 3, 4, 5])
        .collect();
    let pictures: Vec<&[u8]> = pictures.iter().map(<[u8; 6]>::as_slice).collect();
    let batch = GenerateBatch::new(request, &pictures).expect("fits");
    model.generate(&batch, &Host::detached())
}

/// One group with one prompt.
pub fn ask_one(model: &mut ChatModel) -> GroupReply {
    let mut reply = ask(model, &request(&[&["Q?"]])).expect("a reply");
    assert_eq!(reply.groups.len(), 1);
    reply.groups.remove(0)
}

/// The group's error, with its advice behind it.
pub fn error(group: &GroupReply) -> String {
    assert!(group.answers.is_empty(), "{group:?}");
    let error = group.error.as_ref().expect("an error");
    assert!(
        !error.message.contains(KEY) && !error.message.ends_with('.'),
        "{}",
        error.message
    );
    format!(
        "{} / {}",
        error.message,
        error.hint.as_deref().unwrap_or_default()
    )
}

pub fn scores_request(score: &[&str]) -> GenerateRequest {
    GenerateRequest {
        score: score.iter().map(|&text| text.to_owned()).collect(),
        ..request(&[&["Q?"]])
    }
}

/// The error of a whole call, with its advice behind it.
pub fn ended(error: &Error) -> String {
    let text = format!("{error} / {}", error.hint().unwrap_or_default());
    assert!(!text.contains(KEY), "{text}");
    assert!(
        error
            .hint()
            .is_some_and(|hint| hint.contains("run the same command again")),
        "{text}"
    );
    text
}

/// The error of a call of one question.
pub fn end_of(model: &mut ChatModel) -> String {
    ended(&ask(model, &request(&[&["Q?"]])).expect_err("the end"))
}
