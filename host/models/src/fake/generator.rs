//! A generator without a plugin: yes and no from colours, failures by sample. Must not know of embeddings.

use super::{broken, refused, scripted};
use crate::check::{not_attached, taken};
use crate::{Ask, AskedGroup, Generator, GroupAnswer, ModelError, SinkError};
use focus_plugin_abi::v1::message::{
    AttachReply, AttachRequest, Finish, GeneratedAnswer, OpenedModel, StopRule, Timings,
    VariantScore,
};
use focus_wire::FailureKind;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Tokens of a picture in a prompt.
const PICTURE_TOKENS: u32 = 4;

/// Probability of `yes` to a prompt: the mean of a channel over all bytes of all pictures of the group, in units of pixel/255, within
/// 0.01 and 0.99. The channel is green if the prompt holds the word `green`, blue for `blue`, red otherwise.
pub fn share(group: &AskedGroup, prompt: &str) -> f64 {
    let channel = match () {
        () if prompt.contains("green") => 1,
        () if prompt.contains("blue") => 2,
        () => 0,
    };
    let (mut sum, mut count) = (0u64, 0u64);
    for picture in &group.pictures {
        for value in picture.rgb.iter().skip(channel).step_by(3) {
            sum += u64::from(*value);
            count += 1;
        }
    }
    (sum as f64 / (255 * count.max(1)) as f64).clamp(0.01, 0.99)
}

type Speech = Arc<dyn Fn(&AskedGroup, &str) -> String + Send + Sync>;

/// A `Generator` with scripted failures.
///
/// Its answer to a prompt rests on [`share`]; under an adapter, on one minus it.
/// * Text: `Yes.` above 0.5, `No.` otherwise, or what [`Self::say`] says; one token a word (cut at white space), at most
///   `max_new_tokens`. It ends with `stopped` if the stop rule has a word of it standing alone, else `end`, or `length` when cut.
/// * Scores: `yes` and `no`, whatever their case and white space before them, share out `p` and `1 - p`: lower case 0.4 of it,
///   capitalised 0.2, upper case 0.05; a quarter of that behind white space. Other single words have 1e-6; a text of several words
///   is no token.
/// * Prompt: four tokens 1 a picture, then one token a byte (its value plus 100).
///
/// ```
/// use focus_models::fake::{FakeGenerator, opened_generator};
/// use focus_models::{Ask, AskedGroup, FullPicture, Generator};
///
/// let mut fake = FakeGenerator::new(opened_generator(2));
/// let group = AskedGroup {
///     sample: 7,
///     pictures: vec![FullPicture { width: 1, height: 1, rgb: vec![204, 0, 0].into() }],
///     prompts: vec!["Is it red?".into()],
/// };
/// let ask = Ask { score: vec!["yes".into()], max_new_tokens: 8, ..Ask::default() };
/// fake.generate_all(&ask, &mut [vec![group]].into_iter(), &mut |answers| {
///     let answer = &answers[0].result.as_ref().unwrap()[0];
///     assert_eq!(answer.text, "Yes.");
///     assert!((answer.scores[0].logprob.unwrap() - (0.8f64 * 0.4).ln()).abs() < 1e-12);
///     Ok(())
/// })
/// .unwrap();
/// ```
#[derive(Clone)]
pub struct FakeGenerator {
    opened: OpenedModel,
    failures: BTreeMap<usize, FailureKind>,
    refusals: Vec<usize>,
    break_after: Option<usize>,
    speech: Option<Speech>,
    silent: bool,
    adapters: BTreeMap<String, String>,
    /// Groups that were answered so far: what a store is meant to save.
    pub generated: usize,
    /// Batches so far.
    pub batches: usize,
}

impl fmt::Debug for FakeGenerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeGenerator")
            .field("opened", &self.opened)
            .field("generated", &self.generated)
            .finish_non_exhaustive()
    }
}

impl FakeGenerator {
    /// A generator without failures; see [`super::opened_generator`].
    pub fn new(opened: OpenedModel) -> Self {
        Self {
            opened,
            failures: BTreeMap::new(),
            refusals: Vec::new(),
            break_after: None,
            speech: None,
            silent: false,
            adapters: BTreeMap::new(),
            generated: 0,
            batches: 0,
        }
    }

    /// Group `sample` fails in this way.
    #[must_use]
    pub fn fail(mut self, sample: usize, kind: FailureKind) -> Self {
        self.failures.insert(sample, kind);
        self
    }

    /// Prompts of group `sample` are declined: no text, no probabilities.
    #[must_use]
    pub fn refuse(mut self, sample: usize) -> Self {
        self.refusals.push(sample);
        self
    }

    /// The model breaks for good (`RestartsUsedUp`) once it has answered this many batches.
    #[must_use]
    pub fn break_after(mut self, batches: usize) -> Self {
        self.break_after = Some(batches);
        self
    }

