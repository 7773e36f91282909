//! The plugin's face: a card or a folder's own description becomes an open image encoder; batches become embeddings. Knows neither tensors'
//! names nor layers.

use crate::card::{self, Card};
use crate::config::{Config, Image};
use crate::open::{self, OpenError};
use crate::settings::Settings;
use crate::tower::image::ImageTower;
use focus_nn::pixels::Normalisation;
use focus_nn::{DType, Device};
use focus_plugin_sdk::{
    Embeddings, Error, Host, ImageBatch, ImageEncoder, Model, OpenOptions, OpenedModel, PixelMode,
    PreprocessingCard, opened,
};
use std::path::Path;

/// Said of FLAIR's pictures as the host can prepare them.
const RESIZED_NOTE: &str = "pixels were resized as bytes and pictures centred on black, where the reference resizes in floating point and lays pictures into the upper left corner: for square pictures half a level of 255 apart, for others more";

/// Opens a model of this plugin.
pub fn open(options: &OpenOptions, host: &Host) -> Result<Box<dyn Model>, Error> {
    Ok(Box::new(Encoder::open(options, host)?))
}

/// An open image encoder. Vectors are the model's own: of length 1 where it makes them so; the host normalises them all.
#[derive(Debug)]
pub struct Encoder {
    opened: OpenedModel,
    tower: ImageTower,
    normalisation: Normalisation,
    device: Device,
    dtype: DType,
    threads: rayon::ThreadPool,
}

/// What to build, before weights are touched.
struct Plan {
    config: Config,
    preprocessing: PreprocessingCard,
    notes: Vec<String>,
}

impl Encoder {
    /// Opens by card, settings and folder.
    pub fn open(options: &OpenOptions, host: &Host) -> Result<Self, Error> {
        let settings = Settings::read(options)?;
        let card = card::by_id(&options.model)
            .ok_or_else(|| Error::invalid_request(format!("Unknown model `{}`", options.model)))?;
        let device = device(&options.device)?;
        let mut state = opened(&card.descriptor(), options);
        let dtype = match state.dtype.as_str() {
            "f32" => DType::F32,
            "bf16" => DType::BF16,
            "f16" => DType::F16,
            other => {
                return Err(Error::unsupported(format!(
                    "Unsupported dtype: expected `f32`, `bf16` or `f16`, found `{other}`"
                )));
            }
        };
        let folder = options.weights.as_deref().map(Path::new);
        let mut plan = plan(&card, &settings, folder)?;
        let config = &plan.config;
        let tower = match (settings.random, folder) {
            (Some(seed), _) => {
                plan.notes.push(format!(
                    "random weights, seed {seed}: a control, not a trained model"
                ));
                state.weights_digest = Some(format!("random:{seed}"));
                focus_nn::weights::random(seed, &device, dtype, |w| ImageTower::load(config, w))
            }
            (None, Some(folder)) => open::checkpoint(&card, folder).and_then(|checkpoint| {
                host.info(format!("{} tensors found", checkpoint.len()));
                open::image(config, checkpoint, &device, dtype)
            }),
            (None, None) => return Err(no_weights(&card)),
        };
        let tower = tower.map_err(|error| crossed(&error.into()))?;
        state.embedding_dim = config.embed_dim as u32;
        state.preprocessing = plan.preprocessing;
        state.notes = plan.notes;
        for note in &state.notes {
            host.info(note);
        }
        let threads = rayon::ThreadPoolBuilder::new()
            .num_threads(options.threads.max(1) as usize)
            .build()
            .map_err(Error::internal)?;
        Ok(Self {
            normalisation: Normalisation {
                mean: state.preprocessing.mean,
                std: state.preprocessing.std,
            },
            opened: state,
            tower,
            device,
            dtype,
            threads,
        })
    }

    /// The network.
    pub fn tower(&self) -> &ImageTower {
        &self.tower
    }
}

