//! Adapters: unmerged, merged, with whole modules, damaged.

use crate::support::{
    Expected, assert_close, difference, folder, generate, logits_of, network, open, options,
    photograph,
};
use focus_nn::lora::{self, Adaptable, LoraError};
use focus_nn::{DType, LoadError};
use focus_plugin_sdk::{
    AttachRequest, GenerateRequest, Host, ImageSize, LoraAdaptable, PromptGroup, StopRule,
};
use qwen3_vl::model::QwenVl;
use std::path::Path;

#[test]
fn unmerged_logits_and_the_base_beside_them() {
    let expected = Expected::open();
    let mut network = network(DType::F32);
    let attached = lora::attach(&mut network, "a", &folder().join("lora")).unwrap();
    assert_eq!(
        (attached.ranks, attached.scales, attached.targets.len()),
        (vec![4], vec![2.0], 39)
    );
    for number in 0..3 {
        network.adapters().select(Some("a")).unwrap();
        assert_close(
            "adapted",
            &logits_of(&network, number),
            &expected.values(&format!("{number}.lora_first_logits")),
        );
        network.adapters().select(None).unwrap();
        assert_close(
            "base",
            &logits_of(&network, number),
            &expected.values(&format!("{number}.first_logits")),
        );
    }
}

#[test]
fn merged_logits_are_the_unmerged_ones() {
    let expected = Expected::open();
    let mut network = network(DType::F32);
    lora::attach(&mut network, "a", &folder().join("lora")).unwrap();
    network.adapters().select(Some("a")).unwrap();
    let unmerged: Vec<_> = (0..3).map(|number| logits_of(&network, number)).collect();
    lora::merge(&mut network, "a").unwrap();
    for (number, unmerged) in unmerged.iter().enumerate() {
        let merged = logits_of(&network, number);
        assert_close(
            "merged",
            &merged,
            &expected.values(&format!("{number}.merged_first_logits")),
        );
        assert!(difference(&merged, unmerged) < 3e-5);
    }
}

#[test]
fn whole_modules_are_replaced() {
    let expected = Expected::open();
    let mut network = network(DType::F32);
    let attached = lora::attach(&mut network, "m", &folder().join("lora_mts")).unwrap();
    assert_eq!(
        attached.replaced,
        ["lm_head", "model.language_model.embed_tokens"]
    );
    network.adapters().select(Some("m")).unwrap();
    assert_close(
        "whole",
        &logits_of(&network, 0),
        &expected.values("0.lora_mts_first_logits"),
    );
    network.adapters().select(None).unwrap();
    assert_close(
        "base",
        &logits_of(&network, 0),
        &expected.values("0.first_logits"),
    );
}

fn request(adapter: Option<&str>, size: (usize, usize)) -> GenerateRequest {
    GenerateRequest {
        images: vec![ImageSize {
            width: size.0 as u32,
            height: size.1 as u32,
        }],
        groups: vec![PromptGroup {
            images: vec![0],
            prompts: vec![crate::support::question()],
        }],
        adapter: adapter.map(str::to_owned),
        score: Vec::new(),
        max_new_tokens: 8,
        stop: StopRule::End,
    }
}

fn attach(
    model: &mut QwenVl,
    name: &str,
    folder: &Path,
) -> Result<focus_plugin_sdk::AttachReply, focus_plugin_sdk::Error> {
    let request = AttachRequest {
        name: name.into(),
        folder: folder.to_str().unwrap().into(),
    };
    model.attach(&request, &Host::detached())
}

#[test]
fn the_plugin_answers_with_the_adapter_that_is_asked_for() {
    let expected = Expected::open();
    let mut model = open();
    let reply = attach(&mut model, "all", &folder().join("lora")).unwrap();
    assert!(reply.probe_change > 1e-3 && reply.digest.starts_with("blake3:"));
    assert_eq!(reply.base.as_deref(), Some("fixture/qwen3vl"));
    attach(&mut model, "whole", &folder().join("lora_mts")).unwrap();
    // A picture whose bytes are Pillow's and torchvision's alike, but for one level here and there.
    let pictures = [photograph("fundus_w.png")];
    let mut tokens = |adapter: Option<&str>| {
        let request = request(adapter, (pictures[0].0, pictures[0].1));
        generate(&mut model, &request, &pictures).groups[0].answers[0]
            .new_tokens
            .clone()
    };
    let base = tokens(None);
    assert_eq!(base, expected.ids("2.generated"));
    assert_eq!(tokens(Some("all")), expected.ids("2.merged_generated"));
    assert_ne!(tokens(Some("whole")), base);
    assert_eq!(tokens(None), base);
    model.detach("all", &Host::detached()).unwrap();
    let missing = request(Some("all"), (1, 1));
    let batch = focus_plugin_sdk::GenerateBatch::new(&missing, &[&[0; 3]]).unwrap();
    let error =
        focus_plugin_sdk::Generator::generate(&mut model, &batch, &Host::detached()).unwrap_err();
    assert!(error.to_string().contains("No adapter `all`"), "{error}");
}

/// A copy of an adapter with one key renamed.
fn renamed(from: &str, to: &str) -> tempfile::TempDir {
    let target = tempfile::tempdir().unwrap();
    let bytes = std::fs::read(folder().join("lora/adapter_model.safetensors")).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let named: Vec<_> = tensors
        .tensors()
        .into_iter()
        .map(|(name, view)| (name.replace(from, to), view))
        .collect();
    std::fs::write(
        target.path().join("adapter_model.safetensors"),
        safetensors::serialize(named, None).unwrap(),
    )
    .unwrap();
    std::fs::copy(
        folder().join("lora/adapter_config.json"),
        target.path().join("adapter_config.json"),
    )
    .unwrap();
    target
}

#[test]
fn one_renamed_key_is_an_error_that_names_it() {
    let target = renamed(
        "visual.blocks.1.attn.qkv.lora_A",
        "visual.blocks.1.attn.qvk.lora_A",
    );
    let mut network = network(DType::F32);
    let error = lora::attach(&mut network, "a", target.path()).unwrap_err();
    assert!(matches!(error, LoraError::Mismatch(_)), "{error}");
    assert!(
        error.to_string().contains("visual.blocks.1.attn.qvk"),
        "{error}"
    );
    assert!(network.adapters().attached().is_empty());
    // Nothing of it stuck.
    assert_close(
        "base",
        &logits_of(&network, 0),
        &Expected::open().values("0.first_logits"),
    );
}

#[test]
fn a_folder_without_an_adapter_is_an_error() {
    let empty = tempfile::tempdir().unwrap();
    let error = lora::attach(&mut network(DType::F32), "a", empty.path()).unwrap_err();
    assert!(
        matches!(error, LoraError::Load(LoadError::Read { .. })),
        "{error}"
    );
    let mut toy = QwenVl::open(
        &options(&[("weights", "random:1"), ("size", "tiny")], None),
        &Host::detached(),
    )
    .unwrap();
    let error = attach(&mut toy, "a", &folder().join("lora")).unwrap_err();
    assert!(
        error.to_string().contains("does not fit this model"),
        "{error}"
    );
}
