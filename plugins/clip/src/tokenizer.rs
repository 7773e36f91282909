//! Texts to ids, by the files published beside a checkpoint and the rules of its family; for random weights, which have no files, by a
//! hash of each word ([`drawn`]).

mod drawn;
mod error;
mod files;

pub use error::TokenizerError;

use crate::tokens::Tokens;
use std::path::Path;
use tokenizers::models::ModelWrapper;
use tokenizers::{TruncationParams, TruncationStrategy};

/// How far a text is filled up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Padding {
    /// To this many ids, whatever the texts.
    To(usize),
    /// To the longest text of the call: where padding counts, texts then change one another's vectors.
    Longest,
    /// Not at all: texts of different lengths are run one by one.
    Alone,
}

/// The rules of a family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// How far texts are filled up.
    pub padding: Padding,
    /// Longest text in ids, those of beginning and end included; longer ones lose their tail and keep their end.
    pub longest: usize,
    /// The id that fills; `None`: the tokenizer's own padding token.
    pub fill: Option<u32>,
    /// Whether SigLIP's canonical form is made first.
    pub canonical: bool,
    /// Whether filled places are hidden from the others.
    pub hide_padding: bool,
    /// Longest word in characters when the tokenizer is made of a `vocab.txt`; 0: that file will not do.
    pub longest_word: usize,
}

/// Texts as ids, in as many calls as the rule wants, and which of them were cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Ids of the texts, in order.
    pub calls: Vec<Tokens>,
    /// Whether a text lost its tail, one for each.
    pub cut: Vec<bool>,
}

/// Where words get their ids.
#[derive(Debug, Clone)]
enum Words {
    /// From published files.
    Files(Box<tokenizers::Tokenizer>),
    /// From themselves.
    Drawn(drawn::Drawn),
}

/// A tokenizer under its rules.
#[derive(Debug, Clone)]
pub struct Tokenizer {
    words: Words,
    rule: Rule,
    fill: u32,
}

impl Tokenizer {
    /// From a folder's `tokenizer.json` (and `tokenizer_config.json`), or its `vocab.txt`.
    pub fn open(folder: &Path, rule: Rule) -> Result<Self, TokenizerError> {
        let vocab = rule.longest_word > 0;
        let inner = if let Some(text) = files::read(folder, "tokenizer.json")? {
            files::parse("tokenizer.json", text.as_bytes())?
        } else if let Some(text) = files::read(folder, "vocab.txt")?.filter(|_| vocab) {
            let json = files::word_pieces(&text, rule.longest_word);
            files::parse("vocab.txt", json.to_string().as_bytes())?
        } else {
            return Err(TokenizerError::Missing { vocab });
        };
        let fill = match rule.fill {
            Some(id) => id,
            None => files::padding_token(folder, &inner)?,
        };
        Self::new(inner, rule, fill)
    }

    fn new(
        mut inner: tokenizers::Tokenizer,
        rule: Rule,
        fill: u32,
    ) -> Result<Self, TokenizerError> {
        let fault = |reason: String| TokenizerError::File {
            file: "tokenizer.json",
            reason,
        };
        // What a file says of padding and truncation is a leftover of the last call before it was saved.
        inner.with_padding(None);
        if rule.longest < 8 {
            return Err(fault(format!(
                "texts of {} ids hold no words",
                rule.longest
            )));
        }
        inner
            .with_truncation(Some(TruncationParams {
                max_length: rule.longest,
                strategy: TruncationStrategy::LongestFirst,
                ..TruncationParams::default()
            }))
            .map_err(|error| fault(error.to_string()))?;
        Ok(Self {
            words: Words::Files(Box::new(inner)),
            rule,
            fill,
        })
    }

    /// For weights drawn at random: no tokenizer goes with them, and any will do that gives equal words equal ids. `end` is the id that
    /// ends a text.
    pub fn drawn(rows: usize, end: u32, rule: Rule) -> Self {
        Self {
            words: Words::Drawn(drawn::Drawn::new(rows, end)),
            fill: rule.fill.unwrap_or(drawn::FILL),
            rule,
        }
    }

