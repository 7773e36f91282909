//! The fixture: folders in both spellings, expected values, and ways to run the parts.

use focus_nn::candle::DType as Kind;
use focus_nn::lm::{Features, ImageSpan, Prompt, Sequence};
use focus_nn::{Checkpoint, Device, Layout, Tensor, weights};
use focus_plugin_sdk::{
    Error, GenerateBatch, GenerateReply, GenerateRequest, Generator, Host, OpenOptions,
};
use llava_next::config::Config;
use llava_next::grid::{Size, best_resolution};
use llava_next::model::LlavaNext;
use llava_next::network::Network;
use llava_next::open::{self, Parts};
use llava_next::settings::Track;
use llava_next::tiles::Tiles;
use safetensors::tensor::TensorView;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

pub const CPU: Device = Device::Cpu;
pub const QUESTION: &str = "Based on the fundus image, does this eye show diabetic retinopathy?\nRespond only with \"yes\" or \"no\".";
/// Answers and their ids in the fixture's vocabulary.
pub const WORDS: [(&str, u32); 8] = [
    (" No", 346),
    (" Yes", 347),
    (" no", 308),
    (" yes", 321),
    ("No", 313),
    ("Yes", 314),
    ("no", 261),
    ("yes", 298),
];

/// How the files of a folder are spelt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    /// As on the hub, and by transformers 4.
    Four,
    /// As transformers 5 saves a model that it created.
    Five,
}

pub fn data(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(file)
}

/// A weights folder of its own, to be changed at will.
pub fn folder(spelling: Spelling) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let copy = |from: &str, to: &str| {
        std::fs::copy(data(from), folder.path().join(to)).unwrap();
    };
    for file in [
        "generation_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "chat_template.jinja",
    ] {
        copy(file, file);
    }
    match spelling {
        Spelling::Four => {
            for file in [
                "config.json",
                "preprocessor_config.json",
                "processor_config.json",
                "model.safetensors",
            ] {
                copy(file, file);
            }
        }
        Spelling::Five => {
            copy("config.v5.json", "config.json");
            copy("processor_config.v5.json", "processor_config.json");
            rewrite(
                &data("model.safetensors"),
                &folder.path().join("model.safetensors"),
                |name| name.replace("vision_tower.vision_model.", "vision_tower."),
            );
        }
    }
    folder
}

/// A safetensors file under other names.
pub fn rewrite(from: &Path, to: &Path, name: impl Fn(&str) -> String) {
    edit(from, to, |tensors| {
        for (old, ..) in tensors.iter_mut() {
            *old = name(old);
        }
    });
}

/// Name, shape, bf16 bytes.
pub type Stored = (String, Vec<usize>, Vec<u8>);

/// A safetensors file, changed.
pub fn edit(from: &Path, to: &Path, change: impl FnOnce(&mut Vec<Stored>)) {
    let bytes = std::fs::read(from).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let mut tensors: Vec<Stored> = file
        .tensors()
        .into_iter()
        .map(|(name, view)| (name, view.shape().to_vec(), view.data().to_vec()))
        .collect();
    change(&mut tensors);
    let views = tensors.iter().map(|(name, shape, data)| {
        let view = TensorView::new(safetensors::Dtype::BF16, shape.clone(), data).unwrap();
        (name.as_str(), view)
    });
    std::fs::write(to, safetensors::serialize(views, None).unwrap()).unwrap();
}

/// One field of a JSON file, changed.
pub fn set(folder: &Path, file: &str, pointer: &str, value: Value) {
    let path = folder.join(file);
    let mut json: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    *json.pointer_mut(pointer).unwrap() = value;
    std::fs::write(path, json.to_string()).unwrap();
}

/// What the reference computed.
pub struct Expected(Checkpoint);

impl Expected {
    pub fn open() -> Self {
        let file = Checkpoint::open_file(&data("expected.safetensors"), &Layout::default());
        Self(file.unwrap())
    }

    pub fn floats(&self, name: &str) -> Vec<f32> {
        let tensor = self.0.get(name).unwrap().to_tensor(&CPU, Kind::F32);
        tensor.unwrap().flatten_all().unwrap().to_vec1().unwrap()
    }

    /// Rows of a matrix.
    pub fn rows(&self, name: &str) -> Vec<Vec<f32>> {
        let width = *self.0.get(name).unwrap().shape().last().unwrap();
        self.floats(name)
            .chunks(width)
            .map(<[f32]>::to_vec)
            .collect()
    }

    pub fn ids(&self, name: &str) -> Vec<u32> {
        let bytes = self.0.get(name).unwrap().bytes();
        bytes
            .chunks_exact(4)
            .map(|four| u32::from_le_bytes(four.try_into().unwrap()))
            .collect()
    }

    pub fn bytes(&self, name: &str) -> Vec<u8> {
        self.0.get(name).unwrap().bytes().into_owned()
    }

    /// A picture and its size.
    pub fn picture(&self, number: usize) -> (Vec<u8>, Size) {
        let name = format!("{number}.picture");
        let shape = self.0.get(&name).unwrap().shape().to_vec();
        (
            self.bytes(&name),
            Size::new(shape[0] as u32, shape[1] as u32),
        )
    }

