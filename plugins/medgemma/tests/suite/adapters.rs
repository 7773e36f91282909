//! PEFT folders on the tiny model: both spellings, merged and not, several at once, and adapters that must be refused.

use crate::data::*;
use crate::folders::{read, write};
use focus_nn::candle::DType;
use focus_nn::lora::{Adaptable, LoraError, attach, detach, merge};
use focus_plugin_sdk::{AttachRequest, ErrorKind, Host, Model};
use medgemma::network::Network;
use medgemma::open::Opened;
use std::path::{Path, PathBuf};

fn lora(name: &str) -> PathBuf {
    data().join(name)
}

fn logits(model: &Opened, number: usize) -> Vec<f32> {
    let prompt = model.talk.prompt(1, &question()).unwrap();
    first_logits(&model.network, &prompt, &look(&model.network, number))
}

fn choose(network: &mut Network, name: Option<&str>) {
    network.adapters().select(name).unwrap();
}

#[test]
fn unmerged_in_both_spellings_and_beside_the_base() {
    let mut model = model(DType::F32);
    let attached = attach(&mut model.network, "old", &lora("lora")).unwrap();
    attach(&mut model.network, "new", &lora("lora_v5")).unwrap();
    assert_eq!((attached.ranks, attached.scales), (vec![4], vec![2.0]));
    assert_eq!(attached.targets.len(), 54);
    assert_eq!(attached.base.as_deref(), Some("fixture/gemma3"));
    assert!(
        attached
            .targets
            .iter()
            .any(|name| name == "model.vision_tower.encoder.layers.1.mlp.fc2")
    );
    for name in ["old", "new"] {
        choose(&mut model.network, Some(name));
        for number in 0..3 {
            let wanted = floats(&format!("{number}.lora_first_logits"));
            close(&logits(&model, number), &wanted, TIGHT);
        }
    }
    choose(&mut model.network, None);
    close(&logits(&model, 0), &floats("0.first_logits"), TIGHT);
    detach(&mut model.network, "old").unwrap();
    assert!(matches!(
        model.network.adapters().select(Some("old")),
        Err(LoraError::NoSuchAdapter { .. })
    ));
    choose(&mut model.network, Some("new"));
    close(&logits(&model, 0), &floats("0.lora_first_logits"), TIGHT);
    // Forgetting the one in use goes back to the base.
    detach(&mut model.network, "new").unwrap();
    close(&logits(&model, 0), &floats("0.first_logits"), TIGHT);
}

#[test]
fn merged_for_good() {
    let mut model = model(DType::F32);
    attach(&mut model.network, "a", &lora("lora")).unwrap();
    merge(&mut model.network, "a").unwrap();
    for number in 0..3 {
        let wanted = floats(&format!("{number}.merged_first_logits"));
        close(&logits(&model, number), &wanted, TIGHT);
        let prompt = model.talk.prompt(1, &question()).unwrap();
        let picture = look(&model.network, number);
        let (_, tokens) = greedy(&model.network, &prompt, &picture, 8);
        assert_eq!(tokens, whole(&format!("{number}.merged_generated")));
    }
}

#[test]
fn spelt_as_before_4_52() {
    let folder = tempfile::tempdir().unwrap();
    copy_adapter(folder.path(), |name| {
        name.replace("model.model.language_model.", "model.language_model.model.")
            .replace("model.model.vision_tower.", "model.vision_tower.")
    });
    let mut model = model(DType::F32);
    attach(&mut model.network, "older", folder.path()).unwrap();
    choose(&mut model.network, Some("older"));
    close(&logits(&model, 0), &floats("0.lora_first_logits"), TIGHT);
}

/// The adapter under other names.
fn copy_adapter(folder: &Path, rename: impl Fn(&str) -> String) {
    std::fs::copy(
        lora("lora").join("adapter_config.json"),
        folder.join("adapter_config.json"),
    )
    .unwrap();
    let mut tensors = read(&lora("lora").join("adapter_model.safetensors"));
    for (name, ..) in &mut tensors {
        *name = rename(name);
    }
    write(&folder.join("adapter_model.safetensors"), &tensors);
}

fn configure(folder: &Path, change: impl Fn(&mut serde_json::Value)) {
    let path = lora("lora").join("adapter_config.json");
    let mut json = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    change(&mut json);
    std::fs::write(folder.join("adapter_config.json"), json.to_string()).unwrap();
}

fn said(folder: &Path) -> String {
    let mut model = model(DType::F32);
    let before = logits(&model, 0);
    let error = attach(&mut model.network, "x", folder).unwrap_err();
    // Nothing was attached.
    assert!(model.network.adapters().attached().is_empty());
    assert_eq!(logits(&model, 0), before);
    error.to_string()
}

#[test]
fn one_renamed_key_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let renamed = "base_model.model.model.language_model.layers.3.mlp.up_project.lora_A.weight";
    copy_adapter(folder, |name| {
        name.replace(
            "layers.3.mlp.up_proj.lora_A",
            "layers.3.mlp.up_project.lora_A",
        )
    });
    let said = said(folder);
    assert!(
        said.contains(&format!("key `{renamed}` belongs to no module")),
        "{said}"
    );
    assert!(
        said.contains("`model.language_model.layers.3.mlp.up_proj`"),
        "{said}"
    );
}

