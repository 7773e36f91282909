//! The plugin itself: an open model and what it makes of a request.

use crate::address::Address;
use crate::body::Manner;
use crate::call::Call;
use crate::fault::Fault;
use crate::open::{describe, only_model, token_ids};
use crate::pace::Patience;
use crate::score::Variants;
use crate::secret::Key;
use crate::server::Server;
use crate::settings::Settings;
use focus_plugin_sdk::{
    Error, GenerateBatch, GenerateReply, Generator, Host, Model, OpenOptions, OpenedModel,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// Longest wait before the second attempt, and before any.
const WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// A model behind a server.
#[derive(Debug)]
pub struct ChatModel {
    opened: OpenedModel,
    settings: Settings,
    /// Name at the server.
    served: String,
    server: Server,
    /// Whether tokens go by id.
    by_id: bool,
    /// Ids of variants asked for so far.
    ids: BTreeMap<String, Option<u32>>,
}

/// Open the model as the command line asks for it.
pub fn open(options: &OpenOptions, host: &Host) -> Result<Box<dyn Model>, Error> {
    let model = ChatModel::open(options, host, &|name| std::env::var(name).ok(), WAITS)?;
    Ok(Box::new(model))
}

impl ChatModel {
    /// Open with variables of the environment and waits (before the second attempt, and longest) from the caller.
    pub fn open(
        options: &OpenOptions,
        host: &Host,
        variable: &dyn Fn(&str) -> Option<String>,
        waits: (Duration, Duration),
    ) -> Result<Self, Error> {
        let settings = Settings::read(options)?;
        let address = Address::check(&settings.base_url, &options.network)?;
        let key = Key::find(settings.api_key_env.as_deref(), variable)?;
        // The default key may be another service's: whoever can listen on the way gets it only if the user said so.
        let withheld =
            key.is_some() && settings.api_key_env.is_none() && address.readable_on_the_way();
        let key = key.filter(|_| !withheld);
        let patience = Patience {
            retries: settings.retries,
            total: settings.give_up_after,
            first_wait: waits.0,
            longest_wait: waits.1,
        };
        let server = Server::new(
            address,
            key,
            settings.timeout,
            patience,
            settings.requests_per_minute,
        );
        let served = match &settings.served_model {
            Some(name) => name.clone(),
            None => only_model(&server, host)?,
        };
        let (by_id, ids) = token_ids(&server, host, &served, settings.token_scores)?;
        let opened = describe(options, &settings, &server, &served, by_id, withheld);
        Ok(Self {
            opened,
            settings,
            served,
            server,
            by_id,
            ids,
        })
    }

    /// Ids of the variants, asked for once each.
    fn variant_ids(&mut self, texts: &[String], host: &Host) -> Result<Vec<Option<u32>>, Fault> {
        texts
            .iter()
            .map(|text| {
                if let Some(&id) = self.ids.get(text) {
                    return Ok(id);
                }
                let id = if text.is_empty() {
                    None
                } else {
                    self.server.token(host, &self.served, text)?
                };
                self.ids.insert(text.clone(), id);
                Ok(id)
            })
            .collect()
    }
}

impl Model for ChatModel {
    fn opened(&self) -> OpenedModel {
        self.opened.clone()
    }

    fn generator(&mut self) -> Option<&mut dyn Generator> {
        Some(self)
    }
}

impl Generator for ChatModel {
    fn generate(&mut self, batch: &GenerateBatch<'_>, host: &Host) -> Result<GenerateReply, Error> {
        let request = batch.request();
        if let Some(name) = &request.adapter {
            return Err(Error::unsupported(format!(
                "Adapter `{name}` cannot be attached: the server holds the model"
            ))
            .with_hint(
                "A server offers an adapter as a model of its own: `--set served_model=NAME`",
            ));
        }
        let questions = request.groups.iter().map(|group| group.prompts.len()).sum();
        self.settings.in_time(questions)?;
        let scored = !request.score.is_empty();
        let ids = if self.by_id && scored {
            self.variant_ids(&request.score, host)
                .map_err(Fault::into_end)?
        } else {
            Vec::new()
        };
        let mut wanted: Vec<u32> = ids.iter().copied().flatten().collect();
        wanted.sort_unstable();
        wanted.dedup();
        let manner = Manner {
            model: &self.served,
            // No server answers with no token at all; the one token is not part of the answer then.
            max_tokens: request.max_new_tokens.max(1),
            max_completion_tokens: self.settings.max_completion_tokens,
            top_logprobs: scored.then_some(self.settings.top_logprobs),
            ids: self.by_id.then_some(wanted.as_slice()),
            seed: self.settings.seed,
            detail: self.settings.detail.as_deref(),
            extra: &self.settings.extra_body,
        };
        let variants = if self.by_id {
            Variants::Ids(&ids)
        } else {
            Variants::Texts(&request.score)
        };
        let call = Call::new(batch, manner, variants, &self.server, &self.settings, host);
        let groups = call.run();
        if host.cancelled() {
            return Err(Error::cancelled());
        }
        let counts = self.server.counter().counts();
        host.info(counts.line(self.settings.price_in, self.settings.price_out));
        Ok(GenerateReply { groups: groups? })
    }
}
