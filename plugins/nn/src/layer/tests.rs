//! The fused and the plain form of every layer compute the same, and the plain form has gradients.

use super::*;
use crate::position::Rotary;
use crate::weights;
use candle_core::{DType, Device, Tensor, Var};

const CPU: Device = Device::Cpu;

fn values(t: &Tensor) -> Vec<f32> {
    t.to_dtype(DType::F32)
        .unwrap()
        .flatten_all()
        .unwrap()
        .to_vec1()
        .unwrap()
}

fn close(a: &Tensor, b: &Tensor, tolerance: f32) {
    assert_eq!(a.dims(), b.dims());
    for (x, y) in values(a).iter().zip(values(b)) {
        assert!((x - y).abs() <= tolerance * (1.0 + y.abs()), "{x} {y}");
    }
}

fn drawn(shape: &[usize], name: &str) -> Tensor {
    weights::random(3, &CPU, DType::F32, |w| {
        w.get(name, shape, crate::Init::Normal(1.0))
    })
    .unwrap()
}

/// Run on a tracked copy: the plain form. Its gradient must exist.
fn tracked(x: &Tensor, run: impl Fn(&Tensor) -> candle_core::Result<Tensor>) -> Tensor {
    let var = Var::from_tensor(x).unwrap();
    let y = run(var.as_tensor()).unwrap();
    let gradients = y.sqr().unwrap().sum_all().unwrap().backward().unwrap();
    let gradient = gradients.get(&var).expect("plain forms have gradients");
    assert!(values(gradient).iter().any(|&g| g != 0.0));
    y
}

#[test]
fn linear_with_every_activation() {
    let x = drawn(&[2, 100, 48], "x");
    let linear = Linear::new(drawn(&[200, 48], "w"), Some(drawn(&[200], "b")));
    close(
        &linear.forward(&x).unwrap(),
        &tracked(&x, |x| linear.forward(x)),
        1e-5,
    );
    for activation in [
        Activation::Gelu,
        Activation::GeluTanh,
        Activation::QuickGelu,
        Activation::Silu,
        Activation::Relu,
    ] {
        let fused = linear.forward_activated(&x, activation).unwrap();
        let plain = tracked(&x, |x| linear.forward_activated(x, activation));
        close(&fused, &plain, 4e-6);
    }
    let bare = Linear::new(drawn(&[200, 48], "w"), None);
    close(
        &bare.forward_activated(&x, Activation::Gelu).unwrap(),
        &tracked(&x, |x| bare.forward_activated(x, Activation::Gelu)),
        1e-5,
    );
    assert_eq!(bare.forward(&x).unwrap().dims(), [2, 100, 200]);
}

#[test]
fn activations_differ_from_each_other() {
    // The exact and the approximate forms are easily taken for one another.
    let x = Tensor::new(&[[-1.5_f32, -0.5, 0.5, 2.0]], &CPU).unwrap();
    let eye = Linear::new(
        Tensor::eye(4, DType::F32, &CPU).unwrap(),
        Some(Tensor::zeros(4, DType::F32, &CPU).unwrap()),
    );
    let run = |a| values(&eye.forward_activated(&x, a).unwrap());
    let exact = run(Activation::Gelu);
    // From tables of the normal distribution.
    for (found, wanted) in exact.iter().zip([-0.100_21, -0.154_27, 0.345_73, 1.954_50]) {
        assert!((found - wanted).abs() < 1e-5, "{found} {wanted}");
    }
    let far = |other: Vec<f32>| {
        exact
            .iter()
            .zip(other)
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f32::max)
    };
    assert!(far(run(Activation::GeluTanh)) > 1e-4);
    assert!(far(run(Activation::QuickGelu)) > 1e-2);
}

#[test]
fn norm_in_both_forms() {
    let x = (drawn(&[3, 70, 200], "x") * 5.0).unwrap();
    let x = (x + 100.0).unwrap();
    let norm = LayerNorm::new(drawn(&[200], "w"), drawn(&[200], "b"), 1e-6);
    close(
        &norm.forward(&x).unwrap(),
        &tracked(&x, |x| norm.forward(x)),
        2e-4,
    );
    let still = Tensor::full(7.0_f32, (1, 200), &CPU).unwrap();
    close(
        &norm.forward(&still).unwrap(),
        &drawn(&[200], "b").unsqueeze(0).unwrap(),
        1e-6,
    );
}

