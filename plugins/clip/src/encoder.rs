//! The plugin's face: a card or a folder's own description becomes an open dual encoder; batches and texts become embeddings. Knows neither
//! tensors' names nor layers.

use crate::card::{self, Card};
use crate::config::{Config, Scaling};
use crate::open::{self, OpenError};
use crate::settings::Settings;
use crate::similarity::Scale;
use crate::text::{TextError, TextTower};
use crate::tower::image::ImageTower;
use focus_nn::pixels::Normalisation;
use focus_nn::{DType, Device, LoadError};
use focus_plugin_sdk::{
    DualEncoder, Embeddings, Error, Host, ImageBatch, ImageEncoder, Model, OpenOptions,
    OpenedModel, PixelMode, PixelType, PreprocessingCard, Similarity, TextEmbeddings, opened,
};
use std::path::Path;

/// Said where a text side could be left out.
const WITHOUT_TEXT: &str =
    "`--set text=none` opens the image side alone; zero-shot classification needs both";

/// Opens a model of this plugin.
pub fn open(options: &OpenOptions, host: &Host) -> Result<Box<dyn Model>, Error> {
    Ok(Box::new(Encoder::open(options, host)?))
}

/// An open dual encoder. Vectors are the model's own: of length 1 where it makes them so; the host normalises them all.
#[derive(Debug)]
pub struct Encoder {
    opened: OpenedModel,
    tower: ImageTower,
    /// `None` with `text=none`.
    text: Option<TextTower>,
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
        let device = focus_nn::device(&options.device)?;
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
        let config = &plan.config.clone();
        let parts = match (settings.random, folder) {
            (Some(seed), _) => {
                plan.notes.push(format!(
                    "random weights, seed {seed}: a control, not a trained model"
                ));
                state.weights_digest = Some(format!("random:{seed}"));
                drawn(config, &settings, seed, &device, dtype)
            }
            (None, Some(folder)) => from_folder(&card, config, &settings, folder, (&device, dtype)),
            (None, None) => return Err(no_weights(&card)),
        };
        let (tower, text) = parts.map_err(|error| {
            let lacks_text = lacks_text(config, &error);
            let crossed = crossed(&error);
            if lacks_text {
                crossed.with_hint(WITHOUT_TEXT)
            } else {
                crossed
            }
        })?;
        state.similarity = text.as_ref().map(|(_, scale)| Similarity {
            scale: f64::from(scale.factor),
            bias: f64::from(scale.bias),
            sigmoid: config.scaling == Scaling::ExpBias,
        });
        if text.is_none() {
            plan.notes.push("image side alone, by setting".into());
        }
        if options.batch_size.is_none() {
            state.batch_size =
                focus_nn::batch::auto(state.batch_size, &device, config.image_bytes(dtype));
        }
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
            text: text.map(|(text, _)| text),
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

type Parts = (ImageTower, Option<(TextTower, Scale)>);

fn drawn(
    config: &Config,
    settings: &Settings,
    seed: u64,
    device: &Device,
    dtype: DType,
) -> Result<Parts, OpenError> {
    if !settings.text {
        let tower =
            focus_nn::weights::random(seed, device, dtype, |w| ImageTower::load(config, w))?;
        return Ok((tower, None));
    }
    let both = focus_nn::weights::random(seed, device, dtype, |w| open::load_both(config, w))?;
    let (caption, tokenizer) = open::drawn_tokenizer(config, settings.track);
    let text = TextTower::new(caption, tokenizer, both.words);
    Ok((both.image, Some((text, both.scale))))
}

fn from_folder(
    card: &Card,
    config: &Config,
    settings: &Settings,
    folder: &Path,
    (device, dtype): (&Device, DType),
) -> Result<Parts, OpenError> {
    let checkpoint = open::checkpoint(card, folder)?;
    if !settings.text {
        return Ok((open::image(config, checkpoint, device, dtype)?, None));
    }
    let both = open::sides(config, checkpoint, device, dtype)?;
    let (caption, tokenizer) = open::tokenizer(config, folder, settings.track)?;
    let text = TextTower::new(caption, tokenizer, both.words);
    Ok((both.image, Some((text, both.scale))))
}

/// Whether only the text side stands in the way: then there is a setting for it.
fn lacks_text(config: &Config, error: &OpenError) -> bool {
    match error {
        OpenError::Tokenizer(_) => true,
        OpenError::Weights(LoadError::Mismatch {
            missing,
            unexpected,
            shapes,
            ..
        }) => {
            let of_text = |name: &String| {
                let patterns = [config.text_tensors(), config.scale_tensors()].concat();
                patterns
                    .iter()
                    .any(|pattern| match pattern.strip_suffix('*') {
                        Some(start) => name.starts_with(start),
                        None => name == pattern,
                    })
            };
            unexpected.is_empty()
                && shapes.is_empty()
                && !missing.is_empty()
                && missing.iter().all(of_text)
        }
        _ => false,
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

impl Model for Encoder {
    fn opened(&self) -> OpenedModel {
        self.opened.clone()
    }

    fn image_encoder(&mut self) -> Option<&mut dyn ImageEncoder> {
        Some(self)
    }

    fn dual_encoder(&mut self) -> Option<&mut dyn DualEncoder> {
        self.text.is_some().then_some(self as _)
    }
}

impl DualEncoder for Encoder {
    fn encode_texts(&mut self, texts: &[String], host: &Host) -> Result<TextEmbeddings, Error> {
        let Some(tower) = &self.text else {
            return Err(Error::unsupported("The text side was left out")
                .with_hint("Drop `--set text=none`"));
        };
        host.check_cancelled()?;
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let refused = |error: TextError| match error {
            TextError::Tokenizer(error) => Error::invalid_request(error),
            TextError::Compute(error) => Error::device(error),
        };
        let reading = tower.read(&texts).map_err(|error| refused(error.into()))?;
        let rows = self
            .threads
            .install(|| tower.embed_read(&reading))
            .map_err(refused)?;
        let tokens = reading
            .calls
            .iter()
            .flat_map(|call| (0..call.texts()).map(|text| call.row(text).to_vec()))
            .collect();
        Ok(TextEmbeddings {
            rows: Embeddings::new(rows.dim, rows.values)?,
            tokens,
            truncated: reading.cut,
        })
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
