//! The cells of one track as tables see them: model type, method without its marks, and whether a mean may use them.

use crate::catalogue::{Catalogue, ModelEntry, ModelType};
use crate::cell::{CellAnalysis, CellStatus, TrackAnalysis};
use crate::error::Result;
use crate::name::{Adapter, ModelName};
use crate::{Track, plain_method};
use serde::Serialize;

/// Positives and negatives that a cell needs in the corrected track's means.
pub const MINIMUM_PER_CLASS: usize = 10;

/// Why a cell is in no mean.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// The cell's four names.
    pub cell: focus_store::CellKey,
    /// Why: `failed`, `under_10_positives`, `under_10_negatives`, `not_common`, `model_type_unknown`.
    pub reason: &'static str,
}

/// A cell in one track, placed among the models.
#[derive(Debug, Clone)]
pub(crate) struct Placed<'a> {
    pub analysis: &'a CellAnalysis,
    pub track: &'a TrackAnalysis,
    /// The catalogue's id of the model, with its variations, without its adapter.
    pub model: String,
    /// The catalogue's id of the model alone.
    pub base: String,
    /// Type, where the catalogue knows the model.
    pub kind: Option<ModelType>,
    /// Method without the mark of published labels.
    pub method: &'a str,
    pub adapter: Option<Adapter>,
    pub varied: bool,
}

impl Placed<'_> {
    pub fn dataset(&self) -> &str {
        &self.analysis.cell.dataset
    }

    pub fn task(&self) -> &str {
        &self.analysis.cell.task
    }

    /// Why no mean may use it.
    pub fn unusable(&self) -> Option<&'static str> {
        unusable(self.analysis.status, self.track)
    }

    pub fn left_out(&self, reason: &'static str) -> LeftOut {
        LeftOut {
            cell: self.analysis.cell.clone(),
            reason,
        }
    }
}

/// Why no mean may use a cell; corrected means want enough of both classes.
pub(crate) fn unusable(status: CellStatus, track: &TrackAnalysis) -> Option<&'static str> {
    let corrected = track.track == Track::Corrected;
    if status == CellStatus::Failed {
        Some("failed")
    } else if corrected && track.n_pos < MINIMUM_PER_CLASS {
        Some("under_10_positives")
    } else if corrected && track.n_neg < MINIMUM_PER_CLASS {
        Some("under_10_negatives")
    } else {
        None
    }
}

/// The catalogue's id of a model, with its variations.
pub(crate) fn canonical(name: &ModelName, catalogue: &Catalogue) -> String {
    let known = catalogue.model(&name.base);
    ModelName {
        base: known.map_or_else(|| name.base.clone(), |model| model.id.clone()),
        adapter: None,
        variations: name.variations.clone(),
    }
    .without_adapter()
}

/// The cells of a track, in their order.
pub(crate) fn place<'a>(
    cells: &'a [CellAnalysis],
    catalogue: &Catalogue,
    track: Track,
) -> Result<Vec<Placed<'a>>> {
    let mut placed = Vec::new();
    for analysis in cells {
        let Some(found) = analysis.track(track) else {
            continue;
        };
        let name = ModelName::parse(&analysis.cell.model)?;
        placed.push(Placed {
            analysis,
            track: found,
            model: canonical(&name, catalogue),
            base: catalogue
                .model(&name.base)
                .map_or_else(|| name.base.clone(), |m| m.id.clone()),
            kind: catalogue.model(&name.base).map(ModelEntry::kind),
            method: plain_method(&analysis.cell.method),
            varied: !name.variations.is_empty(),
            adapter: name.adapter,
        });
    }
    Ok(placed)
}
