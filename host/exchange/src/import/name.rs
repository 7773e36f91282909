//! Names of result files: what each of the published code's ways of naming says about dataset, task, method and model.
//! Names contain underscores, so they are read against what is known, and a name with two readings is no name. It must
//! not know what is in the files.

use crate::error::{ExchangeError, Result};
use std::collections::{BTreeMap, BTreeSet};

/// What file names are read against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vocabulary {
    /// Dataset ids (`rfmid_2`).
    pub datasets: Vec<String>,
    /// Task ids.
    pub tasks: Vec<String>,
    /// Methods that stand in a name (`linear_probing`, `zero_shot`). A name without one is of a prompted model.
    pub methods: Vec<String>,
    /// Prompt strategies that stand in a name (`cot`, `role`); the plain one, `base`, does not.
    pub strategies: Vec<String>,
}

impl Default for Vocabulary {
    fn default() -> Self {
        let own = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
        Self {
            datasets: own(&[
                "brset",
                "mbrset",
                "papila",
                "rfmid",
                "rfmid_2",
                "idrid",
                "messidor_2",
                "refuge",
                "g1020",
                "jsiec1000",
            ]),
            tasks: own(&["binary_dr", "referable_dr", "glaucoma"]),
            methods: own(&["linear_probing", "zero_shot"]),
            strategies: own(&["cot", "role"]),
        }
    }
}

/// Model ids by the ways in which file names spell them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Aliases {
    names: BTreeMap<String, BTreeSet<String>>,
}

impl Aliases {
    /// The ids themselves, in the spellings of the published code: `/` and blanks as `_`; `-` too; all but letters and
    /// digits.
    pub fn of_ids<I: AsRef<str>>(ids: impl IntoIterator<Item = I>) -> Self {
        let mut made = Self::default();
        for id in ids {
            made.add(id.as_ref(), id.as_ref());
        }
        made
    }

    /// Another name for `id`, such as its name upstream, in the same spellings.
    pub fn add(&mut self, name: &str, id: &str) {
        let slug = slug(name);
        let plain = name
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join("_");
        for spelling in [slug.replace('-', "_"), slug, plain, name.to_owned()] {
            self.names.entry(spelling).or_default().insert(id.into());
        }
    }

    /// The ids that `spelling` may mean.
    fn ids(&self, spelling: &str) -> impl Iterator<Item = &String> {
        self.names.get(spelling).into_iter().flatten()
    }

    fn knows(&self, spelling: &str) -> bool {
        self.names.contains_key(spelling)
    }
}

/// A model's id as most of the published code spells it in a file name.
pub(crate) fn slug(id: &str) -> String {
    id.replace(['/', ' '], "_")
}

/// What a file name says.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reading {
    /// Dataset id.
    pub dataset: String,
    /// Task id.
    pub task: String,
    /// Method id: `linear_probing`, `zero_shot`, `prompting`, `prompting+cot`.
    pub method: String,
    /// Model id: the catalogue's where known, else as written; an adapter's is `<base>+lora-<dataset>-<task>`.
    pub model: String,
    /// The model's name was found among the aliases.
    pub known: bool,
}

impl std::fmt::Display for Reading {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "dataset `{}`, task `{}`, method `{}`, model `{}`",
            self.dataset, self.task, self.method, self.model
        )
    }
}

/// The one reading of a result file's name (with or without `.csv`). `folder`: the folders above it, of which one that
/// speaks of `grpo` marks an adapter as trained so (the names alone do not tell).
///
/// Where a name may be read with and without a method, a known model decides; without one, the method does, since the
/// published code writes it.
pub fn read_name(
    name: &str,
    folder: &str,
    vocabulary: &Vocabulary,
    aliases: &Aliases,
) -> Result<Reading> {
    let stem = name.strip_suffix(".csv").unwrap_or(name);
    let mut readings = if stem.starts_with("train_model-") {
        adapter(stem, folder, vocabulary, aliases)
    } else {
        plain(stem, vocabulary, aliases)
    };
    readings.sort();
    readings.dedup();
    match readings.as_slice() {
        [one] => Ok(one.clone()),
        _ => Err(ExchangeError::FileNames {
            names: vec![(
                name.into(),
                readings.iter().map(ToString::to_string).collect(),
            )],
        }),
    }
}

// What follows `word_`.
fn after<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    text.strip_prefix(word)?
        .strip_prefix('_')
        .filter(|rest| !rest.is_empty())
}

fn models(spelling: &str, aliases: &Aliases) -> Vec<(String, bool)> {
    if aliases.knows(spelling) {
        aliases.ids(spelling).map(|id| (id.clone(), true)).collect()
    } else {
        vec![(spelling.into(), false)]
    }
}

