//! Folders in every spelling, and folders that must be refused.

use crate::data::*;
use focus_nn::candle::DType;
use focus_plugin_sdk::{ErrorKind, Host, OpenOptions};
use medgemma::open::{self, Opened};
use medgemma::plugin::MedGemma;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use std::path::Path;

type Tensors = Vec<(String, Dtype, Vec<usize>, Vec<u8>)>;

pub fn read(path: &Path) -> Tensors {
    let bytes = std::fs::read(path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let tensors = file.tensors().into_iter();
    tensors
        .map(|(name, t)| (name, t.dtype(), t.shape().to_vec(), t.data().to_vec()))
        .collect()
}

pub fn write(path: &Path, tensors: &[(String, Dtype, Vec<usize>, Vec<u8>)]) {
    let views = tensors.iter().map(|(name, kind, shape, data)| {
        (name, TensorView::new(*kind, shape.clone(), data).unwrap())
    });
    std::fs::write(path, safetensors::serialize(views, None).unwrap()).unwrap();
}

fn check(opened: &Opened) {
    let prompt = opened.talk.prompt(1, &question()).unwrap();
    let found = first_logits(&opened.network, &prompt, &look(&opened.network, 0));
    close(&found, &floats("0.first_logits"), TIGHT);
}

#[test]
fn spellings_of_transformers_5() {
    let folder = copy();
    let folder = folder.path();
    let into = |from: &str, to: &str| {
        std::fs::copy(data().join(from), folder.join(to)).unwrap();
    };
    into("config.v5.json", "config.json");
    into("processor_config.v5.json", "processor_config.json");
    std::fs::remove_file(folder.join("preprocessor_config.json")).unwrap();
    let mut tensors = read(&folder.join("model.safetensors"));
    for (name, ..) in &mut tensors {
        *name = name.replace("vision_tower.vision_model.", "vision_tower.");
    }
    write(&folder.join("model.safetensors"), &tensors);
    let opened = open::folder(folder, &CPU, DType::F32).unwrap();
    assert_eq!(opened.config.decoder, model(DType::F32).config.decoder);
    assert_eq!(opened.config.end_ids, [1, 5]);
    check(&opened);
}

#[test]
fn shards() {
    let folder = copy();
    let folder = folder.path();
    let tensors = read(&folder.join("model.safetensors"));
    std::fs::remove_file(folder.join("model.safetensors")).unwrap();
    let (first, second) = tensors.split_at(tensors.len() / 2);
    let mut map = serde_json::Map::new();
    for (shard, part) in [("a.safetensors", first), ("b.safetensors", second)] {
        write(&folder.join(shard), part);
        map.extend(part.iter().map(|(name, ..)| (name.clone(), shard.into())));
    }
    let index = serde_json::json!({ "weight_map": map });
    let path = folder.join("model.safetensors.index.json");
    std::fs::write(path, index.to_string()).unwrap();
    check(&open::folder(folder, &CPU, DType::F32).unwrap());
}

#[test]
fn a_tensor_dropped_renamed_or_reshaped_is_named() {
    let names = [
        "language_model.model.layers.3.self_attn.k_norm.weight",
        "multi_modal_projector.mm_input_projection_weight",
        "vision_tower.vision_model.post_layernorm.bias",
    ];
    for name in names {
        let folder = copy();
        let path = folder.path().join("model.safetensors");
        let good = read(&path);
        let at = good.iter().position(|(other, ..)| other == name).unwrap();
        let said = |tensors: &Tensors| {
            write(&path, tensors);
            let error = open::folder(folder.path(), &CPU, DType::F32).unwrap_err();
            assert!(error.hint().is_some());
            error.to_string()
        };
        let mut dropped = good.clone();
        dropped.remove(at);
        let text = said(&dropped);
        assert!(
            text.contains(&format!("missing 1 of 119: `{name}`")),
            "{text}"
        );
        let mut renamed = good.clone();
        renamed[at].0 = format!("{name}x");
        assert!(said(&renamed).contains(&format!("unexpected 1: `{name}x`")));
        let mut reshaped = good.clone();
        reshaped[at].2.push(1);
        assert!(said(&reshaped).contains(&format!("shape of `{name}`")));
    }
}

#[test]
fn a_head_may_only_repeat_the_embedding() {
    let folder = copy();
    let path = folder.path().join("model.safetensors");
    let mut tensors = read(&path);
    let table = "language_model.model.embed_tokens.weight";
    let mut head = tensors.iter().find(|t| t.0 == table).unwrap().clone();
    head.0 = "language_model.lm_head.weight".into();
    tensors.push(head);
    write(&path, &tensors);
    check(&open::folder(folder.path(), &CPU, DType::F32).unwrap());
    let at = tensors.len() - 1;
    let refused = |tensors: &Tensors| {
        write(&path, tensors);
        let error = open::folder(folder.path(), &CPU, DType::F32).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains(table) && text.contains("`language_model.lm_head.weight`"),
            "{text}"
        );
    };
    let mut other = tensors.clone();
    *other[at].3.last_mut().unwrap() ^= 1;
    refused(&other);
    let mut turned = tensors.clone();
    turned[at].2.reverse();
    refused(&turned);
}