    /// Say this to a group and one of its prompts.
    #[must_use]
    pub fn say(
        mut self,
        speech: impl Fn(&AskedGroup, &str) -> String + Send + Sync + 'static,
    ) -> Self {
        self.speech = Some(Arc::new(speech));
        self
    }

    /// Tell no probabilities, as some services do.
    #[must_use]
    pub fn silent(mut self) -> Self {
        self.silent = true;
        self
    }

    fn answer(&self, group: &AskedGroup, prompt: &str, ask: &Ask) -> GeneratedAnswer {
        let p = match ask.adapter {
            None => share(group, prompt),
            Some(_) => 1.0 - share(group, prompt),
        };
        let refused = self.refusals.contains(&group.sample);
        let told = !refused && !self.silent;
        let whole = match &self.speech {
            Some(speech) => speech(group, prompt),
            None => if p > 0.5 { "Yes." } else { "No." }.to_owned(),
        };
        let (text, finish) = if refused {
            (String::new(), Finish::Refused)
        } else {
            said(&whole, ask)
        };
        let new_tokens: Vec<u32> = text
            .split_whitespace()
            .map(|word| {
                word.bytes()
                    .fold(7, |sum, b| sum * 31 % 9973 + u32::from(b))
            })
            .collect();
        let pictures = group.pictures.len() as u32 * PICTURE_TOKENS;
        let mut prompt_tokens = vec![(1, pictures)];
        for token in prompt.bytes().map(|byte| u32::from(byte) + 100) {
            match prompt_tokens.last_mut() {
                Some((last, count)) if *last == token => *count += 1,
                _ => prompt_tokens.push((token, 1)),
            }
        }
        prompt_tokens.retain(|(_, count)| *count > 0);
        let score = |variant: &String| {
            let (token, probability) = variant_score(variant, p);
            VariantScore {
                token,
                logprob: token.filter(|_| told).map(|_| probability.ln()),
            }
        };
        GeneratedAnswer {
            new_length: new_tokens.len() as u32,
            text,
            finish,
            scores: ask.score.iter().map(score).collect(),
            prompt_tokens,
            prompt_length: pictures + prompt.len() as u32,
            new_tokens,
        }
    }
}

/// As much of the text as is asked for, and why it ended.
fn said(whole: &str, ask: &Ask) -> (String, Finish) {
    let most = ask.max_new_tokens as usize;
    let mut words = whole.split_inclusive(char::is_whitespace);
    let text: String = words.by_ref().take(most).collect();
    let alone = |words: &[String]| {
        text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .any(|found| words.iter().any(|word| found.eq_ignore_ascii_case(word)))
    };
    let finish = match &ask.stop {
        _ if most == 0 || words.next().is_some() => Finish::Length,
        StopRule::FirstWord { words } if alone(words) => Finish::Stopped,
        _ => Finish::End,
    };
    (text, finish)
}

/// Token and probability of a variant.
fn variant_score(variant: &str, p: f64) -> (Option<u32>, f64) {
    let word = variant.trim_start();
    if word.is_empty() || word.contains(char::is_whitespace) {
        return (None, 0.0);
    }
    let token = variant
        .bytes()
        .fold(1000, |sum, b| sum * 33 % 50_021 + u32::from(b));
    let mass = match word.to_ascii_lowercase().as_str() {
        "yes" => p,
        "no" => 1.0 - p,
        _ => return (Some(token), 1e-6),
    };
    let form = match word {
        "yes" | "no" => 0.4,
        "Yes" | "No" => 0.2,
        _ => 0.05,
    };
    let place = if word.len() < variant.len() {
        0.25
    } else {
        1.0
    };
    (Some(token), mass * form * place)
}

impl Generator for FakeGenerator {
    fn opened(&self) -> &OpenedModel {
        &self.opened
    }

    fn generate_all(
        &mut self,
        ask: &Ask,
        batches: &mut dyn Iterator<Item = Vec<AskedGroup>>,
        sink: &mut dyn FnMut(Vec<GroupAnswer>) -> Result<(), SinkError>,
    ) -> Result<(), ModelError> {
        if let Some(name) = &ask.adapter
            && !self.adapters.contains_key(name)
        {
            return Err(refused(not_attached(name)));
        }
        for batch in batches {
            if batch.len() > self.opened.batch_size as usize {
                return Err(ModelError::BadBatch {
                    model: self.opened.model.clone(),
                    expected: format!("at most {} groups", self.opened.batch_size),
                    found: format!("{} groups", batch.len()),
                });
            }
            if self.break_after.is_some_and(|after| self.batches >= after) {
                return Err(broken());
            }
            self.batches += 1;
            let mut answers = Vec::with_capacity(batch.len());
            for group in &batch {
                let result = if let Some(kind) = self.failures.get(&group.sample) {
                    Err(scripted(*kind))
                } else {
                    self.generated += 1;
                    Ok(group
                        .prompts
                        .iter()
                        .map(|prompt| self.answer(group, prompt, ask))
                        .collect())
                };
                answers.push(GroupAnswer {
                    sample: group.sample,
                    result,
                    timings: Timings::default(),
                });
            }
            sink(answers).map_err(ModelError::Sink)?;
        }
        Ok(())
    }

