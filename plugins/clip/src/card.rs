//! The known models: literature, licences, files, layout of the checkpoint, preprocessing, what a reader must know. Data only.
//!
//! Sizes are those of the published architectures; a checkpoint of other sizes is refused by shape.

mod general;
mod ophthalmic;

use crate::config::Config;
use crate::settings::Track;
use focus_plugin_sdk::{
    Family, Group, HubSource, InterfaceName, ModelDescriptor, PreprocessingCard,
};

/// Where the tensors are in the file, and what comes off their names.
#[derive(Debug, Clone, Copy)]
pub struct Packing {
    /// Key of the dictionary of tensors; `None`: the usual ones.
    pub under: Option<&'static str>,
    /// Prefixes taken off.
    pub prefixes: &'static [&'static str],
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
    pub config: Option<Config>,
    /// File names, the first that is there is the checkpoint.
    pub files: &'static [&'static str],
    /// The checkpoint's layout.
    pub packing: Packing,
    /// How pixels are prepared; for hub models the processor's file in the folder goes before it.
    pub preprocessing: PreprocessingCard,
    /// What a reader must know on either track.
    pub note: Option<&'static str>,
    /// What a reader must know of the published benchmark's code.
    pub published_note: Option<&'static str>,
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
    /// Notes on a track.
    pub fn notes(&self, track: Track) -> impl Iterator<Item = &'static str> {
        let published = self.published_note.filter(|_| track == Track::AsPublished);
        self.note.into_iter().chain(published)
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
            family: Family::Vlm,
            group: self.group,
            interfaces: vec![InterfaceName::ImageEncoder, InterfaceName::DualEncoder],
            preprocessing: self.preprocessing.clone(),
            embedding_dim: self.config.as_ref().map(|config| config.embed_dim as u32),
            dtypes: owned(&["f32", "bf16", "f16"]),
            devices: owned(devices),
            batch_size: BATCH,
            // The first of them that is there is the checkpoint.
            weight_files: (!self.files.is_empty())
                .then(|| self.files.join("|"))
                .into_iter()
                .collect(),
            pretraining_datasets: self.pretraining.map(owned),
            weights_license: self.weights_license.map(str::to_owned),
            papers: owned(self.papers),
            reference_code: self.reference_code.map(str::to_owned),
            hub: self.id.contains('/').then(|| HubSource {
                repository: self.id.to_owned(),
                revision: None,
                gated: self.id == "google/medsiglip-448",
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

const PLAIN: Packing = Packing {
    under: None,
    prefixes: &[],
};