    /// The rules in force.
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// Refuse a tokenizer that knows ids beyond a table of `rows`. (One that knows fewer is usual: tables are filled up.)
    pub fn check(&self, rows: usize) -> Result<(), TokenizerError> {
        let Words::Files(inner) = &self.words else {
            return Ok(());
        };
        let vocab = inner.get_vocab(true);
        match vocab.values().copied().chain([self.fill]).max() {
            Some(id) if id as usize >= rows => Err(TokenizerError::Beyond { id, rows }),
            _ => Ok(()),
        }
    }

    /// The text that the tokenizer itself is given: SigLIP's canonical form where the family has one.
    ///
    /// SigLIP was trained on lower-case text without ASCII punctuation and with single blanks; its vocabulary is a unigram model.
    /// SigLIP 2 has Gemma's, a byte-pair model, and was trained on lower-case text. The published tokenizer files do some of this, some
    /// of the time; it is the same done twice.
    pub fn canonical(&self, text: &str) -> String {
        if !self.rule.canonical {
            return text.to_owned();
        }
        let lower = text.to_lowercase();
        if let Words::Files(inner) = &self.words
            && !matches!(inner.get_model(), ModelWrapper::Unigram(_))
        {
            return lower;
        }
        let bare: String = lower
            .chars()
            .filter(|c| !c.is_ascii_punctuation())
            .collect();
        bare.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Ids of each text: without padding, cut to the longest allowed.
    pub fn ids(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        Ok(self.ids_and_cut(text)?.0)
    }

    fn ids_and_cut(&self, text: &str) -> Result<(Vec<u32>, bool), TokenizerError> {
        let canonical = self.canonical(text);
        match &self.words {
            Words::Drawn(drawn) => Ok(drawn.ids(&canonical, self.rule.longest)),
            Words::Files(inner) => inner
                .encode_fast(canonical, true)
                .map(|encoding| {
                    let cut = !encoding.get_overflowing().is_empty();
                    (encoding.get_ids().to_vec(), cut)
                })
                .map_err(|error| TokenizerError::Text {
                    text: text.to_owned(),
                    reason: error.to_string(),
                }),
        }
    }

    /// Ids of texts for one call, or for several where texts must not be filled up.
    pub fn tokens(&self, texts: &[&str]) -> Result<Vec<Tokens>, TokenizerError> {
        Ok(self.read(texts)?.calls)
    }

    /// The same, and which texts were cut.
    pub fn read(&self, texts: &[&str]) -> Result<Reading, TokenizerError> {
        if texts.is_empty() {
            return Err(TokenizerError::Empty);
        }
        let read = texts
            .iter()
            .map(|text| self.ids_and_cut(text))
            .collect::<Result<Vec<_>, _>>()?;
        let (rows, cut): (Vec<_>, Vec<_>) = read.into_iter().unzip();
        let longest = rows.iter().map(Vec::len).max().unwrap_or(0).max(1);
        let calls = match self.rule.padding {
            Padding::To(width) => vec![self.pad(&rows, width)],
            Padding::Longest => vec![self.pad(&rows, longest)],
            Padding::Alone => rows
                .chunks(1)
                .map(|row| self.pad(row, row[0].len().max(1)))
                .collect(),
        };
        Ok(Reading { calls, cut })
    }

    fn pad(&self, rows: &[Vec<u32>], width: usize) -> Tokens {
        let mut ids = Vec::with_capacity(rows.len() * width);
        let mut attended = Vec::with_capacity(rows.len() * width);
        for row in rows {
            let filled = width - row.len();
            ids.extend(row);
            ids.extend(std::iter::repeat_n(self.fill, filled));
            // RET-CLIP hides every id 0; so does this, since no word has it.
            attended.extend(row.iter().map(|_| true));
            attended.extend(std::iter::repeat_n(false, filled));
        }
        Tokens::new(width, ids, self.rule.hide_padding.then_some(attended))
    }
}
