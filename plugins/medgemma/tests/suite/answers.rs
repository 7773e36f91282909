//! Groups of prompts through the plugin's face.

use crate::data::*;
use focus_nn::generate::log_softmax;
use focus_plugin_sdk::{
    AttachRequest, ErrorKind, Finish, GenerateBatch, GenerateReply, GenerateRequest, Host,
    ImageSize, LoraAdaptable, Model, OpenOptions, PromptGroup, StopRule,
};
use medgemma::plugin::MedGemma;

pub fn plugin() -> MedGemma {
    let options = OpenOptions {
        model: "checkpoint".into(),
        device: "cpu".into(),
        dtype: None,
        weights: Some(data().to_string_lossy().into_owned()),
        threads: 2,
        settings: std::collections::BTreeMap::new(),
    };
    MedGemma::open(&options, &Host::detached()).unwrap()
}

const VARIANTS: [&str; 9] = [
    "yes", " yes", "\nyes", "Yes", " Yes", "no", " no", "No", " No",
];

fn request(groups: &[(&[u32], &[&str])], tokens: u32) -> GenerateRequest {
    let size = ImageSize {
        width: 56,
        height: 56,
    };
    GenerateRequest {
        images: vec![size; 3],
        groups: groups
            .iter()
            .map(|(images, prompts)| PromptGroup {
                images: images.to_vec(),
                prompts: prompts.iter().map(|&p| p.to_owned()).collect(),
            })
            .collect(),
        adapter: None,
        score: VARIANTS.map(str::to_owned).to_vec(),
        max_new_tokens: tokens,
        stop: StopRule::End,
    }
}

fn ask(model: &mut MedGemma, request: &GenerateRequest) -> GenerateReply {
    let pictures = [rgb(0), rgb(1), rgb(2)];
    let pictures: Vec<&[u8]> = pictures.iter().map(Vec::as_slice).collect();
    let batch = GenerateBatch::new(request, &pictures).unwrap();
    let generator = model.generator().unwrap();
    generator.generate(&batch, &Host::detached()).unwrap()
}

#[test]
fn what_the_reference_generates_and_scores() {
    let mut model = plugin();
    let (facts, question) = (facts(), question());
    let asked = request(
        &[
            (&[0], &[&question]),
            (&[1], &[&question]),
            (&[2], &[&question]),
        ],
        8,
    );
    let reply = ask(&mut model, &asked);
    for (number, group) in reply.groups.iter().enumerate() {
        let answer = &group.answers[0];
        let item = &facts["items"][number];
        assert_eq!(answer.new_tokens, whole(&format!("{number}.generated")));
        assert_eq!(answer.text, item["generated_text"].as_str().unwrap());
        assert_eq!((answer.finish, answer.new_length), (Finish::Length, 8));
        assert_eq!(answer.prompt_length, 38);
        let ids: Vec<u32> = answer
            .prompt_tokens
            .iter()
            .flat_map(|&(id, n)| vec![id; n as usize])
            .collect();
        assert_eq!(ids, whole(&format!("{number}.input_ids")));
        let most = |words: std::ops::Range<usize>| {
            let scores = answer.scores[words]
                .iter()
                .filter_map(|score| score.logprob);
            scores.fold(f64::NEG_INFINITY, f64::max).exp()
        };
        for (found, name) in [(most(0..5), "p_yes"), (most(5..9), "p_no")] {
            let wanted = item[name].as_f64().unwrap();
            assert!((found - wanted).abs() < 1e-6, "{name}: {found} {wanted}");
        }
        for (text, score) in VARIANTS.iter().zip(&answer.scores) {
            let id = facts["answer_ids"][*text].as_u64().map(|id| id as u32);
            assert_eq!(
                (score.token, score.logprob.is_some()),
                (id, id.is_some()),
                "{text:?}"
            );
        }
        assert!(group.timings.prefill > 0.0 && group.timings.decode > 0.0);
    }
}

#[test]
fn sharing_and_batching_change_nothing() {
    let mut model = plugin();
    let question = question();
    let texts = [&question, question.lines().next().unwrap(), "yes or no?"];
    let together = ask(&mut model, &request(&[(&[0], &texts), (&[1], &texts)], 6));
    for (picture, group) in together.groups.iter().enumerate() {
        for (text, answer) in texts.iter().zip(&group.answers) {
            let alone = ask(&mut model, &request(&[(&[picture as u32], &[text])], 6));
            let alone = &alone.groups[0].answers[0];
            assert_eq!(
                (&alone.text, &alone.new_tokens),
                (&answer.text, &answer.new_tokens)
            );
            assert_eq!(alone.prompt_tokens, answer.prompt_tokens);
            for (a, b) in alone.scores.iter().zip(&answer.scores) {
                let (a, b) = (a.logprob.unwrap_or(0.0), b.logprob.unwrap_or(0.0));
                assert!((a - b).abs() < 1e-4, "{a} {b}");
            }
        }
    }
    // Against the padded batch of the reference: picture n with text n.
    let batch = floats("batch.first_logits");
    for (number, group) in together.groups.iter().enumerate() {
        let answer = &group.answers[number];
        let ids: Vec<u32> = answer
            .scores
            .iter()
            .filter_map(|score| score.token)
            .collect();
        let wanted = log_softmax(&batch[number * 480..][..480], &ids).unwrap();
        let found = answer.scores.iter().filter_map(|score| score.logprob);
        assert!(found.zip(wanted).all(|(a, b)| (a - b).abs() < 1e-4));
    }
}

