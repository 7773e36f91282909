//! Embeddings and pixels equal the reference's.

use crate::support::*;
use focus_images::{Geometry as G, Limits, PrepareSpec, ResizeFilter as F};
use focus_nn::pixels::Normalisation;
use focus_nn::{DType, Device, Tensor};
use focus_plugin_sdk::{Geometry, Host, ImageBatch, Model, OpenOptions, ResizeFilter};
use focus_resize::{Filter, Scaling, resize_f32};
use std::collections::BTreeMap;
use vit::pool::Pool;

/// Poolings a family's reference has, with the output's name.
fn poolings(family: &str) -> Vec<(Pool, &'static str)> {
    let mut all = vec![(Pool::Cls, "cls"), (Pool::PatchMean, "patch_mean")];
    match family {
        "vit" => all.push((Pool::Pooler, "pooler_output")),
        "retfound_mae" => all.push((Pool::GapFcNorm, "gap_fc_norm")),
        _ => {}
    }
    all
}

#[test]
fn every_family_and_pooling_in_f32() {
    for family in FAMILIES {
        let (config, expected) = (config(family), Expected::of(family));
        for (pool, name) in poolings(family) {
            assert_close(
                &format!("{family} {name}"),
                &embed(family, &config, pool),
                &expected.values(name),
            );
        }
        let cls = embed(family, &config, Pool::Cls);
        assert_close(
            family,
            &unit(&cls, config.dim),
            &expected.values("embedding"),
        );
    }
}

#[test]
fn pillow_pixels_give_the_pillow_embedding() {
    for family in FAMILIES {
        let expected = Expected::of(family);
        if !expected.has("embedding_pil") {
            continue;
        }
        let config = config(family);
        let model = load(family, &config, Pool::Cls, Form::Safetensors, DType::F32).unwrap();
        let found = values(
            &model
                .forward(&planes(family, &expected, "levels_pil"))
                .unwrap(),
        );
        assert_close(
            family,
            &unit(&found, config.dim),
            &expected.values("embedding_pil"),
        );
        assert!(
            difference(
                &expected.values("embedding_pil"),
                &expected.values("embedding")
            ) > 0.0
        );
    }
}

#[test]
fn bf16_is_near() {
    for family in FAMILIES {
        let (config, expected) = (config(family), Expected::of(family));
        let model = load(family, &config, Pool::Cls, Form::Safetensors, DType::BF16).unwrap();
        let pixels = planes(family, &expected, "levels")
            .to_dtype(DType::BF16)
            .unwrap();
        let found = model.forward(&pixels).unwrap();
        assert_eq!(found.dtype(), DType::BF16);
        let (found, wanted) = (values(&found), expected.values("cls"));
        for (a, b) in found.chunks(config.dim).zip(wanted.chunks(config.dim)) {
            assert!(cosine(a, b) >= 0.9998, "{family}: {}", cosine(a, b));
        }
    }
}

#[test]
fn pickles_and_safetensors_agree_bit_for_bit() {
    for family in [
        "retfound_mae",
        "retfound_dinov2",
        "retfound_green",
        "visionfm",
    ] {
        let config = config(family);
        let pixels = planes(family, &Expected::of(family), "levels");
        let run = |form| {
            values(
                &load(family, &config, Pool::Cls, form, DType::F32)
                    .unwrap()
                    .forward(&pixels)
                    .unwrap(),
            )
        };
        assert_eq!(run(Form::Safetensors), run(Form::Pickle), "{family}");
    }
}

#[test]
fn a_picture_that_is_no_square_keeps_rows_and_columns_apart() {
    let (config, expected) = (config("dinov3"), Expected::of("dinov3"));
    let pixels = expected.tensor("rect_pixel_values");
    let model = load_from(
        &folder("dinov3"),
        &config,
        Pool::Cls,
        Form::Safetensors,
        DType::F32,
        (32, 80),
    )
    .unwrap();
    let hidden = expected.tensor("rect_last_hidden_state");
    let cls = values(&hidden.narrow(1, 0, 1).unwrap());
    assert_close("rect", &values(&model.forward(&pixels).unwrap()), &cls);
    let mean = hidden.narrow(1, 5, 10).unwrap().mean(1).unwrap();
    let model = load_from(
        &folder("dinov3"),
        &config,
        Pool::PatchMean,
        Form::Safetensors,
        DType::F32,
        (32, 80),
    )
    .unwrap();
    assert_close(
        "rect mean",
        &values(&model.forward(&pixels).unwrap()),
        &values(&mean),
    );
}

#[test]
fn an_image_alone_is_as_in_a_batch() {
    for family in FAMILIES {
        let config = config(family);
        let model = load(family, &config, Pool::Cls, Form::Safetensors, DType::F32).unwrap();
        let both = planes(family, &Expected::of(family), "levels");
        let batch = Tensor::cat(&[&both, &both, &both, &both], 0).unwrap();
        let together = values(&model.forward(&batch).unwrap());
        for image in 0..2 {
            let alone = values(&model.forward(&both.narrow(0, image, 1).unwrap()).unwrap());
            for copy in 0..4 {
                let row = &together[(2 * copy + image) * config.dim..][..config.dim];
                assert_close(family, &alone, row);
            }
        }
    }
}

