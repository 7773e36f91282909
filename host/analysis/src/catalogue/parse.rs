//! From TOML to a catalogue, strictly: unknown fields, doubled names and malformed ids are errors.

use super::{Catalogue, CatalogueError, DatasetEntry, ModelEntry};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const VERSION: u32 = 1;
const EMBEDDED: &str = include_str!("focus.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    #[serde(default)]
    model: Vec<ModelEntry>,
    #[serde(default)]
    dataset: Vec<DatasetEntry>,
}

pub(super) fn embedded() -> Catalogue {
    let mut catalogue = Catalogue {
        models: Vec::new(),
        datasets: Vec::new(),
        names: BTreeMap::new(),
    };
    catalogue
        .extend_from_text(EMBEDDED, Path::new("focus.toml"))
        .expect("the embedded catalogue is sound");
    catalogue
}

impl Catalogue {
    /// Adds the entries of a user's file; one with the id of a known model or dataset replaces it. On an error nothing
    /// has changed.
    ///
    /// # Errors
    /// A file that cannot be read or does not keep to the form of `focus.toml`.
    pub fn extend_from(&mut self, file: &Path) -> Result<(), CatalogueError> {
        let text = std::fs::read_to_string(file).map_err(|source| CatalogueError::Io {
            file: file.into(),
            source,
        })?;
        self.extend_from_text(&text, file)
    }

    /// The same with the file's text in hand; `file` is only named in errors.
    ///
    /// # Errors
    /// As [`Catalogue::extend_from`].
    pub fn extend_from_text(&mut self, text: &str, file: &Path) -> Result<(), CatalogueError> {
        let form = |error: toml::de::Error| CatalogueError::Form {
            file: file.into(),
            reason: error.to_string().trim_end().replace('\n', "; "),
        };
        let read: File = toml::from_str(text).map_err(form)?;
        if read.version != VERSION {
            return Err(CatalogueError::Version {
                file: file.into(),
                expected: VERSION,
                found: read.version,
            });
        }
        let mut next = self.clone();
        let mut seen = BTreeSet::new();
        for model in read.model {
            check_id(&model.id, "a model", &mut seen, file)?;
            match next.models.iter_mut().find(|known| known.id == model.id) {
                Some(known) => *known = model,
                None => next.models.push(model),
            }
        }
        seen.clear();
        for dataset in read.dataset {
            check_id(&dataset.id, "a dataset", &mut seen, file)?;
            match next.datasets.iter_mut().find(|d| d.id == dataset.id) {
                Some(known) => *known = dataset,
                None => next.datasets.push(dataset),
            }
        }
        next.names = names_of(&next.models, file)?;
        *self = next;
        Ok(())
    }
}

fn check_id(
    id: &str,
    what: &str,
    seen: &mut BTreeSet<String>,
    file: &Path,
) -> Result<(), CatalogueError> {
    if id.is_empty() || id.contains(|c: char| c.is_whitespace() || c == '+') {
        return Err(CatalogueError::Rule {
            file: file.into(),
            name: id.into(),
            rule: "an id must not be empty and must hold no blank and no `+`",
            found: id.into(),
        });
    }
    if seen.insert(id.to_owned()) {
        Ok(())
    } else {
        Err(CatalogueError::Twice {
            file: file.into(),
            name: id.into(),
            what: format!("{what}, and {what} again"),
        })
    }
}

