//! Features, logits and greedy generations, tap by tap.

use crate::data::*;
use focus_images::{Geometry as G, Limits, PrepareSpec, ResizeFilter as F};
use focus_nn::candle::DType;
use focus_nn::lm::Sequence;
use focus_plugin_sdk::ResizeFilter;

#[test]
fn prompts_are_cut_into_the_reference_s_tokens() {
    let model = model(DType::F32);
    let prompt = model.talk.prompt(1, &question()).unwrap();
    assert_eq!(prompt.tokens, whole("0.input_ids"));
    // Two line ends before and after a picture join with the template's: no run of rows starts elsewhere.
    let types = whole("0.token_type_ids");
    let span = prompt.images[0];
    let rows: Vec<usize> = (0..types.len()).filter(|&at| types[at] == 1).collect();
    assert_eq!(
        rows,
        (span.start..span.start + span.length).collect::<Vec<_>>()
    );
    assert_eq!(prompt.tokens.iter().filter(|&&id| id == 2).count(), 1);
    let two = model.talk.prompt(2, "which?").unwrap();
    assert_eq!((two.images.len(), two.images[1].picture), (2, 1));
    assert_eq!(two.images[1].length, 4);
    assert!(model.talk.prompt(0, "none").unwrap().images.is_empty());
    // A question that writes the picture's slot out would move the pictures.
    assert!(model.talk.prompt(1, "<start_of_image> this?").is_err());
    assert!(model.talk.prompt(1, "<image_soft_token> this?").is_err());
}

#[test]
fn the_processor_s_picture_is_pillow_s() {
    let bytes = std::fs::read(data().join("fundus_b.png")).unwrap();
    let spec = PrepareSpec::new(56, 56, G::Squash, F::Bilinear);
    let prepared = focus_images::prepare(&bytes, &spec, &Limits::default());
    let resized = prepared.unwrap().0.pixels;
    let wanted = rgb(0);
    // The reference ran on torchvision, which differs from Pillow by a level here and there.
    let most = resized
        .iter()
        .zip(&wanted)
        .map(|(a, b)| a.abs_diff(*b))
        .max();
    assert!(most.unwrap() <= 1);
    let model = model(DType::F32);
    assert_eq!(model.preprocessing.filter, ResizeFilter::Bilinear);
    assert_eq!(
        (model.preprocessing.width, model.preprocessing.mean),
        (56, [0.5; 3])
    );
}

#[test]
fn features_are_tight() {
    let model = model(DType::F32);
    let found = look(&model.network, 0);
    close(&flat(&found.rows), &floats("0.image_features"), TIGHT);
}

#[test]
fn first_logits_and_generations_of_every_picture() {
    let model = model(DType::F32);
    let prompt = model.talk.prompt(1, &question()).unwrap();
    for number in 0..3 {
        let picture = look(&model.network, number);
        let wanted = floats(&format!("{number}.first_logits"));
        close(
            &first_logits(&model.network, &prompt, &picture),
            &wanted,
            TIGHT,
        );
        let (rows, tokens) = greedy(&model.network, &prompt, &picture, 8);
        assert_eq!(tokens, whole(&format!("{number}.generated")));
        let steps = floats(&format!("{number}.step_logits"));
        for (row, wanted) in rows.iter().zip(steps.chunks(480)) {
            close(row, wanted, TIGHT);
        }
    }
}

#[test]
fn three_prompts_packed_are_the_reference_s_padded_batch() {
    let model = model(DType::F32);
    let question = question();
    let texts = [&question, question.lines().next().unwrap(), "yes or no?"];
    let (ids, mask) = (whole("batch.input_ids"), whole("batch.attention_mask"));
    let prompts = texts.map(|text| model.talk.prompt(1, text).unwrap());
    let pictures = [0, 1, 2].map(|number| look(&model.network, number));
    for (row, prompt) in prompts.iter().enumerate() {
        let real = ids[row * 38..][..38].iter().zip(&mask[row * 38..]);
        let real: Vec<u32> = real.filter(|(_, m)| **m == 1).map(|(id, _)| *id).collect();
        assert_eq!(prompt.tokens, real);
    }
    let sequence = |row: usize| {
        let all = 0..prompts[row].tokens.len();
        Sequence::of_prompt(&prompts[row], all, &[&pictures[row]], None)
    };
    let decoder = model.network.decoder();
    let packed = decoder.forward(&mut [sequence(0), sequence(1), sequence(2)]);
    close(
        &flat(&packed.unwrap()),
        &floats("batch.first_logits"),
        TIGHT,
    );
}

#[test]
fn half_precision_stays_near() {
    let model = model(DType::BF16);
    let prompt = model.talk.prompt(1, &question()).unwrap();
    for number in 0..3 {
        let found = first_logits(&model.network, &prompt, &look(&model.network, number));
        let wanted = floats(&format!("{number}.first_logits"));
        let dot =
            |a: &[f32], b: &[f32]| -> f64 { a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum() };
        let cosine = dot(&found, &wanted) / (dot(&found, &found) * dot(&wanted, &wanted)).sqrt();
        assert!(cosine >= 0.9998, "{cosine}");
    }
}
