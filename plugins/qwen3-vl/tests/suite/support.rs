//! The fixture, opened and compared.

use focus_nn::lm::{Features, Prompt, Sequence};
use focus_nn::{Checkpoint, DType, Device, Layout, Tensor};
use focus_plugin_sdk::{
    GenerateBatch, GenerateReply, GenerateRequest, Generator, Host, OpenOptions, Picture,
};
use qwen3_vl::model::QwenVl;
use qwen3_vl::network::Network;
use qwen3_vl::open::{Described, describe};
use qwen3_vl::processor::Patches;
use qwen3_vl::prompt::{self, SLOT};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Tolerance against the reference in f32.
pub const RELATIVE: f32 = 1e-4;
/// As above.
pub const ABSOLUTE: f32 = 2e-5;

pub const PICTURES: [&str; 3] = ["fundus_b.png", "fundus_c.jpg", "fundus_w.png"];

pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

pub fn text(file: &str) -> String {
    std::fs::read_to_string(folder().join(file)).unwrap()
}

pub fn json(file: &str) -> Value {
    serde_json::from_str(&text(file)).unwrap()
}

pub fn question() -> String {
    json("expected.json")["question"]
        .as_str()
        .unwrap()
        .to_owned()
}

pub fn described() -> Described {
    describe(&folder()).unwrap()
}

pub fn network(dtype: DType) -> Network {
    Network::load(&folder(), &described().config, &Device::Cpu, dtype).unwrap()
}

/// The reference's outputs and inputs.
pub struct Expected(Checkpoint);

impl Expected {
    pub fn open() -> Self {
        let path = folder().join("expected.safetensors");
        Self(Checkpoint::open_file(&path, &Layout::default()).unwrap())
    }

    pub fn values(&self, name: &str) -> Vec<f32> {
        let raw = self.0.get(name).expect(name);
        values(&raw.to_tensor(&Device::Cpu, DType::F32).unwrap())
    }

    pub fn ids(&self, name: &str) -> Vec<u32> {
        let bytes = self.0.get(name).expect(name).bytes();
        let numbers = bytes.chunks_exact(8);
        numbers
            .map(|b| i64::from_le_bytes(b.try_into().unwrap()) as u32)
            .collect()
    }

    /// The reference's patches of a picture, from its bytes: `levels` of torchvision, `levels_pil` of Pillow. One of the two equal frames
    /// is kept.
    pub fn patches(&self, picture: usize, kind: &str) -> Patches {
        let raw = self.0.get(&format!("{picture}.{kind}")).unwrap();
        let levels = raw.bytes();
        let mut values = Vec::with_capacity(levels.len() * 2);
        for channel in levels.chunks_exact(16 * 16) {
            for _ in 0..2 {
                values.extend(
                    channel
                        .iter()
                        .map(|&level| ((f64::from(level) / 255.0 - 0.5) / 0.5) as f32),
                );
            }
        }
        let grid = self.ids(&format!("{picture}.image_grid_thw"));
        Patches {
            grid: (grid[1] as usize, grid[2] as usize),
            values,
        }
    }
}

pub fn values(tensor: &Tensor) -> Vec<f32> {
    tensor
        .to_dtype(DType::F32)
        .unwrap()
        .flatten_all()
        .unwrap()
        .to_vec1()
        .unwrap()
}

/// Width, height and bytes of a photograph.
pub fn photograph(file: &str) -> (usize, usize, Vec<u8>) {
    let bytes = std::fs::read(folder().join(file)).unwrap();
    let image = focus_images::decode(&bytes, &focus_images::Limits::default())
        .unwrap()
        .0;
    (image.width as usize, image.height as usize, image.pixels)
}

/// A question about one picture.
pub fn ask(described: &Described, features: &Features, question: &str) -> Prompt {
    let tokens = described.chat.question(1, question, SLOT).unwrap();
    prompt::expand(&tokens, described.config.image_token, &[features])
}

/// First logits of a prompt about one picture.
pub fn first_logits(network: &Network, prompt: &Prompt, features: &Features) -> Vec<f32> {
    let all = 0..prompt.tokens.len();
    let sequence = Sequence::of_prompt(prompt, all, &[features], None);
    values(&network.decoder.forward(&mut [sequence]).unwrap())
}

/// First logits on the reference's own pixels of a picture.
pub fn logits_of(network: &Network, picture: usize) -> Vec<f32> {
    let features = network
        .tower
        .forward(&Expected::open().patches(picture, "levels"))
        .unwrap();
    let prompt = ask(&described(), &features, &question());
    first_logits(network, &prompt, &features)
}

pub fn options(settings: &[(&str, &str)], weights: Option<&Path>) -> OpenOptions {
    OpenOptions {
        model: "checkpoint".into(),
        device: "cpu".into(),
        dtype: Some("f32".into()),
        weights: weights.map(|path| path.to_str().unwrap().to_owned()),
        threads: 2,
        settings: settings
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect(),
    }
}

pub fn open() -> QwenVl {
    QwenVl::open(&options(&[], Some(&folder())), &Host::detached()).unwrap()
}

/// Through the plugin's own door.
pub fn generate(
    model: &mut QwenVl,
    request: &GenerateRequest,
    pictures: &[(usize, usize, Vec<u8>)],
) -> GenerateReply {
    let bytes: Vec<&[u8]> = pictures.iter().map(|(_, _, rgb)| rgb.as_slice()).collect();
    let batch = GenerateBatch::new(request, &bytes).unwrap();
    model.generate(&batch, &Host::detached()).unwrap()
}

pub fn picture((width, height, rgb): &(usize, usize, Vec<u8>)) -> Picture<'_> {
    Picture {
        width: *width,
        height: *height,
        rgb,
    }
}

pub fn difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter()
        .zip(b)
        .map(|(x, y)| (x - y).abs())
        .fold(0.0, f32::max)
}

pub fn assert_close(what: &str, found: &[f32], wanted: &[f32]) {
    assert_eq!(found.len(), wanted.len(), "{what}");
    for (x, y) in found.iter().zip(wanted) {
        assert!(
            (x - y).abs() <= ABSOLUTE + RELATIVE * y.abs(),
            "{what}: {x} {y}, at most {}",
            difference(found, wanted)
        );
    }
}

pub fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |x: &[f32], y: &[f32]| {
        x.iter()
            .zip(y)
            .map(|(x, y)| f64::from(*x) * f64::from(*y))
            .sum::<f64>()
    };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

pub fn argmax(row: &[f32]) -> u32 {
    let best = row.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    best.unwrap().0 as u32
}
