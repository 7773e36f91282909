//! Damaged folders: each is a clear error that names the tensor or the file.

use crate::support::*;
use clip::open;
use clip::settings::Track;
use focus_nn::{Checkpoint, DType, Device, LoadError};
use focus_plugin_sdk::{ErrorKind, Host, OpenOptions};
use std::collections::BTreeMap;
use std::path::Path;

/// What loading both sides of a checkpoint says.
fn failures(family: &str, checkpoint: &Checkpoint) -> String {
    let config = config(family);
    let image = open::image(&config, checkpoint.clone(), &Device::Cpu, DType::F32).err();
    let words = open::words(&config, checkpoint.clone(), &Device::Cpu, DType::F32).err();
    let both: Vec<String> = [image, words]
        .iter()
        .flatten()
        .map(LoadError::to_string)
        .collect();
    both.join("\n")
}

/// One tensor of each side and family.
const TENSORS: [(&str, &str); 12] = [
    ("clip", "vision_model.pre_layrnorm.weight"),
    ("clip", "text_model.final_layer_norm.bias"),
    (
        "eyeclip",
        "visual.transformer.resblocks.1.attn.in_proj_bias",
    ),
    ("eyeclip", "text_projection"),
    ("siglip2", "vision_model.head.probe"),
    ("siglip2", "logit_bias"),
    ("medsiglip", "vision_model.head.mlp.fc2.weight"),
    ("medsiglip", "text_model.head.weight"),
    ("retclip", "visual.conv1.weight"),
    ("retclip", "bert.encoder.layer.1.attention.self.key.bias"),
    (
        "flair",
        "vision_model.model.layer2.0.downsample.1.running_var",
    ),
    ("flair", "text_model.projection_head_text.projection.weight"),
];

#[test]
fn dropped_and_renamed_tensors_are_named() {
    for (family, name) in TENSORS {
        let mut whole = checkpoint(family, "model.safetensors");
        assert_eq!(failures(family, &whole), "");
        let tensor = whole.remove(name).unwrap();
        let text = failures(family, &whole);
        assert!(
            text.contains("missing 1 of") && text.contains(&format!("`{name}`")),
            "{text}"
        );
        whole.insert("stranger.weight", tensor);
        let text = failures(family, &whole);
        assert!(
            text.contains(&format!("`{name}`")) && text.contains("unexpected 1: `stranger.weight`"),
            "{text}"
        );
    }
}

#[test]
fn reshaped_tensors_are_named() {
    for (family, name) in TENSORS {
        let mut whole = checkpoint(family, "model.safetensors");
        let other = whole
            .names()
            .find(|other| whole.get(other).unwrap().shape() != whole.get(name).unwrap().shape());
        let other = whole.get(other.unwrap()).unwrap().clone();
        let (wanted, found) = (
            whole.get(name).unwrap().shape().to_vec(),
            other.shape().to_vec(),
        );
        whole.insert(name, other);
        let text = failures(family, &whole);
        assert!(
            text.contains(&format!(
                "shape of `{name}`: expected {wanted:?}, found {found:?}"
            )),
            "{text}"
        );
    }
}

#[test]
fn eyeclips_visual_part_alone_is_an_image_encoder_and_says_what_it_lacks() {
    let mut visual = checkpoint("eyeclip", "eyeclip_visual.pt");
    let words: Vec<String> = visual
        .names()
        .filter(|name| !name.starts_with("visual."))
        .map(str::to_owned)
        .collect();
    for name in words {
        visual.remove(&name);
    }
    assert!(visual.get("visual.decoder_pos_embed").is_some());
    let config = config("eyeclip");
    open::image(&config, visual.clone(), &Device::Cpu, DType::F32).unwrap();
    let error = open::words(&config, visual, &Device::Cpu, DType::F32).unwrap_err();
    assert!(
        error.to_string().contains("`token_embedding.weight`"),
        "{error}"
    );
}

