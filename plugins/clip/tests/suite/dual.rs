//! The dual encoder as the host sees it: through the SDK's traits alone.

use crate::support::*;
use clip::encoder::Encoder;
use clip::similarity::{Scale, sigmoid, softmax};
use clip::text::Rows;
use focus_plugin_sdk::{
    Error, Host, Model, OpenOptions, RANDOM_WEIGHTS, Similarity, TextEmbeddings,
};
use std::collections::BTreeMap;
use std::path::Path;

fn open(folder: Option<&Path>, model: &str, settings: &[(&str, &str)]) -> Result<Encoder, Error> {
    let options = OpenOptions {
        model: model.into(),
        device: "cpu".into(),
        weights: folder.map(|folder| folder.display().to_string()),
        threads: 2,
        settings: settings
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect::<BTreeMap<_, _>>(),
        ..OpenOptions::default()
    };
    Encoder::open(&options, &Host::detached())
}

fn of_family(family: &str, track: &str) -> Encoder {
    open(Some(&folder(family)), "checkpoint", &[("track", track)]).unwrap()
}

/// The track whose text rule is that of the family's reference.
fn track(family: &str) -> &'static str {
    if family == "flair" {
        "as_published"
    } else {
        "corrected"
    }
}

fn texts(encoder: &mut Encoder, texts: &[String]) -> Result<TextEmbeddings, Error> {
    encoder
        .dual_encoder()
        .expect("both sides are open")
        .encode_texts(texts, &Host::detached())
}

#[test]
fn texts_ids_and_logits_of_every_family() {
    for family in FAMILIES {
        let expected = Expected::of(family);
        let mut encoder = of_family(family, track(family));
        let found = texts(&mut encoder, &prompts(family)).unwrap();
        assert_close(
            family,
            found.rows.values(),
            &expected.values(&feature(family, "text")),
        );
        let (ids, width) = expected.ids("input_ids");
        assert_eq!(found.tokens.concat(), ids, "{family}");
        assert!(found.tokens.iter().all(|row| row.len() == width));
        assert_eq!(found.truncated, vec![false; prompts(family).len()]);

        // From what the host is told, the reference's own logits.
        let Similarity {
            scale,
            bias,
            sigmoid: pairwise,
        } = encoder.opened().similarity.expect("both sides are open");
        let own = Scale {
            factor: scale as f32,
            bias: bias as f32,
        };
        let images = expected.rows(&feature(family, "image"));
        let text = Rows {
            dim: found.rows.dim(),
            values: found.rows.values().to_vec(),
        };
        let logits = own.logits(&images, &text);
        match family {
            "retclip" => assert!((scale - 90.0).abs() < 1e-3, "{scale}"),
            "flair" => assert_close(family, &logits.values, &expected.values("logits")),
            _ => assert_close(family, &logits.values, &expected.values("logits_per_image")),
        }
        assert_eq!(pairwise, family.contains("siglip"), "{family}");
        if pairwise {
            assert_close(
                family,
                &sigmoid(&logits).values,
                &expected.values("sigmoid"),
            );
        } else {
            assert_eq!(bias, 0.0, "{family}");
        }
        let hundred = Scale::PUBLISHED.logits(&images, &text);
        let apart = difference(&hundred.values, &expected.values("zero_shot_logits_100"));
        assert!(apart < 2e-3, "{family}: {apart}");
        if !matches!(family, "retclip" | "flair") {
            let p: Vec<f32> = softmax(&hundred).iter().map(|row| row[1]).collect();
            assert!(difference(&p, &expected.values("zero_shot_p1")) < 1e-3);
        }
    }
}

