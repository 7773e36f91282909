//! Which models are known to have seen which test datasets before.

use crate::catalogue::Catalogue;
use serde::Serialize;
use std::collections::BTreeSet;

/// What is known of one model and one dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Seen {
    /// Its pretraining data name the dataset, or a part of it.
    Listed,
    /// Its pretraining data are known and do not.
    NotListed,
    /// Its pretraining data are not known.
    Unknown,
}

/// Models against datasets.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contamination {
    /// Datasets, in the order of the columns.
    pub datasets: Vec<String>,
    /// By model.
    pub rows: Vec<ContaminationRow>,
}

/// One model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ContaminationRow {
    /// Model id.
    pub model: String,
    /// One for each dataset.
    pub seen: Vec<Seen>,
    /// Where the catalogue has it from; none: the model is not in it.
    pub source: Option<String>,
}

impl Contamination {
    /// The matrix of these models and datasets.
    pub fn of(
        models: &BTreeSet<String>,
        datasets: &BTreeSet<String>,
        catalogue: &Catalogue,
    ) -> Self {
        let row = |model: &String| {
            let known = catalogue.model(model);
            let listed = known.and_then(|known| known.pretraining.as_ref());
            let seen = |dataset: &String| match listed {
                None => Seen::Unknown,
                Some(all) if all.iter().any(|seen| is_or_part(seen, dataset)) => Seen::Listed,
                Some(_) => Seen::NotListed,
            };
            ContaminationRow {
                model: model.clone(),
                seen: datasets.iter().map(seen).collect(),
                source: known.map(|known| known.source.clone()),
            }
        };
        Self {
            datasets: datasets.iter().cloned().collect(),
            rows: models.iter().map(row).collect(),
        }
    }
}

/// `idrid-train` is a part of `idrid`.
fn is_or_part(seen: &str, dataset: &str) -> bool {
    seen.strip_prefix(dataset)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Seen::{Listed, NotListed, Unknown};

    #[test]
    fn listed_not_listed_and_unknown_are_three_things() {
        let models = ["EyeCLIP", "FLAIR", "new"].map(str::to_owned).into();
        let datasets = ["idrid", "refuge", "rfmid", "rfmid_2"]
            .map(str::to_owned)
            .into();
        let found = Contamination::of(&models, &datasets, &Catalogue::embedded());
        assert_eq!(found.rows[0].seen, [Unknown; 4]);
        assert_eq!(found.rows[1].seen, [Listed, NotListed, Listed, NotListed]);
        assert_eq!(
            (found.rows[2].seen[0], &found.rows[2].source),
            (Unknown, &None)
        );
        assert!(is_or_part("idrid-train", "idrid") && !is_or_part("idridx", "idrid"));
    }
}