#[test]
fn residual_in_both_forms() {
    let (x, y) = (drawn(&[2, 130, 256], "x"), drawn(&[2, 130, 256], "y"));
    let gamma = drawn(&[256], "g");
    for gamma in [None, Some(&gamma)] {
        let fused = add_residual(&x, y.copy().unwrap(), gamma).unwrap();
        close(
            &fused,
            &tracked(&x, |x| add_residual(x, y.copy().unwrap(), gamma)),
            1e-6,
        );
    }
}

#[test]
fn a_query_does_not_depend_on_its_neighbours_nor_widths_on_vectors() {
    // Sides that fill no vector, and blocks that end in groups of one, two and three.
    for (queries, others, heads, dim) in [
        (1, 2, 1, 3),
        (66, 17, 2, 20),
        (7, 50, 3, 72),
        (131, 65, 1, 64),
    ] {
        let q = drawn(&[2, heads, queries, dim], "q");
        let (k, v) = (
            drawn(&[2, heads, others, dim], "k"),
            drawn(&[2, heads, others, dim], "v"),
        );
        let all = attend(&q, &k, &v, None).unwrap();
        close(&all, &tracked(&q, |q| attend(q, &k, &v, None)), 2e-5);
        for at in [0, queries / 2, queries - 1] {
            let one = attend(&q.narrow(2, at, 1).unwrap(), &k, &v, None).unwrap();
            assert_eq!(values(&one), values(&all.narrow(1, at, 1).unwrap()));
        }
        let image = |t: &Tensor| t.narrow(0, 1, 1).unwrap();
        let alone = attend(&image(&q), &image(&k), &image(&v), None).unwrap();
        assert_eq!(values(&alone), values(&image(&all)));
    }
}

#[test]
fn attention_in_both_forms_and_any_strides() {
    // 700 tokens: more than one block.
    for (batch, tokens) in [(3, 40), (1, 700)] {
        let packed = drawn(&[batch, tokens, 3, 4, 8], "qkv");
        let part = |i: usize| {
            packed
                .narrow(2, i, 1)
                .unwrap()
                .squeeze(2)
                .unwrap()
                .transpose(1, 2)
                .unwrap()
        };
        let (q, k, v) = (part(0), part(1), part(2));
        let fused = attend(&q, &k, &v, None).unwrap();
        close(&fused, &tracked(&q, |q| attend(q, &k, &v, None)), 2e-5);
        let mask: Vec<f32> = (0..tokens * tokens)
            .map(|i| if i % 3 == 0 { f32::NEG_INFINITY } else { 0.0 })
            .collect();
        let mask = Tensor::from_vec(mask, (1, 1, tokens, tokens), &CPU).unwrap();
        let masked = attend(&q, &k, &v, Some(&mask)).unwrap();
        close(
            &masked,
            &tracked(&q, |q| attend(q, &k, &v, Some(&mask))),
            2e-5,
        );
        assert!(values(&masked) != values(&fused));
    }
}

#[test]
fn half_types_run_on_the_cpu() {
    let x = drawn(&[1, 20, 32], "x");
    let all = Linear::new(drawn(&[96, 32], "w"), Some(drawn(&[96], "b")));
    let out = Linear::new(drawn(&[32, 32], "o"), None);
    let config = AttentionConfig {
        heads: 4,
        head_dim: 8,
    };
    let wide = Attention::new(Projections::Packed(all.clone()), out.clone(), config)
        .forward(&x, None, None)
        .unwrap();
    let brief = |l: &Linear| {
        let cast = |t: &Tensor| t.to_dtype(DType::BF16).unwrap();
        Linear::new(cast(l.weight()), l.bias().map(cast))
    };
    let half = Attention::new(Projections::Packed(brief(&all)), brief(&out), config)
        .forward(&x.to_dtype(DType::BF16).unwrap(), None, None)
        .unwrap();
    assert_eq!(half.dtype(), DType::BF16);
    let (a, b) = (values(&wide), values(&half));
    let dot = |x: &[f32], y: &[f32]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f32>();
    assert!(dot(&a, &b) / (dot(&a, &a) * dot(&b, &b)).sqrt() > 0.999);
}

#[test]
fn rotary_in_both_forms_leaves_the_prefix_alone() {
    let rotary = Rotary::axial((3, 4), 8, 100.0, &CPU).unwrap();
    let x = drawn(&[2, 12 + 5, 16], "x");
    let fused = rotary.apply(x.copy().unwrap(), 8).unwrap();
    close(&fused, &tracked(&x, |x| rotary.apply(x.clone(), 8)), 1e-6);
    assert_eq!(
        values(&fused.narrow(1, 0, 5).unwrap()),
        values(&x.narrow(1, 0, 5).unwrap())
    );
    let length = |t: &Tensor| {
        t.sqr()
            .unwrap()
            .sum_all()
            .unwrap()
            .to_scalar::<f32>()
            .unwrap()
    };
    assert!((length(&fused) / length(&x) - 1.0).abs() < 1e-5);
    assert!(rotary.apply(x.narrow(1, 0, 11).unwrap(), 8).is_err());
}

