//! Image vectors and pixels equal the reference's.

use crate::support::*;
use clip::open;
use clip::tower::image::ImageTower;
use focus_images::{Geometry as G, Limits, PixelType, PrepareSpec, ResizeFilter as F};
use focus_nn::pixels::Normalisation;
use focus_nn::{DType, Device, Tensor};
use focus_plugin_sdk::{
    Geometry, Host, ImageBatch, Model, OpenOptions, PixelMode, PixelType as Type, ResizeFilter,
};

#[test]
fn every_family_in_f32() {
    for family in FAMILIES {
        let (config, expected) = (config(family), Expected::of(family));
        let found = embed(family, &config);
        assert_close(family, &found, &expected.values(&feature(family, "image")));
        assert_close(
            family,
            &unit(&found, config.embed_dim),
            &expected.values("image_embeds"),
        );
    }
}

#[test]
fn half_types_are_near() {
    for family in FAMILIES {
        let config = config(family);
        let wanted = Expected::of(family).values("image_embeds");
        for (dtype, least) in [(DType::BF16, 0.9998), (DType::F16, 0.99999)] {
            let tower = image_tower(family, &config, dtype).unwrap();
            let found = tower
                .forward(&planes(family, "levels").to_dtype(dtype).unwrap())
                .unwrap();
            assert_eq!(found.dtype(), dtype);
            for (a, b) in values(&found)
                .chunks(config.embed_dim)
                .zip(wanted.chunks(config.embed_dim))
            {
                assert!(
                    cosine(a, b) >= least,
                    "{family} {dtype:?}: {}",
                    cosine(a, b)
                );
            }
        }
    }
}

#[test]
fn the_mean_of_siglips_patches_and_flairs_features_before_the_heads() {
    for family in ["siglip2", "medsiglip"] {
        let ImageTower::Transformer(tower) =
            image_tower(family, &config(family), DType::F32).unwrap()
        else {
            panic!("a transformer")
        };
        let found = values(&tower.patch_mean(&planes(family, "levels")).unwrap());
        assert_close(family, &found, &Expected::of(family).values("patch_mean"));
    }
    let ImageTower::ResNet(tower, _) = image_tower("flair", &config("flair"), DType::F32).unwrap()
    else {
        panic!("a ResNet")
    };
    let found = values(&tower.forward(&planes("flair", "")).unwrap());
    assert_close(
        "flair",
        &found,
        &Expected::of("flair").values("resnet_features"),
    );
}

#[test]
fn pickles_and_safetensors_agree() {
    for (family, file) in [
        ("eyeclip", "eyeclip_visual.pt"),
        ("retclip", "checkpoint.pt"),
    ] {
        let config = config(family);
        let run = |file: &str| {
            let image =
                open::image(&config, checkpoint(family, file), &Device::Cpu, DType::F32).unwrap();
            let (words, scale) =
                open::words(&config, checkpoint(family, file), &Device::Cpu, DType::F32).unwrap();
            let image = values(&image.forward(&planes(family, "levels")).unwrap());
            (
                image,
                values(&words.forward(&tokens(family, "input_ids")).unwrap()),
                scale,
            )
        };
        let (plain, pickled) = (run("model.safetensors"), run(file));
        if family == "retclip" {
            assert_eq!(plain, pickled);
        } else {
            // Its matrices are f16, which cuts the smallest values.
            assert_close(family, &pickled.0, &plain.0);
            assert_close(family, &pickled.1, &plain.1);
        }
    }
}

