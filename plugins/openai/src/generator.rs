//! The plugin itself: opening, and groups of questions in flight at once.

use crate::address::Address;
use crate::body::Manner;
use crate::card;
use crate::fault::Fault;
use crate::pace::Patience;
use crate::picture::data_uri;
use crate::reply::Reply;
use crate::score::{Variants, scores};
use crate::secret::Key;
use crate::server::Server;
use crate::settings::{Settings, TokenScores};
use focus_plugin_sdk::{
    Error, Finish, GenerateBatch, GenerateReply, GeneratedAnswer, Generator, GroupError,
    GroupReply, Host, Model, OpenOptions, OpenedModel, Timings,
};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

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
        let opened = describe(options, &settings, &server, &served, by_id);
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

fn only_model(server: &Server, host: &Host) -> Result<String, Error> {
    let mut names = server.models(host)?;
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
fn token_ids(
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
        // A service without `/tokenize` answers in many ways; a missing key, a dead server and a cancellation are not among them.
        Err(fault) => match &fault {
            Fault::Refused { status, .. }
                if wanted == TokenScores::Auto && *status != 401 && !fault.is_passing() =>
            {
                Ok((false, BTreeMap::new()))
            }
            Fault::Malformed { .. } | Fault::Redirect { .. } if wanted == TokenScores::Auto => {
                Ok((false, BTreeMap::new()))
            }
            _ => Err(fault.into()),
        },
    }
}

fn describe(
    options: &OpenOptions,
    settings: &Settings,
    server: &Server,
    served: &str,
    by_id: bool,
) -> OpenedModel {
    let address = server.address();
    let mut opened = focus_plugin_sdk::opened(&card::descriptor(), options);
    opened.batch_size = settings.concurrency;
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
    opened
}

impl Model for ChatModel {
    fn opened(&self) -> OpenedModel {
        self.opened.clone()
    }

    fn generator(&mut self) -> Option<&mut dyn Generator> {
        Some(self)
    }
}

/// An answer with the milliseconds that it took.
type Answer = Result<(GeneratedAnswer, f64), Error>;

/// What the threads of one call share.
struct Call<'a> {
    batch: &'a GenerateBatch<'a>,
    manner: Manner<'a>,
    variants: Variants<'a>,
    server: &'a Server,
    settings: &'a Settings,
    host: &'a Host,
    /// Of each picture, written when it is first needed.
    uris: Vec<OnceLock<Result<String, Error>>>,
    /// Group and prompt of each question.
    questions: Vec<(usize, usize)>,
    answers: Vec<OnceLock<Answer>>,
    /// Of each group, the first error that was met: its other prompts need not be asked.
    lost: Vec<OnceLock<Error>>,
    /// Why nothing more is asked.
    ended: OnceLock<Error>,
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
        let call = Call {
            batch,
            manner: Manner {
                model: &self.served,
                // No server answers with no token at all; the one token is not part of the answer then.
                max_tokens: request.max_new_tokens.max(1),
                max_completion_tokens: self.settings.max_completion_tokens,
                top_logprobs: scored.then_some(self.settings.top_logprobs),
                ids: self.by_id.then_some(wanted.as_slice()),
                seed: self.settings.seed,
                detail: self.settings.detail.as_deref(),
                extra: &self.settings.extra_body,
            },
            variants: if self.by_id {
                Variants::Ids(&ids)
            } else {
                Variants::Texts(&request.score)
            },
            server: &self.server,
            settings: &self.settings,
            host,
            uris: batch.pictures().iter().map(|_| OnceLock::new()).collect(),
            questions: questions(batch),
            answers: Vec::new(),
            lost: request.groups.iter().map(|_| OnceLock::new()).collect(),
            ended: OnceLock::new(),
        };
        let groups = call.run();
        if host.cancelled() {
            return Err(Error::cancelled());
        }
        let counts = self.server.counter().counts();
        host.info(counts.line(self.settings.price_in, self.settings.price_out));
        Ok(GenerateReply { groups: groups? })
    }
}

fn questions(batch: &GenerateBatch<'_>) -> Vec<(usize, usize)> {
    let groups = batch.request().groups.iter().enumerate();
    groups
        .flat_map(|(group, asked)| (0..asked.prompts.len()).map(move |prompt| (group, prompt)))
        .collect()
}

