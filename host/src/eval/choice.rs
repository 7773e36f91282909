//! What of the asked tasks and methods there is, and which images they need. Refuses what does not exist, with what does.

use super::dataset::Dataset;
use super::features::Wanted;
use super::method::{self, How, Method};
use super::model::{Chosen, OpenModel};
use super::prompting::PROMPTING;
use super::{Advised, EvalError};
use crate::task;
use focus_curation::splits::Split;
use focus_plugin_abi::v1::message::InterfaceName;
use std::collections::BTreeMap;

/// Names that exist nowhere are refused before any work.
pub fn check_names(tasks: &[String], methods: &[String]) -> Result<(), EvalError> {
    let refuse = |what: &str, id: &String, known: Vec<&str>| {
        let hint = format!("{what}s: {}", quoted(&known));
        Err(EvalError::Request(Advised::new(
            format!("No {} named `{id}`", what.to_lowercase()),
            hint,
        )))
    };
    if let Some(id) = tasks.iter().find(|id| task::by_id(id).is_none()) {
        return refuse("Task", id, task::all().iter().map(|task| task.id).collect());
    }
    if let Some(id) = methods
        .iter()
        .find(|id| !method::all().iter().any(|m| m.id == **id))
    {
        return refuse("Method", id, method::all().iter().map(|m| m.id).collect());
    }
    Ok(())
}

fn quoted(ids: &[&str]) -> String {
    ids.iter()
        .map(|id| format!("`{id}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The tasks to run: those asked, or all that the dataset offers.
pub fn choose_tasks(asked: &[String], dataset: &Dataset) -> Result<Vec<String>, EvalError> {
    let known: Vec<&str> = task::all().iter().map(|task| task.id).collect();
    let offered: Vec<&str> = known
        .iter()
        .copied()
        .filter(|id| dataset.tasks.iter().any(|t| t == id))
        .collect();
    if let Some(id) = asked.iter().find(|id| !offered.contains(&id.as_str())) {
        let message = format!(
            "Dataset `{}` has no labels for the task `{id}`",
            dataset.facts.id
        );
        return Err(EvalError::Request(Advised::new(
            message,
            format!("It has: {}", quoted(&offered)),
        )));
    }
    let chosen = offered
        .iter()
        .filter(|id| asked.is_empty() || asked.iter().any(|a| a == *id));
    let chosen: Vec<String> = chosen.map(|id| (*id).to_owned()).collect();
    if chosen.is_empty() {
        let message = format!(
            "Dataset `{}` offers none of the tasks: {}",
            dataset.facts.id,
            quoted(&known)
        );
        return Err(EvalError::Input(Advised::plain(message)));
    }
    Ok(chosen)
}

/// The methods to run: those asked, or all that fit the model.
pub fn choose_methods(
    asked: &[String],
    chosen: &Chosen,
) -> Result<Vec<&'static Method>, EvalError> {
    let all = method::all();
    let fits = |method: &&Method| chosen.model.interfaces.contains(&method.needs);
    if let Some(method) = all
        .iter()
        .find(|m| asked.iter().any(|id| m.id == id) && !fits(m))
    {
        let message = format!(
            "Model `{}` lacks the interface that `{}` needs",
            chosen.model.id, method.id
        );
        return Err(EvalError::Request(Advised::plain(message)));
    }
    let mut chosen: Vec<&'static Method> = all
        .into_iter()
        .filter(|m| fits(m) && (asked.is_empty() || asked.iter().any(|id| m.id == id)))
        .collect();
    // A run holds embeddings or generations. A model that gives both is prompted, unless it is asked otherwise.
    let prompted = |m: &&Method| matches!(m.how, How::Generations);
    let mixed = chosen.iter().any(prompted) && !chosen.iter().all(prompted);
    if mixed && !asked.is_empty() {
        let hint = "Run them one after the other, each with its --methods";
        return Err(EvalError::Request(Advised::new(
            format!("Methods on embeddings and `{PROMPTING}` do not go into one run"),
            hint,
        )));
    }
    if mixed {
        chosen.retain(|m| matches!(m.how, How::Generations));
    }
    Ok(chosen)
}

/// The published code's split of an image that the corrected split leaves out.
fn published_split(dataset: &Dataset, sample: usize) -> Option<&'static str> {
    match dataset.published.as_ref()?.splits[sample]? {
        Split::Validation => None,
        split => Some(split.as_str()),
    }
}

/// The methods that the model as opened allows: a dual encoder may have been opened without its text side.
pub fn allowed(
    asked: &[String],
    methods: Vec<&'static Method>,
    model: &OpenModel,
) -> Result<Vec<&'static Method>, EvalError> {
    let refused =
        |method: &Method| method.needs == InterfaceName::DualEncoder && !model.offers_texts();
    let name = &model.opened().model;
    if let Some(method) = methods
        .iter()
        .find(|method| refused(method) && asked.iter().any(|id| method.id == id))
    {
        let message = format!(
            "Model `{name}` was opened without its text side, which `{}` needs",
            method.id
        );
        let hint = "Drop the setting that leaves it out, or the method";
        return Err(EvalError::Request(Advised::new(message, hint)));
    }
    Ok(methods.into_iter().filter(|m| !refused(m)).collect())
}

/// Test images, and training images where a method fits, with a known label, in either track, in some wanted task, in record order.
pub fn choose_samples(
    dataset: &Dataset,
    tasks: &[String],
    methods: &[&Method],
    limit: usize,
) -> Result<Vec<Wanted>, EvalError> {
    let splits: &[&str] = if methods.iter().any(|method| method.fits) {
        &["train", "test"]
    } else {
        &["test"]
    };
    let mut taken: BTreeMap<&str, usize> = BTreeMap::new();
    let mut wanted = Vec::new();
    for (sample, record) in dataset.records.rows.iter().enumerate() {
        let wanted_split = |split: &&str| splits.contains(split);
        let own = record.split.as_deref().filter(wanted_split);
        let published = || published_split(dataset, sample).filter(wanted_split);
        let Some(split) = own.or_else(published) else {
            continue;
        };
        let known = tasks
            .iter()
            .any(|t| record.labels.contains_key(t) || record.published_labels.contains_key(t));
        let count = taken.entry(split).or_default();
        if known && (limit == 0 || *count < limit) {
            *count += 1;
            wanted.push(Wanted {
                sample: sample as u32,
                id: record.id.clone(),
            });
        }
    }
    for split in splits {
        if taken.get(split).is_none_or(|count| *count == 0) {
            let message = format!(
                "Dataset `{}` has no labelled image in its {split} split for: {}",
                dataset.facts.id,
                tasks.join(", ")
            );
            let hint = "Methods are scored on the test split, and a linear probe is fitted on the training split; the mapper must name them, or --split own draws them";
            return Err(EvalError::Input(Advised::new(message, hint)));
        }
    }
    Ok(wanted)
}
