//! The known models: literature, licences, files, layout of the checkpoint, preprocessing and pooling on both tracks. Data only.
//!
//! Facts of the published benchmark's code (which processor, which token) are those of its public snapshot; each model's own recipe is that
//! of its authors' repository. Sizes are those of the published architectures; a checkpoint of other sizes is refused by shape.

mod general;
mod ophthalmic;

use crate::config::VitConfig;
use crate::pool::Pool;
use crate::settings::Track;
use focus_plugin_sdk::{
    Family, Geometry, Group, HubSource, InterfaceName, ModelDescriptor, PixelMode,
    PreprocessingCard, ResizeFilter,
};

/// Where the tensors are in the file, and what comes off their names.
#[derive(Debug, Clone, Copy)]
pub struct Packing {
    /// Key of the dictionary of tensors; `None`: the usual ones.
    pub under: Option<&'static str>,
    /// Prefixes taken off.
    pub prefixes: &'static [&'static str],
}

/// Preprocessing and pooling.
#[derive(Debug, Clone)]
pub struct Recipe {
    /// How pixels are prepared.
    pub preprocessing: PreprocessingCard,
    /// Which vector is the embedding.
    pub pool: Pool,
    /// What a reader must know of it.
    pub note: Option<&'static str>,
}

/// A known model.
#[derive(Debug, Clone)]
pub struct Card {
    /// Its name on the hub, where it has one.
    pub id: &'static str,
    /// One line.
    pub title: &'static str,
    /// FOCUS group.
    pub group: Group,
    /// Architecture; `None`: whatever `config.json` in the folder says.
    pub config: Option<VitConfig>,
    /// File names, the first that is there is the checkpoint.
    pub files: &'static [&'static str],
    /// The checkpoint's layout.
    pub packing: Packing,
    /// The authors' recipe.
    pub corrected: Recipe,
    /// The published benchmark's.
    pub as_published: Recipe,
    /// Licence of the weights.
    pub weights_license: Option<&'static str>,
    /// Literature.
    pub papers: &'static [&'static str],
    /// The authors' code.
    pub reference_code: Option<&'static str>,
    /// Pretraining data; `None`: not known in full.
    pub pretraining: Option<&'static [&'static str]>,
}

/// Images in one call: enough for the products to run at full speed, and little memory.
const BATCH: u32 = 8;

impl Card {
    /// The recipe of a track.
    pub fn recipe(&self, track: Track) -> &Recipe {
        match track {
            Track::Corrected => &self.corrected,
            Track::AsPublished => &self.as_published,
        }
    }

    /// As the host sees it.
    pub fn descriptor(&self) -> ModelDescriptor {
        let owned = |words: &[&str]| words.iter().map(|&w| w.to_owned()).collect::<Vec<_>>();
        let devices: &[&str] = if cfg!(feature = "cuda") {
            &["cuda", "cpu"]
        } else {
            &["cpu"]
        };
        ModelDescriptor {
            id: self.id.to_owned(),
            title: self.title.to_owned(),
            family: Family::Vm,
            group: self.group,
            interfaces: vec![InterfaceName::ImageEncoder],
            preprocessing: self.corrected.preprocessing.clone(),
            embedding_dim: self.config.as_ref().map(|config| config.dim as u32),
            dtypes: owned(&["f32", "bf16"]),
            devices: owned(devices),
            batch_size: BATCH,
            weight_files: owned(self.files),
            pretraining_datasets: self.pretraining.map(owned),
            weights_license: self.weights_license.map(str::to_owned),
            papers: owned(self.papers),
            reference_code: self.reference_code.map(str::to_owned),
            hub: self.id.contains('/').then(|| HubSource {
                repository: self.id.to_owned(),
                revision: None,
                gated: self.id.starts_with("YukunZhou/") || self.id.contains("dinov3"),
            }),
        }
    }
}

/// All of them, sorted by id.
pub fn all() -> Vec<Card> {
    let mut cards: Vec<Card> = general::cards()
        .into_iter()
        .chain(ophthalmic::cards())
        .collect();
    cards.sort_by_key(|card| card.id);
    cards
}

/// By id.
pub fn by_id(id: &str) -> Option<Card> {
    all().into_iter().find(|card| card.id == id)
}

const HALF: [f64; 3] = [0.5; 3];
const IMAGENET_MEAN: [f64; 3] = [0.485, 0.456, 0.406];
const IMAGENET_STD: [f64; 3] = [0.229, 0.224, 0.225];

fn squash(side: u32, filter: ResizeFilter, mean: [f64; 3], std: [f64; 3]) -> PreprocessingCard {
    PreprocessingCard {
        mode: PixelMode::Resized,
        width: side,
        height: side,
        geometry: Geometry::Squash,
        filter,
        mean,
        std,
    }
}

/// google/vit's processor: bilinear to a square, everything around 0.5.
fn google_vit(side: u32) -> PreprocessingCard {
    squash(side, ResizeFilter::Bilinear, HALF, HALF)
}

/// Short side to 256, bicubic, the middle 224, ImageNet's mean and deviation: DINOv2's processor and RETFound's own evaluation.
fn imagenet_crop() -> PreprocessingCard {
    PreprocessingCard {
        geometry: Geometry::ShortestEdgeCrop { edge: 256 },
        ..squash(224, ResizeFilter::Bicubic, IMAGENET_MEAN, IMAGENET_STD)
    }
}
