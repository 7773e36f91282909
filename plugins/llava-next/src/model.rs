//! The plugin's face: a card and a folder become an open generator with adapters. Knows neither tensors' names nor layers.

use crate::card::{self, Card};
use crate::config::Config;
use crate::grid::Size;
use crate::network::Network;
use crate::open::{self, OpenError, Parts, SLOT};
use crate::preprocess::Processor;
use crate::settings::Settings;
use crate::tiles::{self, TilesError};
use crate::toy::toy;
use focus_nn::chat::{Chat, ChatError};
use focus_nn::generate::{self, Family, compute};
use focus_nn::lm::{Decoder, Features, ImageSpan, Prompt};
use focus_nn::lora::{Adaptable, Adapters, Module, Spelling};
use focus_nn::{DType, Device};
use focus_plugin_sdk::{
    AttachReply, AttachRequest, Error, GenerateBatch, GenerateReply, Generator, Host,
    LoraAdaptable, Model, OpenOptions, OpenedModel, Picture, opened,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Opens a model of this plugin.
pub fn open(options: &OpenOptions, host: &Host) -> Result<Box<dyn Model>, Error> {
    Ok(Box::new(LlavaNext::open(options, host)?))
}

/// An open model.
#[derive(Debug)]
pub struct LlavaNext {
    opened: OpenedModel,
    network: Network,
    processor: Processor,
    chat: Chat,
    image_token: u32,
    end_tokens: Vec<u32>,
    device: Device,
    dtype: DType,
    threads: Arc<rayon::ThreadPool>,
}

impl LlavaNext {
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
                    "Unsupported dtype: expected `bf16` or `f32`, found `{other}`"
                )));
            }
        };
        state.notes.push(format!("track {}", settings.track));
        let (parts, network) = match (settings.random, options.weights.as_deref()) {
            (Some(seed), _) => {
                state.notes.push(format!(
                    "random weights, seed {seed}: a toy of small size, not a trained model"
                ));
                state.weights_digest = Some(format!("random:{seed}"));
                let parts = toy_parts()?;
                let network = focus_nn::weights::random(seed, &device, dtype, |w| {
                    Network::load(&parts.config, w)
                });
                (parts, network)
            }
            (None, Some(folder)) => {
                let folder = Path::new(folder);
                let parts = open::parts(folder, settings.track).map_err(|e| crossed(&e))?;
                let network = open::checkpoint(folder).and_then(|checkpoint| {
                    host.info(format!("{} tensors found", checkpoint.len()));
                    state.weights_digest = Some(open::digest(&checkpoint));
                    focus_nn::weights::load(checkpoint, &device, dtype, &[], |w| {
                        Network::load(&parts.config, w)
                    })
                });
                (parts, network)
            }
            (None, None) => return Err(no_weights(&card)),
        };
        let network = network.map_err(|error| crossed(&error.into()))?;
        let Parts {
            config,
            processor,
            chat,
            end_tokens,
        } = parts;
        state.preprocessing = processor.card();
        state.facts = facts(&config, &processor, &chat, &end_tokens);
        for note in &state.notes {
            host.info(note);
        }
        let threads = rayon::ThreadPoolBuilder::new()
            .num_threads(options.threads.max(1) as usize)
            .build()
            .map_err(Error::internal)?;
        Ok(Self {
            opened: state,
            network,
            processor,
            chat,
            image_token: config.image_token,
            end_tokens,
            device,
            dtype,
            threads: Arc::new(threads),
        })
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.network
    }
}

/// What decides the results beside the weights.
fn facts(
    config: &Config,
    processor: &Processor,
    chat: &Chat,
    end_tokens: &[u32],
) -> BTreeMap<String, String> {
    let words = |list: Vec<String>| list.join(" ");
    let mut facts = chat.facts();
    facts.extend([
        (
            "tiling".to_owned(),
            format!(
                "base of {0}x{0} and tiles of the best resolution, height x width: {1}",
                processor.side,
                words(processor.pinpoints.iter().map(Size::to_string).collect())
            ),
        ),
        ("filter".to_owned(), processor.filter.name().to_owned()),
        ("hidden_state".to_owned(), config.layer.to_string()),
        (
            "end_tokens".to_owned(),
            words(end_tokens.iter().map(u32::to_string).collect()),
        ),
    ]);
    facts
}

fn toy_parts() -> Result<Parts, Error> {
    let toy = toy().map_err(|error| crossed(&error.into()))?;
    let config = Config::tiny(toy.rows, toy.image_token, toy.end_token);
    Ok(Parts {
        processor: Processor::clip(config.vision.size as u32, config.pinpoints.clone()),
        end_tokens: config.end_tokens.clone(),
        chat: toy.chat,
        config,
    })
}

