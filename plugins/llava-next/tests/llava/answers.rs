//! The plugin as the host calls it: pictures and prompts in, answers and scores out.

use crate::common::{
    Expected, QUESTION, Spelling, WORDS, edit, folder, opened, options, request, run, toy, worst,
};
use focus_nn::generate::{Family, log_softmax};
use focus_plugin_sdk::{Finish, GenerateReply, Host, Model, Picture, PixelMode};
use llava_next::model::LlavaNext;

const SHORT: &str = "yes or no?";

fn scores(reply: &GenerateReply, group: usize, prompt: usize) -> Vec<f32> {
    let scores = &reply.groups[group].answers[prompt].scores;
    scores
        .iter()
        .map(|score| score.logprob.unwrap() as f32)
        .collect()
}

#[test]
fn answers_equal_the_reference_from_pictures_on() {
    let expected = Expected::open();
    for spelling in [Spelling::Four, Spelling::Five] {
        let mut model = opened(folder(spelling).path(), "f32");
        let all = request(
            &[
                (&[0], &[QUESTION]),
                (&[1], &[QUESTION]),
                (&[2], &[QUESTION]),
            ],
            8,
        );
        let reply = run(&mut model, &all).unwrap();
        for number in 0..3 {
            let group = &reply.groups[number];
            assert_eq!(group.error, None);
            let answer = &group.answers[0];
            assert_eq!(
                answer.new_tokens,
                expected.ids(&format!("{number}.generated"))
            );
            assert_eq!((answer.finish, answer.new_length), (Finish::Length, 8));
            // The rendered prompt, image tokens expanded, one BOS.
            let ids: Vec<u32> = answer
                .prompt_tokens
                .iter()
                .flat_map(|&(id, count)| std::iter::repeat_n(id, count as usize))
                .collect();
            assert_eq!(ids, expected.ids(&format!("{number}.input_ids")));
            assert_eq!(answer.prompt_length as usize, ids.len());
            for (score, (word, id)) in answer.scores.iter().zip(WORDS) {
                assert_eq!(score.token, Some(id), "{word:?}");
            }
            // Pixels differ from the reference's by a level here and there, so scores do a little.
            let wanted: Vec<f32> = log_softmax(
                &expected.floats(&format!("{number}.first_logits")),
                &WORDS.map(|(_, id)| id),
            )
            .unwrap()
            .iter()
            .map(|&log| log as f32)
            .collect();
            let apart = worst(&scores(&reply, number, 0), &wanted);
            assert!(apart < 2e-2, "{number}: {apart}");
        }
    }
}

#[test]
fn p_yes_and_p_no_are_the_reference_s() {
    let mut model = opened(folder(Spelling::Four).path(), "f32");
    let reply = run(
        &mut model,
        &request(&[(&[0], &[QUESTION]), (&[2], &[QUESTION])], 0),
    )
    .unwrap();
    // `expected.json` of the fixture.
    let wanted = [
        (0.000_474_092_346_848_92, 0.001_677_687_978_371_978_2),
        (0.000_408_129_766_583_442_7, 0.001_628_144_294_954_836_4),
    ];
    for (group, (yes, no)) in wanted.into_iter().enumerate() {
        let scores = scores(&reply, group, 0);
        let best = |answer: &str| {
            let of = WORDS.iter().zip(&scores);
            of.filter(|((word, _), _)| word.trim().to_lowercase() == answer)
                .map(|(_, log)| f64::from(*log).exp())
                .fold(0.0, f64::max)
        };
        assert!(
            (best("yes") / yes - 1.0).abs() < 1e-2,
            "{} {yes}",
            best("yes")
        );
        assert!((best("no") / no - 1.0).abs() < 1e-2, "{} {no}", best("no"));
        let answer = &reply.groups[group].answers[0];
        assert_eq!((answer.new_length, answer.text.as_str()), (0, ""));
    }
}

/// Pictures of five tiles and of four, several prompts each: what shares a call or a picture changes nothing.
#[test]
fn neighbours_change_nothing() {
    let folder = folder(Spelling::Four);
    let mut model = opened(folder.path(), "f32");
    let prompts = [QUESTION, SHORT, "Is there a lesion?"];
    let together = request(
        &[
            (&[0], &prompts),
            (&[2], &prompts[..2]),
            (&[2, 1], &prompts[1..]),
        ],
        6,
    );
    let together = run(&mut model, &together).unwrap();
    let groups: [(&[u32], &[&str]); 3] = [
        (&[0], &prompts),
        (&[2], &prompts[..2]),
        (&[2, 1], &prompts[1..]),
    ];
    for (group, (images, prompts)) in groups.into_iter().enumerate() {
        for (number, prompt) in prompts.iter().enumerate() {
            let alone = run(&mut model, &request(&[(images, &[prompt])], 6)).unwrap();
            let (a, b) = (
                &together.groups[group].answers[number],
                &alone.groups[0].answers[0],
            );
            assert_eq!((&a.new_tokens, &a.text), (&b.new_tokens, &b.text));
            assert_eq!(a.prompt_tokens, b.prompt_tokens);
            let apart = worst(&scores(&together, group, number), &scores(&alone, 0, 0));
            assert!(apart < 1e-4, "{apart}");
        }
    }
    let long = together.groups[2].answers[0].prompt_length;
    assert!(long > together.groups[1].answers[1].prompt_length + 60);
}