#[test]
fn patches_are_a_convolution() {
    let pixels = drawn(&[2, 3, 9, 13], "p");
    let w = drawn(&[5, 3, 4, 4], "e.weight");
    let patches = weights::random(3, &CPU, DType::F32, |at| {
        PatchEmbedding::load(&at.at("e"), 3, 4, 5, false)
    })
    .unwrap();
    // The layer draws its weight under the same name with another width.
    let scale = 0.02;
    let wanted = pixels
        .conv2d(&(w * scale).unwrap(), 0, 4, 1, 1)
        .unwrap()
        .flatten_from(2)
        .unwrap()
        .transpose(1, 2)
        .unwrap();
    close(&patches.forward(&pixels).unwrap(), &wanted, 1e-5);
    assert!(patches.forward(&pixels.narrow(1, 0, 2).unwrap()).is_err());
}

#[test]
fn gated_feed_forward_packed_or_not() {
    let x = drawn(&[2, 6, 16], "x");
    let (gate, up) = (drawn(&[24, 16], "g"), drawn(&[24, 16], "u"));
    let down = Linear::new(drawn(&[16, 24], "d"), None);
    let apart = Mlp::Gated {
        gate: Linear::new(gate.clone(), None),
        up: Linear::new(up.clone(), None),
        down: down.clone(),
        activation: Activation::Silu,
    };
    let packed = Mlp::Packed {
        both: Linear::new(Tensor::cat(&[&gate, &up], 0).unwrap(), None),
        down,
        activation: Activation::Silu,
    };
    close(
        &apart.forward(&x).unwrap(),
        &packed.forward(&x).unwrap(),
        1e-5,
    );
}

#[test]
fn attention_block_by_block_is_attention_at_once() {
    let (q, k, v) = (
        drawn(&[2, 3, 11, 8], "q"),
        drawn(&[2, 3, 13, 8], "k"),
        drawn(&[2, 3, 13, 8], "v"),
    );
    let masks = [
        None,
        Some(drawn(&[2, 1, 11, 13], "m")),
        Some(drawn(&[11, 13], "n")),
        Some(drawn(&[2, 3, 1, 13], "o")),
        Some(drawn(&[13], "p")),
    ];
    for mask in &masks {
        for kind in [DType::F32, DType::BF16] {
            let run = |block| {
                let cast = |t: &Tensor| t.to_dtype(kind).unwrap();
                let mask = mask.as_ref().map(cast);
                let (q, k, v) = (cast(&q), cast(&k), cast(&v));
                attention::in_blocks(&q, &k, &v, mask.as_ref(), 0.3, block).unwrap()
            };
            let once = run(11);
            assert_eq!(once.dims(), [2, 11, 24]);
            let tolerance = if kind == DType::F32 { 1e-6 } else { 1e-2 };
            for block in [1, 2, 5, 10, 1 << 28] {
                close(&run(block), &once, tolerance);
            }
        }
    }
}

#[test]
fn products_of_half_types_do_not_depend_on_strides() {
    for kind in [DType::BF16, DType::F16] {
        let cast = |t: Tensor| t.to_dtype(kind).unwrap();
        let (a, b) = (cast(drawn(&[2, 5, 16], "a")), cast(drawn(&[2, 16, 7], "b")));
        let wide = |t: &Tensor| t.to_dtype(DType::F32).unwrap();
        let wanted = wide(&a).matmul(&wide(&b)).unwrap().to_dtype(kind).unwrap();
        let lying = b.t().unwrap().contiguous().unwrap();
        let wider = Tensor::cat(&[&b, &b], 2).unwrap();
        let copies = [
            b.clone(),
            lying.t().unwrap(),
            wider.narrow(2, 7, 7).unwrap(),
        ];
        for b in &copies {
            let found = product(&a, b).unwrap();
            assert_eq!(found.dtype(), kind);
            close(&found, &wanted, 1e-2);
        }
        let linear = Linear::new(cast(drawn(&[7, 16], "w")), None);
        let by_hand = wide(&a)
            .broadcast_matmul(&wide(linear.weight()).t().unwrap())
            .unwrap();
        close(&linear.forward(&a).unwrap(), &by_hand, 1e-2);
    }
}
