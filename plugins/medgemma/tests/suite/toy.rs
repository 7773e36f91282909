//! The toy: every path without a download.

use focus_plugin_sdk::{
    GenerateBatch, GenerateRequest, Host, ImageSize, Model, OpenOptions, PromptGroup, StopRule,
};
use medgemma::card;
use medgemma::plugin::MedGemma;

fn toy(model: &str, seed: u64, dtype: &str) -> MedGemma {
    let settings = [
        ("weights", format!("random:{seed}")),
        ("size", "tiny".into()),
    ];
    let options = OpenOptions {
        model: model.into(),
        device: "cpu".into(),
        dtype: Some(dtype.into()),
        weights: None,
        threads: 2,
        settings: settings.map(|(key, value)| (key.to_owned(), value)).into(),
    };
    MedGemma::open(&options, &Host::detached()).unwrap()
}

fn answer(model: &mut MedGemma) -> focus_plugin_sdk::GeneratedAnswer {
    let card = model.opened().preprocessing;
    let size = ImageSize {
        width: card.width,
        height: card.height,
    };
    let request = GenerateRequest {
        images: vec![size],
        groups: vec![PromptGroup {
            images: vec![0],
            prompts: vec!["Does this eye show glaucoma? Réponds \"yes\" or \"no\".".into()],
        }],
        adapter: None,
        score: [
            "yes", " yes", "Yes", " Yes", "no", " no", "No", " No", "\nno",
        ]
        .map(str::to_owned)
        .to_vec(),
        max_new_tokens: 4,
        stop: StopRule::End,
    };
    let rgb: Vec<u8> = (0..size.width * size.height * 3)
        .map(|v| (v % 251) as u8)
        .collect();
    let batch = GenerateBatch::new(&request, &[&rgb]).unwrap();
    let reply = model
        .generator()
        .unwrap()
        .generate(&batch, &Host::detached())
        .unwrap();
    assert_eq!(reply.groups[0].error, None);
    reply.groups[0].answers[0].clone()
}

#[test]
fn every_card_has_a_toy_that_answers_and_says_what_it_is() {
    for card in card::all() {
        let mut model = toy(card.id, 1, "f32");
        let opened = model.opened();
        assert_eq!(opened.weights_digest.as_deref(), Some("random:1"));
        assert!(
            opened
                .notes
                .iter()
                .any(|note| note.contains("toy size with random weights, seed 1"))
        );
        for fact in ["chat_template", "tokenizer", "pan_and_scan", "image_tokens"] {
            assert!(opened.facts.contains_key(fact), "{fact}");
        }
        let answer = answer(&mut model);
        assert!(answer.new_length >= 1);
        // All but the one with a line end are tokens of the toy's.
        let tokens: Vec<bool> = answer
            .scores
            .iter()
            .map(|score| score.token.is_some())
            .collect();
        assert_eq!(
            tokens,
            [true, true, true, true, true, true, true, true, false]
        );
        assert!(answer.prompt_tokens.contains(&(7, 16)));
    }
}

#[test]
fn toys_depend_on_their_seed_and_little_on_their_type() {
    let scores = |seed, dtype| {
        let answer = answer(&mut toy("checkpoint", seed, dtype));
        let logs = answer.scores.into_iter().filter_map(|score| score.logprob);
        logs.collect::<Vec<f64>>()
    };
    let first = scores(1, "f32");
    assert_eq!(first, scores(1, "f32"));
    assert_ne!(first, scores(2, "f32"));
    for (a, b) in first.iter().zip(scores(1, "bf16")) {
        assert!((a - b).abs() < 0.1, "{a} {b}");
    }
}