/// Every id and alias with the place of its model.
pub(super) fn names_of(
    models: &[ModelEntry],
    file: &Path,
) -> Result<BTreeMap<String, usize>, CatalogueError> {
    let mut names = BTreeMap::new();
    for (place, model) in models.iter().enumerate() {
        for name in std::iter::once(&model.id).chain(&model.aliases) {
            if let Some(other) = names.insert(name.clone(), place) {
                return Err(CatalogueError::Twice {
                    file: file.into(),
                    name: name.clone(),
                    what: format!("`{}` and `{}`", models[other].id, model.id),
                });
            }
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::super::{Family, Group};
    use super::*;
    use crate::Track;

    #[test]
    fn the_paper_is_all_there() {
        let catalogue = Catalogue::embedded();
        let count = |family, group| {
            let of = |model: &&ModelEntry| (model.family, model.group) == (family, group);
            catalogue.models().iter().filter(of).count()
        };
        assert_eq!(catalogue.models().len(), 22);
        assert_eq!(count(Family::Vm, Group::General), 3);
        assert_eq!(count(Family::Vm, Group::Ophthalmic), 7);
        assert_eq!(count(Family::Vlm, Group::General), 3);
        assert_eq!(count(Family::Vlm, Group::Ophthalmic), 3);
        assert_eq!(count(Family::Mllm, Group::General), 3);
        assert_eq!(count(Family::Mllm, Group::Medical), 3);
        for (task, published, corrected) in [
            ("binary_dr", 7, 7),
            ("referable_dr", 7, 5),
            ("glaucoma", 5, 5),
        ] {
            assert_eq!(catalogue.datasets_with(task, Track::AsPublished), published);
            assert_eq!(catalogue.datasets_with(task, Track::Corrected), corrected);
        }
        assert_eq!(
            catalogue.model("jusiro2/FLAIR").map(|m| m.id.as_str()),
            Some("FLAIR")
        );
        assert!(catalogue.model("resnet").is_none());
    }

    #[test]
    fn a_users_file_adds_and_replaces() {
        let mut catalogue = Catalogue::embedded();
        let text = "version = 1\n[[model]]\nid = 'FLAIR'\nfamily = 'vlm'\ngroup = 'ophthalmic'\npretraining = ['refuge']\nsource = 'ours'\n\
            [[model]]\nid = 'mine'\nfamily = 'vm'\ngroup = 'baseline'\nsource = 'ours'\n\
            [[dataset]]\nid = 'odir'\ntitle = 'ODIR-5K'\npublished = []\ncorrected = ['glaucoma']\nsource = 'ours'\n";
        catalogue
            .extend_from_text(text, Path::new("mine.toml"))
            .expect("sound");
        assert_eq!(
            (catalogue.models().len(), catalogue.datasets().len()),
            (23, 11)
        );
        assert_eq!(
            catalogue.model("FLAIR").expect("there").pretraining,
            Some(vec!["refuge".to_owned()])
        );
        assert!(catalogue.model("jusiro2/FLAIR").is_none(), "replaced whole");
        assert_eq!(catalogue.datasets_with("glaucoma", Track::Corrected), 6);
    }

    #[test]
    fn bad_files_change_nothing_and_say_why() {
        let model = |id: &str, more: &str| {
            format!(
                "[[model]]\nid = '{id}'\nfamily = 'vm'\ngroup = 'general'\nsource = 's'\n{more}\n"
            )
        };
        let cases = [
            ("version = 2\n".to_owned(), "expected 1, found 2"),
            (String::new(), "version"),
            (
                format!("version = 1\n{}", model("a", "colour = 'red'")),
                "colour",
            ),
            (format!("version = 1\n{}", model("a+b", "")), "no `+`"),
            (
                format!("version = 1\n{}{}", model("a", ""), model("a", "")),
                "twice",
            ),
            (
                format!("version = 1\n{}", model("a", "aliases = ['flair']")),
                "`FLAIR` and `a`",
            ),
            (
                "version = 1\n[[dataset]]\nid = 'x'\n".to_owned(),
                "missing field",
            ),
        ];
        for (text, part) in cases {
            let mut catalogue = Catalogue::embedded();
            let error = catalogue
                .extend_from_text(&text, Path::new("bad.toml"))
                .expect_err(part);
            assert!(
                error.to_string().contains(part) && error.to_string().contains("bad.toml"),
                "{error}"
            );
            assert!(error.hint().is_some());
            assert_eq!(catalogue, Catalogue::embedded());
        }
        let mut catalogue = Catalogue::embedded();
        assert!(matches!(
            catalogue.extend_from(Path::new("/nowhere/at/all.toml")),
            Err(CatalogueError::Io { .. })
        ));
    }
}
