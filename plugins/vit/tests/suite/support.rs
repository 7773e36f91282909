//! Fixtures, opened and compared.

use focus_nn::pixels::Normalisation;
use focus_nn::{Checkpoint, DType, Device, Layout, LoadError, Tensor};
use focus_plugin_sdk::PreprocessingCard;
use std::path::{Path, PathBuf};
use vit::config::VitConfig;
use vit::model::Vit;
use vit::pool::Pool;
use vit::preprocess;

/// The families, with the file of the other format where there is one.
pub const FAMILIES: [&str; 7] = [
    "vit",
    "dinov2",
    "dinov3",
    "retfound_mae",
    "retfound_dinov2",
    "retfound_green",
    "visionfm",
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

pub fn config(family: &str) -> VitConfig {
    VitConfig::parse(&text(family, "config.json")).unwrap()
}

pub fn text(family: &str, file: &str) -> String {
    std::fs::read_to_string(folder(family).join(file)).unwrap()
}

pub fn processing(family: &str) -> PreprocessingCard {
    preprocess::parse(&text(family, "preprocessor_config.json")).unwrap()
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

    pub fn has(&self, name: &str) -> bool {
        self.0.get(name).is_some()
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

/// The reference's input as planes, from torchvision's bytes or Pillow's (`levels`, `levels_pil`).
pub fn planes(family: &str, expected: &Expected, name: &str) -> Tensor {
    if family == "dinov3" {
        return expected.tensor("pixel_values");
    }
    let (bytes, [_, height, width, _]) = expected.bytes(name);
    let card = processing(family);
    let normalisation = Normalisation {
        mean: card.mean,
        std: card.std,
    };
    normalisation
        .planes(&bytes, width, height, &Device::Cpu, DType::F32)
        .unwrap()
}

/// Which file of the fixture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Form {
    Safetensors,
    Pickle,
}

pub fn load(
    family: &str,
    config: &VitConfig,
    pool: Pool,
    form: Form,
    dtype: DType,
) -> Result<Vit, LoadError> {
    load_from(&folder(family), config, pool, form, dtype, size(family))
}

pub fn size(family: &str) -> (usize, usize) {
    let card = processing(family);
    (card.height as usize, card.width as usize)
}

pub fn load_from(
    folder: &Path,
    config: &VitConfig,
    pool: Pool,
    form: Form,
    dtype: DType,
    size: (usize, usize),
) -> Result<Vit, LoadError> {
    let file = match form {
        Form::Safetensors => "model.safetensors",
        Form::Pickle => "checkpoint.pth",
    };
    let checkpoint = Checkpoint::open_file(
        &folder.join(file),
        &Layout::stripping(&["module.", "backbone."]),
    )?;
    focus_nn::weights::load(
        checkpoint,
        &Device::Cpu,
        dtype,
        config.naming.ignored(),
        |w| Vit::load(config, pool, size, w),
    )
}

/// The embedding of the fixture's images.
pub fn embed(family: &str, config: &VitConfig, pool: Pool) -> Vec<f32> {
    let model = load(family, config, pool, Form::Safetensors, DType::F32).unwrap();
    let pixels = planes(family, &Expected::of(family), "levels");
    values(&model.forward(&pixels).unwrap())
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
