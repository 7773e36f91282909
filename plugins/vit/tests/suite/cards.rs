//! The cards, their two tracks, and random weights.

use focus_plugin_sdk::{
    Error, Geometry, Group, Host, ImageBatch, Model, OpenOptions, PixelMode, PixelType,
};
use std::collections::BTreeMap;
use vit::card;
use vit::encoder::Encoder;
use vit::pool::Pool;
use vit::settings::Track;

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
        network: Vec::new(),
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
fn every_card_is_registered_complete_and_named_as_the_hub_does() {
    let cards = card::all();
    assert_eq!(cards.len(), vit::REGISTERED);
    let ids: Vec<_> = cards.iter().map(|card| card.id).collect();
    for id in [
        "google/vit-large-patch16-224",
        "facebook/dinov2-large",
        "facebook/dinov3-vitl16-pretrain-lvd1689m",
        "YukunZhou/RETFound_mae_natureCFP",
        "YukunZhou/RETFound_mae_natureOCT",
        "YukunZhou/RETFound_mae_meh",
        "YukunZhou/RETFound_mae_shanghai",
        "YukunZhou/RETFound_dinov2_meh",
        "YukunZhou/RETFound_dinov2_shanghai",
        "VisionFM-Fundus",
        "RETFound-Green",
        "checkpoint",
    ] {
        assert!(ids.contains(&id), "{id}");
    }
    for card in &cards {
        let descriptor = card.descriptor();
        assert!(!descriptor.papers.is_empty(), "{}", card.id);
        assert!(
            descriptor
                .papers
                .iter()
                .all(|p| p.contains("arXiv:") || p.contains("doi:")),
            "{}",
            card.id
        );
        let retinal = card.id.contains("RETFound") || card.id.contains("VisionFM");
        assert_eq!(card.group == Group::Ophthalmic, retinal, "{}", card.id);
        assert_eq!(card.files.is_empty(), card.id == "checkpoint");
    }
}

#[test]
fn every_architecture_runs_at_toy_size_with_random_weights() {
    for card in card::all() {
        let run = |seed: &str| {
            let mut encoder = open(card.id, &[("weights", seed), ("size", "tiny")]).unwrap();
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
        assert!(first.iter().all(|v| v.is_finite()), "{}", card.id);
        assert_eq!(first, run("random:1"));
        assert_ne!(first, run("random:2"));
        assert_ne!(first[..32], first[32..]);
    }
}

#[test]
fn tracks_differ_where_the_published_code_does() {
    let recipe = |id: &str, track| card::by_id(id).unwrap().recipe(track).clone();
    let both = |id: &str| (recipe(id, Track::AsPublished), recipe(id, Track::Corrected));
    let (published, corrected) = both("google/vit-large-patch16-224");
    assert_eq!((published.pool, corrected.pool), (Pool::Pooler, Pool::Cls));
    let (published, corrected) = both("YukunZhou/RETFound_mae_natureCFP");
    assert_eq!(
        (published.pool, corrected.pool),
        (Pool::Cls, Pool::GapFcNorm)
    );
    assert_eq!(published.preprocessing.geometry, Geometry::Squash);
    assert_eq!(
        corrected.preprocessing.geometry,
        Geometry::ShortestEdgeCrop { edge: 256 }
    );
    assert_eq!(
        (
            published.preprocessing.mean[0],
            corrected.preprocessing.mean[0]
        ),
        (0.5, 0.485)
    );
    let (published, corrected) = both("VisionFM-Fundus");
    assert_ne!(published.preprocessing.mean, corrected.preprocessing.mean);
    let (published, _) = both("YukunZhou/RETFound_dinov2_meh");
    assert!(published.note.unwrap().contains("random"));

    let tiny = [("weights", "random:1"), ("size", "tiny")];
    for (track, pool) in [("as_published", "pooler"), ("corrected", "cls")] {
        let mut by_track = open(
            "google/vit-large-patch16-224",
            &[tiny[0], tiny[1], ("track", track)],
        )
        .unwrap();
        let mut by_pool = open(
            "google/vit-large-patch16-224",
            &[tiny[0], tiny[1], ("pool", pool)],
        )
        .unwrap();
        assert_eq!(embedding(&mut by_track), embedding(&mut by_pool));
        assert!(by_track.opened().notes.contains(&format!("track {track}")));
    }
}

#[test]
fn settings_are_checked() {
    for (settings, wanted) in [
        (vec![("pol", "cls")], "Unknown setting `pol`"),
        (
            vec![("pool", "max")],
            "`cls`, `patch_mean`, `gap_fc_norm`, `pooler`, found `max`",
        ),
        (vec![("track", "published")], "found `published`"),
        (vec![("weights", "random")], "expected `random:SEED`"),
        (vec![("weights", "random:-1")], "expected `random:SEED`"),
        (vec![("size", "tiny")], "goes with random weights only"),
        (
            vec![("size", "big"), ("weights", "random:1")],
            "expected `tiny`",
        ),
        (vec![], "needs weights"),
    ] {
        let error = open("google/vit-large-patch16-224", &settings).unwrap_err();
        assert!(error.to_string().contains(wanted), "{error}");
    }
    assert!(
        open("checkpoint", &[("weights", "random:1")])
            .unwrap_err()
            .to_string()
            .contains("described by its folder")
    );
}
