//! What a run knows about its own model, from the card in its `facts.json`.

use super::{Catalogue, Family, Group, ModelEntry, parse};
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;

/// The part of a model's card that tables need.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ModelFacts {
    /// Model id.
    pub id: String,
    /// Family.
    pub family: Family,
    /// Group.
    pub group: Group,
    /// Datasets it is known to have seen; none: unknown.
    #[serde(rename = "pretraining_datasets")]
    pub pretraining: Option<Vec<String>>,
}

impl ModelFacts {
    /// From the whole of a `facts.json`; none where it holds no such card.
    pub fn from_facts(facts: &Value) -> Option<Self> {
        serde_json::from_value(facts.get("model")?.clone()).ok()
    }
}

impl Catalogue {
    /// Adds what a run's card says. Of a known model only the pretraining data grow: family and group stay those of the
    /// catalogue, so that one table never splits a model. Gives a remark where the two disagree.
    pub fn merge(&mut self, facts: &ModelFacts) -> Option<String> {
        let Some(&place) = self.names.get(&facts.id) else {
            self.models.push(ModelEntry {
                id: facts.id.clone(),
                family: facts.family,
                group: facts.group,
                aliases: Vec::new(),
                pretraining: facts.pretraining.clone(),
                source: "the model's card".into(),
            });
            self.names = parse::names_of(&self.models, Path::new("facts.json"))
                .expect("a name that was not there is new");
            return None;
        };
        let known = &mut self.models[place];
        if let Some(seen) = &facts.pretraining {
            let all = known.pretraining.get_or_insert_with(Vec::new);
            for dataset in seen {
                if !all.contains(dataset) {
                    all.push(dataset.clone());
                }
            }
        }
        ((known.family, known.group) != (facts.family, facts.group)).then(|| {
            format!(
                "The card of `{}` says {:?} / {:?}; the catalogue's {:?} / {:?} is used",
                known.id, facts.family, facts.group, known.family, known.group
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_add_models_and_pretraining_data() {
        let mut catalogue = Catalogue::embedded();
        let card = serde_json::json!({"model": {
            "id": "handcrafted/zones", "family": "vm", "group": "baseline", "title": "Zones",
            "pretraining_datasets": [],
        }});
        let facts = ModelFacts::from_facts(&card).expect("a card");
        assert_eq!(catalogue.merge(&facts), None);
        assert_eq!(
            catalogue
                .model("handcrafted/zones")
                .expect("added")
                .pretraining,
            Some(vec![])
        );
        let flair = ModelFacts {
            id: "jusiro2/FLAIR".into(),
            family: Family::Vlm,
            group: Group::General,
            pretraining: Some(vec!["idrid".into(), "odir".into()]),
        };
        let remark = catalogue.merge(&flair).expect("groups differ");
        assert!(remark.contains("`FLAIR`"), "{remark}");
        let seen = catalogue
            .model("FLAIR")
            .expect("there")
            .pretraining
            .as_ref()
            .expect("known");
        assert_eq!(seen.len(), 7, "one new dataset, none twice: {seen:?}");
        assert_eq!(ModelFacts::from_facts(&serde_json::json!({})), None);
    }
}
