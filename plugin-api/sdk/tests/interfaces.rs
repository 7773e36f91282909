//! The interfaces beyond image encoding, called as the host would call them but without a library in between.

use arrow_array::{
    Array as _, BinaryArray, FixedSizeBinaryArray, FixedSizeListArray, Float32Array, StringArray,
};
use focus_plugin_abi::v1::export::ServedModel;
use focus_plugin_abi::v1::{
    Array, ErrorKind, HostCallbacks, HostEvents, Interface, Message, PluginError,
};
use focus_plugin_sdk::__private::open;
use focus_plugin_sdk::{
    AttachReply, AttachRequest, DualEncoder, Embeddings, Error, Finish, GenerateBatch,
    GenerateReply, GeneratedAnswer, Generator, GroupReply, Host, ImageBatch, ImageEncoder,
    LoraAdaptable, Model, ModelDescriptor, OpenOptions, OpenedModel, TextEmbeddings, VariantScore,
};
use std::sync::Arc;

fn card() -> ModelDescriptor {
    serde_json::from_value(serde_json::json!({
        "id": "all", "title": "Test", "family": "mllm", "group": "baseline",
        "interfaces": ["image_encoder", "dual_encoder", "generator", "lora_adaptable"], "embedding_dim": 1,
        "preprocessing": {"mode": "float", "width": 1, "height": 1, "geometry": {"kind": "squash"}, "filter": "box"},
        "dtypes": ["f32"], "devices": ["cpu"], "batch_size": 2
    }))
    .expect("a card")
}

/// Answers with what it was given; prompts and names that start with `!` make it lose count, panic or lie.
struct All(OpenedModel);

impl Model for All {
    fn opened(&self) -> OpenedModel {
        self.0.clone()
    }
    fn image_encoder(&mut self) -> Option<&mut dyn ImageEncoder> {
        Some(self)
    }
    fn dual_encoder(&mut self) -> Option<&mut dyn DualEncoder> {
        Some(self)
    }
    fn generator(&mut self) -> Option<&mut dyn Generator> {
        Some(self)
    }
    fn lora_adaptable(&mut self) -> Option<&mut dyn LoraAdaptable> {
        Some(self)
    }
}

impl ImageEncoder for All {
    fn encode(&mut self, images: &ImageBatch<'_>, _: &Host) -> Result<Embeddings, Error> {
        Embeddings::new(1, images.floats().chunks(3).map(|rgb| rgb[2]).collect())
    }
}

impl DualEncoder for All {
    fn encode_texts(&mut self, texts: &[String], _: &Host) -> Result<TextEmbeddings, Error> {
        assert_ne!(texts[0], "!panic", "asked to");
        Ok(TextEmbeddings {
            rows: Embeddings::new(1, texts.iter().map(|text| text.len() as f32).collect())?,
            tokens: texts.iter().map(|_| vec![1, 2]).collect(),
            truncated: vec![false; texts.len()],
        })
    }
}

impl Generator for All {
    fn generate(&mut self, batch: &GenerateBatch<'_>, _: &Host) -> Result<GenerateReply, Error> {
        let request = batch.request();
        let group = |number: usize| {
            let answer = |prompt: &String| GeneratedAnswer {
                text: batch
                    .group(number)
                    .map(|p| format!("{}x{}:{} ", p.width, p.height, p.rgb[0]))
                    .collect(),
                finish: Finish::Length,
                scores: request
                    .score
                    .iter()
                    .skip(usize::from(prompt == "!scores"))
                    .map(|_| VariantScore {
                        token: Some(1),
                        logprob: Some(if prompt == "!nan" { f64::NAN } else { -1.0 }),
                    })
                    .collect(),
                prompt_tokens: Vec::new(),
                prompt_length: 1,
                new_tokens: Vec::new(),
                new_length: 0,
            };
            let prompts = &request.groups[number].prompts;
            let skip = usize::from(prompts[0] == "!answers");
            GroupReply {
                answers: prompts.iter().skip(skip).map(answer).collect(),
                ..GroupReply::default()
            }
        };
        let lost = usize::from(request.groups[0].prompts[0] == "!groups");
        Ok(GenerateReply {
            groups: (lost..request.groups.len()).map(group).collect(),
        })
    }
}

