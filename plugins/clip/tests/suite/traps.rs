//! What is easily got wrong, and moves vectors: each mistake is made here, and must show far beyond the tolerance.

use crate::support::*;
use clip::config::{Config, Image, Stack, Text, TextPool};
use clip::tokens::Tokens;
use focus_nn::{Activation, DType};

/// Ten times the tolerance on values of size 1.
const FAR: f32 = 10.0 * (RELATIVE + ABSOLUTE);

fn image_moved(family: &str, change: impl Fn(&mut Stack)) -> f32 {
    let mut config = config(family);
    let Image::Transformer(vision) = &mut config.image else {
        panic!("a transformer")
    };
    change(&mut vision.stack);
    difference(
        &embed(family, &config),
        &Expected::of(family).values("image_features"),
    )
}

fn text_stack(config: &mut Config) -> &mut Stack {
    match &mut config.text {
        Text::Transformer(text) => &mut text.stack,
        Text::BertHeads(bert) | Text::BertMean(bert) => &mut bert.stack,
    }
}

fn text_moved(family: &str, change: impl Fn(&mut Stack)) -> f32 {
    let mut config = config(family);
    change(text_stack(&mut config));
    difference(
        &embed_text(family, &config),
        &Expected::of(family).values(&feature(family, "text")),
    )
}

#[test]
fn without_a_mistake_nothing_moves() {
    for family in FAMILIES {
        assert!(text_moved(family, |_| {}) < 2e-5, "{family}");
        if family != "flair" {
            assert!(image_moved(family, |_| {}) < 2e-5, "{family}");
        }
    }
}

#[test]
fn clips_quick_activation() {
    for family in ["clip", "eyeclip", "retclip"] {
        let apart = image_moved(family, |stack| stack.activation = Activation::Gelu);
        assert!(apart > FAR, "{family}: {apart}");
    }
    for family in ["clip", "eyeclip"] {
        let apart = text_moved(family, |stack| stack.activation = Activation::Gelu);
        assert!(apart > FAR, "{family}: {apart}");
    }
}

#[test]
fn siglips_activation_by_the_tangent_and_berts_by_the_error_function() {
    for family in ["siglip2", "medsiglip"] {
        let image = image_moved(family, |stack| stack.activation = Activation::Gelu);
        let text = text_moved(family, |stack| stack.activation = Activation::Gelu);
        assert!(
            image > 4.0 * ABSOLUTE && text > 4.0 * ABSOLUTE,
            "{family}: {image} {text}"
        );
    }
    let heads = text_moved("retclip", |stack| stack.activation = Activation::GeluTanh);
    assert!(heads > 4.0 * ABSOLUTE, "{heads}");
    for family in ["retclip", "flair"] {
        let quick = text_moved(family, |stack| stack.activation = Activation::QuickGelu);
        assert!(quick > FAR, "{family}: {quick}");
    }
}

#[test]
fn the_norms_epsilon_of_each_family() {
    for (family, wrong) in [
        ("clip", 1e-3),
        ("eyeclip", 1e-3),
        ("siglip2", 1e-4),
        ("medsiglip", 1e-4),
        ("retclip", 1e-3),
    ] {
        let apart = image_moved(family, |stack| stack.eps = wrong);
        assert!(apart > 4.0 * ABSOLUTE, "{family}: {apart}");
    }
    for family in FAMILIES {
        let known = text_stack(&mut config(family)).eps;
        let wanted = match family {
            "clip" | "eyeclip" => 1e-5,
            "siglip2" | "medsiglip" => 1e-6,
            _ => 1e-12,
        };
        assert_eq!(known, wanted, "{family}");
        let apart = text_moved(family, |stack| stack.eps = 1e-3);
        assert!(apart > 2.0 * ABSOLUTE, "{family}: {apart}");
    }
}