// `[cv_]{dataset}_{task}_{method}_{model}` and `{dataset}_{task}[_{strategy}]_{model}`.
fn plain(stem: &str, vocabulary: &Vocabulary, aliases: &Aliases) -> Vec<Reading> {
    let (encoder, stem) = match after(stem, "cv") {
        Some(rest) => (true, rest),
        None => (false, stem),
    };
    let mut with_method = Vec::new();
    let mut without = Vec::new();
    for dataset in &vocabulary.datasets {
        for task in &vocabulary.tasks {
            let Some(rest) = after(stem, dataset).and_then(|rest| after(rest, task)) else {
                continue;
            };
            let take =
                |into: &mut Vec<Reading>, method: &str, spelling: &str| {
                    into.extend(models(spelling, aliases).into_iter().map(|(model, known)| {
                        Reading {
                            dataset: dataset.clone(),
                            task: task.clone(),
                            method: method.into(),
                            model,
                            known,
                        }
                    }));
                };
            for method in &vocabulary.methods {
                if let Some(model) = after(rest, method) {
                    take(&mut with_method, method, model);
                }
            }
            if encoder {
                continue;
            }
            for strategy in &vocabulary.strategies {
                if let Some(model) = after(rest, strategy) {
                    take(&mut with_method, &format!("prompting+{strategy}"), model);
                }
            }
            take(&mut without, "prompting", rest);
        }
    }
    let known: Vec<Reading> = with_method
        .iter()
        .chain(&without)
        .filter(|reading| reading.known)
        .cloned()
        .collect();
    if !known.is_empty() {
        known
    } else if with_method.is_empty() {
        without
    } else {
        with_method
    }
}

