//! What enters and leaves the store besides a run of our own: result files of others, exports, simulated readers.
//! It must not know models, plugins, images or metrics' formulas.
//!
//! | room | owns |
//! | --- | --- |
//! | `import` | result files of the published code, into a run folder |
//! | `export` | a run folder, out as Parquet, CSV or the published layout |
//! | `simulate` | readers whose true performance is known |
//! | `answer_text` | yes or no, from what a model wrote |
//! | `error` | what may go wrong, and what to do about it |
//!
//! Formats and rules: `docs/exchange.md`.
#![forbid(unsafe_code)]

mod answer_text;
mod error;
mod export;
mod import;
mod simulate;

pub use answer_text::parse_yes_no;
pub use error::{BadRow, Conflict, ExchangeError, Result};
pub use export::{
    ExportFormat, ExportOptions, ExportSummary, export, protect_text, published_name,
    unprotect_text,
};
pub use import::{
    Aliases, BothZero, Counted, ImportOptions, ImportSummary, OnBadRow, Reading, Roster,
    Vocabulary, import_focus_csv, read_name,
};
pub use simulate::{
    Attribute, Calibration, CellTruth, Effect, GapTruth, GroupTruth, Preset, SimCell, SimDataset,
    SimModel, SimPlan, SimSummary, SimTask, Simulated, Truth, draw, simulate,
};