    /// The digest is made of the folder's last part.
    fn attach(&mut self, request: &AttachRequest) -> Result<AttachReply, ModelError> {
        if self.adapters.contains_key(&request.name) {
            return Err(refused(taken(&request.name)));
        }
        self.adapters
            .insert(request.name.clone(), request.folder.clone());
        let last = request.folder.rsplit('/').next().unwrap_or_default();
        Ok(AttachReply {
            name: request.name.clone(),
            digest: format!("fake:{last}"),
            ranks: vec![4],
            scales: vec![2.0],
            targets: vec!["layers.0.q_proj".into()],
            modules_to_save: Vec::new(),
            base: None,
            probe_change: 0.5,
            notes: Vec::new(),
        })
    }

    fn detach(&mut self, name: &str) -> Result<(), ModelError> {
        match self.adapters.remove(name) {
            Some(_) => Ok(()),
            None => Err(refused(not_attached(name))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FullPicture;
    use crate::fake::opened_generator;

    fn group(sample: usize, rgb: [u8; 3]) -> AskedGroup {
        AskedGroup {
            sample,
            pictures: vec![FullPicture {
                width: 1,
                height: 1,
                rgb: rgb.to_vec().into(),
            }],
            prompts: vec!["Is it red?".into(), "Is it green?".into()],
        }
    }

    fn ask() -> Ask {
        Ask {
            score: vec!["yes".into(), " No".into(), "not at all".into()],
            max_new_tokens: 3,
            stop: StopRule::FirstWord {
                words: vec!["yes".into(), "no".into()],
            },
            ..Ask::default()
        }
    }

    fn run(fake: &mut FakeGenerator, ask: &Ask, groups: Vec<AskedGroup>) -> Vec<GroupAnswer> {
        let mut seen = Vec::new();
        fake.generate_all(ask, &mut [groups].into_iter(), &mut |answers| {
            seen.extend(answers);
            Ok(())
        })
        .expect("works");
        seen
    }

    #[test]
    fn answers_are_what_the_page_says() {
        let mut fake = FakeGenerator::new(opened_generator(4))
            .fail(2, FailureKind::Hang)
            .refuse(3);
        let groups = vec![group(1, [255, 51, 0]), group(2, [0; 3]), group(3, [0; 3])];
        let seen = run(&mut fake, &ask(), groups);
        let first = seen[0].result.as_ref().expect("answers");
        assert_eq!(
            (first[0].text.as_str(), first[1].text.as_str()),
            ("Yes.", "No.")
        );
        assert_eq!((first[0].finish, first[0].new_length), (Finish::Stopped, 1));
        assert_eq!(first[0].prompt_tokens[..2], [(1, 4), (173, 1)]);
        assert_eq!(first[0].prompt_length, 14);
        let scores = &first[1].scores;
        assert!((scores[0].logprob.expect("told") - (0.2f64 * 0.4).ln()).abs() < 1e-12);
        assert!((scores[1].logprob.expect("told") - (0.8f64 * 0.05).ln()).abs() < 1e-12);
        assert_eq!((scores[2].token, scores[2].logprob), (None, None));
        assert_eq!(
            seen[1].result.as_ref().expect_err("scripted").kind,
            FailureKind::Hang
        );
        let declined = &seen[2].result.as_ref().expect("answers")[0];
        assert_eq!(
            (declined.finish, declined.scores[0].logprob),
            (Finish::Refused, None)
        );
        assert_eq!((fake.generated, fake.batches), (2, 1));
    }

    #[test]
    fn an_adapter_turns_answers_round_and_must_be_attached() {
        let mut fake = FakeGenerator::new(opened_generator(1));
        let request = AttachRequest {
            name: "dr".into(),
            folder: "/adapters/dr-1".into(),
        };
        let ask = Ask {
            adapter: Some("dr".into()),
            ..ask()
        };
        assert!(
            fake.generate_all(&ask, &mut [].into_iter(), &mut |_| Ok(()))
                .is_err()
        );
        assert_eq!(fake.attach(&request).expect("attaches").digest, "fake:dr-1");
        assert!(fake.attach(&request).is_err(), "taken");
        let seen = run(&mut fake, &ask, vec![group(1, [255, 0, 0])]);
        assert_eq!(seen[0].result.as_ref().expect("answers")[0].text, "No.");
        fake.detach("dr").expect("detaches");
        assert!(fake.detach("dr").is_err());
    }

    #[test]
    fn speech_is_cut_to_the_tokens_asked_for() {
        let mut fake = FakeGenerator::new(opened_generator(1)).say(|_, _| "Maybe it is so".into());
        let seen = run(&mut fake, &ask(), vec![group(1, [0; 3])]);
        let answer = &seen[0].result.as_ref().expect("answers")[0];
        assert_eq!(
            (answer.text.as_str(), answer.finish),
            ("Maybe it is ", Finish::Length)
        );
    }
}