impl Call<'_> {
    /// Ask every question; the groups in order, or why the run cannot go on.
    fn run(mut self) -> Result<Vec<GroupReply>, Error> {
        self.answers = self.questions.iter().map(|_| OnceLock::new()).collect();
        let next = AtomicUsize::new(0);
        let threads = (self.settings.concurrency as usize).min(self.questions.len());
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Relaxed);
                        let Some(&question) = self.questions.get(number) else {
                            break;
                        };
                        let answer = self.answer(question);
                        if let Err(error) = &answer {
                            // Another prompt of the group may have failed before.
                            let _ = self.lost[question.0].set(error.clone());
                        }
                        let _ = self.answers[number].set(answer);
                    }
                });
            }
        });
        let mut groups: Vec<GroupReply> = self.lost.iter().map(|_| GroupReply::default()).collect();
        let decoding = self.batch.request().max_new_tokens > 0;
        for ((group, _), answer) in self.questions.iter().zip(self.answers) {
            let reply = &mut groups[*group];
            match answer
                .into_inner()
                .expect("every question was taken by a thread")
            {
                Ok((answer, milliseconds)) => {
                    reply.answers.push(answer);
                    let spent: &mut Timings = &mut reply.timings;
                    *if decoding {
                        &mut spent.decode
                    } else {
                        &mut spent.prefill
                    } += milliseconds;
                }
                Err(error) if reply.error.is_none() => {
                    reply.error = Some(GroupError {
                        kind: error.kind().0,
                        message: error.to_string(),
                        hint: error.hint().map(str::to_owned),
                    });
                }
                Err(_) => {}
            }
        }
        for reply in groups.iter_mut().filter(|reply| reply.error.is_some()) {
            reply.answers.clear();
        }
        match self.ended.into_inner() {
            Some(error) => Err(error),
            None => Ok(groups),
        }
    }

    fn answer(&self, (group, prompt): (usize, usize)) -> Answer {
        if let Some(error) = self.lost[group].get() {
            return Err(error.clone());
        }
        if let Some(error) = self.ended.get() {
            return Err(error.clone());
        }
        let asked = &self.batch.request().groups[group];
        let pictures: Vec<&str> = asked
            .images
            .iter()
            .map(|&index| self.uri(index as usize))
            .collect::<Result<_, _>>()?;
        let body = self.manner.body(&pictures, &asked.prompts[prompt]);
        let url = self.server.address().below("/chat/completions");
        let start = Instant::now();
        let read = |value| {
            let reply = Reply::read(value)?;
            let scores = scores(self.variants, reply.first.as_ref())?;
            Ok((reply, scores))
        };
        let (reply, scores) = self
            .server
            .ask(self.host, &url, Some(&body), read)
            .map_err(|fault| self.failed(fault))?;
        let milliseconds = start.elapsed().as_secs_f64() * 1e3;
        let unscored = scores
            .iter()
            .filter(|score| score.token.is_some() && score.logprob.is_none())
            .count();
        self.server
            .counter()
            .answer(reply.usage.as_ref(), unscored as u64);
        if let Some(words) = &reply.refusal {
            let words = self.server.quoted(words);
            self.host
                .info(format!("The model refused to answer: {words}"));
        }
        Ok((self.shaped(reply, scores), milliseconds))
    }

    /// A request that failed: of its group, or of all if the server refuses everything or is gone.
    fn failed(&self, fault: Fault) -> Error {
        let ends = match &fault {
            Fault::Cancelled => true,
            Fault::GaveUp { .. } => !self.server.is_alive(),
            _ => fault.ends_the_run(),
        };
        if !ends {
            return fault.into();
        }
        let error = fault.into_end();
        // Another question may have ended the call before.
        let _ = self.ended.set(error.clone());
        error
    }

    fn shaped(&self, reply: Reply, scores: Vec<focus_plugin_sdk::VariantScore>) -> GeneratedAnswer {
        let usage = reply.usage;
        let prompt_length = usage.map_or(reply.prompt_tokens.len() as u32, |u| u.prompt_tokens);
        let prompt_tokens = runs(&reply.prompt_tokens);
        if self.batch.request().max_new_tokens == 0 {
            return GeneratedAnswer {
                text: String::new(),
                finish: match reply.finish {
                    Finish::Refused => Finish::Refused,
                    _ => Finish::Length,
                },
                scores,
                prompt_tokens,
                prompt_length,
                new_tokens: Vec::new(),
                new_length: 0,
            };
        }
        GeneratedAnswer {
            text: reply.text,
            finish: reply.finish,
            scores,
            prompt_tokens,
            prompt_length,
            new_length: usage.map_or(reply.new_tokens.len() as u32, |u| u.completion_tokens),
            new_tokens: reply.new_tokens,
        }
    }

    fn uri(&self, index: usize) -> Result<&str, Error> {
        let picture = self.batch.pictures()[index];
        let made = self.uris[index].get_or_init(|| {
            data_uri(
                picture,
                self.settings.image_format,
                self.settings.max_image_side,
            )
        });
        made.as_deref().map_err(Clone::clone)
    }
}

/// Ids as runs of (id, how often).
fn runs(ids: &[u32]) -> Vec<(u32, u32)> {
    ids.chunk_by(|a, b| a == b)
        .map(|run| (run[0], run.len() as u32))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_ids_in_a_row_are_one_run() {
        assert_eq!(runs(&[1, 5, 5, 5, 2, 5]), [(1, 1), (5, 3), (2, 1), (5, 1)]);
        assert!(runs(&[]).is_empty());
    }
}
