//! Adapters on a drawn decoder: whole modules, tied heads, several adapters, and files that contradict themselves.

use super::*;
use crate::lm::{Decoder, DecoderConfig, LayerKind, NormStyle, Prompt, Rope, Sequence};
use crate::{Activation, DType, Device, Init, Tensor, weights};
use std::collections::HashMap;
use std::path::Path;

const CPU: Device = Device::Cpu;
const OLD: &[Spelling] = &[
    ("language_model.lm_head", "lm_head"),
    ("language_model.model.", "model."),
];

struct Toy {
    decoder: Decoder,
    adapters: Adapters,
}

impl Adaptable for Toy {
    fn visit(&mut self, visit: &mut dyn FnMut(&str, Module<'_>)) {
        self.decoder.visit("model", "", visit);
    }

    fn adapters(&mut self) -> &mut Adapters {
        &mut self.adapters
    }

    fn spellings(&self) -> &'static [Spelling] {
        OLD
    }
}

impl Toy {
    fn new(tied: bool) -> Self {
        let config = DecoderConfig {
            vocab: 20,
            hidden: 8,
            intermediate: 12,
            heads: 2,
            kv_heads: 1,
            head_dim: 4,
            activation: Activation::Silu,
            norm: NormStyle::Pre,
            norm_eps: 1e-6,
            qk_norm: false,
            attention_bias: false,
            scale: 0.5,
            embedding_scale: None,
            layers: vec![LayerKind::Full; 2],
            rope: Rope::plain(1e4),
            sliding_rope: Rope::plain(1e4),
            window: 1,
            tied,
            bidirectional_images: false,
        };
        let build = |w: &crate::Weights| Decoder::load(&w.at("model"), w, &config);
        Self {
            decoder: weights::random(1, &CPU, DType::F32, build).unwrap(),
            adapters: Adapters::default(),
        }
    }

    fn say(&mut self, adapter: Option<&str>) -> Vec<f32> {
        self.adapters.select(adapter).unwrap();
        let prompt = Prompt::on_one_axis(vec![3, 1, 4, 1, 5], Vec::new());
        let sequence = Sequence::of_prompt(&prompt, 0..5, &[], None);
        let logits = self.decoder.forward(&mut [sequence]).unwrap();
        logits.squeeze(0).unwrap().to_vec1().unwrap()
    }
}

fn drawn(name: &str, shape: &[usize]) -> Tensor {
    weights::random(9, &CPU, DType::F32, |w| {
        w.get(name, shape, Init::Normal(0.5))
    })
    .unwrap()
}

fn pair(module: &str, rank: usize, inputs: usize, outputs: usize) -> [(String, Tensor); 2] {
    let name = |part: &str| format!("base_model.model.{module}.lora_{part}.weight");
    [
        (name("A"), drawn(&name("A"), &[rank, inputs])),
        (name("B"), drawn(&name("B"), &[outputs, rank])),
    ]
}

fn whole(key: &str) -> (String, Tensor) {
    (format!("base_model.model.{key}"), drawn(key, &[20, 8]))
}

fn write(
    folder: &Path,
    config: serde_json::Value,
    tensors: impl IntoIterator<Item = (String, Tensor)>,
) {
    std::fs::write(folder.join("adapter_config.json"), config.to_string()).unwrap();
    let tensors: HashMap<String, Tensor> = tensors.into_iter().collect();
    candle_core::safetensors::save(&tensors, folder.join("adapter_model.safetensors")).unwrap();
}

fn config(targets: serde_json::Value, saved: serde_json::Value) -> serde_json::Value {
    serde_json::json!({"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": targets, "modules_to_save": saved})
}

fn both(layer: usize) -> [(String, Tensor); 2] {
    pair(&format!("model.layers.{layer}.self_attn.v_proj"), 2, 8, 4)
}

#[test]
fn whole_modules_take_the_place_of_the_base_s_even_where_they_are_tied() {
    let folder = tempfile::tempdir().unwrap();
    let saved = config(
        serde_json::json!(["v_proj"]),
        serde_json::json!(["lm_head", "embed_tokens"]),
    );
    // Saved by PEFT, and by hand in an older spelling.
    for (head, table) in [
        ("lm_head.weight", "model.embed_tokens.weight"),
        (
            "language_model.lm_head.modules_to_save.weight",
            "language_model.model.embed_tokens.modules_to_save.default.weight",
        ),
    ] {
        for tied in [false, true] {
            let mut toy = Toy::new(tied);
            let base = toy.say(None);
            let tensors = both(0)
                .into_iter()
                .chain(both(1))
                .chain([whole(head), whole(table)]);
            write(folder.path(), saved.clone(), tensors);
            let attached = attach(&mut toy, "x", folder.path()).unwrap();
            assert_eq!(attached.replaced, ["lm_head", "model.embed_tokens"]);
            assert_eq!(attached.targets.len(), 2);
            let adapted = toy.say(Some("x"));
            assert_ne!(adapted, base);
            assert_eq!(toy.say(None), base);
            // By hand: the same decoder with the tables in its files.
            merge(&mut toy, "x").unwrap();
            let merged = toy.say(None);
            assert!(
                merged
                    .iter()
                    .zip(&adapted)
                    .all(|(a, b)| (a - b).abs() < 1e-5)
            );
            assert!(toy.adapters.attached().is_empty());
        }
    }
}