#[test]
fn keys_of_other_kinds_are_named() {
    for (from, to) in [
        (
            "layers.0.mlp.up_proj.lora_B.weight",
            "layers.0.mlp.up_proj.lora_magnitude_vector",
        ),
        (
            "base_model.model.model.language_model.layers.0.mlp.up_proj.lora_B.weight",
            "layers.0.mlp.up_proj.lora_B.weight",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        copy_adapter(folder.path(), |name| name.replace(from, to));
        let said = said(folder.path());
        assert!(said.contains("is not understood"), "{said}");
    }
}

#[test]
fn ranks_and_bases_that_do_not_fit() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    copy_adapter(folder, str::to_owned);
    configure(folder, |json| json["r"] = 8.into());
    let text = said(folder);
    assert!(text.contains("expected [8, 64], found [4, 64]"), "{text}");
    // Another base: one width differs.
    configure(folder, |_| ());
    let path = folder.join("adapter_model.safetensors");
    let mut tensors = read(&path);
    let ends = |(name, ..): &&mut (String, _, Vec<usize>, Vec<u8>)| {
        name.ends_with("layers.0.mlp.down_proj.lora_A.weight")
    };
    let (_, _, shape, bytes) = tensors.iter_mut().find(ends).unwrap();
    shape[1] += 1;
    bytes.extend([0; 8]);
    write(&path, &tensors);
    let text = said(folder);
    assert!(
        text.contains("down_proj.lora_A`: expected [4, 64], found [4, 65]"),
        "{text}"
    );
}

#[test]
fn settings_that_change_what_is_computed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    copy_adapter(folder, str::to_owned);
    for (field, value, wanted) in [
        ("use_dora", serde_json::json!(true), "`use_dora` is true"),
        ("bias", "all".into(), "`bias` none, found `all`"),
        ("peft_type", "IA3".into(), "found `IA3`"),
        ("lora_bias", true.into(), "`lora_bias`"),
        (
            "alora_invocation_tokens",
            serde_json::json!([1]),
            "`alora_invocation_tokens`",
        ),
        (
            "trainable_token_indices",
            serde_json::json!([1]),
            "`trainable_token_indices`",
        ),
        ("something_new", 3.into(), "`something_new` is 3"),
        (
            "target_modules",
            serde_json::json!(["q_proj", "qkv"]),
            "targets `qkv`",
        ),
        ("target_modules", "(".into(), "no pattern"),
        ("target_modules", "nothing.*".into(), "targets `nothing.*`"),
        (
            "target_modules",
            serde_json::json!(["q_proj"]),
            "is no target",
        ),
        (
            "modules_to_save",
            serde_json::json!(["lm_head"]),
            "no tensor for `lm_head`",
        ),
        ("r", 0.into(), "rank is 0"),
    ] {
        configure(folder, |json| json[field] = value.clone());
        let text = said(folder);
        assert!(text.contains(wanted), "{field}: {text}");
    }
    std::fs::remove_file(folder.join("adapter_config.json")).unwrap();
    assert!(said(folder).contains("adapter_config.json"));
}

#[test]
fn patterns_and_words_for_targets() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    copy_adapter(folder, str::to_owned);
    let try_with = |change: &dyn Fn(&mut serde_json::Value)| {
        configure(folder, change);
        let mut model = model(DType::F32);
        let attached = attach(&mut model.network, "x", folder).unwrap();
        choose(&mut model.network, Some("x"));
        (attached, logits(&model, 0))
    };
    let wanted = floats("0.lora_first_logits");
    for word in [
        "all-linear",
        r".*\.(self_attn|mlp)\.\w+",
        r"(?:model\.)?(language_model|vision_tower)(?!.*lm_head).*\d\..*",
    ] {
        let (_, found) = try_with(&|json| json["target_modules"] = word.into());
        close(&found, &wanted, TIGHT);
    }
    // Half of alpha over sqrt(r) = 2 is alpha over r.
    let (attached, found) = try_with(&|json| {
        json["use_rslora"] = true.into();
        json["lora_alpha"] = 4.into();
    });
    assert_eq!(attached.scales, [2.0]);
    close(&found, &wanted, TIGHT);
    let (attached, found) = try_with(&|json| {
        json["alpha_pattern"] = serde_json::json!({"layers.2.mlp.up_proj": 16});
        json["rank_pattern"] = serde_json::json!({r".*fc\d": 4});
        json["r"] = 4.into();
    });
    assert_eq!(attached.scales, [2.0, 4.0]);
    assert!(apart(&found, &wanted) > 1e-3);
}

#[test]
fn the_plugin_proves_what_it_attaches() {
    let mut model = crate::answers::plugin();
    let host = Host::detached();
    let lent = model.lora_adaptable().unwrap();
    let request = |name: &str, folder: &str| AttachRequest {
        name: name.into(),
        folder: lora(folder).to_string_lossy().into_owned(),
    };
    let reply = lent.attach(&request("a", "lora"), &host).unwrap();
    assert!(reply.probe_change > 1e-3, "{}", reply.probe_change);
    assert!(reply.digest.starts_with("blake3:"));
    assert_eq!(reply.ranks, [4]);
    let error = lent.attach(&request("a", "lora_v5"), &host).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::INVALID_REQUEST);
    // Zeros in `lora_B` fit, and change nothing.
    let error = lent.attach(&request("b", "sft_init"), &host).unwrap_err();
    assert!(error.to_string().contains("changes nothing"), "{error}");
    assert!(lent.detach("b", &host).is_err());
    lent.detach("a", &host).unwrap();
    lent.attach(&request("a", "lora_v5"), &host).unwrap();
}
