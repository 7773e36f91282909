//! Who sees whom: causal order, sliding windows, pictures whose tokens see each other. Knows no heads.

use candle_core::{Device, Result, Tensor};

/// Tokens of queries whose scores are computed at a time.
const BLOCK: usize = 256;

/// Some consecutive queries of a sequence and the keys any of them sees.
#[derive(Debug)]
pub(super) struct Block {
    /// First query, among the new tokens.
    pub(super) from: usize,
    /// Queries.
    pub(super) count: usize,
    /// Keys, among all tokens.
    pub(super) keys: std::ops::Range<usize>,
    /// (count, keys), 0 or minus infinity, f32; `None`: all of these keys are seen by all of these queries.
    pub(super) mask: Option<Tensor>,
}

/// The rule of one kind of layer over one call's new tokens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule<'a> {
    /// Tokens in the cache.
    pub(super) past: usize,
    /// New tokens.
    pub(super) new: usize,
    /// Query i sees key j only if `i - j < window`.
    pub(super) window: Option<usize>,
    /// Start and length, among the new tokens, of pictures that see themselves in both directions.
    pub(super) pictures: &'a [(usize, usize)],
}

impl Rule<'_> {
    /// The keys that a new token sees: the causal window, and its picture. They are one range, since a picture holds its own token.
    fn keys(&self, query: usize) -> std::ops::Range<usize> {
        let at = self.past + query;
        let mut low = self
            .window
            .map_or(0, |window| (at + 1).saturating_sub(window));
        let mut high = at + 1;
        if let Some(&(start, length)) = self
            .pictures
            .iter()
            .find(|(start, length)| (*start..start + length).contains(&query))
        {
            low = low.min(self.past + start);
            high = high.max(self.past + start + length);
        }
        low..high
    }

    /// All blocks of the new tokens.
    pub(super) fn blocks(&self, device: &Device) -> Result<Vec<Block>> {
        let mut blocks = Vec::new();
        for from in (0..self.new).step_by(BLOCK) {
            let count = BLOCK.min(self.new - from);
            let seen: Vec<_> = (from..from + count).map(|query| self.keys(query)).collect();
            let low = seen.iter().map(|keys| keys.start).min().unwrap_or(0);
            let high = seen.iter().map(|keys| keys.end).max().unwrap_or(0);
            let mask = if seen.iter().all(|keys| *keys == (low..high)) {
                None
            } else {
                let rows = seen.iter().flat_map(|keys| {
                    let keys = keys.clone();
                    (low..high).map(move |key| {
                        if keys.contains(&key) {
                            0.0
                        } else {
                            f32::NEG_INFINITY
                        }
                    })
                });
                let values: Vec<f32> = rows.collect();
                Some(Tensor::from_vec(values, (count, high - low), device)?)
            };
            blocks.push(Block {
                from,
                count,
                keys: low..high,
                mask,
            });
        }
        Ok(blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule, pair by pair, as it is written in books.
    fn sees(rule: &Rule<'_>, query: usize, key: usize) -> bool {
        let at = rule.past + query;
        let causal = key <= at && rule.window.is_none_or(|window| at - key < window);
        let picture = rule.pictures.iter().any(|(start, length)| {
            let whole = rule.past + start..rule.past + start + length;
            whole.contains(&at) && whole.contains(&key)
        });
        causal || picture
    }

    #[test]
    fn blocks_say_what_the_rule_says() {
        for (past, new) in [(0, 300), (0, 1), (7, 5), (40, 1), (3, 520)] {
            for window in [None, Some(1), Some(4), Some(200)] {
                for pictures in [&[][..], &[(0, 1)], &[(1, 3), (200, 60)]] {
                    if pictures.iter().any(|(start, length)| start + length > new) {
                        continue;
                    }
                    let rule = Rule {
                        past,
                        new,
                        window,
                        pictures,
                    };
                    let blocks = rule.blocks(&Device::Cpu).unwrap();
                    assert_eq!(blocks.iter().map(|b| b.count).sum::<usize>(), new);
                    for block in blocks {
                        let mask = block.mask.map(|mask| mask.to_vec2::<f32>().unwrap());
                        for row in 0..block.count {
                            for key in 0..past + new {
                                let open = block.keys.contains(&key)
                                    && mask.as_ref().is_none_or(|mask| {
                                        mask[row][key - block.keys.start] == 0.0
                                    });
                                assert_eq!(open, sees(&rule, block.from + row, key));
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn one_new_token_needs_no_mask() {
        for window in [None, Some(8)] {
            let rule = Rule {
                past: 30,
                new: 1,
                window,
                pictures: &[],
            };
            let blocks = rule.blocks(&Device::Cpu).unwrap();
            assert!(blocks.len() == 1 && blocks[0].mask.is_none());
            assert_eq!(blocks[0].keys.len(), window.unwrap_or(31));
        }
    }
}