// `train_model-M_train_dataset-D_train_task-T_train_strategy-S__test_model-M_test_dataset-D_test_task-T_test_strategy-S_split-P`.
fn adapter(stem: &str, folder: &str, vocabulary: &Vocabulary, aliases: &Aliases) -> Vec<Reading> {
    let keys = [
        "train_model-",
        "_train_dataset-",
        "_train_task-",
        "_train_strategy-",
        "__test_model-",
        "_test_dataset-",
        "_test_task-",
        "_test_strategy-",
        "_split-",
    ];
    let mut rest = stem;
    let mut values = Vec::with_capacity(keys.len());
    for (i, key) in keys.iter().enumerate() {
        let Some(tail) = rest.strip_prefix(key) else {
            return Vec::new();
        };
        let end = match keys.get(i + 1) {
            Some(next) => match tail.find(next) {
                Some(end) => end,
                None => return Vec::new(),
            },
            None => tail.len(),
        };
        values.push(&tail[..end]);
        rest = &tail[end..];
    }
    let [
        model,
        train_dataset,
        train_task,
        train_strategy,
        test_model,
        dataset,
        task,
        strategy,
        split,
    ] = values[..]
    else {
        return Vec::new();
    };
    let is = |names: &[String], name: &str| names.iter().any(|n| n == name);
    let is_strategy = |name: &str| name == "base" || is(&vocabulary.strategies, name);
    // Cells are of test images: results on another split are no cell.
    if split != "test"
        || model != test_model
        || !is(&vocabulary.datasets, train_dataset)
        || !is(&vocabulary.datasets, dataset)
        || !is(&vocabulary.tasks, train_task)
        || !is(&vocabulary.tasks, task)
        || !is_strategy(train_strategy)
        || !is_strategy(strategy)
    {
        return Vec::new();
    }
    let kind = if folder.to_ascii_lowercase().contains("grpo") {
        "grpo"
    } else {
        "lora"
    };
    let mut trained = format!("{kind}-{train_dataset}-{train_task}");
    if train_strategy != "base" {
        trained.push_str(&format!("-{train_strategy}"));
    }
    let method = match strategy {
        "base" => "prompting".to_owned(),
        other => format!("prompting+{other}"),
    };
    models(model, aliases)
        .into_iter()
        .map(|(id, known)| Reading {
            dataset: dataset.into(),
            task: task.into(),
            method: method.clone(),
            model: format!("{id}+{trained}"),
            known,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEDGEMMA: &str = "google/medgemma-4b-it";

    fn aliases() -> Aliases {
        Aliases::of_ids([
            "google/vit-large-patch16-224",
            MEDGEMMA,
            "YukunZhou/RETFound_mae_natureCFP",
        ])
    }

    fn read(name: &str) -> Result<[String; 4]> {
        read_name(name, "", &Vocabulary::default(), &aliases())
            .map(|r| [r.dataset, r.task, r.method, r.model])
    }

    #[test]
    fn the_published_names_are_read() {
        let vit = "google/vit-large-patch16-224";
        for (name, dataset, task, method, model) in [
            (
                "cv_rfmid_2_binary_dr_linear_probing_google_vit_large_patch16_224.csv",
                "rfmid_2",
                "binary_dr",
                "linear_probing",
                vit,
            ),
            (
                "rfmid_2_binary_dr_linear_probing_google_vit-large-patch16-224.csv",
                "rfmid_2",
                "binary_dr",
                "linear_probing",
                vit,
            ),
            (
                "rfmid_referable_dr_zero_shot_some_new-model.csv",
                "rfmid",
                "referable_dr",
                "zero_shot",
                "some_new-model",
            ),
            (
                "cv_jsiec1000_glaucoma_linear_probing_YukunZhou_RETFound_mae_natureCFP.csv",
                "jsiec1000",
                "glaucoma",
                "linear_probing",
                "YukunZhou/RETFound_mae_natureCFP",
            ),
            (
                "mbrset_glaucoma_google_medgemma-4b-it.csv",
                "mbrset",
                "glaucoma",
                "prompting",
                MEDGEMMA,
            ),
            (
                "messidor_2_binary_dr_cot_google_medgemma-4b-it.csv",
                "messidor_2",
                "binary_dr",
                "prompting+cot",
                MEDGEMMA,
            ),
            (
                "brset_binary_dr_unheard-of.csv",
                "brset",
                "binary_dr",
                "prompting",
                "unheard-of",
            ),
        ] {
            assert_eq!(
                read(name).expect(name),
                [dataset, task, method, model],
                "{name}"
            );
        }
        let name = "train_model-google_medgemma-4b-it_train_dataset-brset_train_task-binary_dr_train_strategy-base__test_model-google_medgemma-4b-it_test_dataset-rfmid_2_test_task-binary_dr_test_strategy-base_split-test.csv";
        let adapted = "google/medgemma-4b-it+lora-brset-binary_dr";
        assert_eq!(
            read(name).expect("adapter"),
            ["rfmid_2", "binary_dr", "prompting", adapted]
        );
        let grpo =
            read_name(name, "evals_grpo/a", &Vocabulary::default(), &aliases()).expect("reads");
        assert_eq!(grpo.model, "google/medgemma-4b-it+grpo-brset-binary_dr");
        let cot = name.replace("train_strategy-base", "train_strategy-cot");
        assert_eq!(read(&cot).expect("reads")[3], format!("{adapted}-cot"));
    }

    #[test]
    fn other_names_have_no_reading() {
        for name in [
            "aggregated_metrics.csv",
            "kaggle_binary_dr_linear_probing_x.csv",
            "brset_amd_google_medgemma-4b-it.csv",
            "cv_brset_binary_dr_google_medgemma-4b-it.csv",
            "brset_binary_dr.csv",
            "train_model-x_train_dataset-brset.csv",
            "train_model-x_train_dataset-brset_train_task-binary_dr_train_strategy-base__test_model-x_test_dataset-brset_test_task-binary_dr_test_strategy-base_split-val.csv",
            "train_model-x_train_dataset-brset_train_task-binary_dr_train_strategy-base__test_model-y_test_dataset-brset_test_task-binary_dr_test_strategy-base_split-test.csv",
        ] {
            let error = read(name).expect_err(name).to_string();
            assert!(
                error.contains("no reading") && error.contains(name),
                "{error}"
            );
        }
    }

    #[test]
    fn two_readings_are_listed_and_none_is_chosen() {
        let mut aliases = aliases();
        aliases.add("zero_shot_b", "zero_shot/b");
        aliases.add("b", "b");
        let read = |name: &str| read_name(name, "", &Vocabulary::default(), &aliases);
        let error = read("brset_binary_dr_zero_shot_b.csv").expect_err("two readings");
        let text = error.to_string();
        assert!(
            text.contains("method `prompting`, model `zero_shot/b`")
                && text.contains("method `zero_shot`, model `b`"),
            "{text}"
        );
        assert!(error.hint().expect("advice").contains("alias"));
        let mut twins = Aliases::of_ids(["a/b-c", "a-b/c"]);
        twins.add("x", "a/b-c");
        assert!(
            read_name(
                "brset_binary_dr_zero_shot_a_b_c.csv",
                "",
                &Vocabulary::default(),
                &twins
            )
            .is_err()
        );
        assert_eq!(
            read_name(
                "brset_binary_dr_zero_shot_a_b-c.csv",
                "",
                &Vocabulary::default(),
                &twins
            )
            .expect("one")
            .model,
            "a/b-c"
        );
    }
}