#[test]
fn a_text_of_300_tokens_is_cut_and_said_to_be() {
    let file = std::fs::read_to_string(folder("long.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&file).unwrap();
    let long = json["text"].as_str().unwrap().to_owned();
    for family in FAMILIES {
        let wanted: Vec<u32> = serde_json::from_value(json["ids"][family].clone()).unwrap();
        let mut encoder = of_family(family, "corrected");
        let both = [long.clone(), "glaucoma".to_owned()];
        let found = texts(&mut encoder, &both).unwrap();
        assert_eq!(found.truncated, [true, false], "{family}");
        assert_eq!(found.tokens[0], wanted, "{family}");
        assert!(found.rows.values().iter().all(|v| v.is_finite()));
    }
}

#[test]
fn the_tracks_are_the_plugins_setting() {
    for family in ["siglip2", "medsiglip", "flair"] {
        let run = |track| {
            let mut encoder = of_family(family, track);
            texts(&mut encoder, &prompts(family)).unwrap()
        };
        let (published, corrected) = (run("as_published"), run("corrected"));
        let apart = difference(published.rows.values(), corrected.rows.values());
        assert!(apart > 1e-3, "{family}: {apart}");
    }
    // Texts alone in their call are as in it with others, on the corrected track.
    for family in FAMILIES {
        let mut encoder = of_family(family, "corrected");
        let together = texts(&mut encoder, &prompts(family)).unwrap();
        let dim = together.rows.dim();
        for (text, row) in prompts(family)
            .iter()
            .zip(together.rows.values().chunks(dim))
        {
            let alone = texts(&mut encoder, std::slice::from_ref(text)).unwrap();
            assert_close(family, alone.rows.values(), row);
        }
    }
}

#[test]
fn the_image_side_alone() {
    let mut encoder = open(Some(&folder("clip")), "checkpoint", &[("text", "none")]).unwrap();
    assert!(encoder.dual_encoder().is_none() && encoder.image_encoder().is_some());
    let opened = encoder.opened();
    assert_eq!(opened.similarity, None);
    assert!(opened.notes.iter().any(|n| n.contains("image side alone")));
}

#[test]
fn a_checkpoint_without_its_text_side_is_an_error_that_names_what_is_missing() {
    let target = tempfile::tempdir().unwrap();
    for name in ["config.json", "preprocessor_config.json"] {
        std::fs::copy(folder("clip").join(name), target.path().join(name)).unwrap();
    }
    let whole = std::fs::read(folder("clip").join("model.safetensors")).unwrap();
    let kept = without(&whole, &["text_model.", "text_projection", "logit_scale"]);
    std::fs::write(target.path().join("model.safetensors"), kept).unwrap();
    let error = open(Some(target.path()), "checkpoint", &[]).unwrap_err();
    assert!(
        error.to_string().contains("missing") && error.to_string().contains("`text_model."),
        "{error}"
    );
    assert!(error.hint().unwrap().contains("text=none"), "{error:?}");
    open(Some(target.path()), "checkpoint", &[("text", "none")]).unwrap();
    // Something else missing is no matter of the text side.
    let kept = without(&whole, &["visual_projection", "text_projection"]);
    std::fs::write(target.path().join("model.safetensors"), kept).unwrap();
    let error = open(Some(target.path()), "checkpoint", &[]).unwrap_err();
    assert!(!error.hint().unwrap_or_default().contains("text=none"));
    // Nor is a tokenizer that lacks, once the weights are whole, without the hint.
    std::fs::write(target.path().join("model.safetensors"), whole).unwrap();
    let error = open(Some(target.path()), "checkpoint", &[]).unwrap_err();
    assert!(error.to_string().contains("tokenizer"), "{error}");
    assert!(error.hint().unwrap().contains("text=none"));
}

/// A safetensors file without the tensors whose names begin so.
fn without(file: &[u8], starts: &[&str]) -> Vec<u8> {
    let length = u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
    let header: BTreeMap<String, serde_json::Value> =
        serde_json::from_slice(&file[8..8 + length]).unwrap();
    let data = &file[8 + length..];
    let (mut kept, mut bytes) = (serde_json::Map::new(), Vec::new());
    for (name, mut entry) in header {
        if name == "__metadata__" || starts.iter().any(|start| name.starts_with(start)) {
            continue;
        }
        let [from, to]: [usize; 2] = serde_json::from_value(entry["data_offsets"].clone()).unwrap();
        let at = bytes.len();
        bytes.extend_from_slice(&data[from..to]);
        entry["data_offsets"] = serde_json::json!([at, bytes.len()]);
        kept.insert(name, entry);
    }
    let header = serde_json::to_vec(&kept).unwrap();
    [&(header.len() as u64).to_le_bytes()[..], &header, &bytes].concat()
}

#[test]
fn random_weights_read_texts_too() {
    for card in clip::card::all() {
        let seed = [(RANDOM_WEIGHTS, "random:5"), ("size", "tiny")];
        let mut encoder = open(None, card.id, &seed).unwrap();
        assert!(encoder.opened().similarity.is_some());
        let two = ["a healthy retina", "a retina with glaucoma"].map(str::to_owned);
        let found = texts(&mut encoder, &two).unwrap();
        assert_eq!(
            (found.rows.rows(), found.rows.dim()),
            (2, 32),
            "{}",
            card.id
        );
        let (a, b) = found.rows.values().split_at(32);
        assert!(a.iter().chain(b).all(|v| v.is_finite()));
        assert_ne!(a, b, "{}", card.id);
        assert_eq!(found, texts(&mut encoder, &two).unwrap());
        let long = ["word ".repeat(300)];
        assert_eq!(texts(&mut encoder, &long).unwrap().truncated, [true]);
    }
}
