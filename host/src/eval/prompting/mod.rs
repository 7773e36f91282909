//! The prompting method (focus-benchmark.md, section 4): a generative model is shown a photograph and asked one question for each task;
//! the first token's distribution gives the score, the text the label.
//!
//! Rooms: `prompt` (the questions), `question` (what is asked of every image), `picture` (what the model is shown), `generate` (the
//! expensive stage), `score` (from an answer to a score and a label), `cells` (predictions), `adapter` (low-rank adapters), `facts` and
//! `identity` (what the run says of itself, and what makes it this run), `run` (the order of it all). No label ever reaches a prompt.

mod adapter;
mod cells;
mod facts;
mod generate;
mod identity;
mod picture;
mod prompt;
mod question;
mod run;
mod score;

pub use adapter::AdapterFacts;
pub use cells::{CandidateMass, PromptedInputs, compute_cells};
pub use facts::PromptingFacts;
pub use question::GENERATIONS;
pub use run::{Job, evaluate};

use super::method::{How, METHODS, Method};
use crate::task::Track;
use focus_plugin_abi::v1::message::InterfaceName;
use linkme::distributed_slice;

/// The method's id.
pub const PROMPTING: &str = "prompting";

#[expect(unsafe_code, reason = "linkme places the element in a linker section")]
#[distributed_slice(METHODS)]
static METHOD: Method = Method {
    id: PROMPTING,
    title: "Prompting",
    order: 4,
    needs: InterfaceName::Generator,
    fits: false,
    tracks: &Track::ALL,
    how: How::Generations,
};

#[cfg(test)]
mod tests;
