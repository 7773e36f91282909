//! The plugin's face: a card or a folder's own description becomes an open model; groups of questions become answers. Knows neither
//! tensors' names nor layers.

use crate::card;
use crate::config::Config;
use crate::network::Network;
use crate::open::{self, Described, OpenError};
use crate::processor::{Processor, ProcessorError};
use crate::prompt::{self, SLOT};
use crate::settings::Settings;
use crate::toy;
use focus_nn::DType;
use focus_nn::chat::{Chat, ChatError};
use focus_nn::generate::{self, Family};
use focus_nn::lm::{Decoder, Features, Prompt};
use focus_nn::lora::{Adaptable, Adapters, Module, Spelling};
use focus_plugin_sdk::{
    AttachReply, AttachRequest, Error, GenerateBatch, GenerateReply, Generator, Host,
    LoraAdaptable, Model, ModelDescriptor, OpenOptions, OpenedModel, Picture, opened,
};
use std::collections::BTreeMap;
use std::path::Path;

/// Opens a model of this plugin.
pub fn open(options: &OpenOptions, host: &Host) -> Result<Box<dyn Model>, Error> {
    Ok(Box::new(QwenVl::open(options, host)?))
}

/// An open model.
#[derive(Debug)]
pub struct QwenVl {
    opened: OpenedModel,
    core: Core,
    threads: rayon::ThreadPool,
}

/// What answers, without the threads that it runs on.
#[derive(Debug)]
struct Core {
    network: Network,
    described: Described,
}

impl QwenVl {
    /// Opens by card, settings and folder.
    pub fn open(options: &OpenOptions, host: &Host) -> Result<Self, Error> {
        let settings = Settings::read(options)?;
        let card = known(&options.model)?;
        let device = focus_nn::device(&options.device)?;
        let mut state = opened(&card, options);
        let dtype = match state.dtype.as_str() {
            "f32" => DType::F32,
            "bf16" => DType::BF16,
            other => {
                return Err(Error::unsupported(format!(
                    "Unsupported dtype: expected `f32` or `bf16`, found `{other}`"
                )));
            }
        };
        state.notes.push(settings.track().into());
        let (described, network) = match (settings.random, options.weights.as_deref()) {
            (Some(seed), _) => {
                state.notes.push(format!(
                    "random weights, seed {seed}: a control, not a trained model"
                ));
                state.weights_digest = Some(format!("random:{seed}"));
                let described = drawn(&settings, &mut state.notes).map_err(|e| crossed(&e))?;
                let network = Network::random(seed, &described.config, &device, dtype);
                (described, network)
            }
            (None, Some(folder)) => {
                let folder = Path::new(folder);
                let described = open::describe(folder).map_err(|error| crossed(&error))?;
                let known = Config::qwen3_vl_8b();
                let differs = (&described.config.text, &described.config.vision)
                    != (&known.text, &known.vision);
                if options.model == card::QWEN3_VL_8B && differs {
                    state.notes.push(
                        "config.json describes another size than the published model's".into(),
                    );
                }
                let network = Network::load(folder, &described.config, &device, dtype);
                (described, network)
            }
            (None, None) => return Err(no_weights(&card)),
        };
        let network = network.map_err(|error| crossed(&error.into()))?;
        let described = with_budget(described, &settings)?;
        state.preprocessing.mean = described.processor.mean;
        state.preprocessing.std = described.processor.std;
        state.facts = facts(&described);
        for note in &state.notes {
            host.info(note);
        }
        let threads = rayon::ThreadPoolBuilder::new()
            .num_threads(options.threads.max(1) as usize)
            .build()
            .map_err(Error::internal)?;
        Ok(Self {
            opened: state,
            core: Core { network, described },
            threads,
        })
    }
}

fn known(id: &str) -> Result<ModelDescriptor, Error> {
    [card::qwen3_vl_8b(), card::checkpoint()]
        .into_iter()
        .find(|card| card.id == id)
        .ok_or_else(|| Error::invalid_request(format!("Unknown model `{id}`")))
}

/// The description of a model without a folder.
fn drawn(settings: &Settings, notes: &mut Vec<String>) -> Result<Described, OpenError> {
    let (mut config, mut processor) = if settings.tiny {
        notes.push("toy size".into());
        let budget = Processor {
            min_pixels: 64 * 64,
            max_pixels: 128 * 128,
            ..Processor::qwen3_vl()
        };
        (Config::tiny(), budget)
    } else {
        (Config::qwen3_vl_8b(), Processor::qwen3_vl())
    };
    notes.push("tokenizer of a toy: bytes and a few words".into());
    processor.patch = config.vision.patch;
    let chat = toy::chat()?;
    let id = |token: &str| {
        let unknown = || ChatError::UnknownToken {
            token: token.to_owned(),
        };
        chat.tokenizer().id(token).ok_or_else(unknown)
    };
    config.image_token = id(SLOT)?;
    let end_tokens = vec![id(toy::END)?];
    Ok(Described {
        config,
        processor,
        chat,
        end_tokens,
    })
}

