//! The training form of every step: gradients against central finite differences, values against the inference form.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use focus_nn::candle::{Result, Var};
use focus_nn::lm::{
    Decoder, DecoderConfig, Features, ImageSpan, LayerKind, NormStyle, Prompt, Rope, Sequence,
};
use focus_nn::position::Rotary;
use focus_nn::vision::{VisionConfig, VisionTower};
use focus_nn::{
    Activation, Attention, AttentionConfig, DType, Device, Init, LayerNorm, Linear, Mlp, Part,
    PatchEmbedding, Projections, RmsNorm, Switch, Tensor, add_residual, attend, training, weights,
};

const CPU: Device = Device::Cpu;
/// Step of a finite difference: its square and rounding over it weigh about the same.
const STEP: f64 = 1e-2;
/// Elements of an input whose derivative is measured.
const MEASURED: usize = 12;

fn drawn(shape: &[usize], name: &str) -> Tensor {
    weights::random(3, &CPU, DType::F32, |w| {
        w.get(name, shape, Init::Normal(1.0))
    })
    .unwrap()
}

/// Drawn smaller, as weights are.
fn weight(shape: &[usize], name: &str) -> Tensor {
    let inputs = *shape.last().unwrap() as f64;
    (drawn(shape, name) * inputs.powf(-0.5)).unwrap()
}

fn values(t: &Tensor) -> Vec<f32> {
    t.flatten_all().unwrap().to_vec1().unwrap()
}

/// A sum of everything with weights of its own, in f64.
fn loss(y: &Tensor, mix: &[f32]) -> f64 {
    let pairs = values(y).into_iter().zip(mix);
    pairs.map(|(a, b)| f64::from(a) * f64::from(*b)).sum()
}

/// `run` on `inputs`: its training form has the gradients that differences measure, and its inference form the same values.
fn check(what: &str, inputs: &[Tensor], run: impl Fn(&[Tensor]) -> Result<Tensor>) {
    let still = run(inputs).unwrap();
    let mix = values(&drawn(&[still.elem_count()], "mix"));
    let vars: Vec<Var> = inputs
        .iter()
        .map(|x| Var::from_tensor(x).unwrap())
        .collect();
    let tracked: Vec<Tensor> = vars.iter().map(|var| var.as_tensor().clone()).collect();
    let y = training(|| run(&tracked)).unwrap();
    assert_eq!(y.dims(), still.dims());
    for form in [&y, &training(|| run(inputs)).unwrap()] {
        for (a, b) in values(form).into_iter().zip(values(&still)) {
            assert!((a - b).abs() <= 3e-5 * (1.0 + b.abs()), "{what}: {a} {b}");
        }
    }
    let weights = Tensor::from_slice(&mix, y.dims(), &CPU).unwrap();
    let total = (&y * weights).unwrap().sum_all().unwrap();
    let gradients = total.backward().unwrap();
    for (number, (var, x)) in vars.iter().zip(inputs).enumerate() {
        let gradient = gradients
            .get(var)
            .unwrap_or_else(|| panic!("{what}: input {number} has no gradient"));
        let gradient = values(gradient);
        let base = values(x);
        let scale = gradient.iter().fold(0.1_f32, |most, g| most.max(g.abs()));
        let stride = base.len().div_ceil(MEASURED);
        for at in (0..base.len()).step_by(stride) {
            let moved = |step: f64| {
                let mut moved = base.clone();
                moved[at] += step as f32;
                let mut all = inputs.to_vec();
                all[number] = Tensor::from_vec(moved, x.dims(), &CPU).unwrap();
                loss(&training(|| run(&all)).unwrap(), &mix)
            };
            let measured = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
            let apart = (measured - f64::from(gradient[at])).abs();
            assert!(
                apart <= 5e-3 * f64::from(scale),
                "{what}: input {number} at {at}: measured {measured}, found {}",
                gradient[at]
            );
        }
    }
}

