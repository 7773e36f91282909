//! Embeddings and pixels equal the reference's.

use crate::support::*;
use focus_images::{
    Geometry as G, Limits, PixelType, PrepareSpec, PreparedImage, ResizeFilter as F,
};
use focus_nn::pixels::Normalisation;
use focus_nn::{DType, Device, Tensor};
use focus_plugin_sdk::{
    Geometry, Host, ImageBatch, Model, OpenOptions, PixelMode, PixelType as Type, ResizeFilter,
};
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
        let card = processing(family);
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

/// DINOv3's processor resizes in floating point after rescaling: from the file to normalised values on the path that an evaluation takes,
/// and how far bytes would be from it.
#[test]
fn dinov3s_pixels_equal_the_references_through_the_hosts_preparation() {
    let wanted = Expected::of("dinov3").values("pixel_values");
    let found = values(&dinov3_planes(PixelType::F32));
    let apart = difference(&found, &wanted);
    assert!(apart < 2e-5, "{apart}");
    // Half a level and the rounding between the two passes.
    let level = 1.0 / 255.0 / 0.224;
    let apart = difference(&values(&dinov3_planes(PixelType::U8)), &wanted);
    assert!(apart > 1e-3 && apart < level as f32, "{apart}");
}

fn dinov3_pictures(pixels: PixelType) -> Vec<PreparedImage> {
    let spec = PrepareSpec::new(64, 64, G::Squash, F::Bilinear).with_pixels(pixels);
    let prepared = |bytes: &Vec<u8>| {
        focus_images::prepare(bytes, &spec, &Limits::default())
            .unwrap()
            .0
    };
    photographs().iter().map(prepared).collect()
}

fn dinov3_planes(pixels: PixelType) -> Tensor {
    let card = processing("dinov3");
    assert_eq!(
        (card.mode, card.width, card.geometry),
        (PixelMode::Float, 64, Geometry::Squash)
    );
    let normalisation = Normalisation {
        mean: card.mean,
        std: card.std,
    };
    let floats: Vec<f32> = dinov3_pictures(pixels)
        .iter()
        .flat_map(PreparedImage::floats)
        .collect();
    normalisation
        .float_planes(&floats, 64, 64, &Device::Cpu, DType::F32)
        .unwrap()
}

#[test]
fn float_pictures_through_the_plugin_and_bytes_refused() {
    let options = OpenOptions {
        model: "checkpoint".into(),
        device: "cpu".into(),
        weights: Some(folder("dinov3").display().to_string()),
        threads: 2,
        batch_size: Some(3),
        ..OpenOptions::default()
    };
    let mut encoder = vit::encoder::Encoder::open(&options, &Host::detached()).unwrap();
    assert_eq!(encoder.opened().batch_size, 3);
    let mut bytes: Vec<u8> = dinov3_pictures(PixelType::F32)
        .into_iter()
        .flat_map(|image| image.pixels)
        .collect();
    bytes.resize(3 * 64 * 64 * 12, 0);
    let mut encode = |kind, bytes: &[u8]| {
        let batch = ImageBatch::of_type(bytes, kind, 64, 64, 2).unwrap();
        let encoder = encoder.image_encoder().unwrap();
        encoder.encode(&batch, &Host::detached())
    };
    let found = encode(Type::F32, &bytes).unwrap();
    assert_close(
        "dinov3",
        found.values(),
        &Expected::of("dinov3").values("cls"),
    );
    let error = encode(Type::U8, &bytes[..3 * 64 * 64 * 3]).unwrap_err();
    assert!(
        error.to_string().contains("expected F32, found U8"),
        "{error}"
    );
}

/// A batch of one size and of another: equal to tolerance, as the key says that they are not equal bit for bit.
#[test]
fn the_size_of_a_batch_does_not_matter_beyond_the_last_bits() {
    let run = |size: u32| {
        let options = OpenOptions {
            model: "checkpoint".into(),
            device: "cpu".into(),
            weights: Some(folder("dinov2").display().to_string()),
            threads: 1,
            batch_size: Some(size),
            ..OpenOptions::default()
        };
        let mut encoder = vit::encoder::Encoder::open(&options, &Host::detached()).unwrap();
        let (bytes, [images, height, width, _]) = Expected::of("dinov2").bytes("levels");
        let one = height * width * 3;
        let mut found = Vec::new();
        for chunk in bytes.chunks(one * (size as usize).min(images)) {
            let mut padded = chunk.to_vec();
            padded.resize(one * size as usize, 0);
            let used = chunk.len() / one;
            let batch = ImageBatch::new(&padded, width, height, used).unwrap();
            let rows = encoder
                .image_encoder()
                .unwrap()
                .encode(&batch, &Host::detached())
                .unwrap();
            found.extend_from_slice(rows.values());
        }
        found
    };
    assert_close("1 against 8", &run(1), &run(8));
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
            batch_size: None,
            settings: BTreeMap::new(),
            network: Vec::new(),
        };
        let mut encoder = vit::encoder::Encoder::open(&options, &Host::detached()).unwrap();
        let opened = encoder.opened();
        assert_eq!(opened.embedding_dim, 32);
        assert_eq!(opened.preprocessing, processing(family));
        assert!(
            opened.notes.contains(&"track corrected".to_owned()),
            "{:?}",
            opened.notes
        );
        if family == "dinov3" {
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
