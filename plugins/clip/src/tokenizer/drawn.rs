//! Ids without a tokenizer, for random weights: each word's is a hash of it. Means nothing, but the same for the same words.

/// The id that fills where the family's rule names none.
pub const FILL: u32 = 1;
/// Ids below are for filling.
const FIRST: u32 = 2;

/// Words to ids.
#[derive(Debug, Clone, Copy)]
pub struct Drawn {
    /// Ids of words are below.
    below: u32,
    end: u32,
}

impl Drawn {
    /// For a token table of `rows`, the last of which no word gets; `end` ends a text.
    pub fn new(rows: usize, end: u32) -> Self {
        let below = u32::try_from(rows).unwrap_or(u32::MAX).saturating_sub(1);
        Self {
            below: below.max(FIRST + 1),
            end,
        }
    }

    /// Ids of a text, at most `longest` with its end, and whether it was cut.
    pub fn ids(self, text: &str, longest: usize) -> (Vec<u32>, bool) {
        let mut ids: Vec<u32> = text.split_whitespace().map(|word| self.id(word)).collect();
        let cut = ids.len() + 1 > longest;
        ids.truncate(longest.saturating_sub(1));
        ids.push(self.end);
        (ids, cut)
    }

    /// FNV-1a of the word's bytes, brought into the table.
    fn id(self, word: &str) -> u32 {
        let hash = word.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        FIRST + (hash % u64::from(self.below - FIRST)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_their_ids_and_long_texts_their_end() {
        let drawn = Drawn::new(64, 63);
        let (ids, cut) = drawn.ids("an eye, an ear", 8);
        assert_eq!((ids.len(), ids[4], cut), (5, 63, false));
        assert_eq!(ids[0], ids[2]);
        assert_ne!(ids[1], ids[3]);
        let (ids, cut) = drawn.ids(&"word ".repeat(300), 8);
        assert_eq!((ids.len(), ids[7], cut), (8, 63, true));
        assert!(ids[..7].iter().all(|id| (2..63).contains(id)));
        assert_eq!(drawn.ids("", 8), (vec![63], false));
        assert!(!drawn.ids("a b c d e f g", 8).1 && drawn.ids("a b c d e f g h", 8).1);
    }
}
