//! The plugin's face: a card and a folder become an open generator. Knows neither tensors' names nor layers.

use crate::card::{self, Card};
use crate::network::Network;
use crate::open::{self, OpenError, Opened};
use crate::settings::Settings;
use crate::talk::Talk;
use focus_nn::DType;
use focus_nn::chat::ChatError;
use focus_nn::generate::{self, Family};
use focus_nn::lm::{Decoder, Features, Prompt};
use focus_nn::lora::{Adaptable, Adapters, Module, Spelling};
use focus_nn::pixels::Normalisation;
use focus_plugin_sdk::{
    AttachReply, AttachRequest, Error, GenerateBatch, GenerateReply, Generator, Host,
    LoraAdaptable, Model, OpenOptions, OpenedModel, Picture, opened,
};
use std::path::Path;

/// Opens a model of this plugin.
pub fn open(options: &OpenOptions, host: &Host) -> Result<Box<dyn Model>, Error> {
    Ok(Box::new(MedGemma::open(options, host)?))
}

/// An open model.
#[derive(Debug)]
pub struct MedGemma {
    state: OpenedModel,
    speaker: Speaker,
    threads: rayon::ThreadPool,
}

/// What answers: network and talk, as the driver wants them.
#[derive(Debug)]
struct Speaker {
    network: Network,
    talk: Talk,
    end_ids: Vec<u32>,
    normalisation: Normalisation,
    side: usize,
}

impl MedGemma {
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
        let Opened {
            config,
            network,
            talk,
            preprocessing,
            notes,
        } = match (settings.random, options.weights.as_deref()) {
            (Some(seed), _) => {
                state.weights_digest = Some(format!("random:{seed}"));
                open::random(seed, &device, dtype)
            }
            (None, Some(folder)) => open::folder(Path::new(folder), &device, dtype),
            (None, None) => return Err(no_weights(card)),
        }
        .map_err(|error| crossed(&error))?;
        state.notes.push(format!("track {}", settings.track));
        state.notes.extend(notes);
        if settings.random.is_none() {
            state.notes.extend(card.note.map(str::to_owned));
        }
        for note in &state.notes {
            host.info(note);
        }
        state.facts = talk.chat().facts();
        for (name, value) in [
            ("pan_and_scan", "off".to_owned()),
            ("image_tokens", config.image_tokens.to_string()),
        ] {
            state.facts.insert(name.to_owned(), value);
        }
        let side = preprocessing.width as usize;
        let normalisation = Normalisation {
            mean: preprocessing.mean,
            std: preprocessing.std,
        };
        state.preprocessing = preprocessing;
        let threads = rayon::ThreadPoolBuilder::new()
            .num_threads(options.threads.max(1) as usize)
            .build()
            .map_err(Error::internal)?;
        Ok(Self {
            state,
            speaker: Speaker {
                network,
                talk,
                end_ids: config.end_ids,
                normalisation,
                side,
            },
            threads,
        })
    }
}

fn no_weights(card: &Card) -> Error {
    let error = Error::weights(format!(
        "Model `{}` needs weights: expected a folder, found none",
        card.id
    ));
    error.with_hint(if card.hub {
        "Accept the terms on the model's page on the hub, fetch it, and give `--weights DIR`; `--set weights=random:0 --set size=tiny` runs a toy"
    } else {
        "Give `--weights DIR` with the model's files; `--set weights=random:0 --set size=tiny` runs a toy"
    })
}

fn crossed(error: &OpenError) -> Error {
    let crossed = Error::weights(error);
    match error.hint() {
        Some(hint) => crossed.with_hint(hint),
        None => crossed,
    }
}

fn asked(error: ChatError) -> Error {
    let crossed = Error::invalid_request(&error);
    match error.hint() {
        Some(hint) => crossed.with_hint(hint),
        None => crossed,
    }
}

impl Model for MedGemma {
    fn opened(&self) -> OpenedModel {
        self.state.clone()
    }

    fn generator(&mut self) -> Option<&mut dyn Generator> {
        Some(self)
    }

    fn lora_adaptable(&mut self) -> Option<&mut dyn LoraAdaptable> {
        Some(self)
    }
}

impl Generator for MedGemma {
    fn generate(&mut self, batch: &GenerateBatch<'_>, host: &Host) -> Result<GenerateReply, Error> {
        let speaker = &mut self.speaker;
        self.threads
            .install(|| generate::serve(speaker, batch, host))
    }
}

impl LoraAdaptable for MedGemma {
    fn attach(&mut self, request: &AttachRequest, host: &Host) -> Result<AttachReply, Error> {
        let speaker = &mut self.speaker;
        self.threads
            .install(|| generate::attach(speaker, request, host))
    }

    fn detach(&mut self, name: &str, _: &Host) -> Result<(), Error> {
        generate::detach(&mut self.speaker, name)
    }
}

impl Adaptable for Speaker {
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

impl Family for Speaker {
    fn decoder(&self) -> &Decoder {
        self.network.decoder()
    }

    fn look(&self, picture: &Picture<'_>) -> Result<Features, Error> {
        let side = self.side;
        if (picture.width, picture.height) != (side, side) {
            return Err(Error::image(format!(
                "Picture of the wrong size: expected {side} x {side}, found {} x {}",
                picture.width, picture.height
            )));
        }
        let decoder = self.network.decoder();
        self.normalisation
            .planes(picture.rgb, side, side, decoder.device(), decoder.dtype())
            .and_then(|pixels| self.network.look(&pixels))
            .map_err(generate::compute)
    }

    fn render(&self, text: &str, pictures: &[&Features]) -> Result<Prompt, Error> {
        self.talk.prompt(pictures.len(), text).map_err(asked)
    }

    fn decode(&self, tokens: &[u32]) -> Result<String, Error> {
        let text = self.talk.chat().tokenizer().decode(tokens);
        text.map_err(Error::internal)
    }

    fn end_tokens(&self) -> &[u32] {
        &self.end_ids
    }

    fn single_token(&self, text: &str) -> Result<Option<u32>, Error> {
        Ok(self.talk.chat().tokenizer().single_token(text))
    }

    fn probe_size(&self) -> (usize, usize) {
        (self.side, self.side)
    }
}
