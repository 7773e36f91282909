//! Features, logits and greedy tokens on the reference's own pixels.

use crate::support::{
    Expected, argmax, ask, assert_close, cosine, described, difference, first_logits, json,
    logits_of, network, question, values,
};
use focus_nn::DType;
use focus_nn::lm::Sequence;

#[test]
fn image_features_to_a_tight_tolerance() {
    let expected = Expected::open();
    let features = network(DType::F32)
        .tower
        .forward(&expected.patches(0, "levels"))
        .unwrap();
    let apart = difference(
        &values(&features.rows),
        &expected.values("0.image_features"),
    );
    assert!(apart < 5e-6, "{apart}");
    assert_eq!((features.grid, features.deep.len()), ((3, 5), 2));
}

#[test]
fn prompts_are_the_references_tokens() {
    let expected = Expected::open();
    let network = network(DType::F32);
    for number in 0..3 {
        let features = network
            .tower
            .forward(&expected.patches(number, "levels"))
            .unwrap();
        let prompt = ask(&described(), &features, &question());
        assert_eq!(prompt.tokens, expected.ids(&format!("{number}.input_ids")));
    }
}

#[test]
fn first_logits_in_f32() {
    let expected = Expected::open();
    let network = network(DType::F32);
    for number in 0..3 {
        assert_close(
            "first logits",
            &logits_of(&network, number),
            &expected.values(&format!("{number}.first_logits")),
        );
    }
}

#[test]
fn first_logits_in_bf16() {
    let expected = Expected::open();
    let network = network(DType::BF16);
    for number in 0..3 {
        let alike = cosine(
            &logits_of(&network, number),
            &expected.values(&format!("{number}.first_logits")),
        );
        assert!(alike >= 0.9998, "picture {number}: {alike}");
    }
}

#[test]
fn eight_greedy_tokens_and_every_steps_logits() {
    let expected = Expected::open();
    let network = network(DType::F32);
    for number in 0..3 {
        let features = network
            .tower
            .forward(&expected.patches(number, "levels"))
            .unwrap();
        let prompt = ask(&described(), &features, &question());
        let mut cache = network.decoder.cache(prompt.tokens.len() + 8).unwrap();
        let all = 0..prompt.tokens.len();
        let sequence = Sequence::of_prompt(&prompt, all, &[&features], Some(&mut cache));
        let mut row = values(&network.decoder.forward(&mut [sequence]).unwrap());
        let (mut tokens, mut rows) = (Vec::new(), Vec::new());
        for step in 0..8 {
            tokens.push(argmax(&row));
            rows.extend_from_slice(&row);
            let sequence = Sequence {
                tokens: &tokens[step..],
                places: &[[prompt.next_place() + step as u32; 3]],
                images: Vec::new(),
                cache: Some(&mut cache),
            };
            row = values(&network.decoder.forward(&mut [sequence]).unwrap());
        }
        assert_eq!(tokens, expected.ids(&format!("{number}.generated")));
        assert_close(
            "steps",
            &rows,
            &expected.values(&format!("{number}.step_logits")),
        );
    }
}

#[test]
fn a_batch_is_its_single_prompts() {
    let expected = Expected::open();
    let network = network(DType::F32);
    let question = question();
    let questions = [
        question.as_str(),
        question.split('\n').next().unwrap(),
        "yes or no?",
    ];
    let features: Vec<_> = (0..3)
        .map(|number| {
            network
                .tower
                .forward(&expected.patches(number, "levels"))
                .unwrap()
        })
        .collect();
    let prompts: Vec<_> = questions
        .iter()
        .zip(&features)
        .map(|(text, features)| ask(&described(), features, text))
        .collect();
    let mut sequences: Vec<_> = prompts
        .iter()
        .zip(&features)
        .map(|(prompt, features)| {
            Sequence::of_prompt(prompt, 0..prompt.tokens.len(), &[features], None)
        })
        .collect();
    let together = values(&network.decoder.forward(&mut sequences).unwrap());
    assert_close("batch", &together, &expected.values("batch.first_logits"));
    for (number, row) in together.chunks(416).enumerate() {
        let alone = first_logits(&network, &prompts[number], &features[number]);
        assert!(difference(&alone, row) < 1e-5);
    }
}

#[test]
fn answer_words_have_the_references_ids() {
    let tokenizer = described();
    let tokenizer = tokenizer.chat.tokenizer();
    let known = json("expected.json")["answer_ids"]
        .as_object()
        .unwrap()
        .clone();
    for prefix in ["", " ", "\n"] {
        for word in ["yes", "no", "Yes", "No"] {
            let text = format!("{prefix}{word}");
            let wanted = known.get(&text).map(|id| id.as_u64().unwrap() as u32);
            assert_eq!(tokenizer.single_token(&text), wanted, "{text:?}");
        }
    }
}
