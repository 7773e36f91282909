//! The tiny model's folder and what the reference says of it.

use focus_nn::candle::{DType, Device, Tensor};
use focus_nn::generate::argmax;
use focus_nn::lm::{Features, Prompt, Sequence};
use focus_nn::pixels::Normalisation;
use focus_nn::{Checkpoint, Layout};
use medgemma::network::Network;
use medgemma::open::{self, Opened};
use serde_json::Value;
use std::path::{Path, PathBuf};

pub const CPU: Device = Device::Cpu;
/// Relative and absolute.
pub const TIGHT: (f32, f32) = (1e-4, 2e-5);

pub fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// The files of a model folder as the hub has them.
pub const FILES: [&str; 8] = [
    "config.json",
    "preprocessor_config.json",
    "processor_config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
    "model.safetensors",
];

/// A copy of the model's folder that may be spoilt.
pub fn copy() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in FILES {
        std::fs::copy(data().join(file), folder.path().join(file)).unwrap();
    }
    folder
}

pub fn model(dtype: DType) -> Opened {
    open::folder(&data(), &CPU, dtype).unwrap()
}

pub fn expected(name: &str) -> Tensor {
    let file = Checkpoint::open_file(&data().join("expected.safetensors"), &Layout::default());
    let file = file.unwrap();
    let raw = file.get(name).unwrap_or_else(|| panic!("{name}"));
    let dtype = if raw.kind().is_float() {
        DType::F32
    } else {
        DType::I64
    };
    raw.to_tensor(&CPU, dtype).unwrap()
}

pub fn floats(name: &str) -> Vec<f32> {
    flat(&expected(name))
}

pub fn whole(name: &str) -> Vec<u32> {
    let values = expected(name).flatten_all().unwrap();
    let values = values.to_vec1::<i64>().unwrap();
    values.into_iter().map(|v| v as u32).collect()
}

pub fn facts() -> Value {
    serde_json::from_str(&std::fs::read_to_string(data().join("expected.json")).unwrap()).unwrap()
}

pub fn question() -> String {
    facts()["question"].as_str().unwrap().to_owned()
}

/// The picture's bytes as the processor resized it.
pub fn rgb(number: usize) -> Vec<u8> {
    whole(&format!("{number}.pixel_values"))
        .into_iter()
        .map(|v| v as u8)
        .collect()
}

pub fn look(network: &Network, number: usize) -> Features {
    let half = Normalisation {
        mean: [0.5; 3],
        std: [0.5; 3],
    };
    let dtype = network.decoder().dtype();
    let pixels = half.planes(&rgb(number), 56, 56, &CPU, dtype).unwrap();
    network.look(&pixels).unwrap()
}

/// Logits after a prompt, whole and without a cache.
pub fn first_logits(network: &Network, prompt: &Prompt, picture: &Features) -> Vec<f32> {
    let sequence = Sequence::of_prompt(prompt, 0..prompt.tokens.len(), &[picture], None);
    flat(&network.decoder().forward(&mut [sequence]).unwrap())
}

/// Logits of every step and the tokens chosen, greedily, by the cache.
pub fn greedy(
    network: &Network,
    prompt: &Prompt,
    picture: &Features,
    steps: usize,
) -> (Vec<Vec<f32>>, Vec<u32>) {
    let decoder = network.decoder();
    let mut cache = decoder.cache(prompt.tokens.len() + steps).unwrap();
    let all = 0..prompt.tokens.len();
    let sequence = Sequence::of_prompt(prompt, all, &[picture], Some(&mut cache));
    let mut row = flat(&decoder.forward(&mut [sequence]).unwrap());
    let (mut rows, mut tokens) = (Vec::new(), Vec::new());
    for step in 0..steps {
        let token = argmax(&row).unwrap();
        rows.push(row);
        tokens.push(token);
        let place = [[prompt.next_place() + step as u32; 3]];
        let sequence = Sequence {
            tokens: &[token],
            places: &place,
            images: Vec::new(),
            cache: Some(&mut cache),
        };
        row = flat(&decoder.forward(&mut [sequence]).unwrap());
    }
    (rows, tokens)
}

pub fn flat(tensor: &Tensor) -> Vec<f32> {
    let flat = tensor.to_dtype(DType::F32).unwrap().flatten_all().unwrap();
    flat.to_vec1().unwrap()
}

/// Largest absolute difference.
pub fn apart(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    let pairs = a.iter().zip(b);
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

pub fn close(found: &[f32], wanted: &[f32], (relative, absolute): (f32, f32)) {
    assert_eq!(found.len(), wanted.len());
    for (at, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        assert!(
            (found - wanted).abs() <= absolute + relative * wanted.abs(),
            "at {at}: {found}, expected {wanted}"
        );
    }
}
