//! Folders that cannot be used: each said so, with what was expected and found.

use crate::common::{Spelling, edit, folder, options, set};
use focus_plugin_sdk::{Error, ErrorKind, Host};
use llava_next::model::LlavaNext;
use serde_json::json;
use tempfile::TempDir;

fn fault(folder: &TempDir) -> Error {
    let options = options(Some(folder.path()), "f32", &[]);
    LlavaNext::open(&options, &Host::detached()).unwrap_err()
}

fn with_weights(change: impl FnOnce(&mut Vec<crate::common::Stored>)) -> String {
    let folder = folder(Spelling::Four);
    let path = folder.path().join("model.safetensors");
    edit(&path, &path, change);
    let error = fault(&folder);
    assert_eq!(error.kind(), ErrorKind::WEIGHTS);
    error.to_string()
}

#[test]
fn every_tensor_is_accounted_for() {
    for name in [
        "image_newline",
        "multi_modal_projector.linear_2.bias",
        "vision_tower.vision_model.pre_layrnorm.weight",
        // Never run, but part of the model.
        "vision_tower.vision_model.encoder.layers.2.mlp.fc1.weight",
        "language_model.model.layers.1.self_attn.k_proj.weight",
        "language_model.lm_head.weight",
    ] {
        let error = with_weights(|tensors| tensors.retain(|(other, ..)| other != name));
        assert!(
            error.contains("missing 1 of") && error.contains(&format!("`{name}`")),
            "{error}"
        );
        let error = with_weights(|tensors| {
            let tensor = tensors.iter_mut().find(|(other, ..)| other == name);
            tensor.unwrap().0 = format!("{name}_2");
        });
        assert!(
            error.contains(&format!("unexpected 1: `{name}_2`")),
            "{error}"
        );
        let error = with_weights(|tensors| {
            let tensor = tensors.iter_mut().find(|(other, ..)| other == name);
            tensor.unwrap().1.insert(0, 1);
        });
        assert!(
            error.contains(&format!("shape of `{name}`: expected")),
            "{error}"
        );
    }
}

#[test]
fn leftovers_of_older_versions_are_no_fault() {
    let folder = folder(Spelling::Four);
    let path = folder.path().join("model.safetensors");
    edit(&path, &path, |tensors| {
        for name in [
            "vision_tower.vision_model.embeddings.position_ids",
            "language_model.model.layers.0.self_attn.rotary_emb.inv_freq",
        ] {
            tensors.push((name.into(), vec![1], vec![0; 2]));
        }
    });
    let options = options(Some(folder.path()), "f32", &[]);
    assert!(LlavaNext::open(&options, &Host::detached()).is_ok());
}

#[test]
fn files_that_contradict_each_other_are_refused() {
    for (file, pointer, value, said) in [
        (
            "config.json",
            "/model_type",
            json!("llava"),
            "expected `model_type` `llava_next`",
        ),
        (
            "config.json",
            "/image_token_index",
            json!(5),
            "expected `image_token_index` 398, the id of `<image>`, found 5",
        ),
        (
            "config.json",
            "/text_config/vocab_size",
            json!(300),
            "expected ids below 300",
        ),
        (
            "config.json",
            "/image_grid_pinpoints/0",
            json!([112, 168]),
            "`image_grid_pinpoints` as in `config.json`",
        ),
        (
            "preprocessor_config.json",
            "/size/shortest_edge",
            json!(28),
            "found 56 and 28",
        ),
        (
            "processor_config.json",
            "/patch_size",
            json!(16),
            "expected `patch_size` 14, found 16",
        ),
        (
            "processor_config.json",
            "/vision_feature_select_strategy",
            json!("full"),
            "`default`, found \"full\"",
        ),
        (
            "generation_config.json",
            "/eos_token_id",
            json!("<eos>"),
            "expected token ids",
        ),
    ] {
        let folder = folder(Spelling::Four);
        set(folder.path(), file, pointer, value);
        let error = fault(&folder);
        assert!(
            error.to_string().contains(said),
            "{file} {pointer}: {error}"
        );
        assert!(error.hint().is_some());
    }
}

#[test]
fn what_the_folder_lacks_is_named() {
    for (file, said) in [
        ("config.json", "`config.json`"),
        ("preprocessor_config.json", "`processor_config.json`"),
        ("tokenizer.json", "`tokenizer.json`"),
        ("chat_template.jinja", "chat template"),
        ("model.safetensors", "No weights"),
    ] {
        let folder = folder(Spelling::Four);
        std::fs::remove_file(folder.path().join(file)).unwrap();
        let error = fault(&folder);
        assert!(error.to_string().contains(said), "{file}: {error}");
    }
    let none = LlavaNext::open(&options(None, "f32", &[]), &Host::detached()).unwrap_err();
    assert!(
        none.to_string().contains("expected a folder, found none"),
        "{none}"
    );
    assert!(none.hint().unwrap().contains("--size tiny"));
}

#[test]
fn what_is_not_offered_is_refused() {
    let folder = folder(Spelling::Four);
    let mut wrong = options(Some(folder.path()), "f16", &[]);
    let error = LlavaNext::open(&wrong, &Host::detached()).unwrap_err();
    assert!(error.to_string().contains("found `f16`"), "{error}");
    wrong.dtype = Some("f32".into());
    wrong.device = "tpu".into();
    let error = LlavaNext::open(&wrong, &Host::detached()).unwrap_err();
    assert!(error.to_string().contains("`tpu`"), "{error}");
}