fn options(folder: &Path) -> OpenOptions {
    OpenOptions {
        model: "checkpoint".into(),
        device: "cpu".into(),
        dtype: None,
        weights: Some(folder.display().to_string()),
        threads: 1,
        batch_size: None,
        settings: BTreeMap::new(),
        network: Vec::new(),
    }
}

#[test]
fn folders_that_lack_a_description_or_have_a_wrong_one() {
    let target = tempfile::tempdir().unwrap();
    let open =
        || clip::encoder::Encoder::open(&options(target.path()), &Host::detached()).unwrap_err();
    let put = |name: &str, text: &str| std::fs::write(target.path().join(name), text).unwrap();
    assert!(open().to_string().contains("lacks `config.json`"));
    put("config.json", "{");
    assert!(
        open()
            .to_string()
            .contains("`config.json` cannot be used: it is not JSON")
    );
    put("config.json", &text("clip", "config.json"));
    assert!(
        open()
            .to_string()
            .contains("lacks `preprocessor_config.json` or `processor_config.json`")
    );
    put(
        "preprocessor_config.json",
        &text("medsiglip", "preprocessor_config.json"),
    );
    assert!(
        open()
            .to_string()
            .contains("expected pictures of 64 x 64, found 56 x 56")
    );
    put(
        "preprocessor_config.json",
        &text("clip", "preprocessor_config.json"),
    );
    let error = open();
    assert_eq!(error.kind(), ErrorKind::WEIGHTS);
    assert!(
        error.to_string().contains("No weights in") && error.hint().is_some(),
        "{error}"
    );
    // The weights of another family.
    std::fs::copy(
        folder("retclip").join("model.safetensors"),
        target.path().join("model.safetensors"),
    )
    .unwrap();
    let error = open();
    assert!(
        error.to_string().contains("missing")
            && error.hint().unwrap().contains("another architecture"),
        "{error}"
    );
}

#[test]
fn tokenizers_that_lack_or_do_not_fit() {
    let target = tempfile::tempdir().unwrap();
    for name in [
        "config.json",
        "preprocessor_config.json",
        "model.safetensors",
    ] {
        std::fs::copy(folder("siglip2").join(name), target.path().join(name)).unwrap();
    }
    let open = || {
        open::text_tower(
            &any_card(),
            target.path(),
            Track::Corrected,
            &Device::Cpu,
            DType::F32,
        )
        .unwrap_err()
    };
    let error = open();
    assert!(
        error.to_string().ends_with("expected `tokenizer.json`") && error.hint().is_some(),
        "{error}"
    );
    let put = |name: &str, text: &str| std::fs::write(target.path().join(name), text).unwrap();
    put("tokenizer.json", "{}");
    assert!(
        open()
            .to_string()
            .contains("`tokenizer.json` cannot be used")
    );
    put("tokenizer.json", &text("siglip2", "tokenizer.json"));
    assert!(
        open()
            .to_string()
            .contains("`tokenizer_config.json` cannot be used: it is not in")
    );
    put("tokenizer_config.json", r#"{"pad_token": null}"#);
    assert!(open().to_string().contains("has no `pad_token`"));
    put(
        "tokenizer_config.json",
        r#"{"pad_token": {"content": "<fill>"}}"#,
    );
    assert!(
        open()
            .to_string()
            .contains("does not know its `pad_token` `<fill>`")
    );
    // CLIP's, with more words than the table has rows.
    put("tokenizer.json", &text("clip", "tokenizer.json"));
    put(
        "tokenizer_config.json",
        &text("clip", "tokenizer_config.json"),
    );
    let error = open();
    assert!(
        error
            .to_string()
            .contains("expected ids below 463, found 663")
            && error.hint().is_some(),
        "{error}"
    );
    let (tower, _) = text_tower("clip", Track::Corrected);
    assert!(
        tower
            .embed(&[])
            .unwrap_err()
            .to_string()
            .contains("No texts")
    );
}