#[test]
fn linear_and_every_activation() {
    let inputs = [drawn(&[3, 6], "x"), weight(&[5, 6], "w"), drawn(&[5], "b")];
    check("linear", &inputs, |i| {
        Linear::new(i[1].clone(), Some(i[2].clone())).forward(&i[0])
    });
    for activation in [
        Activation::Gelu,
        Activation::GeluTanh,
        Activation::QuickGelu,
        Activation::Silu,
    ] {
        check(&format!("{activation:?}"), &inputs, |i| {
            Linear::new(i[1].clone(), Some(i[2].clone())).forward_activated(&i[0], activation)
        });
    }
    // Away from its kink, over which no difference is a derivative.
    let far = Tensor::new(&[[-1.0_f32, -0.3, 0.4, 2.0]], &CPU).unwrap();
    check("Relu", &[far], |i| Activation::Relu.forward(&i[0]));
}

#[test]
fn norms() {
    let inputs = [drawn(&[4, 8], "x"), drawn(&[8], "w"), drawn(&[8], "b")];
    check("layer norm", &inputs, |i| {
        LayerNorm::new(i[1].clone(), i[2].clone(), 1e-5).forward(&i[0])
    });
    check("rms norm", &inputs[..2], |i| {
        RmsNorm::new(i[1].clone(), 1e-6).forward(&i[0])
    });
}

#[test]
fn attention_with_and_without_a_mask() {
    let inputs = ["q", "k", "v"].map(|name| drawn(&[2, 2, 5, 4], name));
    check("attention", &inputs, |i| attend(&i[0], &i[1], &i[2], None));
    let causal: Vec<f32> = (0..25)
        .map(|at| {
            if at % 5 > at / 5 {
                f32::NEG_INFINITY
            } else {
                0.0
            }
        })
        .collect();
    let mask = Tensor::from_vec(causal, (1, 1, 5, 5), &CPU).unwrap();
    check("causal attention", &inputs, |i| {
        attend(&i[0], &i[1], &i[2], Some(&mask))
    });
    let parts = [
        drawn(&[1, 5, 8], "x"),
        weight(&[8, 8], "wq"),
        weight(&[8, 8], "wk"),
        weight(&[8, 8], "wv"),
        weight(&[8, 8], "wo"),
    ];
    let sizes = AttentionConfig {
        heads: 2,
        head_dim: 4,
    };
    check("self-attention", &parts, |i| {
        let map = |at: usize| Linear::new(i[at].clone(), None);
        let projections = Projections::Separate {
            query: map(1),
            key: map(2),
            value: map(3),
        };
        Attention::new(projections, map(4), sizes).forward(&i[0], None, None)
    });
}

#[test]
fn rotary_positions() {
    let rotary = Rotary::axial((2, 3), 8, 100.0, &CPU).unwrap();
    check("rotary", &[drawn(&[2, 7, 16], "x")], |i| {
        // A copy: the inference form writes over what it is given.
        rotary.apply(i[0].affine(1.0, 0.0)?, 8)
    });
}

#[test]
fn residuals_and_feed_forward() {
    let inputs = [drawn(&[3, 6], "x"), drawn(&[3, 6], "y"), drawn(&[6], "g")];
    check("residual", &inputs[..2], |i| {
        add_residual(&i[0], i[1].affine(1.0, 0.0)?, None)
    });
    check("scaled residual", &inputs, |i| {
        add_residual(&i[0], i[1].affine(1.0, 0.0)?, Some(&i[2]))
    });
    let parts = [
        drawn(&[3, 6], "x"),
        weight(&[8, 6], "gate"),
        weight(&[8, 6], "up"),
        weight(&[6, 8], "down"),
    ];
    for activation in [Activation::Silu, Activation::GeluTanh] {
        check("gated feed-forward", &parts, |i| {
            let map = |at: usize| Linear::new(i[at].clone(), None);
            let (gate, up, down) = (map(1), map(2), map(3));
            let mlp = Mlp::Gated {
                gate,
                up,
                down,
                activation,
            };
            mlp.forward(&i[0])
        });
    }
}

