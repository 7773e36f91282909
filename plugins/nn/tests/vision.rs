//! Towers against the image features of transformers' LLaVA-NeXT and Gemma 3 (`scripts/vision_data.py`), each behind its own projector.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use focus_nn::candle::{D, Var};
use focus_nn::lora::Module;
use focus_nn::vision::{VisionConfig, VisionTower, tower_at};
use focus_nn::{
    Activation, Checkpoint, DType, Device, Init, Layout, Linear, LoadError, Tensor, Weights,
    weights,
};
use std::path::PathBuf;

const CPU: Device = Device::Cpu;
const IGNORED: [&str; 2] = ["expected.*", "multi_modal_projector.*"];
/// Relative and absolute.
const TIGHT: (f32, f32) = (1e-5, 5e-6);

fn file(model: &str) -> Checkpoint {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join(format!("tests/data/vision_{model}.safetensors"));
    Checkpoint::open_file(&path, &Layout::default()).unwrap()
}

fn get(checkpoint: &Checkpoint, name: &str) -> Tensor {
    let raw = checkpoint.get(name).unwrap();
    raw.to_tensor(&CPU, DType::F32).unwrap()
}

/// The same checkpoint with another spelling of the tower's place.
fn created_by_5(checkpoint: &Checkpoint) -> Checkpoint {
    let mut renamed = checkpoint.clone();
    let names: Vec<String> = checkpoint.names().map(str::to_owned).collect();
    for name in names {
        let tensor = renamed.remove(&name).unwrap();
        renamed.insert(
            name.replace("vision_tower.vision_model.", "vision_tower."),
            tensor,
        );
    }
    renamed
}

fn small(config: VisionConfig, depth: usize) -> VisionConfig {
    VisionConfig {
        dim: 32,
        depth,
        heads: 2,
        hidden: 64,
        size: 56,
        ..config
    }
}

fn llava() -> VisionConfig {
    small(VisionConfig::clip_large_336(), 3)
}

fn gemma() -> VisionConfig {
    small(VisionConfig::siglip_so400m_896(), 2)
}

fn tower_as(
    checkpoint: &Checkpoint,
    config: &VisionConfig,
    dtype: DType,
) -> Result<VisionTower, LoadError> {
    weights::load(checkpoint.clone(), &CPU, dtype, &IGNORED, |w| {
        VisionTower::load(config, &tower_at(&w.at("vision_tower")))
    })
}

fn tower(checkpoint: &Checkpoint, config: &VisionConfig) -> VisionTower {
    tower_as(checkpoint, config, DType::F32).unwrap()
}

fn values(t: &Tensor) -> Vec<f32> {
    let wide = t.to_dtype(DType::F32).unwrap();
    wide.flatten_all().unwrap().to_vec1().unwrap()
}

