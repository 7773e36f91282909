//! The driver on a family of one letter a token.

use super::*;
use crate::lm::{Decoder, DecoderConfig, Features, ImageSpan, LayerKind, NormStyle, Prompt, Rope};
use crate::lora::{Adaptable, Adapters, Module, Spelling};
use crate::{Activation, DType, Device, Init, Weights, weights};
use focus_plugin_sdk::{
    AttachRequest, Error, ErrorKind, Finish, GenerateBatch, GenerateReply, GenerateRequest, Host,
    ImageSize, Picture, PromptGroup, StopRule,
};
use std::cell::Cell;

const CPU: Device = Device::Cpu;
/// Rows of a picture.
const ROWS: usize = 3;
const IMAGE: u32 = 127;

pub(super) struct Letters {
    decoder: Decoder,
    adapters: Adapters,
    looked: Cell<u32>,
}

impl Letters {
    pub(super) fn new() -> Self {
        let config = DecoderConfig {
            vocab: 128,
            hidden: 16,
            intermediate: 24,
            heads: 2,
            kv_heads: 1,
            head_dim: 8,
            activation: Activation::Silu,
            norm: NormStyle::Pre,
            norm_eps: 1e-6,
            qk_norm: false,
            attention_bias: false,
            scale: 0.35,
            embedding_scale: Some(20.0),
            layers: vec![LayerKind::Full; 2],
            rope: Rope::plain(1e4),
            sliding_rope: Rope::plain(1e4),
            window: 1,
            tied: false,
            bidirectional_images: false,
        };
        let build = |w: &Weights| Decoder::load(&w.at("model"), w, &config);
        Self {
            decoder: weights::random(3, &CPU, DType::F32, build).unwrap(),
            adapters: Adapters::default(),
            looked: Cell::new(0),
        }
    }
}

impl Adaptable for Letters {
    fn visit(&mut self, visit: &mut dyn FnMut(&str, Module<'_>)) {
        self.decoder.visit("model", "", visit);
    }

    fn adapters(&mut self) -> &mut Adapters {
        &mut self.adapters
    }

    fn spellings(&self) -> &'static [Spelling] {
        &[]
    }
}

impl Family for Letters {
    fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// A picture of a black pixel gives rows that are no numbers.
    fn look(&self, picture: &Picture<'_>) -> Result<Features, Error> {
        self.looked.set(self.looked.get() + 1);
        let level = u64::from(picture.rgb[0]);
        let draw = |w: &Weights| w.get("rows", &[ROWS, 16], Init::Normal(1.0));
        let rows = weights::random(level, &CPU, DType::F32, draw).unwrap();
        let factor = if level == 0 { f64::NAN } else { 1.0 };
        Ok(Features {
            rows: (rows * factor).unwrap(),
            deep: Vec::new(),
            grid: (ROWS, 1),
        })
    }

    fn render(&self, text: &str, pictures: &[&Features]) -> Result<Prompt, Error> {
        if text.is_empty() {
            return Err(Error::invalid_request("Nothing is asked"));
        }
        let images = (0..pictures.len()).map(|picture| ImageSpan {
            start: 1 + picture * ROWS,
            length: ROWS,
            picture,
        });
        let mut tokens = vec![1];
        tokens.extend(vec![IMAGE; pictures.len() * ROWS]);
        tokens.extend(text.bytes().map(u32::from));
        Ok(Prompt::on_one_axis(tokens, images.collect()))
    }

    fn decode(&self, tokens: &[u32]) -> Result<String, Error> {
        let letters = tokens.iter().filter_map(|&id| char::from_u32(id));
        Ok(letters.collect())
    }

    fn end_tokens(&self) -> &[u32] {
        &[0]
    }

    fn single_token(&self, text: &str) -> Result<Option<u32>, Error> {
        let one = (text.len() == 1).then(|| u32::from(text.as_bytes()[0]));
        Ok(one)
    }

    fn probe_size(&self) -> (usize, usize) {
        (1, 1)
    }
}

pub(super) fn request(groups: &[(&[u32], &[&str])]) -> GenerateRequest {
    let group = |(images, prompts): &(&[u32], &[&str])| PromptGroup {
        images: images.to_vec(),
        prompts: prompts.iter().map(|&text| text.to_owned()).collect(),
    };
    GenerateRequest {
        images: vec![
            ImageSize {
                width: 1,
                height: 1
            };
            3
        ],
        groups: groups.iter().map(group).collect(),
        adapter: None,
        score: vec!["y".into(), "yes".into(), "n".into()],
        max_new_tokens: 5,
        stop: StopRule::End,
    }
}

