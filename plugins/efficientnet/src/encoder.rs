//! The plugin's face: a folder becomes an open model, batches become embeddings. Knows neither tensors' names nor layers.

use crate::card::{self, FILE};
use crate::config::Lite;
use crate::network::Network;
use focus_nn::pixels::Normalisation;
use focus_nn::{Checkpoint, DType, Device, Layout, LoadError};
use focus_plugin_sdk::{
    Embeddings, Error, Host, ImageBatch, ImageEncoder, Model, OpenOptions, OpenedModel,
    RANDOM_WEIGHTS, deny_unknown_settings, opened,
};
use std::path::Path;

/// Opens the model of this plugin.
pub fn open(options: &OpenOptions, host: &Host) -> Result<Box<dyn Model>, Error> {
    Ok(Box::new(Encoder::open(options, host)?))
}

/// An open encoder.
#[derive(Debug)]
pub struct Encoder {
    opened: OpenedModel,
    network: Network,
    normalisation: Normalisation,
    threads: rayon::ThreadPool,
}

/// Load a checkpoint of a network, every tensor accounted for.
pub fn load(config: &Lite, checkpoint: Checkpoint) -> Result<Network, LoadError> {
    let unused = Network::unused(config);
    let ignored: Vec<&str> = unused.iter().map(String::as_str).collect();
    focus_nn::weights::load(checkpoint, &Device::Cpu, DType::F32, &ignored, |weights| {
        Network::load(config, weights)
    })
}

/// The network with weights drawn from a seed.
pub fn drawn(config: &Lite, seed: u64) -> Result<Network, LoadError> {
    focus_nn::weights::random(seed, &Device::Cpu, DType::F32, |weights| {
        Network::load(config, weights)
    })
}

impl Encoder {
    /// Opens by settings and folder.
    pub fn open(options: &OpenOptions, host: &Host) -> Result<Self, Error> {
        let seed = seed(options)?;
        if options.device.split(':').next() != Some("cpu") {
            return Err(Error::unsupported(format!(
                "Unsupported device: expected `cpu`, found `{}`",
                options.device
            )));
        }
        let mut state = opened(&card::descriptor(), options);
        if state.dtype != "f32" {
            return Err(Error::unsupported(format!(
                "Unsupported dtype: expected `f32`, found `{}`",
                state.dtype
            )));
        }
        let config = Lite::lite0();
        let network = match (seed, options.weights.as_deref().map(Path::new)) {
            (Some(_), Some(_)) => {
                return Err(Error::invalid_request(
                    "Random weights and a folder of weights exclude each other",
                )
                .with_hint("Leave out one of them"));
            }
            (Some(seed), None) => {
                state.notes.push(format!(
                    "random weights, seed {seed}: a control, not a trained model"
                ));
                state.weights_digest = Some(format!("random:{seed}"));
                drawn(&config, seed)
            }
            (None, Some(folder)) => Checkpoint::open_folder(folder, &[FILE], &Layout::default())
                .and_then(|checkpoint| {
                    host.info(format!(
                        "{} tensors found; the classifier is not used",
                        checkpoint.len()
                    ));
                    load(&config, checkpoint)
                }),
            (None, None) => {
                return Err(Error::weights(format!(
                    "Model `{}` needs weights: expected a folder, found none",
                    card::ID
                ))
                .with_hint(format!(
                    "`focus-host weights fetch {}` gets them; or `--weights random:0` for a control without training",
                    card::ID
                )));
            }
        };
        let network = network.map_err(weights_error)?;
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
            network,
            threads,
        })
    }
}

fn seed(options: &OpenOptions) -> Result<Option<u64>, Error> {
    deny_unknown_settings(options, &[RANDOM_WEIGHTS])?;
    let Some(text) = options.settings.get(RANDOM_WEIGHTS) else {
        return Ok(None);
    };
    let seed = text
        .strip_prefix("random:")
        .and_then(|seed| seed.parse().ok());
    seed.map(Some).ok_or_else(|| {
        Error::invalid_request(format!(
            "Setting `{RANDOM_WEIGHTS}`: expected `random:SEED` with a whole number, found `{text}`"
        ))
    })
}

fn weights_error(error: LoadError) -> Error {
    let crossed = Error::weights(&error);
    match error.hint() {
        Some(hint) => crossed.with_hint(hint),
        None => crossed,
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
                &Device::Cpu,
                DType::F32,
            )?;
            self.network
                .forward(&pixels)?
                .narrow(0, 0, images.used())?
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
