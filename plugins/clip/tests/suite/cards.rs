//! The cards, their two tracks, and random weights.

use clip::card;
use clip::config::Config;
use clip::encoder::Encoder;
use clip::settings::Track;
use clip::tower::words::WordTower;
use focus_nn::{DType, Device};
use focus_plugin_sdk::{
    Error, Family, Geometry, Group, Host, ImageBatch, InterfaceName, Model, OpenOptions, PixelMode,
    PixelType,
};
use std::collections::BTreeMap;

fn open(model: &str, settings: &[(&str, &str)]) -> Result<Encoder, Error> {
    let settings: BTreeMap<_, _> = settings
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    let options = OpenOptions {
        model: model.into(),
        device: "cpu".into(),
        dtype: None,
        weights: None,
        threads: 1,
        batch_size: None,
        settings,
    };
    Encoder::open(&options, &Host::detached())
}

fn embedding(encoder: &mut Encoder) -> Vec<f32> {
    let card = encoder.opened().preprocessing;
    let (width, height) = (card.width as usize, card.height as usize);
    let bytes = (0..2 * width * height * 3).map(|i| (i * 37 % 251) as u8);
    let (kind, pixels): (PixelType, Vec<u8>) = match card.mode {
        PixelMode::Float => {
            let floats = bytes.flat_map(|v| (f32::from(v) / 255.0).to_le_bytes());
            (PixelType::F32, floats.collect())
        }
        _ => (PixelType::U8, bytes.collect()),
    };
    let batch = ImageBatch::of_type(&pixels, kind, width, height, 2).unwrap();
    encoder
        .image_encoder()
        .unwrap()
        .encode(&batch, &Host::detached())
        .unwrap()
        .values()
        .to_vec()
}

#[test]
fn every_card_is_registered_complete_and_named_as_the_benchmark_does() {
    let cards = card::all();
    assert_eq!(cards.len(), clip::REGISTERED);
    let ids: Vec<_> = cards.iter().map(|card| card.id).collect();
    assert_eq!(
        ids,
        [
            "EyeCLIP",
            "RET-CLIP",
            "checkpoint",
            "google/medsiglip-448",
            "google/siglip2-base-patch16-224",
            "jusiro2/FLAIR",
            "openai/clip-vit-base-patch32"
        ]
    );
    for card in &cards {
        let descriptor = card.descriptor();
        assert_eq!(
            (descriptor.family, descriptor.interfaces.as_slice()),
            (
                Family::Vlm,
                [InterfaceName::ImageEncoder, InterfaceName::DualEncoder].as_slice()
            )
        );
        assert!(
            !descriptor.papers.is_empty()
                && descriptor
                    .papers
                    .iter()
                    .all(|p| p.contains("arXiv:") || p.contains("doi:")),
            "{}",
            card.id
        );
        let retinal = ["EyeCLIP", "RET-CLIP", "jusiro2/FLAIR"].contains(&card.id);
        assert_eq!(card.group == Group::Ophthalmic, retinal, "{}", card.id);
        assert_eq!(card.files.is_empty(), card.id == "checkpoint");
        if let Some(config) = &card.config {
            assert_eq!(
                card.preprocessing.width as usize,
                config.size(),
                "{}",
                card.id
            );
            assert_eq!(descriptor.embedding_dim, Some(config.embed_dim as u32));
        }
    }
    let flair = card::by_id("jusiro2/FLAIR").unwrap();
    assert_eq!(flair.preprocessing.mode, PixelMode::Float);
    assert!(flair.pretraining.unwrap().contains(&"idrid"));
    let crop = card::by_id("openai/clip-vit-base-patch32")
        .unwrap()
        .preprocessing
        .geometry;
    assert_eq!(crop, Geometry::ShortestEdgeCrop { edge: 224 });
    assert_eq!(
        card::by_id("RET-CLIP").unwrap().preprocessing.geometry,
        Geometry::Squash
    );
}

#[test]
fn every_architecture_runs_at_toy_size_with_random_weights() {
    for card in card::all() {
        let run = |seed: &str| {
            let settings = [("weights", seed), ("size", "tiny")];
            let mut encoder = open(card.id, &settings).unwrap();
            let opened = encoder.opened();
            assert_eq!(opened.weights_digest.as_deref(), Some(seed));
            assert!(
                opened
                    .notes
                    .iter()
                    .any(|note| note.starts_with("random weights")),
                "{:?}",
                opened.notes
            );
            embedding(&mut encoder)
        };
        let first = run("random:1");
        assert_eq!(first.len(), 2 * 32);
        assert!(
            first.iter().all(|v| v.is_finite()) && first.iter().any(|v| v.abs() > 1e-6),
            "{}",
            card.id
        );
        assert_eq!(first, run("random:1"));
        assert_ne!(first, run("random:2"));
        assert_ne!(first[..32], first[32..]);
    }
}

#[test]
fn every_text_side_can_be_drawn() {
    for config in [
        Config::clip_base_32(),
        Config::openai_base_32(),
        Config::siglip2_base_224(),
        Config::ret_clip(),
        Config::flair(),
    ] {
        let config = config.tiny();
        let tower =
            focus_nn::weights::random(3, &Device::Cpu, DType::F32, |w| WordTower::load(&config, w))
                .unwrap();
        let ids = vec![1, 5, 9, 63, 0, 0, 2, 7, 3, 8, 11, 63];
        let found = tower
            .forward(&clip::tokens::Tokens::new(6, ids, None))
            .unwrap();
        assert_eq!(found.dims(), [2, config.embed_dim]);
    }
}

#[test]
fn tracks_say_what_the_published_code_does() {
    let notes = |id: &str, track: &str| {
        open(
            id,
            &[("weights", "random:1"), ("size", "tiny"), ("track", track)],
        )
        .unwrap()
        .opened()
        .notes
    };
    for (id, word) in [
        ("google/medsiglip-448", "the last place"),
        ("jusiro2/FLAIR", "caption"),
        ("EyeCLIP", "f16"),
    ] {
        assert!(
            notes(id, "as_published")
                .iter()
                .any(|note| note.contains(word)),
            "{id}"
        );
        assert!(
            !notes(id, "corrected")
                .iter()
                .any(|note| note.contains(word)),
            "{id}"
        );
        assert!(notes(id, "as_published").contains(&"track as_published".to_owned()));
    }
    assert!(
        card::by_id("RET-CLIP")
            .unwrap()
            .notes(Track::Corrected)
            .any(|note| note.contains("one eye"))
    );
}

#[test]
fn settings_are_checked() {
    for (settings, wanted) in [
        (vec![("pool", "cls")], "Unknown setting `pool`"),
        (vec![("track", "published")], "found `published`"),
        (vec![("weights", "random")], "expected `random:SEED`"),
        (vec![("size", "tiny")], "goes with random weights only"),
        (
            vec![("size", "big"), ("weights", "random:1")],
            "expected `tiny`",
        ),
        (vec![("text", "some")], "expected `open` or `none`"),
        (vec![], "needs weights"),
    ] {
        let error = open("openai/clip-vit-base-patch32", &settings).unwrap_err();
        assert!(error.to_string().contains(wanted), "{error}");
    }
    assert!(
        open("checkpoint", &[("weights", "random:1")])
            .unwrap_err()
            .to_string()
            .contains("described by its folder")
    );
    assert!(
        open("llama", &[])
            .unwrap_err()
            .to_string()
            .contains("Unknown model `llama`")
    );
}
