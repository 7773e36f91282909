//! The description files, what they leave out, and what they may not say.

use crate::support::*;
use clip::config::{Config, Image, Text, TextPool};
use clip::preprocess;
use focus_plugin_sdk::{Geometry, ResizeFilter};
use serde_json::{Value, json};

fn edited(family: &str, change: impl Fn(&mut Value)) -> Result<Config, String> {
    let mut json: Value = serde_json::from_str(&text(family, "config.json")).unwrap();
    change(&mut json);
    Config::parse(&json.to_string())
}

/// The hub's files say only what differs from the classes' defaults.
#[test]
fn what_hub_files_leave_out() {
    let clip = Config::parse(
        r#"{"model_type": "clip", "text_config": {"eos_token_id": 2}, "vision_config": {}}"#,
    )
    .unwrap();
    assert_eq!(clip, Config::clip_base_32());
    let siglip2 = r#"{"model_type": "siglip", "text_config": {"vocab_size": 256000}, "vision_config": {"model_type": "siglip_vision_model"}}"#;
    assert_eq!(Config::parse(siglip2).unwrap(), Config::siglip2_base_224());
    let side = json!({"hidden_size": 1152, "intermediate_size": 4304, "num_attention_heads": 16, "num_hidden_layers": 27});
    let mut vision = side.clone();
    vision["image_size"] = json!(448);
    vision["patch_size"] = json!(14);
    let med = json!({"model_type": "siglip", "text_config": side, "vision_config": vision});
    assert_eq!(
        Config::parse(&med.to_string()).unwrap(),
        Config::medsiglip_448()
    );
}

#[test]
fn the_end_token_by_name_or_by_being_the_highest() {
    let pool = |config: Config| match config.text {
        Text::Transformer(text) => text.pool,
        _ => panic!("a transformer"),
    };
    assert_eq!(pool(config("clip")), TextPool::End(663));
    assert_eq!(
        pool(
            edited("clip", |json| json["text_config"]["eos_token_id"] =
                json!(2))
            .unwrap()
        ),
        TextPool::Highest
    );
    assert_eq!(pool(config("eyeclip")), TextPool::Highest);
    assert_eq!(pool(config("siglip2")), TextPool::Last);
}

#[test]
fn openais_heads_are_64_wide_unless_said() {
    let file = edited("eyeclip", |json| {
        json["vision_width"] = json!(768);
        let fields = json.as_object_mut().unwrap();
        for name in ["vision_heads", "vision_mlp", "act"] {
            fields.remove(name);
        }
    });
    let Image::Transformer(vision) = file.unwrap().image else {
        panic!("a transformer")
    };
    assert_eq!((vision.stack.heads, vision.stack.hidden), (12, 3072));
    let Image::Transformer(vision) = config("retclip").image else {
        panic!("a transformer")
    };
    assert_eq!(vision.stack.heads, 2);
}

#[test]
fn senseless_configurations_are_refused() {
    for (family, change, wanted) in [
        ("clip", json!({"model_type": "llama"}), "found `llama`"),
        (
            "clip",
            json!({"vision_config": {"hidden_act": "mish"}}),
            "`mish` is not known",
        ),
        (
            "clip",
            json!({"vision_config": {"num_attention_heads": 5}}),
            "heads must divide",
        ),
        (
            "clip",
            json!({"vision_config": {"num_channels": 1}}),
            "expected 3 channels",
        ),
        (
            "clip",
            json!({"vision_config": {"patch_size": 400}}),
            "hold no patch",
        ),
        (
            "clip",
            json!({"vision_config": {"layer_norm_eps": 0.0}}),
            "makes no sense",
        ),
        (
            "clip",
            json!({"text_config": {"vocab_size": 0}}),
            "vocabulary: expected 1 to",
        ),
        (
            "clip",
            json!({"text_config": {"hidden_size": "wide"}}),
            "invalid type",
        ),
        (
            "siglip2",
            json!({"vision_config": {"vision_use_head": false}}),
            "`vision_use_head`",
        ),
        (
            "siglip2",
            json!({"text_config": {"projection_size": 16}}),
            "the two sides differ",
        ),
        (
            "flair",
            json!({"bert": {"hidden": 32, "layers": 1, "heads": 2}}),
            "2 blocks or more",
        ),
        ("retclip", json!({"vision_layers": 0}), "sizes must be"),
    ] {
        let error = edited(family, |json| {
            for (key, value) in change.as_object().unwrap() {
                json[key] = value.clone();
            }
        })
        .unwrap_err();
        assert!(error.contains(wanted), "{error}");
    }
    assert!(Config::parse("{}").unwrap_err().contains("found neither"));
}

#[test]
fn processor_files_of_either_version() {
    let file: Value = serde_json::from_str(&text("clip", "preprocessor_config.json")).unwrap();
    let card = preprocess::parse(&file.to_string()).unwrap();
    let nested = json!({"image_processor": file, "processor_class": "X"});
    assert_eq!(preprocess::parse(&nested.to_string()).unwrap(), card);
    assert_eq!(
        (card.width, card.geometry, card.filter),
        (
            64,
            Geometry::ShortestEdgeCrop { edge: 64 },
            ResizeFilter::Bicubic
        )
    );
    // OpenAI's own file: bare numbers, and a crop.
    let old = json!({"crop_size": 224, "size": 224, "do_center_crop": true, "resample": 3, "image_mean": preprocess::CLIP_MEAN, "image_std": preprocess::CLIP_STD});
    assert_eq!(
        preprocess::parse(&old.to_string()).unwrap(),
        preprocess::clip(224)
    );
    // RET-CLIP's names a crop that it does not do.
    let squash = preprocess::parse(&text("retclip", "preprocessor_config.json")).unwrap();
    assert_eq!((squash.width, squash.geometry), (64, Geometry::Squash));
    for (change, wanted) in [
        (json!({"resample": 0}), "`resample` 0"),
        (json!({"rescale_factor": 1.0}), "`rescale_factor`"),
        (json!({"do_resize": false}), "resizes"),
        (json!({"size": {"longest_edge": 9}}), "not supported"),
        (json!({"crop_size": 0}), "side is 0"),
    ] {
        let mut json = old.clone();
        for (key, value) in change.as_object().unwrap() {
            json[key] = value.clone();
        }
        let error = preprocess::parse(&json.to_string()).unwrap_err();
        assert!(error.contains(wanted), "{error}");
    }
}