#[test]
fn an_image_alone_is_as_in_a_batch() {
    for family in FAMILIES {
        let config = config(family);
        let tower = image_tower(family, &config, DType::F32).unwrap();
        let both = planes(family, "levels");
        let batch = Tensor::cat(&[&both, &both, &both, &both], 0).unwrap();
        let together = values(&tower.forward(&batch).unwrap());
        for image in 0..2 {
            let alone = values(&tower.forward(&both.narrow(0, image, 1).unwrap()).unwrap());
            for copy in 0..4 {
                let row = &together[(2 * copy + image) * config.embed_dim..][..config.embed_dim];
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
        if family == "flair" {
            continue;
        }
        let card = open::preprocessing(&any_card(), &config(family), &folder(family)).unwrap();
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
        assert_eq!(
            found,
            Expected::of(family).bytes("levels_pil").0,
            "{family}"
        );
    }
}

/// The pictures of a family as an evaluation prepares them by its card, with their number type.
fn prepared(family: &str, images: usize) -> (Type, Vec<u8>, [usize; 2]) {
    if family != "flair" {
        let (mut bytes, [_, height, width, _]) = Expected::of(family).bytes("levels");
        bytes.resize(images * height * width * 3, 0);
        return (Type::U8, bytes, [width, height]);
    }
    let card = open::preprocessing(&any_card(), &config(family), &folder(family)).unwrap();
    assert_eq!(
        (card.mode, card.geometry, card.filter),
        (
            PixelMode::Float,
            Geometry::FitCorner,
            ResizeFilter::Bilinear
        )
    );
    let spec = PrepareSpec::new(card.width, card.height, G::FitCorner, F::Bilinear)
        .with_pixels(PixelType::F32);
    let mut bytes: Vec<u8> = photographs()
        .iter()
        .flat_map(|bytes| {
            focus_images::prepare(bytes, &spec, &Limits::default())
                .unwrap()
                .0
                .pixels
        })
        .collect();
    let [width, height] = [card.width as usize, card.height as usize];
    bytes.resize(images * height * width * 12, 0);
    (Type::F32, bytes, [width, height])
}

#[test]
fn flairs_pixels_equal_the_references_through_the_hosts_preparation() {
    let (kind, bytes, [width, height]) = prepared("flair", 2);
    let floats = ImageBatch::of_type(&bytes, kind, width, height, 2)
        .unwrap()
        .floats();
    let plain = Normalisation {
        mean: [0.0; 3],
        std: [1.0; 3],
    };
    let found = plain
        .float_planes(&floats, width, height, &Device::Cpu, DType::F32)
        .unwrap();
    let apart = difference(
        &values(&found),
        &Expected::of("flair").values("pixel_values"),
    );
    assert!(apart < 1e-5, "{apart}");
}

#[test]
fn the_plugin_gives_what_the_model_gives() {
    for family in FAMILIES {
        let config = config(family);
        let options = OpenOptions {
            model: "checkpoint".into(),
            device: "cpu".into(),
            weights: Some(folder(family).display().to_string()),
            threads: 2,
            batch_size: Some(5),
            ..OpenOptions::default()
        };
        let host = Host::detached();
        let mut encoder = clip::encoder::Encoder::open(&options, &host).unwrap();
        let opened = encoder.opened();
        assert_eq!(
            (opened.embedding_dim as usize, opened.batch_size),
            (config.embed_dim, 5)
        );
        assert!(
            opened.notes.contains(&"track corrected".to_owned()),
            "{:?}",
            opened.notes
        );
        let (kind, bytes, [width, height]) = prepared(family, 5);
        let mut encode = |kind, bytes: &[u8], width, used| {
            let batch = ImageBatch::of_type(bytes, kind, width, height, used).unwrap();
            encoder.image_encoder().unwrap().encode(&batch, &host)
        };
        let found = encode(kind, &bytes, width, 2).unwrap();
        assert_eq!((found.rows(), found.dim()), (2, config.embed_dim));
        assert_close(
            family,
            found.values(),
            &Expected::of(family).values(&feature(family, "image")),
        );
        let wide = vec![0; bytes.len() * 2];
        let error = encode(kind, &wide, width * 2, 2).unwrap_err();
        assert!(error.to_string().contains("wrong size"));
        let (other, size) = match kind {
            Type::U8 => (Type::F32, bytes.len() * 4),
            Type::F32 => (Type::U8, bytes.len() / 4),
        };
        let error = encode(other, &vec![0; size], width, 2).unwrap_err();
        assert!(error.to_string().contains("wrong type"), "{error}");
    }
}