impl LoraAdaptable for All {
    fn attach(&mut self, request: &AttachRequest, _: &Host) -> Result<AttachReply, Error> {
        Ok(AttachReply {
            name: request.name.trim_start_matches('!').to_owned(),
            digest: "x:0".into(),
            ranks: vec![2],
            scales: vec![1.0],
            targets: Vec::new(),
            modules_to_save: Vec::new(),
            base: None,
            probe_change: 1.0,
            notes: vec![request.folder.clone()],
        })
    }
    fn detach(&mut self, name: &str, _: &Host) -> Result<(), Error> {
        Err(Error::invalid_request(format!("No adapter `{name}`")))
    }
}

focus_plugin_sdk::register_model! {
    describe: card,
    open: |options: &OpenOptions, _: &Host| Ok(Box::new(All(focus_plugin_sdk::opened(&card(), options))) as _)
}

struct Deaf;

impl HostEvents for Deaf {
    fn log(&self, _: u32, _: &str) {}
    fn progress(&self, _: &str, _: u64, _: u64) {}
    fn cancelled(&self) -> bool {
        false
    }
}

fn model() -> Box<dyn ServedModel> {
    let callbacks = HostCallbacks::new(Arc::new(Deaf));
    open(r#"{"model":"all","device":"cpu","threads":1}"#, callbacks).expect("opens")
}

fn export(array: &dyn arrow_array::Array) -> Array {
    Array::export(array).expect("exports")
}

fn call(
    interface: Interface,
    method: &str,
    header: &str,
    arrays: Vec<Array>,
) -> Result<Message, PluginError> {
    model().call(interface, method, Message::new(header.into(), arrays))
}

fn floats(reply: Message) -> (String, Vec<f32>) {
    let (header, mut arrays) = reply.into_parts();
    let array = arrays.pop().expect("one").import().expect("imports");
    let list = array.as_any().downcast_ref::<FixedSizeListArray>();
    let values = list.expect("a list").values().to_data();
    let values = Float32Array::from(values).values().to_vec();
    (header, values)
}

#[test]
fn floats_reach_the_model_as_they_are() {
    let pixels = [0.5f32, 7.0, -1.5, 0.0, 0.0, 0.25]
        .map(f32::to_le_bytes)
        .concat();
    let header =
        |kind: &str| format!(r#"{{"width":1,"height":1,"rows":2,"used":2,"pixels":"{kind}"}}"#);
    let array = || export(&FixedSizeBinaryArray::new(12, pixels.clone().into(), None));
    let reply = call(
        Interface::IMAGE_ENCODER,
        "encode",
        &header("f32"),
        vec![array()],
    );
    assert_eq!(floats(reply.expect("encodes")).1, [-1.5, 0.25]);
    let error = call(
        Interface::IMAGE_ENCODER,
        "encode",
        &header("u8"),
        vec![array()],
    );
    let error = error.expect_err("bytes have 3 a pixel");
    assert!(error.message().contains("FixedSizeBinary(3)"), "{error}");
}

#[test]
fn texts_come_back_as_rows_with_their_tokens() {
    let texts =
        |header: &str, arrays| call(Interface::DUAL_ENCODER, "encode_texts", header, arrays);
    let reply = texts(r#"{"texts":["a","bcd"]}"#, vec![]).expect("embeds");
    let (header, values) = floats(reply);
    assert_eq!(values, [1.0, 3.0]);
    assert_eq!(
        header,
        r#"{"rows":2,"dim":1,"tokens":[[1,2],[1,2]],"truncated":[false,false]}"#
    );
    let stray = export(&Float32Array::from(vec![1.0]));
    for (header, arrays, word) in [
        (r#"{"texts":[]}"#, vec![], "No texts"),
        ("[1]", vec![], "cannot be read"),
        (r#"{"texts":["a"]}"#, vec![stray], "expected 0, found 1"),
    ] {
        let error = texts(header, arrays).expect_err(word);
        assert_eq!(error.kind(), ErrorKind::INVALID_REQUEST);
        assert!(error.message().contains(word), "{error}");
    }
    let error = texts(r#"{"texts":["!panic"]}"#, vec![]).expect_err("panics");
    assert_eq!(error.kind(), ErrorKind::PANIC);
}

/// A request of two groups over two pictures; the first group's first prompt is `prompt`.
fn request(prompt: &str) -> String {
    format!(
        r#"{{"images":[{{"width":1,"height":1}},{{"width":2,"height":1}}],"max_new_tokens":0,"score":["yes"],
        "groups":[{{"images":[1,0],"prompts":["{prompt}","b"]}},{{"images":[],"prompts":["c"]}}]}}"#
    )
}

fn pictures() -> Array {
    export(&BinaryArray::from_vec(vec![
        &[1, 2, 3],
        &[4, 5, 6, 7, 8, 9],
    ]))
}

#[test]
fn groups_see_their_pictures_and_are_answered_in_order() {
    let reply = call(
        Interface::GENERATOR,
        "generate",
        &request("a"),
        vec![pictures()],
    );
    let reply: GenerateReply =
        serde_json::from_str(reply.expect("answers").header()).expect("JSON");
    let texts: Vec<Vec<&str>> = reply
        .groups
        .iter()
        .map(|group| group.answers.iter().map(|a| a.text.as_str()).collect())
        .collect();
    assert_eq!(texts, [vec!["2x1:4 1x1:1 "; 2], vec![""]]);
    let none = r#"{"images":[],"max_new_tokens":0,"groups":[{"images":[],"prompts":["x"]}]}"#;
    let empty = export(&BinaryArray::from_vec(Vec::new()));
    call(Interface::GENERATOR, "generate", none, vec![empty]).expect("pictures are not a must");
}

#[test]
fn a_model_that_loses_count_is_told() {
    for (prompt, word) in [
        ("!groups", "groups: expected 2, found 1"),
        ("!answers", "answers for group 0: expected 2, found 1"),
        (
            "!scores",
            "scores for prompt 0 of group 0: expected 1, found 0",
        ),
    ] {
        let error = call(
            Interface::GENERATOR,
            "generate",
            &request(prompt),
            vec![pictures()],
        );
        let error = error.expect_err(word);
        assert_eq!(error.kind(), ErrorKind::INTERNAL);
        assert!(error.message().contains(word), "{error}");
    }
}

#[test]
fn a_number_that_is_none_fails_its_group_alone() {
    let reply = call(
        Interface::GENERATOR,
        "generate",
        &request("!nan"),
        vec![pictures()],
    );
    let reply: GenerateReply =
        serde_json::from_str(reply.expect("answers").header()).expect("JSON");
    let error = reply.groups[0].error.as_ref().expect("failed");
    assert_eq!(error.kind, ErrorKind::INTERNAL.0);
    assert!(
        error.message.ends_with("not finite: NaN"),
        "{}",
        error.message
    );
    assert!(reply.groups[0].answers.is_empty());
    assert_eq!(reply.groups[1].answers[0].scores[0].logprob, Some(-1.0));
}

#[test]
fn pictures_that_do_not_fit_are_refused() {
    let short = export(&BinaryArray::from_vec(vec![&[1, 2, 3], &[4, 5, 6]]));
    let text = export(&StringArray::from(vec!["a", "b"]));
    let null = export(&BinaryArray::from_opt_vec(vec![Some(&[1, 2, 3]), None]));
    for array in [short, text, null] {
        let error = call(Interface::GENERATOR, "generate", &request("a"), vec![array]);
        assert_eq!(
            error.expect_err("refused").kind(),
            ErrorKind::INVALID_REQUEST
        );
    }
}

#[test]
fn adapters_are_attached_under_the_name_asked_for() {
    let lora = |method: &str, header: &str| call(Interface::LORA_ADAPTABLE, method, header, vec![]);
    let reply = lora("attach", r#"{"name":"dr","folder":"/f"}"#).expect("attaches");
    let reply: AttachReply = serde_json::from_str(reply.header()).expect("JSON");
    assert_eq!(
        (reply.name.as_str(), reply.notes),
        ("dr", vec!["/f".into()])
    );
    let error = lora("attach", r#"{"name":"!dr","folder":"/f"}"#).expect_err("another name");
    assert_eq!(error.kind(), ErrorKind::INTERNAL);
    let error = lora("detach", r#"{"name":"dr"}"#).expect_err("not there");
    assert_eq!(error.message(), "No adapter `dr`");
    assert_eq!(
        lora("merge", "{}").expect_err("unknown").kind(),
        ErrorKind::UNSUPPORTED
    );
}
