//! Folders and settings that cannot be used: each a clear error.

use crate::support::{described, folder, options};
use focus_nn::{DType, Device, LoadError};
use focus_plugin_sdk::{Error, Host, OpenOptions};
use qwen3_vl::model::QwenVl;
use qwen3_vl::network::Network;
use safetensors::SafeTensors;
use safetensors::tensor::TensorView;
use std::collections::BTreeMap;
use std::path::Path;

/// A copy of the fixture whose checkpoint was changed.
fn changed(
    change: impl Fn(&str, TensorView<'_>) -> Option<(String, Vec<usize>)>,
) -> tempfile::TempDir {
    let target = tempfile::tempdir().unwrap();
    let bytes = std::fs::read(folder().join("model.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let mut kept = Vec::new();
    for (name, view) in tensors.tensors() {
        let (kind, data) = (view.dtype(), view.data());
        if let Some((name, shape)) = change(&name, view) {
            kept.push((name, TensorView::new(kind, shape, data).unwrap()));
        }
    }
    std::fs::write(
        target.path().join("model.safetensors"),
        safetensors::serialize(kept, None).unwrap(),
    )
    .unwrap();
    target
}

fn load(folder: &Path) -> LoadError {
    Network::load(folder, &described().config, &Device::Cpu, DType::F32).unwrap_err()
}

#[test]
fn a_dropped_renamed_or_reshaped_tensor_is_named() {
    let norm = "model.visual.deepstack_merger_list.1.norm.weight";
    let dropped =
        changed(|name, view| (name != norm).then(|| (name.to_owned(), view.shape().to_vec())));
    let error = load(dropped.path()).to_string();
    assert!(
        error.contains("missing 1 of 93") && error.contains(norm),
        "{error}"
    );
    let renamed = changed(|name, view| {
        Some((
            name.replace("merger_list.1.norm.w", "merger_list.1.gnorm.w"),
            view.shape().to_vec(),
        ))
    });
    let error = load(renamed.path()).to_string();
    assert!(
        error.contains("unexpected 1") && error.contains("1.gnorm.weight"),
        "{error}"
    );
    let reshaped = changed(|name, view| {
        let mut shape = view.shape().to_vec();
        if name == "lm_head.weight" {
            shape.reverse();
        }
        Some((name.to_owned(), shape))
    });
    let error = load(reshaped.path()).to_string();
    assert!(
        error.contains("shape of `lm_head.weight`: expected [416, 32], found [32, 416]"),
        "{error}"
    );
}

#[test]
fn a_head_where_it_is_tied_may_only_repeat_the_embedding() {
    let mut config = described().config;
    config.text.tied = true;
    let error = Network::load(&folder(), &config, &Device::Cpu, DType::F32).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("`lm_head.weight` and `model.language_model.embed_tokens.weight` differ"),
        "{text}"
    );
    assert!(error.hint().unwrap().contains("`tie_word_embeddings`"));
    let target = tempfile::tempdir().unwrap();
    let bytes = std::fs::read(folder().join("model.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let mut tensors: BTreeMap<_, _> = file.tensors().into_iter().collect();
    let table = tensors["model.language_model.embed_tokens.weight"].clone();
    tensors.insert("lm_head.weight".into(), table);
    std::fs::write(
        target.path().join("model.safetensors"),
        safetensors::serialize(tensors, None).unwrap(),
    )
    .unwrap();
    Network::load(target.path(), &config, &Device::Cpu, DType::F32).unwrap();
    let without = changed(|name, view| {
        (name != "lm_head.weight").then(|| (name.to_owned(), view.shape().to_vec()))
    });
    Network::load(without.path(), &config, &Device::Cpu, DType::F32).unwrap();
    assert!(load(without.path()).to_string().contains("lm_head.weight"));
}

fn refuse(options: &OpenOptions) -> Error {
    QwenVl::open(options, &Host::detached()).unwrap_err()
}

#[test]
fn a_folder_lacking_a_file_says_which() {
    for file in [
        "config.json",
        "preprocessor_config.json",
        "tokenizer.json",
        "model.safetensors",
    ] {
        let target = tempfile::tempdir().unwrap();
        for entry in std::fs::read_dir(folder()).unwrap() {
            let entry = entry.unwrap();
            let keep = entry.path().is_file()
                && entry.file_name() != file
                && entry.file_name() != "expected.safetensors";
            if keep {
                std::fs::copy(entry.path(), target.path().join(entry.file_name())).unwrap();
            }
        }
        let error = refuse(&options(&[], Some(target.path())));
        assert!(error.to_string().contains(file), "{file}: {error}");
    }
}

#[test]
fn a_template_or_image_token_of_another_model_is_refused() {
    let target = tempfile::tempdir().unwrap();
    for file in [
        "config.json",
        "preprocessor_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "model.safetensors",
        "chat_template.jinja",
    ] {
        std::fs::copy(folder().join(file), target.path().join(file)).unwrap();
    }
    let config = std::fs::read_to_string(target.path().join("config.json")).unwrap();
    let other = config.replace("\"image_token_id\": 398", "\"image_token_id\": 399");
    std::fs::write(target.path().join("config.json"), other).unwrap();
    let error = refuse(&options(&[], Some(target.path())));
    assert!(
        error
            .to_string()
            .contains("`image_token_id` is 399, where the tokenizer has 398"),
        "{error}"
    );
    std::fs::write(target.path().join("config.json"), config).unwrap();
    std::fs::write(
        target.path().join("chat_template.jinja"),
        "{% for m in messages",
    )
    .unwrap();
    let error = refuse(&options(&[], Some(target.path())));
    assert!(
        error
            .to_string()
            .contains("`chat_template.jinja` failed at line 1"),
        "{error}"
    );
}

#[test]
fn settings_are_checked() {
    let folder = folder();
    for (settings, weights, wanted) in [
        (vec![("sise", "tiny")], None, "sise"),
        (vec![("size", "tiny")], None, "random weights only"),
        (vec![("weights", "random:x")], None, "random:SEED"),
        (
            vec![("track", "both")],
            None,
            "`corrected` or `as_published`",
        ),
        (vec![("max_pixels", "0")], None, "above 0"),
        (
            vec![
                ("weights", "random:1"),
                ("size", "tiny"),
                ("max_pixels", "100"),
            ],
            None,
            "min_pixels <= max_pixels",
        ),
        (
            vec![("weights", "random:1")],
            Some(folder.as_path()),
            "exclude each other",
        ),
    ] {
        let error = refuse(&options(&settings, weights));
        assert!(error.to_string().contains(wanted), "{settings:?}: {error}");
    }
    let error = refuse(&OpenOptions {
        model: "Qwen/Qwen3-VL-8B-Instruct".into(),
        ..options(&[], None)
    });
    assert!(error.to_string().contains("needs weights"), "{error}");
    assert!(error.hint().unwrap().contains("Qwen/Qwen3-VL-8B-Instruct"));
    let half = OpenOptions {
        dtype: Some("f16".into()),
        ..options(&[], Some(&folder))
    };
    assert!(refuse(&half).to_string().contains("`f16`"));
}
