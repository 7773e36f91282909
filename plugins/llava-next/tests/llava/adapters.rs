//! Low-rank adapters in every spelling, unmerged and merged.

use crate::common::{
    Expected, QUESTION, Spelling, close, data, edit, folder, loaded, logits_of, opened, request,
    rewrite, run, worst,
};
use focus_nn::lora::{self, Adaptable};
use focus_plugin_sdk::{AttachRequest, Host, LoraAdaptable};
use tempfile::TempDir;

/// The fixture's adapter with its keys spelt anew.
fn adapter(name: impl Fn(&str) -> String) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let file = "adapter_config.json";
    std::fs::copy(data("lora").join(file), folder.path().join(file)).unwrap();
    let file = "adapter_model.safetensors";
    rewrite(&data("lora").join(file), &folder.path().join(file), name);
    folder
}

fn as_saved(name: &str) -> String {
    name.to_owned()
}

/// By transformers 5.2 and later.
fn five(name: &str) -> String {
    name.replace("vision_tower.vision_model.", "vision_tower.")
}

/// Before transformers 4.52.
fn early(name: &str) -> String {
    name.replace("model.model.language_model.", "model.language_model.model.")
        .replace("model.model.vision_tower.", "model.vision_tower.")
        .replace(
            "model.model.multi_modal_projector.",
            "model.multi_modal_projector.",
        )
}

fn attach_to(folder: &TempDir, name: &str) -> AttachRequest {
    AttachRequest {
        name: name.into(),
        folder: folder.path().to_str().unwrap().into(),
    }
}

#[test]
fn unmerged_logits_equal_the_reference_in_every_spelling() {
    let expected = Expected::open();
    let (parts, mut network) = loaded(Spelling::Four);
    for (name, folder) in [
        ("4.x", adapter(as_saved)),
        ("5.x", adapter(five)),
        ("early", adapter(early)),
    ] {
        let attached = lora::attach(&mut network, name, folder.path()).unwrap();
        assert_eq!((attached.targets.len(), attached.ranks), (34, vec![4]));
        assert_eq!(attached.scales, [2.0]);
        network.adapters().select(Some(name)).unwrap();
        for number in 0..3 {
            let found = logits_of(&network, &parts, &expected, number);
            close(
                &found,
                &expected.floats(&format!("{number}.lora_first_logits")),
            );
        }
    }
    // Three are attached; the base is as it was.
    network.adapters().select(None).unwrap();
    let base = logits_of(&network, &parts, &expected, 0);
    close(&base, &expected.floats("0.first_logits"));
    lora::detach(&mut network, "5.x").unwrap();
    assert!(network.adapters().select(Some("5.x")).is_err());
}

#[test]
fn merged_logits_equal_the_reference() {
    let expected = Expected::open();
    for spelling in [Spelling::Four, Spelling::Five] {
        let (parts, mut network) = loaded(spelling);
        lora::attach(&mut network, "a", adapter(as_saved).path()).unwrap();
        lora::merge(&mut network, "a").unwrap();
        for number in 0..3 {
            let found = logits_of(&network, &parts, &expected, number);
            close(
                &found,
                &expected.floats(&format!("{number}.merged_first_logits")),
            );
        }
    }
}

#[test]
fn the_host_attaches_asks_and_detaches() {
    let expected = Expected::open();
    let mut model = opened(folder(Spelling::Four).path(), "f32");
    let host = Host::detached();
    let folder = adapter(five);
    let reply = model.attach(&attach_to(&folder, "a"), &host).unwrap();
    assert!(reply.probe_change > 0.1, "{}", reply.probe_change);
    assert_eq!(reply.base.as_deref(), Some("fixture/llava_next"));
    assert!(
        reply
            .targets
            .contains(&"model.multi_modal_projector.linear_2".to_owned())
    );
    let mut ask = request(
        &[
            (&[0], &[QUESTION]),
            (&[1], &[QUESTION]),
            (&[2], &[QUESTION]),
        ],
        8,
    );
    let base = run(&mut model, &ask).unwrap();
    ask.adapter = Some("a".into());
    let adapted = run(&mut model, &ask).unwrap();
    for number in 0..3 {
        let tokens = |reply: &focus_plugin_sdk::GenerateReply| {
            reply.groups[number].answers[0].new_tokens.clone()
        };
        assert_eq!(tokens(&base), expected.ids(&format!("{number}.generated")));
        assert_eq!(
            tokens(&adapted),
            expected.ids(&format!("{number}.merged_generated"))
        );
    }
    model.detach("a", &host).unwrap();
    assert!(run(&mut model, &ask).is_err());
}

#[test]
fn an_adapter_that_does_not_fit_changes_nothing() {
    let expected = Expected::open();
    let (parts, mut network) = loaded(Spelling::Four);
    let fails = |network: &mut llava_next::network::Network, folder: &TempDir| {
        lora::attach(network, "a", folder.path())
            .unwrap_err()
            .to_string()
    };
    let renamed = adapter(|name| name.replace("layers.1.mlp.fc1", "layers.9.mlp.fc1"));
    let error = fails(&mut network, &renamed);
    assert!(
        error.contains("layers.9.mlp.fc1") && error.contains("belongs to no module"),
        "{error}"
    );
    let cut = adapter(as_saved);
    let path = cut.path().join("adapter_model.safetensors");
    edit(&path, &path, |tensors| {
        tensors.retain(|(name, ..)| !name.ends_with("linear_1.lora_B.weight"));
    });
    assert!(fails(&mut network, &cut).contains("model.multi_modal_projector.linear_1"));
    let reshaped = adapter(as_saved);
    let path = reshaped.path().join("adapter_model.safetensors");
    edit(&path, &path, |tensors| {
        let tensor = tensors
            .iter_mut()
            .find(|(name, ..)| name.ends_with("linear_2.lora_A.weight"));
        tensor.unwrap().1 = vec![8, 16];
    });
    assert!(fails(&mut network, &reshaped).contains("expected [4, 32], found [8, 16]"));
    let base = logits_of(&network, &parts, &expected, 0);
    assert!(worst(&base, &expected.floats("0.first_logits")) < 1e-4);
}

#[test]
fn an_adapter_without_effect_is_refused() {
    let mut model = opened(folder(Spelling::Four).path(), "f32");
    let idle = adapter(as_saved);
    let path = idle.path().join("adapter_model.safetensors");
    edit(&path, &path, |tensors| {
        for (name, _, bytes) in tensors {
            if name.contains("lora_B") {
                bytes.fill(0);
            }
        }
    });
    let error = model
        .attach(&attach_to(&idle, "idle"), &Host::detached())
        .unwrap_err();
    assert!(error.to_string().contains("changes nothing"), "{error}");
}