fn no_weights(card: &Card) -> Error {
    let what = if card.config.is_some() {
        "needs weights: expected a folder, found none"
    } else {
        "is described by its folder: expected one with `config.json`, found none"
    };
    Error::weights(format!("Model `{}` {what}", card.id)).with_hint(
        "Give `--weights DIR`; a known architecture also takes `--set weights=random:0`, a control without training",
    )
}

fn plan(card: &Card, settings: &Settings, folder: Option<&Path>) -> Result<Plan, Error> {
    let mut notes = vec![format!("track {}", settings.track)];
    notes.extend(card.notes(settings.track).map(str::to_owned));
    let (config, mut preprocessing) = match (&card.config, folder) {
        (_, Some(folder)) => {
            let config = open::config(card, folder).map_err(|error| crossed(&error))?;
            let preprocessing =
                open::preprocessing(card, &config, folder).map_err(|error| crossed(&error))?;
            (config, preprocessing)
        }
        (Some(config), None) => (config.clone(), card.preprocessing.clone()),
        (None, None) if settings.tiny => (Config::clip_base_32(), card.preprocessing.clone()),
        (None, None) => return Err(no_weights(card)),
    };
    if settings.resized {
        if !matches!(config.image, Image::ResNet(_)) {
            return Err(Error::invalid_request(format!(
                "Setting `pixels` is for FLAIR: model `{}` takes resized pictures anyway",
                card.id
            )));
        }
        preprocessing.mode = PixelMode::Resized;
        notes.push(RESIZED_NOTE.into());
    }
    let config = if settings.tiny { config.tiny() } else { config };
    if settings.tiny {
        notes.push("toy size".into());
        preprocessing.width = config.size() as u32;
        preprocessing.height = config.size() as u32;
    }
    Ok(Plan {
        config,
        preprocessing,
        notes,
    })
}

fn crossed(error: &OpenError) -> Error {
    let crossed = Error::weights(error);
    match error.hint() {
        Some(hint) => crossed.with_hint(hint),
        None => crossed,
    }
}

fn device(name: &str) -> Result<Device, Error> {
    match name.split_once(':').unwrap_or((name, "0")) {
        ("cpu", _) => Ok(Device::Cpu),
        ("cuda", number) => {
            let number = number
                .parse()
                .map_err(|_| Error::invalid_request(format!("Device `{name}` has no number")))?;
            Device::new_cuda(number).map_err(Error::device)
        }
        _ => Err(Error::unsupported(format!("Unsupported device `{name}`"))),
    }
}

impl Model for Encoder {
    fn opened(&self) -> OpenedModel {
        self.opened.clone()
    }

    fn image_encoder(&mut self) -> Option<&mut dyn ImageEncoder> {
        Some(self)
    }
}

impl ImageEncoder for Encoder {
    fn encode(&mut self, images: &ImageBatch<'_>, host: &Host) -> Result<Embeddings, Error> {
        let card = &self.opened.preprocessing;
        if card.mode != PixelMode::Resized {
            return Err(Error::unsupported(format!(
                "Model `{}` takes full pictures, which this version of the contract has no batches of",
                self.opened.model
            ))
            .with_hint("Add `--set pixels=resized`, and read the note that comes with it"));
        }
        let wanted = (card.width as usize, card.height as usize);
        if (images.width(), images.height()) != wanted {
            return Err(Error::invalid_request(format!(
                "Images of the wrong size: expected {} x {}, found {} x {}",
                wanted.0,
                wanted.1,
                images.width(),
                images.height()
            )));
        }
        host.check_cancelled()?;
        // The padding is computed too: products of another number of rows differ in the last bits.
        let embed = || {
            let pixels = self.normalisation.planes(
                images.padded(),
                wanted.0,
                wanted.1,
                &self.device,
                self.dtype,
            )?;
            self.tower
                .forward(&pixels)?
                .narrow(0, 0, images.used())?
                .to_dtype(DType::F32)?
                .flatten_all()?
                .to_vec1::<f32>()
        };
        let values = self
            .threads
            .install(embed)
            .map_err(|error: focus_nn::candle::Error| Error::device(error))?;
        Embeddings::new(self.opened.embedding_dim as usize, values)
    }
}
