//! The evaluation: dataset and model in, run folder out. Sees models as traits; decides what is asked, fitted and stored.
//!
//! Rooms: `dataset` (labels and files), `splits` (which are trained on and tested), `model` (opening a plugin's model), `pixels` and `features` (the expensive stage), `drift` (what fast decoding does to it), `choice` and `identity` (what is run, and what makes it this run),
//! `method` (scores from embeddings), `texts` (sentences of zero-shot tasks), `prompting` (scores from a generative model's answers), `permission` (what a plugin may do with photographs), `cells` (every task with every method), `facts` (what the run says of itself), `run`
//! (the order of it all).

mod cells;
mod choice;
mod dataset;
mod drift;
mod error;
mod facts;
mod features;
mod identity;
pub mod method;
mod model;
mod permission;
mod pixels;
mod prompting;
mod ratio;
mod run;
mod splits;
mod texts;

pub use cells::{CELLS_FILE, CellInputs, CellRecord, Embeddings, compute_cells, record_of};
pub use dataset::{Dataset, map as map_labels, mapped_dataset, open as open_dataset, records_of};
pub use drift::{DRIFT_FILE, Drift};
pub use error::{Advised, EvalError};
pub use facts::{DatasetFacts, FACTS_FILE, Facts, PluginFacts};
pub use features::{FeatureCounts, FeatureError, Wanted, extract};
pub use identity::{SETTINGS_OPTION, SIZE};
pub use model::worker_options;
pub use pixels::{FileBytes, FilePixels, ImageFailure, PixelSource, Pixels, notes_of, spec_of};
pub use prompting::{
    AdapterFacts, CandidateMass, GENERATIONS, PROMPTING, PromptedInputs, PromptingFacts,
    compute_cells as compute_prompted,
};
pub use run::{ANSWERS, ERROR_BUDGET, RunOutcome, run};
pub use splits::{PublishedReading, SPLITS_FILE, SplitRecord, split};
pub use texts::{TEXTS_FILE, Texts};