#[test]
fn folders_that_lack_or_contradict_something() {
    for (file, hint) in [
        ("config.json", "`config.json`"),
        ("tokenizer.json", "`tokenizer.json`"),
        ("chat_template.jinja", "chat template"),
        ("model.safetensors", "No weights"),
    ] {
        let folder = copy();
        std::fs::remove_file(folder.path().join(file)).unwrap();
        let error = open::folder(folder.path(), &CPU, DType::F32).unwrap_err();
        assert!(error.to_string().contains(hint), "{error}");
    }
    for (file, from, to, said) in [
        (
            "config.json",
            "\"image_token_index\": 8",
            "\"image_token_index\": 9",
            "`<image_soft_token>`",
        ),
        ("config.json", "\"gemma3\"", "\"gemma4\"", "`gemma4`"),
        (
            "preprocessor_config.json",
            "\"height\": 56",
            "\"height\": 64",
            "found 56 x 64",
        ),
        (
            "generation_config.json",
            "{",
            "[",
            "`generation_config.json`",
        ),
        (
            "tokenizer_config.json",
            "\"image_token\": \"<image_soft_token>\"",
            "\"image_token\": \"<picture>\"",
            "`<picture>`",
        ),
    ] {
        let folder = copy();
        let path = folder.path().join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{file}");
        std::fs::write(&path, text.replace(from, to)).unwrap();
        let error = open::folder(folder.path(), &CPU, DType::F32).unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[test]
fn a_template_without_a_slot_is_an_error_of_the_question() {
    let folder = copy();
    let path = folder.path().join("chat_template.jinja");
    std::fs::write(
        path,
        "{{ bos_token }}{{ messages[0]['content'][1]['text'] }}",
    )
    .unwrap();
    let opened = open::folder(folder.path(), &CPU, DType::F32).unwrap();
    let error = opened.talk.prompt(1, "yes?").unwrap_err();
    assert!(error.to_string().contains("<start_of_image>"), "{error}");
}

#[test]
fn what_is_asked_of_the_plugin_is_checked() {
    let options = |model: &str, weights: Option<&str>, settings: &[(&str, &str)]| OpenOptions {
        model: model.into(),
        device: "cpu".into(),
        dtype: None,
        weights: weights.map(str::to_owned),
        threads: 1,
        settings: settings
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
        ..OpenOptions::default()
    };
    let said = |options: OpenOptions| MedGemma::open(&options, &Host::detached()).unwrap_err();
    let error = said(options("google/medgemma-4b-it", None, &[]));
    assert_eq!(error.kind(), ErrorKind::WEIGHTS);
    assert!(error.hint().unwrap().contains("terms"));
    for settings in [
        &[("weights", "random:1")][..],
        &[("size", "tiny")],
        &[("size", "huge"), ("weights", "random:1")],
        &[("weights", "random:x"), ("size", "tiny")],
        &[("track", "both")],
        &[("pan_and_scan", "on")],
    ] {
        let error = said(options("checkpoint", None, settings));
        assert_eq!(error.kind(), ErrorKind::INVALID_REQUEST, "{settings:?}");
    }
    let both = options(
        "checkpoint",
        Some("x"),
        &[("weights", "random:1"), ("size", "tiny")],
    );
    assert!(said(both).to_string().contains("exclude"));
    let mut device = options(
        "checkpoint",
        None,
        &[("weights", "random:1"), ("size", "tiny")],
    );
    device.device = "tpu".into();
    assert_eq!(said(device).kind(), ErrorKind::UNSUPPORTED);
}