fn ask(family: &mut Letters, request: &GenerateRequest) -> GenerateReply {
    let batch = GenerateBatch::new(request, &[&[1; 3], &[2; 3], &[0; 3]]).unwrap();
    serve(family, &batch, &Host::detached()).unwrap()
}

#[test]
fn pictures_are_looked_at_once_whoever_shows_them() {
    let mut family = Letters::new();
    let groups: &[(&[u32], &[&str])] = &[
        (&[0], &["what?", "whale"]),
        (&[0, 1], &["w"]),
        (&[1], &["w", "w"]),
    ];
    let reply = ask(&mut family, &request(groups));
    assert_eq!(family.looked.get(), 2);
    for (group, (images, texts)) in reply.groups.iter().zip(groups) {
        assert_eq!(group.answers.len(), texts.len());
        for (answer, text) in group.answers.iter().zip(*texts) {
            assert_eq!(
                answer.prompt_length as usize,
                1 + images.len() * ROWS + text.len()
            );
            assert_eq!(answer.scores[1].token, None);
            assert_eq!(answer.scores[1].logprob, None);
            assert!(answer.scores[0].logprob.unwrap() < 0.0);
            let alone = ask(&mut family, &request(&[(images, &[text])]));
            let alone = &alone.groups[0].answers[0];
            assert_eq!(alone.new_tokens, answer.new_tokens);
            let apart = alone.scores[2].logprob.unwrap() - answer.scores[2].logprob.unwrap();
            assert!(apart.abs() < 1e-5, "{apart}");
        }
    }
    // The same question twice gets the same answer twice.
    let twins = &reply.groups[2].answers;
    assert_eq!(twins[0].new_tokens, twins[1].new_tokens);
}

#[test]
fn numbers_that_are_none_fail_their_group_alone() {
    let mut family = Letters::new();
    let reply = ask(
        &mut family,
        &request(&[(&[2], &["a", "b"]), (&[0], &["a"]), (&[0], &["a", ""])]),
    );
    let kinds: Vec<Option<u32>> = reply
        .groups
        .iter()
        .map(|g| g.error.as_ref().map(|e| e.kind))
        .collect();
    assert_eq!(
        kinds,
        [
            Some(ErrorKind::INTERNAL.0),
            None,
            Some(ErrorKind::INVALID_REQUEST.0)
        ]
    );
    assert_eq!(
        reply
            .groups
            .iter()
            .map(|g| g.answers.len())
            .collect::<Vec<_>>(),
        [0, 1, 0]
    );
    assert!(reply.groups[0].error.as_ref().unwrap().hint.is_some());
}

#[test]
fn no_tokens_are_made_that_nobody_asked_for() {
    let mut family = Letters::new();
    let mut asked = request(&[(&[], &["hello"])]);
    asked.max_new_tokens = 0;
    let none = ask(&mut family, &asked);
    assert_eq!(
        (
            none.groups[0].answers[0].new_length,
            none.groups[0].timings.decode
        ),
        (0, 0.0)
    );
    asked.max_new_tokens = 1;
    let one = ask(&mut family, &asked);
    let answer = &one.groups[0].answers[0];
    assert_eq!((answer.new_length, answer.finish), (1, Finish::Length));
    assert_eq!(
        answer.prompt_tokens,
        [(1, 1), (104, 1), (101, 1), (108, 2), (111, 1)]
    );
}

#[test]
fn a_base_whose_logits_are_no_numbers_proves_no_adapter() {
    // The probe is a black pixel here.
    let mut family = Letters::new();
    let request = AttachRequest {
        name: "x".into(),
        folder: "nowhere".into(),
    };
    let error = attach(&mut family, &request, &Host::detached()).unwrap_err();
    assert!(error.to_string().contains("not finite"), "{error}");
    assert!(family.adapters.attached().is_empty());
}

#[test]
fn an_adapter_nobody_attached() {
    let mut family = Letters::new();
    let mut asked = request(&[(&[0], &["a"])]);
    asked.adapter = Some("x".into());
    let batch = GenerateBatch::new(&asked, &[&[1; 3], &[2; 3], &[0; 3]]).unwrap();
    let error = serve(&mut family, &batch, &Host::detached()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::INVALID_REQUEST);
    assert!(
        error.to_string().contains("expected one of none"),
        "{error}"
    );
}
