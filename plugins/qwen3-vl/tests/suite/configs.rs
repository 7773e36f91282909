//! config.json in both spellings, its defaults, and what is refused.

use crate::support::{json, text};
use qwen3_vl::config::Config;
use serde_json::{Value, json};

fn parse(value: &Value) -> Result<Config, String> {
    Config::parse(&value.to_string()).map_err(|error| error.to_string())
}

#[test]
fn both_spellings_are_the_same_numbers() {
    let old = Config::parse(&text("config.json")).unwrap();
    let new = Config::parse(&text("config.v5.json")).unwrap();
    assert_eq!(old, new);
    assert_eq!(old.text.rope.sections, Some([4, 2, 2]));
    assert_eq!(
        (old.text.rope.theta, old.vision.table_side, old.image_token),
        (1e4, 5, 398)
    );
}

#[test]
fn both_spellings_in_one_file() {
    let mut config = json("config.json");
    let plain = parse(&config).unwrap();
    config["text_config"]["rope_scaling"]["type"] = "default".into();
    assert_eq!(parse(&config).unwrap(), plain);
    // The newer name goes first.
    config["text_config"]["rope_scaling"]["type"] = "yarn".into();
    config["text_config"]["rope_scaling"]["rope_type"] = "default".into();
    assert_eq!(parse(&config).unwrap(), plain);
    let rope = &mut config["text_config"]["rope_scaling"];
    rope.as_object_mut().unwrap().remove("rope_type");
    assert!(parse(&config).unwrap_err().contains("`yarn`"));
}

#[test]
fn absent_fields_have_the_values_of_the_reference() {
    let bare = json!({"model_type": "qwen3_vl", "text_config": {"num_hidden_layers": 36, "intermediate_size": 12288, "num_key_value_heads": 8},
        "vision_config": {"out_hidden_size": 4096}, "eos_token_id": [151645, 151643]});
    assert_eq!(parse(&bare).unwrap(), Config::qwen3_vl_8b());
}

#[test]
fn heads_are_tied_where_either_level_says_so() {
    let mut config = json("config.json");
    assert!(!parse(&config).unwrap().text.tied);
    config["tie_word_embeddings"] = Value::Null;
    config["text_config"]["tie_word_embeddings"] = true.into();
    assert!(parse(&config).unwrap().text.tied);
    config["tie_word_embeddings"] = false.into();
    assert!(!parse(&config).unwrap().text.tied);
}

#[test]
fn what_does_not_fit_together_is_refused() {
    for (pointer, value, wanted) in [
        (
            "/model_type",
            json!("qwen3_vl_moe"),
            "expected `model_type` `qwen3_vl`",
        ),
        (
            "/vision_config/out_hidden_size",
            json!(64),
            "`out_hidden_size`",
        ),
        (
            "/vision_config/num_position_embeddings",
            json!(26),
            "a square",
        ),
        (
            "/vision_config/deepstack_visual_indexes",
            json!([0, 3]),
            "does not ascend below `depth`",
        ),
        (
            "/vision_config/deepstack_visual_indexes",
            json!([1, 0]),
            "does not ascend",
        ),
        ("/vision_config/patch_size", json!(0), "is 0"),
        (
            "/vision_config/patch_size",
            json!(1_u64 << 40),
            "beyond all reason",
        ),
        ("/vision_config/depth", json!(5000), "beyond all reason"),
        (
            "/vision_config/intermediate_size",
            json!(1 << 25),
            "beyond all reason",
        ),
        (
            "/text_config/num_hidden_layers",
            json!(u64::MAX >> 8),
            "expected at most 4096",
        ),
        ("/text_config/vocab_size", json!(1 << 25), "`vocab_size`"),
        ("/vision_config/num_heads", json!(3), "multiple of 4"),
        ("/vision_config/hidden_act", json!("mish"), "`mish`"),
        (
            "/text_config/rope_scaling/mrope_section",
            json!([5, 2, 2]),
            "`mrope_section`",
        ),
        (
            "/text_config/rope_scaling/mrope_interleaved",
            json!(false),
            "`mrope_interleaved`",
        ),
        (
            "/text_config/rope_scaling/rope_type",
            json!("yarn"),
            "`yarn`",
        ),
        (
            "/text_config/num_key_value_heads",
            json!(0),
            "num_key_value_heads",
        ),
    ] {
        let mut config = json("config.json");
        *config.pointer_mut(pointer).expect(pointer) = value;
        let error = parse(&config).unwrap_err();
        assert!(
            error.contains(wanted) && error.contains("config.json"),
            "{pointer}: {error}"
        );
    }
    assert!(Config::parse("{").is_err());
}
