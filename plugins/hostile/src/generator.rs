//! The generator: honest but for its misdeed. Must not know how a misdeed is done.

use crate::misdeed::Misdeed;
use crate::model::{Intent, card as encoder_card, intent, number};
use focus_plugin_sdk::{
    AttachReply, AttachRequest, Error, Family, Finish, GenerateBatch, GenerateReply,
    GeneratedAnswer, Generator, GroupError, GroupReply, Host, InterfaceName, LoraAdaptable, Model,
    ModelDescriptor, OpenOptions, OpenedModel, Picture, PixelMode, Timings, VariantScore, opened,
};
use std::collections::BTreeSet;

const BATCH: u32 = 4;

/// The true answer to a prompt: the adapter's name and a colon, if there is one; `WxH:SUM` of each picture, the sum over its bytes;
/// the prompt. All between blanks.
pub fn generated<'a>(
    adapter: Option<&str>,
    pictures: impl IntoIterator<Item = (u32, u32, &'a [u8])>,
    prompt: &str,
) -> String {
    let mut words: Vec<String> = adapter.map(|name| format!("{name}:")).into_iter().collect();
    for (width, height, rgb) in pictures {
        let sum: u64 = rgb.iter().map(|&value| u64::from(value)).sum();
        words.push(format!("{width}x{height}:{sum}"));
    }
    words.push(prompt.to_owned());
    words.join(" ")
}

struct HostileGenerator {
    opened: OpenedModel,
    intent: Intent,
    adapters: BTreeSet<String>,
}

impl Model for HostileGenerator {
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

fn answer(
    adapter: Option<&str>,
    pictures: &[Picture<'_>],
    prompt: &str,
    score: &[String],
) -> GeneratedAnswer {
    let sizes = pictures
        .iter()
        .map(|p| (p.width as u32, p.height as u32, p.rgb));
    GeneratedAnswer {
        text: generated(adapter, sizes, prompt),
        finish: Finish::End,
        scores: score
            .iter()
            .map(|variant| VariantScore {
                token: Some(variant.len() as u32),
                logprob: Some(-(variant.len() as f64)),
            })
            .collect(),
        prompt_tokens: vec![(7, prompt.len() as u32)],
        prompt_length: prompt.len() as u32,
        new_tokens: vec![1, 2],
        new_length: 2,
    }
}

impl Generator for HostileGenerator {
    fn generate(&mut self, batch: &GenerateBatch<'_>, host: &Host) -> Result<GenerateReply, Error> {
        let request = batch.request();
        let adapter = request.adapter.as_deref();
        if let Some(name) = adapter.filter(|name| !self.adapters.contains(*name)) {
            return Err(no_adapter(name));
        }
        let mut groups = Vec::new();
        for (number, group) in request.groups.iter().enumerate() {
            let pictures: Vec<_> = batch.group(number).collect();
            let mut answers: Vec<_> = group
                .prompts
                .iter()
                .map(|prompt| answer(adapter, &pictures, prompt, &request.score))
                .collect();
            let hit = match self.intent.marker {
                None => true,
                Some(colour) => pictures.iter().any(|picture| picture.rgb[..3] == colour),
            };
            let mut error = None;
            if hit {
                match self.intent.misdeed.act(host, number) {
                    Ok(()) => self.intent.misdeed.during_generate(&mut answers),
                    Err(found) if found.kind() == focus_plugin_sdk::ErrorKind::CANCELLED => {
                        return Err(found);
                    }
                    Err(found) => {
                        answers.clear();
                        error = Some(GroupError {
                            kind: found.kind().0,
                            message: found.to_string(),
                            hint: found.hint().map(str::to_owned),
                        });
                    }
                }
            }
            groups.push(GroupReply {
                answers,
                error,
                timings: Timings::default(),
            });
        }
        Ok(GenerateReply { groups })
    }
}

impl LoraAdaptable for HostileGenerator {
    fn attach(&mut self, request: &AttachRequest, host: &Host) -> Result<AttachReply, Error> {
        if !std::path::Path::new(&request.folder).is_dir() {
            return Err(Error::weights(format!("No folder `{}`", request.folder)));
        }
        if !self.adapters.insert(request.name.clone()) {
            return Err(Error::invalid_request(format!(
                "Adapter `{}` is attached already",
                request.name
            )));
        }
        host.info(format!("attached {}", request.name));
        let digest = match self.intent.misdeed {
            Misdeed::FickleAdapter => format!("process:{}", std::process::id()),
            _ => "fixed:1".to_owned(),
        };
        Ok(AttachReply {
            name: request.name.clone(),
            digest,
            ranks: vec![8],
            scales: vec![2.0],
            targets: vec!["layer".into()],
            modules_to_save: Vec::new(),
            base: None,
            probe_change: 1.0,
            notes: Vec::new(),
        })
    }

    fn detach(&mut self, name: &str, _: &Host) -> Result<(), Error> {
        if self.adapters.remove(name) {
            Ok(())
        } else {
            Err(no_adapter(name))
        }
    }
}

fn no_adapter(name: &str) -> Error {
    Error::invalid_request(format!("No adapter `{name}` is attached"))
}

fn card() -> ModelDescriptor {
    let mut card = ModelDescriptor {
        id: "hostile-generator".into(),
        title: "Sizes and sums of pictures, and a misdeed on request".into(),
        family: Family::Mllm,
        interfaces: vec![InterfaceName::Generator, InterfaceName::LoraAdaptable],
        embedding_dim: None,
        batch_size: BATCH,
        ..encoder_card()
    };
    card.preprocessing.mode = PixelMode::Own;
    card
}

fn open(options: &OpenOptions, host: &Host) -> Result<Box<dyn Model>, Error> {
    let intent = intent(options, host)?;
    let mut opened = opened(&card(), options);
    opened.batch_size = number(options, "batch", BATCH)?;
    Ok(Box::new(HostileGenerator {
        opened,
        intent,
        adapters: BTreeSet::new(),
    }))
}

focus_plugin_sdk::register_model! { describe: card, open: open }
