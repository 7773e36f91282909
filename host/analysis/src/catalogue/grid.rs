//! The cells that a complete benchmark has: 532 and 228 as published, 476 and 204 corrected.

use super::{Catalogue, Family};
use crate::Track;
use focus_store::CellKey;
use serde::Serialize;

/// A cell that a complete grid has.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ExpectedCell {
    /// Which cell.
    pub cell: CellKey,
    /// It is an adapter's.
    pub fine_tuned: bool,
}

impl Catalogue {
    /// Every cell of the benchmark in one track, in order of model, method, dataset and task; the adapters' last. Models and
    /// datasets that users and runs add are none of the benchmark's.
    pub fn benchmark(track: Track) -> Vec<ExpectedCell> {
        let benchmark = Self::embedded();
        let pairs = || {
            benchmark.datasets.iter().flat_map(move |dataset| {
                dataset
                    .tasks(track)
                    .iter()
                    .map(|task| (dataset.id.as_str(), task.as_str()))
            })
        };
        let mut cells = Vec::new();
        for model in &benchmark.models {
            for method in model.family.published_methods() {
                cells.extend(pairs().map(|(dataset, task)| ExpectedCell {
                    cell: CellKey::new(dataset, task, method, &model.id),
                    fine_tuned: false,
                }));
            }
        }
        for model in benchmark.models.iter().filter(|m| m.family == Family::Mllm) {
            for trained in benchmark
                .datasets
                .iter()
                .filter(|dataset| dataset.fine_tuning)
            {
                cells.extend(pairs().map(|(dataset, task)| {
                    let name = format!("{}+lora-{}-{task}", model.id, trained.id);
                    ExpectedCell {
                        cell: CellKey::new(dataset, task, "prompting", &name),
                        fine_tuned: true,
                    }
                }));
            }
        }
        cells
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grids_have_the_sizes_of_the_paper_and_of_the_correction() {
        for (track, base, tuned) in [(Track::AsPublished, 532, 228), (Track::Corrected, 476, 204)] {
            let cells = Catalogue::benchmark(track);
            let found = cells.iter().filter(|cell| cell.fine_tuned).count();
            assert_eq!((cells.len() - found, found), (base, tuned));
            let keys: std::collections::BTreeSet<_> = cells.iter().map(|c| &c.cell).collect();
            assert_eq!(keys.len(), cells.len(), "no cell twice");
        }
    }
}
