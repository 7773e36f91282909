//! The plugin's face: a card or a folder's own description becomes an open model; batches become embeddings. Knows neither tensors' names
//! nor layers.

use crate::card::{self, Card};
use crate::config::VitConfig;
use crate::model::{POOLER, Vit};
use crate::names::unchunked;
use crate::pool::Pool;
use crate::preprocess;
use crate::settings::{Settings, Track};
use focus_nn::pixels::Normalisation;
use focus_nn::{Checkpoint, DType, Device, Layout, LoadError};
use focus_plugin_sdk::{
    Embeddings, Error, Host, ImageBatch, ImageEncoder, Model, OpenOptions, OpenedModel, PixelMode,
    PixelType, PreprocessingCard, opened,
};
use std::path::Path;

/// Opens a model of this plugin.
pub fn open(options: &OpenOptions, host: &Host) -> Result<Box<dyn Model>, Error> {
    Ok(Box::new(Encoder::open(options, host)?))
}

/// An open encoder.
#[derive(Debug)]
pub struct Encoder {
    opened: OpenedModel,
    model: Vit,
    normalisation: Normalisation,
    device: Device,
    dtype: DType,
    threads: rayon::ThreadPool,
}

/// What to build, before weights are touched.
struct Plan {
    config: VitConfig,
    preprocessing: PreprocessingCard,
    pool: Pool,
    notes: Vec<String>,
}

impl Encoder {
    /// Opens by card, settings and folder.
    pub fn open(options: &OpenOptions, host: &Host) -> Result<Self, Error> {
        let settings = Settings::read(options)?;
        let card = card::by_id(&options.model)
            .ok_or_else(|| Error::invalid_request(format!("Unknown model `{}`", options.model)))?;
        let device = focus_nn::device(&options.device)?;
        let mut state = opened(&card.descriptor(), options);
        let dtype = match state.dtype.as_str() {
            "f32" => DType::F32,
            "bf16" => DType::BF16,
            other => {
                return Err(Error::unsupported(format!(
                    "Unsupported dtype: expected `f32` or `bf16`, found `{other}`"
                )));
            }
        };
        let folder = options.weights.as_deref().map(Path::new);
        let mut plan = plan(&card, &settings, folder)?;
        let size = (
            plan.preprocessing.height as usize,
            plan.preprocessing.width as usize,
        );
        let (config, pool) = (plan.config.clone(), plan.pool);
        let model = match (settings.random, folder) {
            (Some(seed), _) => {
                plan.notes.push(format!(
                    "random weights, seed {seed}: a control, not a trained model"
                ));
                state.weights_digest = Some(format!("random:{seed}"));
                focus_nn::weights::random(seed, &device, dtype, |w| {
                    Vit::load(&config, pool, size, w)
                })
            }
            (None, Some(folder)) => {
                let checkpoint = checkpoint(&card, folder).map_err(weights_error)?;
                host.info(format!("{} tensors found", checkpoint.len()));
                if pool == Pool::Pooler && checkpoint.get(POOLER).is_none() {
                    plan.notes
                        .push("the checkpoint has no pooler: drawn from seed 0".into());
                }
                focus_nn::weights::load(checkpoint, &device, dtype, config.naming.ignored(), |w| {
                    Vit::load(&config, pool, size, w)
                })
            }
            (None, None) => {
                return Err(Error::weights(format!(
                    "Model `{}` needs weights: expected a folder, found none",
                    card.id
                ))
                .with_hint("Give `--weights DIR`, or `--set weights=random:0` for a control without training"));
            }
        };
        let model = model.map_err(weights_error)?;
        state.embedding_dim = config.dim as u32;
        if options.batch_size.is_none() {
            state.batch_size =
                focus_nn::batch::auto(state.batch_size, &device, config.image_bytes(size, dtype));
        }
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
            model,
            device,
            dtype,
            threads,
        })
    }

    /// The transformer.
    pub fn model(&self) -> &Vit {
        &self.model
    }
}

