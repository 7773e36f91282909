//! What a decoder is fed: tokens, their places, and rows of pictures in the place of some. Knows no tokenizer.

use super::Cache;
use candle_core::{Result, Tensor, bail};

/// Place of a token on the axes of time, height and width; the same three times for text, and always for models with one axis.
pub type Place = [u32; 3];

/// A picture as the decoder sees it.
#[derive(Debug, Clone)]
pub struct Features {
    /// (tokens, hidden): stand in for the embeddings of as many image tokens.
    pub rows: Tensor,
    /// Added to the stream at the same tokens after layers 0, 1, ...: Qwen's DeepStack; empty for others. Each of the shape of `rows`.
    pub deep: Vec<Tensor>,
    /// Rows and columns where the tokens are a grid (Qwen: after merging); (tokens, 1) otherwise.
    pub grid: (usize, usize),
}

/// Where a picture stands in a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageSpan {
    /// Its first token.
    pub start: usize,
    /// How many.
    pub length: usize,
    /// Which of the group's pictures.
    pub picture: usize,
}

/// A rendered conversation up to the first token of the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// Ids, image tokens expanded.
    pub tokens: Vec<u32>,
    /// Pictures, by their start.
    pub images: Vec<ImageSpan>,
    /// A place for each token.
    pub places: Vec<Place>,
}

impl Prompt {
    /// On one axis: places count up from 0.
    pub fn on_one_axis(tokens: Vec<u32>, images: Vec<ImageSpan>) -> Self {
        let places = (0..tokens.len() as u32).map(|at| [at; 3]).collect();
        Self {
            tokens,
            images,
            places,
        }
    }

    /// The place of the first token after the prompt: one more than the largest so far.
    pub fn next_place(&self) -> u32 {
        self.places
            .iter()
            .flatten()
            .max()
            .map_or(0, |largest| largest + 1)
    }

    /// Refuse prompts that contradict themselves.
    pub fn check(&self, pictures: &[&Features]) -> Result<()> {
        if self.tokens.is_empty() || self.places.len() != self.tokens.len() {
            bail!(
                "a prompt has {} tokens and {} places",
                self.tokens.len(),
                self.places.len()
            );
        }
        let mut end = 0;
        for span in &self.images {
            let rows = pictures
                .get(span.picture)
                .map_or(Ok(0), |features| features.rows.dim(0))?;
            if span.start < end || span.length == 0 || rows != span.length {
                bail!(
                    "picture {} of a prompt takes {} tokens from {}: expected {rows} after {end}",
                    span.picture,
                    span.length,
                    span.start
                );
            }
            end = span.start + span.length;
        }
        if end > self.tokens.len() {
            bail!(
                "a picture reaches beyond its prompt: {end} of {} tokens",
                self.tokens.len()
            );
        }
        Ok(())
    }
}

/// Tokens that all prompts begin with, at the same places and with the same pictures, less than the shortest prompt has; never part
/// of a picture, whose tokens see each other.
pub fn common_prefix(prompts: &[Prompt]) -> usize {
    let Some((first, rest)) = prompts.split_first() else {
        return 0;
    };
    let mut length = first.tokens.len().saturating_sub(1);
    for other in rest {
        length = length.min(other.tokens.len().saturating_sub(1));
        let same = |at: &usize| {
            first.tokens[*at] == other.tokens[*at] && first.places[*at] == other.places[*at]
        };
        length = (0..length).take_while(same).count();
        let differing = first
            .images
            .iter()
            .zip(&other.images)
            .find(|(a, b)| a != b)
            .map(|(a, b)| a.start.min(b.start));
        length = length.min(differing.unwrap_or(length));
        let shared = first.images.len().min(other.images.len());
        for lonely in first.images[shared..].iter().chain(&other.images[shared..]) {
            length = length.min(lonely.start);
        }
    }
    for span in prompts.iter().flat_map(|prompt| &prompt.images) {
        if span.start < length && length < span.start + span.length {
            length = span.start;
        }
    }
    length
}

/// New tokens of one conversation, and the cache with all before them.
#[derive(Debug)]
pub struct Sequence<'a> {
    /// Ids; those under a picture are not looked at.
    pub tokens: &'a [u32],
    /// A place for each.
    pub places: &'a [Place],
    /// Start among `tokens`, and the picture there.
    pub images: Vec<(usize, &'a Features)>,
    /// What was computed before, extended by the call; `None`: nothing is before, and nothing is kept (training).
    pub cache: Option<&'a mut Cache>,
}

impl<'a> Sequence<'a> {
    /// Tokens `from..to` of a prompt. Pictures lie wholly within or without.
    pub fn of_prompt(
        prompt: &'a Prompt,
        range: std::ops::Range<usize>,
        pictures: &[&'a Features],
        cache: Option<&'a mut Cache>,
    ) -> Self {
        let images = prompt
            .images
            .iter()
            .filter(|span| range.contains(&span.start))
            .map(|span| (span.start - range.start, pictures[span.picture]))
            .collect();
        Self {
            tokens: &prompt.tokens[range.clone()],
            places: &prompt.places[range],
            images,
            cache,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(tokens: &[u32], images: &[(usize, usize, usize)]) -> Prompt {
        let images = images.iter().map(|&(start, length, picture)| ImageSpan {
            start,
            length,
            picture,
        });
        Prompt::on_one_axis(tokens.to_vec(), images.collect())
    }

    #[test]
    fn prefixes_stop_where_prompts_part_and_before_the_last_token() {
        let a = prompt(&[1, 9, 9, 2, 3, 4], &[(1, 2, 0)]);
        let b = prompt(&[1, 9, 9, 2, 5], &[(1, 2, 0)]);
        assert_eq!(common_prefix(&[a.clone(), b.clone()]), 4);
        assert_eq!(common_prefix(&[a.clone(), a.clone()]), 5);
        assert_eq!(common_prefix(std::slice::from_ref(&a)), 5);
        assert_eq!(common_prefix(&[]), 0);
        // The shortest ends inside what is common: one token is left to it.
        assert_eq!(
            common_prefix(&[a.clone(), prompt(&[1, 9, 9, 2], &[(1, 2, 0)])]),
            3
        );
    }

    #[test]
    fn pictures_are_never_cut_nor_taken_for_one_another() {
        let a = prompt(&[1, 9, 9, 9, 3], &[(1, 3, 0)]);
        assert_eq!(
            common_prefix(&[a.clone(), prompt(&[1, 9, 9, 9, 3], &[(1, 3, 1)])]),
            1
        );
        assert_eq!(
            common_prefix(&[a.clone(), prompt(&[1, 9, 9, 4, 4], &[(1, 2, 0)])]),
            1
        );
        assert_eq!(
            common_prefix(&[a.clone(), prompt(&[1, 9, 9, 9, 3], &[])]),
            1
        );
        let tail = prompt(&[1, 2, 9, 9], &[(2, 2, 0)]);
        assert_eq!(common_prefix(&[tail.clone(), tail]), 2);
        let mut moved = a.clone();
        moved.places[0] = [7; 3];
        assert_eq!(common_prefix(&[a, moved]), 0);
    }
}