#[test]
fn answers_end_with_the_turn_on_one_track_and_by_the_file_on_both() {
    let folder = folder(Spelling::Four);
    let ends = |track: &str| {
        let options = options(Some(folder.path()), "f32", &[("track", track)]);
        let model = LlavaNext::open(&options, &Host::detached()).unwrap();
        (model.end_tokens().to_vec(), model.opened().notes)
    };
    assert_eq!(
        ends("corrected"),
        (vec![397], vec!["track corrected".into()])
    );
    // A file that names another token than the turn's end.
    std::fs::write(
        folder.path().join("generation_config.json"),
        r#"{"eos_token_id": 12}"#,
    )
    .unwrap();
    assert_eq!(ends("corrected").0, [12, 397]);
    assert_eq!(
        ends("as_published"),
        (vec![12], vec!["track as_published".into()])
    );
    let mut model = opened(folder.path(), "f32");
    // The third token of the reference's answer.
    let reply = run(&mut model, &request(&[(&[0], &[QUESTION])], 8)).unwrap();
    let answer = &reply.groups[0].answers[0];
    assert_eq!((answer.finish, answer.new_length), (Finish::End, 3));
    std::fs::remove_file(folder.path().join("generation_config.json")).unwrap();
    assert_eq!(ends("as_published").0, [397]);
}

#[test]
fn half_types_answer_too() {
    let mut wide = opened(folder(Spelling::Four).path(), "f32");
    let mut half = opened(folder(Spelling::Four).path(), "bf16");
    assert_eq!(half.opened().dtype, "bf16");
    let ask = request(&[(&[1], &[QUESTION])], 0);
    let (wide, half) = (run(&mut wide, &ask).unwrap(), run(&mut half, &ask).unwrap());
    let apart = worst(&scores(&wide, 0, 0), &scores(&half, 0, 0));
    assert!(apart > 0.0 && apart < 0.1, "{apart}");
}

#[test]
fn a_prompt_that_draws_its_own_picture_fails_alone() {
    let mut model = opened(folder(Spelling::Four).path(), "f32");
    let reply = run(
        &mut model,
        &request(&[(&[0], &["<image> yes?"]), (&[0], &[SHORT])], 1),
    )
    .unwrap();
    let error = reply.groups[0].error.as_ref().unwrap();
    assert!(
        error
            .message
            .contains("expected 1 times `<image>`, found 2"),
        "{error:?}"
    );
    assert!(reply.groups[0].answers.is_empty() && reply.groups[1].answers.len() == 1);
}

#[test]
fn what_was_opened_says_how_it_runs() {
    let opened = opened(folder(Spelling::Four).path(), "f32").opened();
    assert_eq!(opened.preprocessing.mode, PixelMode::Own);
    let fact = |name: &str| opened.facts[name].clone();
    assert!(fact("tiling").ends_with("56x112 112x56 112x112 168x56 56x168"));
    assert_eq!(
        (fact("hidden_state").as_str(), fact("end_tokens").as_str()),
        ("-2", "397")
    );
    assert!(
        fact("chat_template").starts_with("blake3:") && fact("tokenizer").starts_with("blake3:")
    );
}

#[test]
fn a_digest_tells_weights_apart() {
    let digest = |folder: &tempfile::TempDir| {
        let opened = opened(folder.path(), "f32").opened();
        opened.weights_digest.unwrap()
    };
    let (one, other) = (folder(Spelling::Four), folder(Spelling::Four));
    assert_eq!(digest(&one), digest(&other));
    let path = other.path().join("model.safetensors");
    edit(&path, &path, |tensors| tensors[0].2[0] ^= 1);
    assert_ne!(digest(&one), digest(&other));
}

#[test]
fn the_toy_runs_without_a_folder() {
    let ask = request(&[(&[0], &[QUESTION, SHORT]), (&[2], &[SHORT])], 4);
    let mut first = toy(1);
    let reply = run(&mut first, &ask).unwrap();
    assert!(reply.groups.iter().all(|group| group.error.is_none()));
    let strip = |reply: &GenerateReply| -> Vec<_> {
        reply
            .groups
            .iter()
            .flat_map(|group| group.answers.clone())
            .collect()
    };
    assert_eq!(strip(&reply), strip(&run(&mut toy(1), &ask).unwrap()));
    assert!(
        worst(
            &scores(&reply, 0, 0),
            &scores(&run(&mut toy(2), &ask).unwrap(), 0, 0)
        ) > 0.0
    );
    // The picture reaches the answer.
    let other = run(&mut first, &request(&[(&[1], &[SHORT])], 0)).unwrap();
    assert!(worst(&scores(&reply, 1, 0), &scores(&other, 0, 0)) > 0.0);
    let opened = first.opened();
    assert_eq!(opened.weights_digest.as_deref(), Some("random:1"));
    assert!(
        opened
            .notes
            .iter()
            .any(|note| note.contains("not a trained model")),
        "{:?}",
        opened.notes
    );
}

#[test]
fn any_picture_can_be_looked_at() {
    let model = toy(1);
    for (width, height) in [(1, 1), (1, 900), (900, 1), (57, 56), (400, 300)] {
        let rgb = vec![90; width * height * 3];
        let picture = Picture {
            width,
            height,
            rgb: &rgb,
        };
        let features = model.look(&picture).unwrap();
        let prompt = model.render(SHORT, &[&features]).unwrap();
        prompt.check(&[&features]).unwrap();
        assert!(features.rows.dim(0).unwrap() >= 16);
    }
}