fn plan(card: &Card, settings: &Settings, folder: Option<&Path>) -> Result<Plan, Error> {
    let recipe = card.recipe(settings.track);
    let mut notes = vec![format!("track {}", settings.track)];
    let mut preprocessing = recipe.preprocessing.clone();
    let config = match (&card.config, folder) {
        (Some(config), _) => config.clone(),
        (None, Some(folder)) => {
            let config = VitConfig::parse(&text(folder, &["config.json"])?.1)
                .map_err(|reason| described("config.json", reason))?;
            let (file, processor) = text(
                folder,
                &["preprocessor_config.json", "processor_config.json"],
            )?;
            preprocessing =
                preprocess::parse(&processor).map_err(|reason| described(file, reason))?;
            config
        }
        (None, None) if settings.tiny => VitConfig::vit_large(),
        (None, None) => {
            return Err(Error::weights(
                "Model `checkpoint` is described by its folder: expected one with `config.json`, found none",
            )
            .with_hint("Give `--weights DIR`; a known architecture has a model of its own that takes random weights"));
        }
    };
    let config = if settings.tiny { config.tiny() } else { config };
    if settings.tiny {
        notes.push("toy size".into());
        preprocessing.width = 2 * config.patch as u32;
        preprocessing.height = 2 * config.patch as u32;
    }
    if let Some(note) = recipe.note {
        notes.push(note.into());
    }
    let pool = settings.pool.unwrap_or(recipe.pool);
    if pool != recipe.pool {
        notes.push(format!("pooling `{}` by setting", pool.name()));
    } else if settings.track == Track::AsPublished {
        notes.push(format!("pooling `{}`", pool.name()));
    }
    Ok(Plan {
        config,
        preprocessing,
        pool,
        notes,
    })
}

fn described(file: &str, reason: String) -> Error {
    Error::weights(format!("`{file}` cannot be used: {reason}"))
}

/// The first of `names` that the folder has.
fn text<'a>(folder: &Path, names: &[&'a str]) -> Result<(&'a str, String), Error> {
    for &name in names {
        match std::fs::read_to_string(folder.join(name)) {
            Ok(text) => return Ok((name, text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(described(name, error.to_string())),
        }
    }
    let wanted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    Err(
        Error::weights(format!("The weights folder lacks {}", wanted.join(" or ")))
            .with_hint("It describes the checkpoint and is published beside it"),
    )
}

fn checkpoint(card: &Card, folder: &Path) -> Result<Checkpoint, LoadError> {
    let mut layout = Layout::stripping(card.packing.prefixes);
    if let Some(key) = card.packing.under {
        layout = layout.under(key);
    }
    let mut checkpoint = Checkpoint::open_folder(folder, card.files, &layout)?;
    let chunked: Vec<(String, String)> = checkpoint
        .names()
        .filter_map(|name| Some((name.to_owned(), unchunked(name)?)))
        .collect();
    for (old, new) in chunked {
        if checkpoint.get(&new).is_some() {
            return Err(LoadError::SameName {
                name: new.clone(),
                first: old,
                second: new,
            });
        }
        if let Some(tensor) = checkpoint.remove(&old) {
            checkpoint.insert(new, tensor);
        }
    }
    Ok(checkpoint)
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
        let kind = match card.mode {
            PixelMode::Float => PixelType::F32,
            _ => PixelType::U8,
        };
        if images.kind() != kind {
            return Err(Error::invalid_request(format!(
                "Pixels of the wrong type: expected {kind:?}, found {:?}",
                images.kind()
            )));
        }
        host.check_cancelled()?;
        // The padding is computed too: products of another number of rows differ in the last bits.
        let embed = || {
            let (width, height) = wanted;
            let (device, dtype) = (&self.device, self.dtype);
            let pixels = match kind {
                PixelType::U8 => {
                    self.normalisation
                        .planes(images.padded(), width, height, device, dtype)
                }
                PixelType::F32 => {
                    self.normalisation
                        .float_planes(&images.floats(), width, height, device, dtype)
                }
            }?;
            self.model
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
