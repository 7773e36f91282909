//! Registration of models inside one plugin. Must not know how they are exported.

use crate::{Error, Host, Model, ModelDescriptor, OpenOptions, OpenedModel};

/// A model as registered: how to describe it and how to open it.
#[derive(Debug, Clone, Copy)]
pub struct ModelRegistration {
    /// The card; touches no weights.
    pub describe: fn() -> ModelDescriptor,
    /// Open it. The SDK has checked that model, device and dtype are on the card and that a weights folder is there if files are wanted.
    pub open: OpenFunction,
}

/// How a model is opened.
pub type OpenFunction = fn(&OpenOptions, &Host) -> Result<Box<dyn Model>, Error>;

inventory::collect!(ModelRegistration);

/// Register a model: `register_model! { describe: path, open: path }`; see [`ModelRegistration`] for the two functions.
#[macro_export]
macro_rules! register_model {
    (describe: $describe:expr, open: $open:expr $(,)?) => {
        $crate::__private::inventory::submit! {
            $crate::ModelRegistration { describe: $describe, open: $open }
        }
    };
}

/// Cards of all registered models, sorted by id; an id used twice is an error.
pub(crate) fn models() -> Result<Vec<(ModelDescriptor, ModelRegistration)>, Error> {
    let mut models: Vec<_> = inventory::iter::<ModelRegistration>
        .into_iter()
        .map(|entry| ((entry.describe)(), *entry))
        .collect();
    models.sort_by(|a, b| a.0.id.cmp(&b.0.id));
    if let Some(pair) = models.windows(2).find(|pair| pair[0].0.id == pair[1].0.id) {
        return Err(Error::internal(format!(
            "Model id `{}` is registered twice",
            pair[0].0.id
        )));
    }
    Ok(models)
}

/// What a model says once open when it runs as its card says: the card's values with the options' choices, batch size among them.
/// `embedding_dim` is 0 where the card leaves it open; set it.
pub fn opened(card: &ModelDescriptor, options: &OpenOptions) -> OpenedModel {
    OpenedModel {
        model: card.id.clone(),
        device: options.device.clone(),
        dtype: options
            .dtype
            .clone()
            .or_else(|| card.dtypes.first().cloned())
            .unwrap_or_default(),
        embedding_dim: card.embedding_dim.unwrap_or(0),
        weights_digest: None,
        preprocessing: card.preprocessing.clone(),
        batch_size: options.batch_size.unwrap_or(card.batch_size),
        notes: Vec::new(),
        similarity: None,
        facts: std::collections::BTreeMap::new(),
    }
}

/// Refuse settings that the model does not know: a misspelt one must not pass for a default.
pub fn deny_unknown_settings(options: &OpenOptions, known: &[&str]) -> Result<(), Error> {
    match options
        .settings
        .keys()
        .find(|key| !known.contains(&key.as_str()))
    {
        None => Ok(()),
        Some(key) => Err(Error::invalid_request(format!(
            "Unknown setting `{key}` of model `{}`",
            options.model
        ))
        .with_hint(if known.is_empty() {
            "This model has no settings".to_owned()
        } else {
            format!("Known settings: {}", known.join(", "))
        })),
    }
}
