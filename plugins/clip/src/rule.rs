//! What each family does with texts, on both tracks. Facts of the published benchmark's code are those of its public snapshot.

use crate::config::{Config, Naming, Text, TextPool};
use crate::settings::Track;
use crate::text::Caption;
use crate::tokenizer::{Padding, Rule};

/// Ids of a text in RET-CLIP, beginning and end included.
const RET_CLIP_LONGEST: usize = 52;
/// Ids of a text in FLAIR.
const FLAIR_LONGEST: usize = 77;
/// The words that FLAIR puts before the name of a finding.
pub const FLAIR_CAPTION: &str = "A fundus photograph of ";

/// The rules for an architecture's texts.
pub fn rule(config: &Config, track: Track) -> (Caption, Rule) {
    let published = track == Track::AsPublished;
    let plain = Rule {
        padding: Padding::Longest,
        longest: 0,
        fill: None,
        canonical: false,
        hide_padding: false,
        longest_word: 0,
    };
    match &config.text {
        Text::Transformer(text) if text.pool == TextPool::Last => {
            // The vector is that of the last place, so filling up to the longest text in place of all 64 changes it wholly.
            let padding = if published {
                Padding::Longest
            } else {
                Padding::To(text.context)
            };
            let rule = Rule {
                padding,
                longest: text.context,
                canonical: true,
                ..plain
            };
            (Caption::Plain, rule)
        }
        Text::Transformer(text) => {
            // OpenAI's code fills up with zeros; the hub's with the end token. Neither is seen from the end token's place.
            let openai = config.naming == Naming::OpenAi;
            let rule = Rule {
                padding: if openai {
                    Padding::To(text.context)
                } else {
                    Padding::Longest
                },
                fill: openai.then_some(0),
                longest: text.context,
                ..plain
            };
            (Caption::Plain, rule)
        }
        Text::BertHeads(bert) => {
            let longest = RET_CLIP_LONGEST.min(bert.places);
            let rule = Rule {
                padding: Padding::To(longest),
                fill: Some(0),
                longest,
                hide_padding: true,
                longest_word: 200,
                ..plain
            };
            (Caption::Plain, rule)
        }
        Text::BertMean(bert) => {
            // Padding is in the mean. FLAIR's own code embeds class by class, where there is none; the benchmark's embeds all classes
            // at once, after a caption that its prompts already have.
            let (caption, padding) = if published {
                (Caption::Always(FLAIR_CAPTION), Padding::Longest)
            } else {
                (Caption::Once(FLAIR_CAPTION), Padding::Alone)
            };
            let rule = Rule {
                padding,
                fill: Some(0),
                longest: FLAIR_LONGEST.min(bert.places),
                hide_padding: true,
                longest_word: 100,
                ..plain
            };
            (caption, rule)
        }
    }
}
