//! What is easily got wrong, and moves embeddings: each mistake is made here, and must show far beyond the tolerance.

use crate::support::*;
use focus_nn::position::Interpolation;
use focus_nn::{Activation, DType};
use vit::config::{Biases, Position, VitConfig};
use vit::pool::Pool;

/// Difference of the class token from the reference when the configuration is changed.
fn moved(family: &str, change: impl Fn(&mut VitConfig)) -> f32 {
    let mut config = config(family);
    change(&mut config);
    difference(
        &embed(family, &config, Pool::Cls),
        &Expected::of(family).values("cls"),
    )
}

/// Ten times the tolerance on values of size 1.
const FAR: f32 = 10.0 * (RELATIVE + ABSOLUTE);

#[test]
fn without_a_mistake_nothing_moves() {
    for family in FAMILIES {
        assert!(moved(family, |_| {}) < 2e-5, "{family}");
    }
}

#[test]
fn the_norms_epsilon_of_each_family() {
    for (family, wrong) in [
        ("vit", 1e-6),
        ("dinov2", 1e-5),
        ("dinov3", 1e-6),
        ("retfound_mae", 1e-5),
        ("visionfm", 1e-5),
        ("retfound_dinov2", 1e-5),
        ("retfound_green", 1e-5),
    ] {
        let apart = moved(family, |config| config.eps = wrong);
        assert!(apart > 2e-4, "{family}: {apart}");
    }
}

#[test]
fn the_exact_activation() {
    for family in FAMILIES {
        let tanh = moved(family, |config| config.activation = Activation::GeluTanh);
        assert!(tanh > 4.0 * ABSOLUTE, "{family}: {tanh}");
        let quick = moved(family, |config| config.activation = Activation::QuickGelu);
        assert!(quick > FAR, "{family}: {quick}");
    }
}

#[test]
fn dinov2s_table_by_size_and_not_by_factor() {
    let apart = moved("dinov2", |config| {
        config.position = Position::Table {
            trained: Some(70),
            prefixed: true,
            how: Interpolation::Factor { offset: 0.1 },
        };
    });
    assert!(apart > FAR, "{apart}");
}

#[test]
fn dinov3_turns_by_its_base() {
    for theta in [10_000.0, 10.0] {
        let apart = moved("dinov3", |config| {
            config.position = Position::Rotary { theta }
        });
        assert!(apart > FAR, "{theta}: {apart}");
    }
}

#[test]
fn poolings_are_not_each_other() {
    let mae = Expected::of("retfound_mae");
    let config = config("retfound_mae");
    let gap = embed("retfound_mae", &config, Pool::GapFcNorm);
    assert!(difference(&gap, &mae.values("cls")) > 0.5);
    assert!(
        difference(&gap, &mae.values("patch_mean")) > FAR,
        "the mean is of tokens before the last norm"
    );
    let vit = Expected::of("vit");
    assert!(difference(&vit.values("pooler_output"), &vit.values("cls")) > 0.1);
}

#[test]
fn registers_are_no_patches() {
    for family in ["dinov3", "retfound_green"] {
        let expected = Expected::of(family);
        let hidden = expected.tensor("last_hidden_state");
        let tokens = hidden.dim(1).unwrap();
        let wrong = hidden.narrow(1, 1, tokens - 1).unwrap().mean(1).unwrap();
        let found = embed(family, &config(family), Pool::PatchMean);
        assert!(difference(&found, &values(&wrong)) > FAR, "{family}");
    }
}

/// A configuration that leaves tensors over or wants ones that are not there cannot pass for the right one.
#[test]
fn a_wrong_architecture_is_refused_by_name() {
    let refused = |family: &str, change: &dyn Fn(&mut VitConfig)| {
        let mut config = config(family);
        change(&mut config);
        load(family, &config, Pool::Cls, Form::Safetensors, DType::F32)
            .unwrap_err()
            .to_string()
    };
    let text = refused("retfound_green", &|c| c.registers = 0);
    assert!(text.contains("unexpected 1: `reg_token`"), "{text}");
    let text = refused("dinov3", &|c| {
        c.biases = Biases {
            key: true,
            ..c.biases
        }
    });
    assert!(
        text.contains("missing 2 of") && text.contains("`layer.0.attention.k_proj.bias`"),
        "{text}"
    );
    let text = refused("dinov2", &|c| c.layer_scale = None);
    assert!(
        text.contains("unexpected 4: `encoder.layer.0.layer_scale1.lambda1`"),
        "{text}"
    );
    let prefixed = |c: &mut VitConfig| {
        c.position = Position::Table {
            trained: Some(56),
            prefixed: true,
            how: Interpolation::Size,
        };
    };
    let text = refused("retfound_green", &prefixed);
    assert!(
        text.contains("shape of `pos_embed`: expected [1, 17, 32], found [1, 16, 32]"),
        "{text}"
    );
    let text = refused("vit", &|c| c.depth = 3);
    assert!(
        text.contains("missing 16 of") && text.contains("`encoder.layer.2."),
        "{text}"
    );
}

/// Where the checkpoint alone knows the size of its table, that size is found.
#[test]
fn a_tables_size_can_be_the_checkpoints_to_say() {
    for (family, trained) in [
        ("retfound_dinov2", true),
        ("dinov2", true),
        ("retfound_green", false),
    ] {
        let apart = moved(family, |config| {
            config.position = Position::Table {
                trained: None,
                prefixed: trained,
                how: Interpolation::Size,
            };
        });
        assert!(apart < 2e-5, "{family}: {apart}");
    }
}
