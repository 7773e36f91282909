//! Opening: which model, whether tokens go by id, and what the run is told of it. Asks no question about a picture.

use crate::card;
use crate::fault::Fault;
use crate::secret::DEFAULT_VARIABLE;
use crate::server::Server;
use crate::settings::{Settings, TokenScores};
use focus_plugin_sdk::{Error, Host, OpenOptions, OpenedModel};
use std::collections::BTreeMap;

/// The one model that the server has. Faults of the server are a plain no, here and in [`token_ids`]: the host would take others for the
/// end of a worker, and start it again and again.
pub(crate) fn only_model(server: &Server, host: &Host) -> Result<String, Error> {
    let mut names = server.models(host).map_err(Fault::into_end)?;
    if names.len() == 1 {
        return Ok(names.remove(0));
    }
    let count = names.len();
    names.truncate(20);
    let names: Vec<_> = names.iter().map(|name| server.quoted(name)).collect();
    Err(Error::invalid_request(format!(
        "Setting `served_model` is missing: `{}` serves {count} models",
        server.address().shown()
    ))
    .with_hint(format!(
        "Choose one with `--set served_model=NAME` (a LoRA adapter is a model here): {}",
        names.join(", ")
    )))
}

/// Whether tokens go by id, and the ids learnt in finding out.
pub(crate) fn token_ids(
    server: &Server,
    host: &Host,
    served: &str,
    wanted: TokenScores,
) -> Result<(bool, BTreeMap<String, Option<u32>>), Error> {
    const PROBE: &str = "yes";
    if wanted == TokenScores::Texts {
        return Ok((false, BTreeMap::new()));
    }
    match server.token(host, served, PROBE) {
        Ok(id) => Ok((true, BTreeMap::from([(PROBE.to_owned(), id)]))),
        // A service without `/tokenize` answers in many ways; a missing key, an unpaid account, a dead server and a cancellation are not
        // among them.
        Err(fault) => match &fault {
            Fault::Refused {
                status, exhausted, ..
            } if wanted == TokenScores::Auto
                && !exhausted
                && !matches!(status, 401 | 402)
                && !fault.is_passing() =>
            {
                Ok((false, BTreeMap::new()))
            }
            Fault::Malformed { .. } | Fault::Redirect { .. } if wanted == TokenScores::Auto => {
                Ok((false, BTreeMap::new()))
            }
            _ => Err(fault.into_end()),
        },
    }
}

/// What the run is told: facts and notes.
pub(crate) fn describe(
    options: &OpenOptions,
    settings: &Settings,
    server: &Server,
    served: &str,
    by_id: bool,
    key_withheld: bool,
) -> OpenedModel {
    let address = server.address();
    let mut opened = focus_plugin_sdk::opened(&card::descriptor(), options);
    opened.batch_size = settings.pictures_at_once;
    let facts = &mut opened.facts;
    let mut fact = |name: &str, value: String| drop(facts.insert(name.to_owned(), value));
    fact("server", address.base().to_owned());
    fact("served_model", served.to_owned());
    fact("temperature", "0".to_owned());
    fact("top_logprobs", settings.top_logprobs.to_string());
    fact(
        "token_scores",
        if by_id {
            "logprob_token_ids"
        } else {
            "top_logprobs"
        }
        .to_owned(),
    );
    fact("image_format", settings.image_format.to_string());
    if let Some(side) = settings.max_image_side {
        fact("max_image_side", format!("{side}, bicubic"));
    }
    if let Some(detail) = &settings.detail {
        fact("detail", detail.clone());
    }
    if let Some(seed) = settings.seed {
        fact("seed", seed.to_string());
    }
    if !settings.extra_body.is_empty() {
        let text = serde_json::to_string(&settings.extra_body).expect("JSON was read from text");
        fact("extra_body", text);
    }
    opened.notes.push(format!(
        "answers of `{served}` at `{}`: weights, chat template and picture preparation are the server's and cannot be checked here",
        address.shown()
    ));
    if !by_id {
        opened.notes.push(
            "token scores by text: the server tells no token ids, so a variant's id is its position among the variants".to_owned(),
        );
    }
    if address.readable_on_the_way() {
        opened.notes.push(format!(
            "the connection to `{}` is not encrypted",
            address.shown()
        ));
    }
    if key_withheld {
        opened.notes.push(format!(
            "the key in `{DEFAULT_VARIABLE}` was not sent: over a connection that is not encrypted it is sent only if `api_key_env` names it"
        ));
    }
    opened
}
