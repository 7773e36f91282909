//! Every table of the benchmark over a grid of cells, in both tracks. Nothing is rendered here.

mod by_type;
mod contamination;
mod figure;
mod means;
mod tradeoff;
mod view;

pub use by_type::{EncoderRow, EncoderTable, TypeRow, TypeTable};
pub use contamination::{Contamination, ContaminationRow, Seen};
pub use figure::Figure;
pub use means::{MeansRow, MeansTable};
pub use tradeoff::{TradeOff, TradeOffPoint};
pub use view::{LeftOut, MINIMUM_PER_CLASS};
pub(crate) use view::{Placed, canonical, unusable};

use crate::catalogue::Catalogue;
use crate::cell::CellAnalysis;
use crate::error::Result;
use crate::grid::{Coverage, Expectation, SkippedCell, tracks_present};
use crate::paired::{FineTuning, Leaderboards, published_boards};
use serde::Serialize;
use std::collections::BTreeSet;

/// All tables. Where a table has a track, there is one for each track that the grid has cells in, corrected first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Table 3.
    pub means: Vec<MeansTable>,
    /// Table 4.
    pub encoders: Vec<EncoderTable>,
    /// Table 9.
    pub types: Vec<TypeTable>,
    /// Fig. 3.
    pub trade_offs: Vec<TradeOff>,
    /// Tables 5, 10 and 11.
    pub fine_tuning: FineTuning,
    /// Ranks.
    pub leaderboards: Leaderboards,
    /// Cells present, missing, failed.
    pub coverage: Vec<Coverage>,
    /// Models against the data they were trained on.
    pub contamination: Contamination,
}

impl Summary {
    pub(crate) fn of(
        cells: &[CellAnalysis],
        skipped: &[SkippedCell],
        catalogue: &Catalogue,
        mut leaderboards: Leaderboards,
        fine_tuning: FineTuning,
    ) -> Result<Self> {
        let (mut means_of, mut encoders, mut types) = (Vec::new(), Vec::new(), Vec::new());
        let (mut trade_offs, mut coverage) = (Vec::new(), Vec::new());
        let (mut models, mut datasets) = (BTreeSet::new(), BTreeSet::new());
        for track in tracks_present(cells) {
            let placed = view::place(cells, catalogue, track)?;
            models.extend(placed.iter().map(|cell| cell.base.clone()));
            datasets.extend(placed.iter().map(|cell| cell.dataset().to_owned()));
            means_of.push(means::means(&placed, track));
            encoders.push(by_type::encoders(&placed, catalogue, track));
            types.push(by_type::types(&placed, track));
            trade_offs.extend(tradeoff::trade_offs(&placed, track));
            for against in [Expectation::Seen, Expectation::Benchmark] {
                coverage.push(Coverage::of(cells, skipped, catalogue, track, against)?);
            }
            if track == crate::Track::AsPublished {
                leaderboards.boards.extend(published_boards(&placed));
            }
        }
        Ok(Self {
            means: means_of,
            encoders,
            types,
            trade_offs,
            fine_tuning,
            leaderboards,
            coverage,
            contamination: Contamination::of(&models, &datasets, catalogue),
        })
    }
}