#[test]
fn scores_alone_cost_no_tokens() {
    let mut model = plugin();
    let question = question();
    let only = ask(&mut model, &request(&[(&[0], &[&question])], 0));
    let answer = &only.groups[0].answers[0];
    assert_eq!(
        (answer.text.as_str(), answer.new_length, answer.finish),
        ("", 0, Finish::Length)
    );
    let more = ask(&mut model, &request(&[(&[0], &[&question])], 3));
    assert_eq!(more.groups[0].answers[0].scores, answer.scores);
}

#[test]
fn answers_stop_at_a_word_or_at_an_end() {
    let mut model = plugin();
    let question = question();
    let mut asked = request(&[(&[2], &[&question])], 8);
    // ` no retina ...`: the word stands alone once the next token is there.
    asked.stop = StopRule::FirstWord {
        words: vec!["yes".into(), "no".into()],
    };
    let reply = ask(&mut model, &asked);
    let answer = &reply.groups[0].answers[0];
    assert_eq!((answer.finish, answer.new_length), (Finish::Stopped, 3));
    assert!(answer.text.contains("no retina"));
    // The same model with its second choice as an end.
    let folder = copy();
    std::fs::write(
        folder.path().join("generation_config.json"),
        "{\"eos_token_id\": 337}",
    )
    .unwrap();
    let options = OpenOptions {
        model: "checkpoint".into(),
        device: "cpu".into(),
        dtype: Some("f32".into()),
        weights: Some(folder.path().to_string_lossy().into_owned()),
        threads: 1,
        settings: std::collections::BTreeMap::new(),
    };
    let mut model = MedGemma::open(&options, &Host::detached()).unwrap();
    let reply = ask(
        &mut model,
        &request(&[(&[2], &[&question]), (&[0], &[&question])], 8),
    );
    let answer = &reply.groups[0].answers[0];
    assert_eq!(
        (answer.finish, answer.new_tokens.as_slice()),
        (Finish::End, &[181, 337][..])
    );
    // Its neighbour goes on to its own end.
    assert_eq!(reply.groups[1].answers[0].new_tokens, whole("0.generated"));
}

#[test]
fn a_group_fails_alone() {
    let mut model = plugin();
    let question = question();
    let mut asked = request(
        &[
            (&[0], &["<start_of_image>?"]),
            (&[1], &[&question]),
            (&[2], &[]),
        ],
        2,
    );
    let reply = ask(&mut model, &asked);
    let error = reply.groups[0].error.as_ref().unwrap();
    assert_eq!(error.kind, ErrorKind::INVALID_REQUEST.0);
    assert!(reply.groups[0].answers.is_empty() && reply.groups[1].error.is_none());
    assert_eq!(
        reply.groups[1].answers[0].new_tokens,
        whole("1.generated")[..2]
    );
    assert!(reply.groups[2].answers.is_empty() && reply.groups[2].error.is_none());
    // A picture of another size.
    asked.images[0] = ImageSize {
        width: 112,
        height: 28,
    };
    asked.groups[0].prompts = vec!["yes?".into()];
    let reply = ask(&mut model, &asked);
    assert_eq!(
        reply.groups[0].error.as_ref().unwrap().kind,
        ErrorKind::IMAGE.0
    );
}

#[test]
fn adapters_are_chosen_by_call() {
    let mut model = plugin();
    let question = question();
    let attach = AttachRequest {
        name: "dr".into(),
        folder: data().join("lora").to_string_lossy().into_owned(),
    };
    model.attach(&attach, &Host::detached()).unwrap();
    let mut asked = request(&[(&[0], &[&question])], 8);
    let base = ask(&mut model, &asked);
    assert_eq!(base.groups[0].answers[0].new_tokens, whole("0.generated"));
    asked.adapter = Some("dr".into());
    let adapted = ask(&mut model, &asked);
    assert_eq!(
        adapted.groups[0].answers[0].new_tokens,
        whole("0.merged_generated")
    );
    asked.adapter = None;
    assert_eq!(
        ask(&mut model, &asked).groups[0].answers,
        base.groups[0].answers
    );
    asked.adapter = Some("glaucoma".into());
    let pictures = [rgb(0), rgb(1), rgb(2)];
    let pictures: Vec<&[u8]> = pictures.iter().map(Vec::as_slice).collect();
    let batch = GenerateBatch::new(&asked, &pictures).unwrap();
    let generator = model.generator().unwrap();
    let error = generator.generate(&batch, &Host::detached()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::INVALID_REQUEST);
    assert!(
        error.to_string().contains("expected one of `dr`"),
        "{error}"
    );
}