#[test]
fn adapters_keep_out_of_each_other_s_way() {
    let mut toy = Toy::new(false);
    let base = toy.say(None);
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        config(serde_json::json!(["v_proj"]), serde_json::Value::Null),
        both(0).into_iter().chain(both(1)),
    );
    attach(&mut toy, "values", folder.path()).unwrap();
    let values = toy.say(Some("values"));
    write(
        folder.path(),
        config(serde_json::json!(["lm_head"]), serde_json::Value::Null),
        pair("lm_head", 2, 8, 20),
    );
    attach(&mut toy, "head", folder.path()).unwrap();
    let head = toy.say(Some("head"));
    assert!(base != values && base != head && values != head);
    assert_eq!(toy.say(Some("values")), values);
    detach(&mut toy, "head").unwrap();
    assert_eq!(toy.say(Some("values")), values);
    assert_eq!(toy.say(None), base);
    assert!(detach(&mut toy, "head").is_err());
}

#[test]
fn parts_of_modules_and_layers() {
    let mut toy = Toy::new(false);
    let folder = tempfile::tempdir().unwrap();
    let mut some = config(serde_json::json!(["v_proj"]), serde_json::Value::Null);
    some["layers_to_transform"] = 1.into();
    write(folder.path(), some.clone(), both(1));
    let attached = attach(&mut toy, "one", folder.path()).unwrap();
    assert_eq!(attached.targets, ["model.layers.1.self_attn.v_proj"]);
    some["layers_to_transform"] = serde_json::Value::Null;
    some["exclude_modules"] = serde_json::json!(["layers.0.self_attn.v_proj"]);
    write(folder.path(), some.clone(), both(1));
    attach(&mut toy, "other", folder.path()).unwrap();
    assert_eq!(toy.say(Some("one")), toy.say(Some("other")));
    // What is excluded need not be there, whichever way it is said.
    some["exclude_modules"] = serde_json::json!(["vision.proj", "layers.0.self_attn.v_proj"]);
    write(folder.path(), some.clone(), both(1));
    let attached = attach(&mut toy, "third", folder.path()).unwrap();
    assert_eq!(attached.targets, ["model.layers.1.self_attn.v_proj"]);
    for nothing in [
        serde_json::json!("vision_.*"),
        serde_json::json!(["vision"]),
        serde_json::json!([]),
    ] {
        some["exclude_modules"] = nothing.clone();
        write(
            folder.path(),
            some.clone(),
            both(0).into_iter().chain(both(1)),
        );
        let name = nothing.to_string();
        let attached = attach(&mut toy, &name, folder.path()).unwrap();
        assert_eq!(attached.targets.len(), 2, "{name}");
    }
    some["exclude_modules"] = "(".into();
    write(folder.path(), some, both(1));
    assert!(attach(&mut toy, "broken", folder.path()).is_err());
    // `all-linear` is all but the head.
    let mut all = Vec::new();
    for layer in 0..2 {
        let at = |name: &str| format!("model.layers.{layer}.{name}");
        all.extend(both(layer));
        for (name, inputs, outputs) in [
            ("self_attn.q_proj", 8, 8),
            ("self_attn.k_proj", 8, 4),
            ("self_attn.o_proj", 8, 8),
            ("mlp.gate_proj", 8, 12),
            ("mlp.up_proj", 8, 12),
            ("mlp.down_proj", 12, 8),
        ] {
            all.extend(pair(&at(name), 2, inputs, outputs));
        }
    }
    write(
        folder.path(),
        config("all-linear".into(), serde_json::Value::Null),
        all.clone(),
    );
    assert_eq!(
        attach(&mut toy, "all", folder.path())
            .unwrap()
            .targets
            .len(),
        14
    );
    all.extend(pair("lm_head", 2, 8, 20));
    write(
        folder.path(),
        config("all-linear".into(), serde_json::Value::Null),
        all,
    );
    let error = attach(&mut toy, "more", folder.path())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("`lm_head` has low-rank tensors but is no target"),
        "{error}"
    );
}

#[test]
fn files_that_contradict_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let said = |config: serde_json::Value, tensors: Vec<(String, Tensor)>| {
        write(folder.path(), config, tensors);
        attach(&mut Toy::new(false), "x", folder.path())
            .unwrap_err()
            .to_string()
    };
    let plain = config(serde_json::json!(["v_proj"]), serde_json::Value::Null);
    let good: Vec<_> = both(0).into_iter().chain(both(1)).collect();
    let text = said(plain.clone(), good[..3].to_vec());
    assert!(
        text.contains("no `lora_A` and `lora_B` for target `model.layers.1.self_attn.v_proj`"),
        "{text}"
    );
    let mut twice = good.clone();
    twice.extend(pair(
        "language_model.model.layers.0.self_attn.v_proj",
        2,
        8,
        4,
    ));
    assert!(said(plain.clone(), twice).contains("comes in two spellings"));
    let mut more = good.clone();
    more.push((
        "base_model.model.model.layers.0.mlp.up_proj.weight".into(),
        drawn("u", &[12, 8]),
    ));
    assert!(said(plain.clone(), more).contains("is not in `modules_to_save`"));
    let mut table = good.clone();
    table.push((
        "base_model.model.lm_head.weight".into(),
        drawn("h", &[21, 8]),
    ));
    assert!(
        said(plain.clone(), table).contains("shape of `lm_head`: expected [20, 8], found [21, 8]")
    );
    let text = said(
        config(serde_json::Value::Null, serde_json::Value::Null),
        Vec::new(),
    );
    assert!(text.contains("it has no tensors"), "{text}");
    let embedded = pair("model.embed_tokens", 2, 20, 8);
    let text = said(
        config(serde_json::Value::Null, serde_json::Value::Null),
        embedded.to_vec(),
    );
    assert!(text.contains("no target"), "{text}");
}
