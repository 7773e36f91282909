//! Fixtures, opened and compared.

use clip::card::{self, Card};
use clip::config::Config;
use clip::open;
use clip::settings::Track;
use clip::similarity::Scale;
use clip::text::{Rows, TextTower};
use clip::tokens::Tokens;
use clip::tower::image::ImageTower;
use clip::tower::words::WordTower;
use focus_nn::pixels::Normalisation;
use focus_nn::{Checkpoint, DType, Device, Layout, LoadError, Tensor};
use std::path::{Path, PathBuf};

/// The families.
pub const FAMILIES: [&str; 6] = [
    "clip",
    "eyeclip",
    "siglip2",
    "medsiglip",
    "retclip",
    "flair",
];

/// Tolerance against the reference in f32.
pub const RELATIVE: f32 = 1e-4;
/// As above.
pub const ABSOLUTE: f32 = 2e-5;

pub fn folder(family: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(family)
}

pub fn text(family: &str, file: &str) -> String {
    std::fs::read_to_string(folder(family).join(file)).unwrap()
}

pub fn config(family: &str) -> Config {
    Config::parse(&text(family, "config.json")).unwrap()
}

pub fn any_card() -> Card {
    card::by_id("checkpoint").unwrap()
}

/// The prompts of a family.
pub fn prompts(family: &str) -> Vec<String> {
    let json: serde_json::Value = serde_json::from_str(&text(family, "texts.json")).unwrap();
    serde_json::from_value(json["texts"].clone()).unwrap()
}

/// The reference's outputs and inputs.
pub struct Expected(Checkpoint);

impl Expected {
    pub fn of(family: &str) -> Self {
        Self(
            Checkpoint::open_file(
                &folder(family).join("expected.safetensors"),
                &Layout::default(),
            )
            .unwrap(),
        )
    }

    pub fn tensor(&self, name: &str) -> Tensor {
        self.0
            .get(name)
            .expect(name)
            .to_tensor(&Device::Cpu, DType::F32)
            .unwrap()
    }

    pub fn values(&self, name: &str) -> Vec<f32> {
        values(&self.tensor(name))
    }

    pub fn rows(&self, name: &str) -> Rows {
        let tensor = self.tensor(name);
        Rows {
            dim: tensor.dim(1).unwrap(),
            values: values(&tensor),
        }
    }

    /// Ids, row by row, with the length of a row.
    pub fn ids(&self, name: &str) -> (Vec<u32>, usize) {
        let raw = self.0.get(name).expect(name);
        let ids = raw
            .bytes()
            .chunks(8)
            .map(|b| i64::from_le_bytes(b.try_into().unwrap()) as u32)
            .collect();
        (ids, raw.shape()[1])
    }

    /// Bytes of pixels, (images, height, width, 3).
    pub fn bytes(&self, name: &str) -> (Vec<u8>, [usize; 4]) {
        let raw = self.0.get(name).expect(name);
        (raw.bytes().into_owned(), raw.shape().try_into().unwrap())
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

/// The reference's input as planes; of torchvision's bytes (`levels`) or Pillow's (`levels_pil`).
pub fn planes(family: &str, name: &str) -> Tensor {
    let expected = Expected::of(family);
    if family == "flair" {
        return expected.tensor("pixel_values");
    }
    let (bytes, [_, height, width, _]) = expected.bytes(name);
    let card = open::preprocessing(&any_card(), &config(family), &folder(family)).unwrap();
    let normalisation = Normalisation {
        mean: card.mean,
        std: card.std,
    };
    normalisation
        .planes(&bytes, width, height, &Device::Cpu, DType::F32)
        .unwrap()
}

/// A file of a fixture, opened as its card says.
pub fn checkpoint(family: &str, file: &str) -> Checkpoint {
    let layout = match family {
        "eyeclip" if file != "model.safetensors" => Layout::default().under("model_state_dict"),
        _ => Layout::stripping(&["module."]),
    };
    let mut checkpoint = Checkpoint::open_file(&folder(family).join(file), &layout).unwrap();
    open::tidy(&mut checkpoint);
    checkpoint
}

pub fn image_tower(family: &str, config: &Config, dtype: DType) -> Result<ImageTower, LoadError> {
    open::image(
        config,
        checkpoint(family, "model.safetensors"),
        &Device::Cpu,
        dtype,
    )
}

pub fn word_tower(
    family: &str,
    config: &Config,
    dtype: DType,
) -> Result<(WordTower, Scale), LoadError> {
    open::words(
        config,
        checkpoint(family, "model.safetensors"),
        &Device::Cpu,
        dtype,
    )
}

/// The text side from a copy of the fixture that holds one checkpoint.
pub fn text_tower(family: &str, track: Track) -> (TextTower, Scale) {
    open::text_tower(
        &any_card(),
        &folder(family),
        track,
        &Device::Cpu,
        DType::F32,
    )
    .unwrap()
}

/// The reference's tokens under the family's rule for padding.
pub fn tokens(family: &str, name: &str) -> Tokens {
    let (ids, width) = Expected::of(family).ids(name);
    let hidden = matches!(family, "retclip" | "flair");
    let seen = ids.iter().map(|&id| id != 0).collect();
    Tokens::new(width, ids, hidden.then_some(seen))
}

/// Image vectors of a family under a configuration.
pub fn embed(family: &str, config: &Config) -> Vec<f32> {
    let tower = image_tower(family, config, DType::F32).unwrap();
    values(&tower.forward(&planes(family, "levels")).unwrap())
}

/// Text vectors of a family under a configuration.
pub fn embed_text(family: &str, config: &Config) -> Vec<f32> {
    let (tower, _) = word_tower(family, config, DType::F32).unwrap();
    values(&tower.forward(&tokens(family, "input_ids")).unwrap())
}

/// What the reference calls the vectors before they are normalised; FLAIR's are of length 1 from the start.
pub fn feature(family: &str, side: &str) -> String {
    if family == "flair" {
        format!("{side}_embeds")
    } else {
        format!("{side}_features")
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

/// Rows of `dim` to length 1.
pub fn unit(rows: &[f32], dim: usize) -> Vec<f32> {
    rows.chunks(dim)
        .flat_map(|row| {
            let length = row.iter().map(|v| v * v).sum::<f32>().sqrt();
            row.iter().map(move |v| v / length)
        })
        .collect()
}

pub fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let dot = |x: &[f32], y: &[f32]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f32>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}
