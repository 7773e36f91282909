//! Both spellings of the description files, and what they may not say.

use crate::support::*;
use focus_plugin_sdk::{Geometry, ResizeFilter};
use serde_json::{Value, json};
use vit::config::{Feed, Position, VitConfig};
use vit::preprocess;

fn edited(family: &str, change: impl Fn(&mut Value)) -> Result<VitConfig, String> {
    let mut json: Value = serde_json::from_str(&text(family, "config.json")).unwrap();
    change(&mut json);
    VitConfig::parse(&json.to_string())
}

#[test]
fn older_and_newer_spellings_are_one() {
    let newer = edited("dinov3", |json| {
        let fields = json.as_object_mut().unwrap();
        fields.remove("rope_theta");
        fields.insert(
            "rope_parameters".into(),
            json!({"rope_theta": 50.0, "rope_type": "default"}),
        );
    });
    let older = edited("dinov3", |json| {
        json["rope_theta"] = json!(50.0);
        let fields = json.as_object_mut().unwrap();
        let dtype = fields.remove("dtype").unwrap();
        fields.insert("torch_dtype".into(), dtype);
    });
    assert_eq!(newer, older);
    assert_eq!(newer.unwrap().position, Position::Rotary { theta: 50.0 });
    let bare = edited("vit", |json| {
        let fields = json.as_object_mut().unwrap();
        for name in [
            "layer_norm_eps",
            "hidden_act",
            "qkv_bias",
            "num_channels",
            "dtype",
        ] {
            fields.remove(name);
        }
    });
    assert_eq!(bare.unwrap(), config("vit"));
}

#[test]
fn the_larger_dinos_have_gates() {
    let giant = edited("dinov2", |json| {
        json["use_swiglu_ffn"] = json!(true);
        json["hidden_size"] = json!(1536);
        json["mlp_ratio"] = json!(4);
        json["num_attention_heads"] = json!(24);
    })
    .unwrap();
    assert_eq!((giant.feed, giant.hidden), (Feed::Packed, 4096));
    let huge = edited("dinov3", |json| json["use_gated_mlp"] = json!(true)).unwrap();
    assert_eq!(huge.feed, Feed::Gated);
    let registers = edited("dinov2", |json| {
        json["model_type"] = json!("dinov2_with_registers");
        json["num_register_tokens"] = json!(4);
    });
    assert_eq!(registers.unwrap().registers, 4);
}

#[test]
fn senseless_configurations_are_refused() {
    for (change, wanted) in [
        (json!({"hidden_act": "mish"}), "`mish` is not known"),
        (json!({"num_attention_heads": 5}), "heads must divide"),
        (json!({"hidden_size": 0}), "sizes must be"),
        (json!({"layer_norm_eps": 0.0}), "make no sense"),
        (json!({"num_channels": 1}), "expected 3 channels"),
        (json!({"hidden_size": "wide"}), "invalid type"),
        (json!({"model_type": "swin"}), "found `swin`"),
    ] {
        let error = edited("vit", |json| {
            for (key, value) in change.as_object().unwrap() {
                json[key] = value.clone();
            }
        })
        .unwrap_err();
        assert!(error.contains(wanted), "{error}");
    }
    assert!(
        VitConfig::parse("{}")
            .unwrap_err()
            .contains("found neither")
    );
}

#[test]
fn processor_files_of_either_version() {
    let file: Value = serde_json::from_str(&text("dinov2", "preprocessor_config.json")).unwrap();
    let nested = json!({"image_processor": file, "processor_class": "X"});
    assert_eq!(
        preprocess::parse(&nested.to_string()).unwrap(),
        processing("dinov2")
    );
    let card = processing("dinov2");
    assert_eq!(
        (card.width, card.height, card.filter),
        (56, 56, ResizeFilter::Bicubic)
    );
    assert_eq!(card.geometry, Geometry::ShortestEdgeCrop { edge: 64 });
    // Older files: a bare number.
    let old = json!({"size": 224, "resample": 2, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "feature_extractor_type": "ViTFeatureExtractor", "do_normalize": true, "do_resize": true});
    let card = preprocess::parse(&old.to_string()).unwrap();
    assert_eq!(
        (card.width, card.geometry, card.mean),
        (224, Geometry::Squash, [0.5; 3])
    );
    for (change, wanted) in [
        (json!({"resample": 0}), "`resample` 0"),
        (json!({"rescale_factor": 1.0}), "`rescale_factor`"),
        (json!({"do_resize": false}), "resizes"),
        (json!({"size": {"longest_edge": 9}}), "not supported"),
        (json!({"size": {"shortest_edge": 9}}), "not supported"),
        (json!({"size": 0}), "side is 0"),
    ] {
        let mut json = old.clone();
        for (key, value) in change.as_object().unwrap() {
            json[key] = value.clone();
        }
        let error = preprocess::parse(&json.to_string()).unwrap_err();
        assert!(error.contains(wanted), "{error}");
    }
}
