//! Damaged folders: each is a clear error that names the tensor or the file.

use crate::support::*;
use focus_nn::{Checkpoint, DType, Layout};
use focus_plugin_sdk::{ErrorKind, Host, ImageBatch, ImageEncoder as _, Model as _, OpenOptions};
use std::collections::BTreeMap;
use std::path::Path;
use vit::pool::Pool;

/// A safetensors file from a fixture's with its header's text changed.
fn rewrite(
    from: &Path,
    to: &Path,
    change: impl Fn(&mut serde_json::Map<String, serde_json::Value>),
) {
    let bytes = std::fs::read(from).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut header: serde_json::Map<_, _> = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    change(&mut header);
    let text = serde_json::to_vec(&header).unwrap();
    let mut out = (text.len() as u64).to_le_bytes().to_vec();
    out.extend(text);
    out.extend(&bytes[8 + length..]);
    std::fs::write(to, out).unwrap();
}

#[test]
fn renamed_and_reshaped_tensors_are_named() {
    for (family, name) in [
        ("vit", "encoder.layer.1.output.dense.weight"),
        ("dinov2", "encoder.layer.0.layer_scale2.lambda1"),
        ("dinov3", "layer.1.attention.k_proj.weight"),
        ("retfound_mae", "blocks.0.attn.qkv.bias"),
        ("visionfm", "norm.weight"),
    ] {
        let target = tempfile::tempdir().unwrap();
        let file = target.path().join("model.safetensors");
        let original = folder(family).join("model.safetensors");
        let failure = || {
            load_from(
                target.path(),
                &config(family),
                Pool::Cls,
                Form::Safetensors,
                DType::F32,
                size(family),
            )
            .unwrap_err()
            .to_string()
        };
        rewrite(&original, &file, |header| {
            let entry = header.remove(name).unwrap();
            header.insert(format!("{name}x"), entry);
        });
        let text = failure();
        assert!(
            text.contains("missing 1 of") && text.contains(&format!("`{name}`")),
            "{text}"
        );
        assert!(text.contains(&format!("unexpected 1: `{name}x`")), "{text}");
        rewrite(&original, &file, |header| {
            let shape = header.get_mut(name).unwrap().get_mut("shape").unwrap();
            let mut sides: Vec<u64> = serde_json::from_value(shape.clone()).unwrap();
            sides.insert(0, 1);
            *shape = serde_json::json!(sides);
        });
        let text = failure();
        assert!(
            text.contains(&format!("shape of `{name}`: expected [")) && text.contains("found [1, "),
            "{text}"
        );
    }
}

#[test]
fn a_dropped_tensor_is_named() {
    // The file's own format refuses holes, so the tensor goes from the checkpoint once it is open.
    let file = folder("dinov2").join("model.safetensors");
    let mut checkpoint = Checkpoint::open_file(&file, &Layout::default()).unwrap();
    checkpoint.remove("encoder.layer.1.mlp.fc1.bias").unwrap();
    let config = config("dinov2");
    let error = focus_nn::weights::load(
        checkpoint,
        &focus_nn::Device::Cpu,
        DType::F32,
        config.naming.ignored(),
        |w| vit::model::Vit::load(&config, Pool::Cls, (56, 56), w),
    )
    .unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("`encoder.layer.1.mlp.fc1.bias`"),
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
        || vit::encoder::Encoder::open(&options(target.path()), &Host::detached()).unwrap_err();
    let put = |name: &str, text: &str| std::fs::write(target.path().join(name), text).unwrap();
    assert!(open().to_string().contains("lacks `config.json`"));
    put("config.json", "{");
    assert!(
        open()
            .to_string()
            .contains("`config.json` cannot be used: it is not JSON")
    );
    put("config.json", r#"{"model_type": "llama"}"#);
    assert!(open().to_string().contains("found `llama`"));
    put("config.json", &text("vit", "config.json"));
    assert!(
        open()
            .to_string()
            .contains("lacks `preprocessor_config.json` or `processor_config.json`")
    );
    put(
        "preprocessor_config.json",
        &text("vit", "preprocessor_config.json"),
    );
    let error = open();
    assert_eq!(error.kind(), ErrorKind::WEIGHTS);
    assert!(
        error.to_string().contains("No weights in") && error.hint().is_some(),
        "{error}"
    );
    // The weights of another family.
    std::fs::copy(
        folder("dinov3").join("model.safetensors"),
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

/// Opens a folder and embeds the fixture's images.
fn embedded(folder: &Path, family: &str, settings: &[(&str, &str)]) -> (Vec<f32>, Vec<String>) {
    let mut options = options(folder);
    for (key, value) in settings {
        options
            .settings
            .insert((*key).to_owned(), (*value).to_owned());
    }
    let mut encoder = vit::encoder::Encoder::open(&options, &Host::detached()).unwrap();
    let (mut bytes, [_, height, width, _]) = Expected::of(family).bytes("levels");
    bytes.resize(8 * height * width * 3, 0);
    let batch = ImageBatch::new(&bytes, width, height, 2).unwrap();
    let found = encoder.encode(&batch, &Host::detached()).unwrap();
    (found.values().to_vec(), encoder.opened().notes)
}

/// A folder with a fixture's description and its weights under other names.
fn renamed(family: &str, rename: impl Fn(&str) -> String) -> tempfile::TempDir {
    let target = tempfile::tempdir().unwrap();
    for name in ["config.json", "preprocessor_config.json"] {
        std::fs::write(target.path().join(name), text(family, name)).unwrap();
    }
    let original = folder(family).join("model.safetensors");
    rewrite(
        &original,
        &target.path().join("model.safetensors"),
        |header| {
            *header = header
                .iter()
                .filter(|(name, _)| *name != "__metadata__")
                .map(|(name, entry)| (rename(name), entry.clone()))
                .collect();
        },
    );
    target
}

#[test]
fn a_classifiers_checkpoint_has_a_prefix_and_no_pooler() {
    let target = renamed("vit", |name| match name.strip_prefix("pooler.dense.") {
        Some(part) => format!("classifier.{part}"),
        None => format!("vit.{name}"),
    });
    let (cls, _) = embedded(target.path(), "vit", &[]);
    assert_close("cls", &cls, &Expected::of("vit").values("cls"));
    let (pooled, notes) = embedded(target.path(), "vit", &[("pool", "pooler")]);
    assert!(
        notes.iter().any(|note| note.contains("drawn from seed 0")),
        "{notes:?}"
    );
    assert!(pooled.iter().all(|v| v.abs() < 1.0));
    assert_eq!(
        pooled,
        embedded(target.path(), "vit", &[("pool", "pooler")]).0
    );
    let whole = renamed("vit", str::to_owned);
    let (own, notes) = embedded(whole.path(), "vit", &[("pool", "pooler")]);
    assert_close("own", &own, &Expected::of("vit").values("pooler_output"));
    assert!(!notes.iter().any(|note| note.contains("seed 0")));
}

#[test]
fn blocks_in_chunks_are_found() {
    let target = renamed("retfound_dinov2", |name| {
        name.strip_prefix("blocks.").map_or_else(
            || format!("backbone.{name}"),
            |rest| format!("backbone.blocks.0.{rest}"),
        )
    });
    let (cls, _) = embedded(target.path(), "retfound_dinov2", &[]);
    assert_close("cls", &cls, &Expected::of("retfound_dinov2").values("cls"));
}