    /// The reference's own pixel values: they differ from ours by a level here and there.
    pub fn tiles(&self, number: usize, parts: &Parts, dtype: Kind) -> Tiles {
        let name = format!("{number}.levels");
        let shape = self.0.get(&name).unwrap().shape().to_vec();
        let levels = Tensor::from_vec(self.bytes(&name), shape, &CPU).unwrap();
        let row = |values: [f64; 3]| {
            let values = values.map(|value| value as f32);
            Tensor::new(&values, &CPU)
                .unwrap()
                .reshape((1, 3, 1, 1))
                .unwrap()
        };
        let scaled = (levels.to_dtype(Kind::F32).unwrap() / 255.0).unwrap();
        let pixels = scaled
            .broadcast_sub(&row(parts.processor.mean))
            .unwrap()
            .broadcast_div(&row(parts.processor.std))
            .unwrap();
        let original = self.picture(number).1;
        Tiles {
            pixels: pixels.to_dtype(dtype).unwrap(),
            original,
            resolution: best_resolution(original, &parts.processor.pinpoints).unwrap(),
        }
    }

    /// The reference's prompt about a picture.
    pub fn prompt(&self, number: usize, parts: &Parts) -> Prompt {
        one_picture(
            self.ids(&format!("{number}.input_ids")),
            parts.config.image_token,
        )
    }
}

/// Ids whose run of image tokens is the one picture.
pub fn one_picture(ids: Vec<u32>, image_token: u32) -> Prompt {
    let start = ids.iter().position(|&id| id == image_token).unwrap();
    let length = ids.iter().filter(|&&id| id == image_token).count();
    let span = ImageSpan {
        start,
        length,
        picture: 0,
    };
    Prompt::on_one_axis(ids, vec![span])
}

pub fn parts(folder: &Path) -> Parts {
    open::parts(folder, Track::Corrected).unwrap()
}

pub fn network_of(folder: &Path, config: &Config, dtype: Kind) -> Network {
    let checkpoint = open::checkpoint(folder).unwrap();
    weights::load(checkpoint, &CPU, dtype, &[], |w| Network::load(config, w)).unwrap()
}

/// Parts and network of a spelling, in f32.
pub fn loaded(spelling: Spelling) -> (Parts, Network) {
    let folder = folder(spelling);
    let parts = parts(folder.path());
    let network = network_of(folder.path(), &parts.config, Kind::F32);
    (parts, network)
}

/// Logits after a prompt.
pub fn first_logits(network: &Network, prompt: &Prompt, features: &Features) -> Vec<f32> {
    let all = 0..prompt.tokens.len();
    let mut sequences = [Sequence::of_prompt(prompt, all, &[features], None)];
    let rows = network.decoder().forward(&mut sequences).unwrap();
    rows.get(0).unwrap().to_vec1().unwrap()
}

/// Logits about one of the reference's pictures.
pub fn logits_of(network: &Network, parts: &Parts, expected: &Expected, number: usize) -> Vec<f32> {
    let dtype = network.decoder().dtype();
    let features = network.look(&expected.tiles(number, parts, dtype)).unwrap();
    first_logits(network, &expected.prompt(number, parts), &features)
}

pub fn worst(found: &[f32], wanted: &[f32]) -> f32 {
    assert_eq!(found.len(), wanted.len());
    let pairs = found.iter().zip(wanted);
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// Within the fixtures' tolerance in f32.
pub fn close(found: &[f32], wanted: &[f32]) {
    assert_eq!(found.len(), wanted.len());
    for (a, b) in found.iter().zip(wanted) {
        assert!((a - b).abs() <= 1e-4 * b.abs() + 2e-5, "{a} {b}");
    }
}

pub fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let dot = |x: &[f32], y: &[f32]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f32>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

pub fn options(weights: Option<&Path>, dtype: &str, settings: &[(&str, &str)]) -> OpenOptions {
    let settings: std::collections::BTreeMap<&str, &str> = settings.iter().copied().collect();
    serde_json::from_value(json!({
        "model": "checkpoint", "device": "cpu", "dtype": dtype, "threads": 2, "settings": settings,
        "weights": weights.map(|folder| folder.to_str().unwrap()),
    }))
    .unwrap()
}

pub fn opened(folder: &Path, dtype: &str) -> LlavaNext {
    LlavaNext::open(&options(Some(folder), dtype, &[]), &Host::detached()).unwrap()
}

pub fn toy(seed: u64) -> LlavaNext {
    let weights = format!("random:{seed}");
    let settings = [("weights", weights.as_str()), ("size", "tiny")];
    LlavaNext::open(&options(None, "f32", &settings), &Host::detached()).unwrap()
}

/// Questions about pictures: each group its pictures and its prompts.
pub fn request(groups: &[(&[u32], &[&str])], most: u32) -> GenerateRequest {
    serde_json::from_value(json!({
        "images": [],
        "groups": groups
            .iter()
            .map(|(images, prompts)| json!({"images": images, "prompts": prompts}))
            .collect::<Vec<_>>(),
        "score": WORDS.map(|(word, _)| word),
        "max_new_tokens": most,
    }))
    .unwrap()
}

/// Run a request on the fixture's pictures.
pub fn run(model: &mut LlavaNext, request: &GenerateRequest) -> Result<GenerateReply, Error> {
    let expected = Expected::open();
    let pictures: Vec<_> = (0..3).map(|number| expected.picture(number)).collect();
    let mut request = request.clone();
    request.images = pictures
        .iter()
        .map(|(_, size)| focus_plugin_sdk::ImageSize {
            width: size.width,
            height: size.height,
        })
        .collect();
    let bytes: Vec<&[u8]> = pictures.iter().map(|(bytes, _)| bytes.as_slice()).collect();
    let batch = GenerateBatch::new(&request, &bytes)?;
    model.generate(&batch, &Host::detached())
}