fn no_weights(card: &Card) -> Error {
    let hint = if card.hub {
        format!(
            "Fetch `{}` and give its folder with `--weights DIR`, or try a toy: `--weights random:0 --size tiny`",
            card.id
        )
    } else {
        "Give `--weights DIR`, or try a toy: `--weights random:0 --size tiny`".to_owned()
    };
    Error::weights(format!(
        "Model `{}` needs weights: expected a folder, found none",
        card.id
    ))
    .with_hint(hint)
}

fn crossed(error: &OpenError) -> Error {
    let crossed = Error::weights(error);
    match error.hint() {
        Some(hint) => crossed.with_hint(hint),
        None => crossed,
    }
}

/// A prompt that the chat cannot take.
fn asked(error: &ChatError) -> Error {
    let crossed = Error::invalid_request(error);
    match error.hint() {
        Some(hint) => crossed.with_hint(hint),
        None => crossed,
    }
}

impl Model for LlavaNext {
    fn opened(&self) -> OpenedModel {
        self.opened.clone()
    }

    fn generator(&mut self) -> Option<&mut dyn Generator> {
        Some(self)
    }

    fn lora_adaptable(&mut self) -> Option<&mut dyn LoraAdaptable> {
        Some(self)
    }
}

impl Generator for LlavaNext {
    fn generate(&mut self, batch: &GenerateBatch<'_>, host: &Host) -> Result<GenerateReply, Error> {
        let threads = Arc::clone(&self.threads);
        threads.install(|| generate::serve(self, batch, host))
    }
}

impl LoraAdaptable for LlavaNext {
    fn attach(&mut self, request: &AttachRequest, host: &Host) -> Result<AttachReply, Error> {
        let threads = Arc::clone(&self.threads);
        threads.install(|| generate::attach(self, request, host))
    }

    fn detach(&mut self, name: &str, _host: &Host) -> Result<(), Error> {
        generate::detach(self, name)
    }
}

impl Adaptable for LlavaNext {
    fn visit(&mut self, visit: &mut dyn FnMut(&str, Module<'_>)) {
        self.network.visit(visit);
    }

    fn adapters(&mut self) -> &mut Adapters {
        self.network.adapters()
    }

    fn spellings(&self) -> &'static [Spelling] {
        self.network.spellings()
    }
}

impl Family for LlavaNext {
    fn decoder(&self) -> &Decoder {
        self.network.decoder()
    }

    fn look(&self, picture: &Picture<'_>) -> Result<Features, Error> {
        let side = |pixels: usize| {
            u32::try_from(pixels)
                .map_err(|_| Error::image(format!("Picture with a side of {pixels} pixels")))
        };
        let size = Size::new(side(picture.height)?, side(picture.width)?);
        let tiles = tiles::cut(&self.processor, picture.rgb, size, &self.device, self.dtype)
            .map_err(|error| match error {
                TilesError::Compute(error) => compute(error),
                other => Error::image(other),
            })?;
        self.network.look(&tiles).map_err(compute)
    }

    fn render(&self, text: &str, pictures: &[&Features]) -> Result<Prompt, Error> {
        let ids = self
            .chat
            .question(pictures.len(), text, SLOT)
            .map_err(|error| asked(&error))?;
        expand(&ids, self.image_token, pictures).map_err(compute)
    }

    fn decode(&self, tokens: &[u32]) -> Result<String, Error> {
        self.chat
            .tokenizer()
            .decode(tokens)
            .map_err(Error::internal)
    }

    fn end_tokens(&self) -> &[u32] {
        &self.end_tokens
    }

    fn single_token(&self, text: &str) -> Result<Option<u32>, Error> {
        Ok(self.chat.tokenizer().single_token(text))
    }

    fn probe_size(&self) -> (usize, usize) {
        let side = self.processor.side as usize;
        (2 * side, side)
    }
}

/// Each image token as often as its picture has rows.
fn expand(
    ids: &[u32],
    image_token: u32,
    pictures: &[&Features],
) -> focus_nn::candle::Result<Prompt> {
    let mut tokens = Vec::new();
    let mut spans = Vec::new();
    for &id in ids {
        let features = pictures.get(spans.len()).filter(|_| id == image_token);
        let Some(features) = features else {
            tokens.push(id);
            continue;
        };
        let length = features.rows.dim(0)?;
        spans.push(ImageSpan {
            start: tokens.len(),
            length,
            picture: spans.len(),
        });
        tokens.resize(tokens.len() + length, id);
    }
    Ok(Prompt::on_one_axis(tokens, spans))
}