fn with_budget(mut described: Described, settings: &Settings) -> Result<Described, Error> {
    let processor = &mut described.processor;
    processor.min_pixels = settings.min_pixels.unwrap_or(processor.min_pixels);
    processor.max_pixels = settings.max_pixels.unwrap_or(processor.max_pixels);
    match described.processor.check() {
        Ok(()) => Ok(described),
        Err(reason) => Err(Error::invalid_request(format!(
            "Settings `min_pixels` and `max_pixels`: {reason}"
        ))),
    }
}

/// What decides results beside the weights.
fn facts(described: &Described) -> BTreeMap<String, String> {
    let processor = &described.processor;
    let ends: Vec<String> = described.end_tokens.iter().map(u32::to_string).collect();
    let mut facts = described.chat.facts();
    facts.extend(
        [
            ("end_tokens", ends.join(" ")),
            ("max_pixels", processor.max_pixels.to_string()),
            ("min_pixels", processor.min_pixels.to_string()),
            (
                "resize",
                format!(
                    "sides to multiples of {}, rounded half to even, within min_pixels and max_pixels; {:?} on bytes as Pillow, rows before columns",
                    processor.factor(),
                    processor.filter
                ),
            ),
        ]
        .map(|(key, value)| (key.to_owned(), value)),
    );
    facts
}

fn no_weights(card: &ModelDescriptor) -> Error {
    let hint = match &card.hub {
        Some(hub) => format!(
            "Get the files of {} from the Hugging Face hub and give `--weights DIR`; `--set weights=random:0 --set size=tiny` runs a toy",
            hub.repository
        ),
        None => "Give `--weights DIR`; `--set weights=random:0 --set size=tiny` runs a toy".into(),
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

impl Model for QwenVl {
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

impl Generator for QwenVl {
    fn generate(&mut self, batch: &GenerateBatch<'_>, host: &Host) -> Result<GenerateReply, Error> {
        let Self { core, threads, .. } = self;
        threads.install(|| generate::serve(core, batch, host))
    }
}

impl LoraAdaptable for QwenVl {
    fn attach(&mut self, request: &AttachRequest, host: &Host) -> Result<AttachReply, Error> {
        let Self { core, threads, .. } = self;
        threads.install(|| generate::attach(core, request, host))
    }

    fn detach(&mut self, name: &str, _host: &Host) -> Result<(), Error> {
        generate::detach(&mut self.core, name)
    }
}

impl Core {
    fn chat(&self) -> &Chat {
        &self.described.chat
    }
}

impl Family for Core {
    fn decoder(&self) -> &Decoder {
        &self.network.decoder
    }

    fn look(&self, picture: &Picture<'_>) -> Result<Features, Error> {
        let patches = self
            .described
            .processor
            .prepare(picture)
            .map_err(|error| match error {
                ProcessorError::Aspect { .. } => Error::image(error),
                other => Error::internal(other),
            })?;
        self.network
            .tower
            .forward(&patches)
            .map_err(generate::compute)
    }

    fn render(&self, text: &str, pictures: &[&Features]) -> Result<Prompt, Error> {
        let tokens = self
            .chat()
            .question(pictures.len(), text, SLOT)
            .map_err(|error| asked(&error))?;
        Ok(prompt::expand(
            &tokens,
            self.described.config.image_token,
            pictures,
        ))
    }

    fn decode(&self, tokens: &[u32]) -> Result<String, Error> {
        self.chat()
            .tokenizer()
            .decode(tokens)
            .map_err(|error| asked(&error))
    }

    fn end_tokens(&self) -> &[u32] {
        &self.described.end_tokens
    }

    fn single_token(&self, text: &str) -> Result<Option<u32>, Error> {
        Ok(self.chat().tokenizer().single_token(text))
    }

    fn probe_size(&self) -> (usize, usize) {
        (96, 64)
    }
}

impl Adaptable for Core {
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

fn asked(error: &ChatError) -> Error {
    let crossed = Error::invalid_request(error);
    match error.hint() {
        Some(hint) => crossed.with_hint(hint),
        None => crossed,
    }
}