/// CLIP's text is the place of its first end token; padding, though it is end tokens too, comes after it and is not seen.
#[test]
fn clips_text_is_at_its_first_end() {
    for family in ["clip", "eyeclip"] {
        let expected = Expected::of(family).values("text_features");
        let with = |pool: TextPool| {
            let mut config = config(family);
            let Text::Transformer(text) = &mut config.text else {
                panic!("a transformer")
            };
            text.pool = pool;
            embed_text(family, &config)
        };
        assert_close(family, &with(TextPool::Highest), &expected);
        assert_close(family, &with(TextPool::End(663)), &expected);
        assert!(difference(&with(TextPool::End(662)), &expected) > 0.1);
    }
    let (tower, _) = word_tower("clip", &config("clip"), DType::F32).unwrap();
    let short = tokens("clip", "input_ids");
    let mut ids = Vec::new();
    for text in 0..2 {
        ids.extend(short.row(text));
        ids.extend(std::iter::repeat_n(663, 77 - short.width()));
    }
    let long = values(&tower.forward(&Tokens::new(77, ids, None)).unwrap());
    assert_close(
        "padding",
        &long,
        &Expected::of("clip").values("text_features"),
    );
}

/// SigLIP's text is the last place, padding or not.
#[test]
fn siglips_text_is_at_the_last_place_of_64() {
    for (family, fill) in [("siglip2", 0_u32), ("medsiglip", 1)] {
        let (tower, _) = word_tower(family, &config(family), DType::F32).unwrap();
        let expected = Expected::of(family).values("text_features");
        let right = tokens(family, "input_ids");
        let run = |tokens: &Tokens| values(&tower.forward(tokens).unwrap());
        assert_close(family, &run(&right), &expected);
        let ids: Vec<u32> = right
            .ids()
            .iter()
            .map(|&id| if id == fill { 2 } else { id })
            .collect();
        assert!(
            difference(&run(&Tokens::new(64, ids, None)), &expected) > 0.1,
            "the padding's id counts"
        );
        let seen = right.ids().iter().map(|&id| id != fill).collect();
        // Marks change nothing: there is no mask.
        assert_close(
            family,
            &run(&Tokens::new(64, right.ids().to_vec(), Some(seen))),
            &expected,
        );
        let cut: Vec<u32> = (0..2)
            .flat_map(|text| right.row(text)[..63].to_vec())
            .collect();
        assert!(difference(&run(&Tokens::new(63, cut, None)), &expected) > 0.1);
    }
}

#[test]
fn siglips_picture_is_no_mean() {
    for family in ["siglip2", "medsiglip"] {
        let expected = Expected::of(family);
        assert!(
            difference(
                &expected.values("image_features"),
                &expected.values("patch_mean")
            ) > 0.1
        );
    }
}

#[test]
fn bert_does_not_look_at_padding() {
    for family in ["retclip", "flair"] {
        let (tower, _) = word_tower(family, &config(family), DType::F32).unwrap();
        let hidden = tokens(family, "input_ids");
        let seen = Tokens::new(hidden.width(), hidden.ids().to_vec(), None);
        let run = |tokens: &Tokens| values(&tower.forward(tokens).unwrap());
        let apart = difference(&run(&seen), &run(&hidden));
        assert!(apart > FAR, "{family}: {apart}");
    }
}

/// A configuration that leaves tensors over or wants ones that are not there cannot pass for the right one.
#[test]
fn a_wrong_architecture_is_refused_by_name() {
    let refused = |family: &str, change: &dyn Fn(&mut Config)| {
        let mut config = config(family);
        change(&mut config);
        match image_tower(family, &config, DType::F32) {
            Err(error) => error.to_string(),
            Ok(_) => word_tower(family, &config, DType::F32)
                .unwrap_err()
                .to_string(),
        }
    };
    let text = refused("clip", &|c| c.embed_dim = 32);
    assert!(
        text.contains("shape of `visual_projection.weight`: expected [32, 32], found [24, 32]"),
        "{text}"
    );
    let text = refused("eyeclip", &|c| c.embed_dim = 16);
    assert!(
        text.contains("shape of `visual.proj`: expected [32, 16], found [32, 24]"),
        "{text}"
    );
    let text = refused("medsiglip", &|c| text_stack(c).depth = 3);
    assert!(
        text.contains("missing 16 of") && text.contains("`text_model.encoder.layers.2."),
        "{text}"
    );
    let text = refused("flair", &|c| {
        let Image::ResNet(resnet) = &mut c.image else {
            panic!("a ResNet")
        };
        resnet.blocks[0] = 1;
    });
    assert!(
        text.contains("unexpected") && text.contains("`vision_model.model.layer1.1."),
        "{text}"
    );
}
