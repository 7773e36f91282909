//! From stored predictions to every table of the benchmark: cells, subgroups, summaries, comparisons, in both tracks.
//! Pure and repeatable. It must not know models, plugins, images, or how a number is printed.
//!
//! | room | owns |
//! | --- | --- |
//! | `track`, `name`, `options` | the two tracks, models' names, what is drawn how often |
//! | `catalogue` | facts about models and datasets that no run computes |
//! | `cohort`, `units` | a dataset's images as subgroups and patients; what a bootstrap draws |
//! | `cell` | one cell: metrics, calibration, subgroups |
//! | `paired` | cells on the same images: leaderboards, fine-tuning |
//! | `summary` | tables over cells |
//! | `grid` | many runs: loading, agreement, coverage, all of the above |
//! | `compare` | two runs against each other |
#![forbid(unsafe_code)]

mod catalogue;
mod cell;
mod cohort;
mod compare;
mod error;
mod grid;
mod name;
mod options;
mod paired;
mod subgroup_ids;
mod summary;
mod track;
mod units;

pub use catalogue::{
    Catalogue, CatalogueError, DatasetEntry, ExpectedCell, Family, Group, ModelEntry, ModelFacts,
    ModelType, SplitSizes,
};
pub use cell::{
    AttributeAnalysis, BinEntry, Calibration, CellAnalysis, CellContext, CellRows, CellStatus,
    Columns, Counts, GapEntry, GroupAnalysis, MetricEntry, NullEntry, PriorCorrected, Row,
    StandardisedEntry, TrackAnalysis, TrackColumns, TrainCounts, analyse, metric_rows,
};
pub use cohort::{Cohort, Cohorts, Member};
pub use compare::{CompareSide, CompareUnpaired, ComparedTask, RunComparison, compare};
pub use error::{AnalysisError, Result};
pub use grid::{
    CellSource, Coverage, CoverageRow, CoverageStatus, Expectation, Grid, GridAnalysis, GridCell,
    Listed, MemorySource, RunSource, SkippedCell,
};
pub use name::{Adapter, ModelName, NameError};
pub use options::{Options, RESAMPLES, SEED};
pub use paired::{
    Board, BoardEntry, BoardExcluded, Comparison, DeltaEntry, DomainRow, FamilyNote, FineTuning,
    FineTuningTable, Leaderboards, LeaveOneOut, LevelRow, Unpaired,
};
pub(crate) use subgroup_ids::task_place;
pub use subgroup_ids::{FAIRNESS_GAPS, QUALITY_GAPS, TASK_ORDER};
pub use summary::{
    Contamination, ContaminationRow, EncoderRow, EncoderTable, Figure, LeftOut, MINIMUM_PER_CLASS,
    MeansRow, MeansTable, Seen, Summary, TradeOff, TradeOffPoint, TypeRow, TypeTable,
};
pub use track::{
    AS_PUBLISHED_SUFFIX, PUBLISHED_METHODS, Track, is_published_method, plain_method, tracks_of,
};