fn worst(found: &Tensor, wanted: &Tensor) -> f32 {
    assert_eq!(found.elem_count(), wanted.elem_count());
    let pairs = values(found).into_iter().zip(values(wanted));
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

fn close(found: &Tensor, wanted: &Tensor) {
    assert_eq!(found.elem_count(), wanted.elem_count());
    for (a, b) in values(found).into_iter().zip(values(wanted)) {
        assert!((a - b).abs() <= TIGHT.0 * b.abs() + TIGHT.1, "{a} {b}");
    }
}

/// LLaVA's projector: two linear maps with the exact GELU between them.
fn llava_features(checkpoint: &Checkpoint, hidden: &Tensor) -> Tensor {
    let map = |name: &str| {
        let part = |kind: &str| get(checkpoint, &format!("multi_modal_projector.{name}.{kind}"));
        Linear::new(part("weight"), Some(part("bias")))
    };
    let middle = map("linear_1")
        .forward_activated(hidden, Activation::Gelu)
        .unwrap();
    map("linear_2").forward(&middle).unwrap()
}

/// Gemma's: the grid pooled 2 by 2, an RMS norm with `1 + w`, a map.
fn gemma_features(checkpoint: &Checkpoint, hidden: &Tensor) -> Tensor {
    let pooled = hidden
        .reshape((1, 2, 2, 2, 2, 32))
        .unwrap()
        .mean((2, 4))
        .unwrap()
        .reshape((4, 32))
        .unwrap();
    let norm = get(checkpoint, "multi_modal_projector.mm_soft_emb_norm.weight");
    let size = (pooled.sqr().unwrap().mean_keepdim(D::Minus1).unwrap() + 1e-6)
        .unwrap()
        .sqrt()
        .unwrap();
    let scaled = pooled
        .broadcast_div(&size)
        .unwrap()
        .broadcast_mul(&(norm + 1.0).unwrap())
        .unwrap();
    let map = get(
        checkpoint,
        "multi_modal_projector.mm_input_projection_weight",
    );
    scaled.matmul(&map).unwrap()
}

/// Features of LLaVA's base tile from a tower of these numbers at a layer.
fn llava_with(checkpoint: &Checkpoint, config: &VisionConfig, layer: isize) -> Tensor {
    let tower = tower(checkpoint, config);
    let pixels = get(checkpoint, "expected.pixel_values");
    let hidden = tower.hidden_state(&pixels, layer).unwrap();
    llava_features(checkpoint, &tower.patches(&hidden).unwrap())
}

fn gemma_with(checkpoint: &Checkpoint, config: &VisionConfig) -> Tensor {
    let tower = tower(checkpoint, config);
    let pixels = get(checkpoint, "expected.pixel_values");
    let hidden = tower.last_normed(&pixels).unwrap();
    gemma_features(checkpoint, &tower.patches(&hidden).unwrap())
}

#[test]
fn llava_features_equal_the_reference_in_both_spellings() {
    let checkpoint = file("llava_next");
    let wanted = get(&checkpoint, "expected.image_features");
    close(&llava_with(&checkpoint, &llava(), -2), &wanted);
    close(&llava_with(&checkpoint, &llava(), 2), &wanted);
    close(
        &llava_with(&created_by_5(&checkpoint), &llava(), -2),
        &wanted,
    );
}

#[test]
fn gemma_features_equal_the_reference_in_both_spellings() {
    let checkpoint = file("gemma3");
    let wanted = get(&checkpoint, "expected.image_features");
    close(&gemma_with(&checkpoint, &gemma()), &wanted);
    close(&gemma_with(&created_by_5(&checkpoint), &gemma()), &wanted);
}

#[test]
fn what_is_easily_got_wrong_is_seen() {
    let checkpoint = file("llava_next");
    let wanted = get(&checkpoint, "expected.image_features");
    assert!(worst(&llava_with(&checkpoint, &llava(), -1), &wanted) > 0.5);
    let with = |activation, eps| VisionConfig {
        activation,
        eps,
        ..llava()
    };
    for config in [
        with(Activation::Gelu, 1e-5),
        with(Activation::GeluTanh, 1e-5),
        with(Activation::QuickGelu, 1e-3),
    ] {
        assert!(worst(&llava_with(&checkpoint, &config, -2), &wanted) > 1e-3);
    }
    let checkpoint = file("gemma3");
    let wanted = get(&checkpoint, "expected.image_features");
    let exact = VisionConfig {
        activation: Activation::Gelu,
        ..gemma()
    };
    // Far below what the first logits would show.
    let moved = worst(&gemma_with(&checkpoint, &exact), &wanted);
    assert!(moved > 2e-5, "{moved}");
    let near = worst(&gemma_with(&checkpoint, &gemma()), &wanted);
    assert!(near * 10.0 < moved, "{near}");
}

#[test]
fn half_types_stay_near() {
    for (model, config) in [("llava_next", llava()), ("gemma3", gemma())] {
        let checkpoint = file(model);
        let pixels = get(&checkpoint, "expected.pixel_values");
        let wide = tower(&checkpoint, &config).last_normed(&pixels).unwrap();
        let half = tower_as(&checkpoint, &config, DType::BF16)
            .unwrap()
            .last_normed(&pixels.to_dtype(DType::BF16).unwrap())
            .unwrap();
        assert_eq!(half.dtype(), DType::BF16);
        let (a, b) = (values(&wide), values(&half));
        let dot = |x: &[f32], y: &[f32]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f32>();
        let cosine = dot(&a, &b) / (dot(&a, &a) * dot(&b, &b)).sqrt();
        assert!(cosine > 0.9998, "{model}: {cosine}");
    }
}

#[test]
fn a_picture_is_the_same_alone_and_among_others() {
    let checkpoint = file("gemma3");
    let tower = tower(&checkpoint, &gemma());
    let one = get(&checkpoint, "expected.pixel_values");
    let other = (&one * -0.5).unwrap();
    let both = tower
        .last_normed(&Tensor::cat(&[&other, &one], 0).unwrap())
        .unwrap();
    let alone = tower.last_normed(&one).unwrap();
    assert!(worst(&both.narrow(0, 1, 1).unwrap(), &alone) < 1e-5);
}

#[test]
fn gradients_reach_the_pixels() {
    let checkpoint = file("llava_next");
    let tower = tower(&checkpoint, &llava());
    let plain = get(&checkpoint, "expected.pixel_values");
    let pixels = Var::from_tensor(&plain).unwrap();
    let tracked = tower.hidden_state(pixels.as_tensor(), -2).unwrap();
    close(&tracked, &tower.hidden_state(&plain, -2).unwrap());
    let gradients = tracked
        .sqr()
        .unwrap()
        .sum_all()
        .unwrap()
        .backward()
        .unwrap();
    assert!(
        values(gradients.get(&pixels).unwrap())
            .iter()
            .any(|&g| g != 0.0)
    );
}

#[test]
fn a_wrong_checkpoint_or_request_is_told_apart() {
    let whole = file("llava_next");
    let broken = |change: &dyn Fn(&mut Checkpoint)| {
        let mut checkpoint = whole.clone();
        change(&mut checkpoint);
        let result = tower_as(&checkpoint, &llava(), DType::F32);
        result.map(|_| ()).unwrap_err().to_string()
    };
    let norm = "vision_tower.vision_model.pre_layrnorm.weight";
    let error = broken(&|c| drop(c.remove(norm)));
    assert!(
        error.contains("missing 1 of") && error.contains(norm),
        "{error}"
    );
    // A tensor of the layer that the chosen hidden state leaves out is missed too.
    let last = "vision_tower.vision_model.encoder.layers.2.mlp.fc2.bias";
    assert!(broken(&|c| drop(c.remove(last))).contains(last));
    let error = broken(&|c| {
        let tensor = c.remove(norm).unwrap();
        c.insert(norm.replace("layrnorm", "layernorm"), tensor);
    });
    assert!(
        error.contains("unexpected 1: `vision_tower.vision_model.pre_layernorm.weight`"),
        "{error}"
    );
    let table = "vision_tower.vision_model.embeddings.position_embedding.weight";
    let error = broken(&|c| {
        let other = c.get(norm).unwrap().clone();
        c.insert(table, other);
    });
    assert!(error.contains("expected [17, 32], found [32]"), "{error}");
    // Nothing of a tower at all: told in the hub's spelling.
    let empty = tower_as(&Checkpoint::default(), &llava(), DType::F32);
    assert!(
        empty
            .unwrap_err()
            .to_string()
            .contains("vision_tower.vision_model.")
    );

    let tower = tower(&whole, &llava());
    let pixels = get(&whole, "expected.pixel_values");
    let error = tower.hidden_state(&pixels, 4).unwrap_err().to_string();
    assert!(error.contains("expected -4 to 3, found 4"), "{error}");
    assert!(tower.hidden_state(&pixels, -5).is_err());
    assert!(tower.hidden_state(&pixels, -4).is_ok());
    let error = tower
        .hidden_state(&pixels.narrow(2, 0, 42).unwrap(), -2)
        .unwrap_err()
        .to_string();
    assert!(error.contains("expected 56 x 56, found 56 x 42"), "{error}");
}

#[test]
fn random_towers_need_no_checkpoint() {
    let drawn = |seed| {
        weights::random(seed, &CPU, DType::F32, |w: &Weights| {
            VisionTower::load(&llava(), &tower_at(&w.at("vision_tower")))
        })
        .unwrap()
    };
    let pixels = weights::random(5, &CPU, DType::F32, |w| {
        w.get("pixels", &[1, 3, 56, 56], Init::Normal(1.0))
    })
    .unwrap();
    let run = |seed| drawn(seed).hidden_state(&pixels, -2).unwrap();
    assert_eq!(values(&run(1)), values(&run(1)));
    assert!(worst(&run(1), &run(2)) > 1e-3);
}

#[test]
fn adapters_see_every_linear_layer() {
    let checkpoint = file("llava_next");
    let mut tower = tower(&checkpoint, &llava());
    let mut names = Vec::new();
    tower.visit("model.vision_tower", &mut |name, module| {
        let Module::Linear(linear) = module else {
            panic!("`{name}` is no linear layer")
        };
        names.push((name.to_owned(), linear.weight().dims().to_vec()));
    });
    let mut wanted = Vec::new();
    for name in checkpoint.names() {
        let Some(rest) = name.strip_prefix("vision_tower.vision_model.encoder.") else {
            continue;
        };
        let shape = checkpoint.get(name).unwrap().shape().to_vec();
        if let (Some(rest), 2) = (rest.strip_suffix(".weight"), shape.len()) {
            wanted.push((format!("model.vision_tower.encoder.{rest}"), shape));
        }
    }
    names.sort();
    wanted.sort();
    assert_eq!(names.len(), 18);
    assert_eq!(names, wanted);
}