#[test]
fn patches() {
    let patches = weights::random(1, &CPU, DType::F32, |w| {
        PatchEmbedding::load(w, 3, 2, 5, true)
    })
    .unwrap();
    check("patches", &[drawn(&[1, 3, 4, 6], "pixels")], |i| {
        patches.forward(&i[0])
    });
}

#[test]
fn low_rank_parts() {
    let inputs = [
        drawn(&[3, 6], "x"),
        weight(&[2, 6], "a"),
        weight(&[5, 2], "b"),
    ];
    let base = weight(&[5, 6], "w");
    check("low rank", &inputs, |i| {
        let switch = Switch::default();
        let mut linear = Linear::new(base.clone(), None);
        let (a, b) = (i[1].clone(), i[2].clone());
        linear.attach(&switch, 1, Part::LowRank { a, b, scale: 2.0 });
        switch.select(1);
        linear.forward_activated(&i[0], Activation::Gelu)
    });
}

#[test]
fn a_tower_from_pixels_on() {
    for config in [
        VisionConfig::clip_large_336(),
        VisionConfig::siglip_so400m_896(),
    ] {
        let config = VisionConfig {
            dim: 8,
            depth: 2,
            heads: 2,
            hidden: 16,
            size: 28,
            ..config
        };
        let tower =
            weights::random(5, &CPU, DType::F32, |w| VisionTower::load(&config, w)).unwrap();
        // Drawn weights are small: pixels are made large, or the norms' curvature drowns the differences.
        let pixels = (drawn(&[1, 3, 28, 28], "pixels") * 20.0).unwrap();
        check("tower", &[pixels], |i| tower.last_normed(&i[0]));
    }
}

/// Gemma's layers and Llama's: rows of a picture in a prompt, through everything, to the logits.
#[test]
fn a_decoder_from_a_picture_on() {
    for (norm, sliding) in [(NormStyle::Pre, false), (NormStyle::Sandwich, true)] {
        let layers = if sliding {
            vec![LayerKind::Sliding, LayerKind::Full]
        } else {
            vec![LayerKind::Full; 2]
        };
        let config = DecoderConfig {
            vocab: 11,
            hidden: 8,
            intermediate: 12,
            heads: 2,
            kv_heads: 1,
            head_dim: 4,
            activation: Activation::Silu,
            norm,
            norm_eps: 1e-5,
            qk_norm: sliding,
            attention_bias: false,
            scale: 0.5,
            embedding_scale: sliding.then_some(2.5),
            layers,
            rope: Rope::plain(1e4),
            sliding_rope: Rope::plain(1e3),
            window: 3,
            tied: true,
            bidirectional_images: sliding,
        };
        let decoder =
            weights::random(5, &CPU, DType::F32, |w| Decoder::load(w, w, &config)).unwrap();
        let span = ImageSpan {
            start: 1,
            length: 3,
            picture: 0,
        };
        let prompt = Prompt::on_one_axis(vec![4, 0, 0, 0, 7, 2], vec![span]);
        let run = |rows: &Tensor| {
            let features = Features {
                rows: rows.clone(),
                deep: Vec::new(),
                grid: (3, 1),
            };
            let all = 0..prompt.tokens.len();
            let mut sequences = [Sequence::of_prompt(&prompt, all, &[&features], None)];
            // Small drawn heads make small logits.
            decoder.forward(&mut sequences)? * 20.0
        };
        check("decoder", &[drawn(&[3, 8], "rows")], |i| run(&i[0]));
    }
}

#[test]
fn no_fused_step_is_left_in_training() {
    // The inference form writes into its own products: a tensor made in training must not share memory that it wrote over.
    let x = drawn(&[2, 9, 16], "x");
    let rotary = Rotary::axial((3, 3), 8, 100.0, &CPU).unwrap();
    let before = values(&x);
    let turned = training(|| rotary.apply(x.clone(), 8)).unwrap();
    assert_eq!(values(&x), before);
    assert_ne!(values(&turned), before);
    let branch = drawn(&[2, 9, 16], "y");
    let kept = values(&branch);
    training(|| add_residual(&x, branch.clone(), None)).unwrap();
    assert_eq!(values(&branch), kept);
}
