//! One call: questions in flight at once, answers in order, failures with their group or with the run. Knows no command line.

use crate::body::Manner;
use crate::fault::Fault;
use crate::picture::data_uri;
use crate::reply::Reply;
use crate::score::{Variants, scores};
use crate::server::Server;
use crate::settings::Settings;
use focus_plugin_sdk::{
    Error, Finish, GenerateBatch, GeneratedAnswer, GroupError, GroupReply, Host, Timings,
    VariantScore,
};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

/// An answer with the milliseconds that it took.
type Answer = Result<(GeneratedAnswer, f64), Error>;

/// What the threads of one call share.
pub(crate) struct Call<'a> {
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

impl<'a> Call<'a> {
    /// Nothing is asked yet.
    pub(crate) fn new(
        batch: &'a GenerateBatch<'a>,
        manner: Manner<'a>,
        variants: Variants<'a>,
        server: &'a Server,
        settings: &'a Settings,
        host: &'a Host,
    ) -> Self {
        let groups = &batch.request().groups;
        let questions: Vec<(usize, usize)> = groups
            .iter()
            .enumerate()
            .flat_map(|(group, asked)| (0..asked.prompts.len()).map(move |prompt| (group, prompt)))
            .collect();
        Self {
            batch,
            manner,
            variants,
            server,
            settings,
            host,
            uris: batch.pictures().iter().map(|_| OnceLock::new()).collect(),
            answers: questions.iter().map(|_| OnceLock::new()).collect(),
            questions,
            lost: groups.iter().map(|_| OnceLock::new()).collect(),
            ended: OnceLock::new(),
        }
    }

    /// Ask every question; the groups in order, or why the run cannot go on.
    pub(crate) fn run(self) -> Result<Vec<GroupReply>, Error> {
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
            Fault::GaveUp { last, .. } => last.is_busy() || !self.server.is_alive(),
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

    fn shaped(&self, reply: Reply, scores: Vec<VariantScore>) -> GeneratedAnswer {
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