fn photographs() -> [Vec<u8>; 2] {
    ["fundus_b.png", "fundus_c.jpg"].map(|name| std::fs::read(folder("images").join(name)).unwrap())
}

#[test]
fn pixels_equal_pillow_through_the_hosts_preparation() {
    for family in FAMILIES {
        let expected = Expected::of(family);
        if !expected.has("levels_pil") {
            continue;
        }
        let card = processing(family).card;
        let spec = PrepareSpec::new(
            card.width,
            card.height,
            match card.geometry {
                Geometry::ShortestEdgeCrop { edge } => G::ShortestEdgeCrop { edge },
                _ => G::Squash,
            },
            if card.filter == ResizeFilter::Bicubic {
                F::Bicubic
            } else {
                F::Bilinear
            },
        );
        let found: Vec<u8> = photographs()
            .iter()
            .flat_map(|bytes| {
                focus_images::prepare(bytes, &spec, &Limits::default())
                    .unwrap()
                    .0
                    .pixels
            })
            .collect();
        assert_eq!(found, expected.bytes("levels_pil").0, "{family}");
        let planes = planes(family, &expected, "levels_pil");
        assert_eq!(
            planes.dims()[1..],
            [3, card.height as usize, card.width as usize]
        );
    }
}

/// DINOv3's processor resizes in floating point after rescaling. The host resizes bytes, so the card says that pixels are near; how
/// near is held here, and that the floating-point path itself is exact.
#[test]
fn dinov3_pixels_exactly_and_as_the_host_gives_them() {
    let expected = Expected::of("dinov3");
    let card = processing("dinov3").card;
    assert!(processing("dinov3").float_first);
    let normalisation = Normalisation {
        mean: card.mean,
        std: card.std,
    };
    let spec = PrepareSpec::new(64, 64, G::Squash, F::Bilinear);
    let (mut exact, mut near) = (Vec::new(), Vec::new());
    for bytes in photographs() {
        let image = focus_images::decode(&bytes, &Limits::default()).unwrap().0;
        let wide: Vec<f32> = image.pixels.iter().map(|&v| f32::from(v)).collect();
        let scaling = Scaling::new((image.width, image.height), (64, 64), Filter::Bilinear);
        let resized = resize_f32(&wide, &scaling, 3).unwrap();
        exact.extend(values(
            &normalisation
                .float_planes(&resized, 64, 64, &Device::Cpu, DType::F32)
                .unwrap(),
        ));
        let prepared = focus_images::prepare(&bytes, &spec, &Limits::default())
            .unwrap()
            .0
            .pixels;
        near.extend(values(
            &normalisation
                .planes(&prepared, 64, 64, &Device::Cpu, DType::F32)
                .unwrap(),
        ));
    }
    let wanted = expected.values("pixel_values");
    assert!(
        difference(&exact, &wanted) < 1e-5,
        "{}",
        difference(&exact, &wanted)
    );
    // Half a level and the rounding between the two passes.
    let level = 1.0 / 255.0 / 0.224;
    let apart = difference(&near, &wanted);
    assert!(apart > 1e-3 && apart < level as f32, "{apart}");
}

#[test]
fn the_plugin_gives_what_the_model_gives() {
    for family in FAMILIES {
        let expected = Expected::of(family);
        let options = OpenOptions {
            model: "checkpoint".into(),
            device: "cpu".into(),
            dtype: None,
            weights: Some(folder(family).display().to_string()),
            threads: 2,
            settings: BTreeMap::new(),
            network: Vec::new(),
        };
        let mut encoder = vit::encoder::Encoder::open(&options, &Host::detached()).unwrap();
        let opened = encoder.opened();
        assert_eq!(opened.embedding_dim, 32);
        assert_eq!(opened.preprocessing, processing(family).card);
        assert!(
            opened.notes.contains(&"track corrected".to_owned()),
            "{:?}",
            opened.notes
        );
        if family == "dinov3" {
            assert!(
                opened
                    .notes
                    .iter()
                    .any(|note| note.contains("floating point"))
            );
            continue;
        }
        let (mut bytes, [_, height, width, _]) = expected.bytes("levels");
        bytes.resize(8 * height * width * 3, 0);
        let batch = ImageBatch::new(&bytes, width, height, 2).unwrap();
        let found = encoder
            .image_encoder()
            .unwrap()
            .encode(&batch, &Host::detached())
            .unwrap();
        assert_eq!((found.rows(), found.dim()), (2, 32));
        assert_close(family, found.values(), &expected.values("cls"));
        let wrong = ImageBatch::new(&bytes, width * 2, height, 2).unwrap();
        let error = encoder
            .image_encoder()
            .unwrap()
            .encode(&wrong, &Host::detached())
            .unwrap_err();
        assert!(error.to_string().contains("wrong size"));
    }
}
