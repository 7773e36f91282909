//! What a model's name in a cell says: which model, with which adapter, in which variation. It knows no model.

use serde::Serialize;

/// A fine-tuned adapter: the data it was trained on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Adapter {
    /// Dataset it was trained on.
    pub dataset: String,
    /// Task it was trained for.
    pub task: String,
}

/// A model's name taken apart: `google/medgemma-4b-it+lora-brset-binary_dr`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ModelName {
    /// The model itself.
    pub base: String,
    /// Its adapter, where it has one.
    pub adapter: Option<Adapter>,
    /// Other variations, in the order of the name, without their `+`.
    pub variations: Vec<String>,
}

/// A model's name that cannot be taken apart.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Model name `{name}` is malformed: {what}")]
pub struct NameError {
    /// The name.
    pub name: String,
    /// What does not fit.
    pub what: &'static str,
}

impl NameError {
    /// Advice.
    pub fn hint(&self) -> Option<String> {
        Some("a fine-tuned model is named `<base>+lora-<training dataset>-<task>`, for instance `google/medgemma-4b-it+lora-brset-binary_dr`".into())
    }
}

const LORA: &str = "lora-";

impl ModelName {
    /// Takes a name apart. Task ids hold no `-`, so the last one ends the dataset's id.
    ///
    /// # Errors
    /// An empty part, an adapter without dataset or task, two adapters.
    pub fn parse(name: &str) -> Result<Self, NameError> {
        let fault = |what| NameError {
            name: name.into(),
            what,
        };
        let mut parts = name.split('+');
        let base = parts.next().unwrap_or_default();
        if base.is_empty() {
            return Err(fault("expected a model's id before the first `+`"));
        }
        let (mut adapter, mut variations) = (None, Vec::new());
        for part in parts {
            let Some(trained) = part.strip_prefix(LORA) else {
                if part.is_empty() {
                    return Err(fault("expected a variation after each `+`, found nothing"));
                }
                variations.push(part.to_owned());
                continue;
            };
            let (dataset, task) = trained
                .rsplit_once('-')
                .filter(|(dataset, task)| !dataset.is_empty() && !task.is_empty())
                .ok_or_else(|| fault("expected `lora-<training dataset>-<task>`"))?;
            let found = Adapter {
                dataset: dataset.into(),
                task: task.into(),
            };
            if adapter.replace(found).is_some() {
                return Err(fault("expected one adapter, found two"));
            }
        }
        Ok(Self {
            base: base.into(),
            adapter,
            variations,
        })
    }

    /// The name that a cell of the same model without its adapter bears.
    pub fn without_adapter(&self) -> String {
        let mut name = self.base.clone();
        for variation in &self.variations {
            name.push('+');
            name.push_str(variation);
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_put_together_comes_apart(
            base in "[a-z][a-zA-Z0-9/._-]{0,12}",
            dataset in "[a-z][a-z0-9_-]{0,8}",
            task in "[a-z][a-z0-9_]{0,8}",
        ) {
            let name = ModelName::parse(&format!("{base}+lora-{dataset}-{task}")).expect("a name");
            prop_assert_eq!(name.without_adapter(), base);
            prop_assert_eq!(name.adapter, Some(Adapter { dataset, task }));
        }

        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = ModelName::parse(&text);
        }
    }

    #[test]
    fn names_come_apart() {
        let plain = ModelName::parse("google/vit-large-patch16-224").expect("a name");
        assert_eq!(plain.base, "google/vit-large-patch16-224");
        assert_eq!((plain.adapter, plain.variations.len()), (None, 0));
        let tuned = ModelName::parse("google/medgemma-4b-it+lora-brset-binary_dr").expect("a name");
        let adapter = tuned.adapter.clone().expect("an adapter");
        assert_eq!(
            (adapter.dataset.as_str(), adapter.task.as_str()),
            ("brset", "binary_dr")
        );
        assert_eq!(tuned.without_adapter(), "google/medgemma-4b-it");
        let both = ModelName::parse("m+896px+lora-my-set-glaucoma").expect("a name");
        assert_eq!(both.without_adapter(), "m+896px");
        assert_eq!(both.adapter.expect("an adapter").dataset, "my-set");
    }

    #[test]
    fn malformed_names_are_refused_by_name() {
        for name in [
            "",
            "+lora-a-b",
            "m+",
            "m+lora-",
            "m+lora-brset",
            "m+lora--binary_dr",
            "m+lora-brset-",
            "m+lora-a-b+lora-c-d",
        ] {
            let error = ModelName::parse(name).expect_err(name);
            assert!(error.to_string().contains(&format!("`{name}`")), "{error}");
            assert!(error.hint().is_some());
        }
    }
}
