//! What is known of each dataset before anything is asked: route, licence, what to sign, what to expect. It must not know how a route is walked.

use crate::{
    address,
    checksum::Checksum,
    error::{FetchError, Result, quoted},
};
use serde::Deserialize;
use std::{collections::BTreeMap, io::Read as _, path::Path};

const BUILT_IN: &str = include_str!("registry.toml");
/// Largest registry file, in bytes.
const LARGEST: u64 = 4 << 20;

/// What a dataset asks of its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Nothing.
    Open,
    /// An account.
    Account,
    /// An account whose holder was checked and signed an agreement.
    Credentialed,
    /// A web form or a registration.
    Form,
}

/// A count to check the result against, by eye or by the audit.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// What is counted.
    pub what: String,
    /// How many.
    pub count: u64,
}

/// A file with an address of its own.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebFile {
    /// Name below the target folder.
    pub name: String,
    /// http or https; without TLS only with a checksum.
    pub url: String,
    /// Bytes, if known.
    pub size: Option<u64>,
    /// `sha256:<hex>` or `md5:<hex>`.
    #[serde(default)]
    pub checksums: Vec<String>,
}

/// Where a dataset's list of files comes from.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Source {
    /// A project of PhysioNet; its `SHA256SUMS.txt` is the list.
    Physionet {
        /// Name in the address.
        project: String,
        /// Version in the address.
        version: String,
    },
    /// A record of Zenodo.
    Zenodo {
        /// Number of the record.
        record: u64,
    },
    /// An article of figshare.
    Figshare {
        /// Number of the article.
        article: u64,
    },
    /// A dataset of Kaggle: one zip archive.
    Kaggle {
        /// `owner/name`.
        dataset: String,
    },
    /// Files with addresses of their own.
    Web {
        /// The files.
        files: Vec<WebFile>,
    },
    /// No program may or can fetch it.
    ByHand {
        /// What to do, in order; `{to}` is the target folder.
        steps: Vec<String>,
    },
}

/// A dataset.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dataset {
    /// Lower-case letters, digits and `_`.
    pub id: String,
    /// As its authors write it.
    pub name: String,
    /// Licence or terms, in words.
    pub licence: String,
    /// What it asks of its user.
    pub access: Access,
    /// Its web page.
    pub page: Option<String>,
    /// What to sign or accept, in order.
    #[serde(default)]
    pub sign: Vec<String>,
    /// What to know, and what to do after the download.
    #[serde(default)]
    pub notes: Vec<String>,
    /// What should be there in the end.
    #[serde(default)]
    pub expected: Vec<Expected>,
    /// Where its files are.
    pub source: Source,
}

impl Dataset {
    /// What the source wants of its users: shown when it refuses. `None` if it wants nothing.
    pub fn advice(&self) -> Option<String> {
        let mut lines = self.sign.clone();
        if let Some(page) = &self.page
            && !lines.is_empty()
        {
            lines.push(format!("The dataset's page: {page}"));
        }
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    /// Steps by hand, numbered, for a target folder. `None` if a program can fetch it.
    pub fn steps(&self, to: &Path) -> Option<String> {
        let Source::ByHand { steps } = &self.source else {
            return None;
        };
        let to = to.display().to_string();
        let lines: Vec<_> = steps
            .iter()
            .enumerate()
            .map(|(i, s)| format!("{}. {}", i + 1, s.replace("{to}", &to)))
            .collect();
        Some(lines.join("\n"))
    }

    fn check(&self) -> Result<(), String> {
        let plain = |text: &str, more: &str| {
            !text.is_empty()
                && text != "."
                && text != ".."
                && text
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || more.contains(c))
        };
        if !plain(&self.id, "_") || self.id.chars().any(|c| c.is_ascii_uppercase()) {
            return Err(format!(
                "dataset id `{}` must be lower-case letters, digits and `_`",
                quoted(&self.id)
            ));
        }
        let wrong = |what: &str| Err(format!("dataset `{}`: {what}", self.id));
        match &self.source {
            Source::Physionet { project, version }
                if !plain(project, "-_.") || !plain(version, "-_.") =>
            {
                wrong("project and version must be letters, digits, `-`, `_` and `.`")
            }
            Source::Kaggle { dataset } => match dataset.split_once('/') {
                Some((owner, name)) if plain(owner, "-_.") && plain(name, "-_.") => Ok(()),
                _ => wrong("a Kaggle dataset must be `owner/name`"),
            },
            Source::Web { files } if files.is_empty() => wrong("must list a file"),
            Source::Web { files } => {
                for file in files {
                    if address::parse(&file.url).is_err() {
                        return wrong(
                            "addresses must be absolute, http or https, without user name",
                        );
                    }
                    for text in &file.checksums {
                        if !matches!(Checksum::parse(text), Some(Ok(_))) {
                            return wrong("checksums must be `sha256:<hex>` or `md5:<hex>`");
                        }
                    }
                }
                Ok(())
            }
            Source::ByHand { steps } if steps.is_empty() => wrong("must list a step"),
            _ => Ok(()),
        }
    }
}

/// Addresses of the services; tests and mirrors replace them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bases {
    /// PhysioNet's web site.
    pub physionet: String,
    /// Zenodo's web site.
    pub zenodo: String,
    /// figshare's interface for programs.
    pub figshare: String,
    /// Kaggle's web site.
    pub kaggle: String,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct BaseTable {
    physionet: Option<String>,
    zenodo: Option<String>,
    figshare: Option<String>,
    kaggle: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    base: BaseTable,
    #[serde(default)]
    dataset: Vec<Dataset>,
}

/// The datasets known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registry {
    datasets: BTreeMap<String, Dataset>,
    bases: Bases,
}

impl Registry {
    /// The ten datasets of FOCUS.
    pub fn built_in() -> Self {
        let mut registry = Self {
            datasets: BTreeMap::new(),
            bases: Bases {
                physionet: String::new(),
                zenodo: String::new(),
                figshare: String::new(),
                kaggle: String::new(),
            },
        };
        registry
            .add(BUILT_IN, Path::new("(built in)"))
            .expect("the built-in registry is well-formed: a test reads it");
        registry
    }

    /// Add a user's file: entries of the same id are replaced, as are addresses that it gives.
    pub fn extend(&mut self, path: &Path) -> Result<()> {
        let file = std::fs::File::open(path).map_err(FetchError::io("open", path))?;
        let mut text = String::new();
        file.take(LARGEST)
            .read_to_string(&mut text)
            .map_err(FetchError::io("read", path))?;
        self.add(&text, path)
    }

    fn add(&mut self, text: &str, path: &Path) -> Result<()> {
        let failed = |what: String| FetchError::Registry {
            file: path.into(),
            what,
        };
        let file: File =
            toml::from_str(text).map_err(|e| failed(e.to_string().trim_end().into()))?;
        let mut datasets = BTreeMap::new();
        for dataset in file.dataset {
            dataset.check().map_err(failed)?;
            let id = dataset.id.clone();
            if datasets.insert(id.clone(), dataset).is_some() {
                return Err(failed(format!("dataset `{id}` is there twice")));
            }
        }
        let mut bases = self.bases.clone();
        for (known, given) in [
            (&mut bases.physionet, file.base.physionet),
            (&mut bases.zenodo, file.base.zenodo),
            (&mut bases.figshare, file.base.figshare),
            (&mut bases.kaggle, file.base.kaggle),
        ] {
            if let Some(given) = given {
                address::parse(&given).map_err(|e| failed(e.to_string()))?;
                *known = given;
            }
        }
        self.datasets.extend(datasets);
        self.bases = bases;
        Ok(())
    }

    /// A dataset.
    pub fn get(&self, id: &str) -> Result<&Dataset> {
        self.datasets
            .get(id)
            .ok_or_else(|| FetchError::UnknownDataset {
                id: quoted(id),
                known: self.datasets.keys().cloned().collect::<Vec<_>>().join(", "),
            })
    }

    /// All, by id.
    pub fn datasets(&self) -> impl Iterator<Item = &Dataset> {
        self.datasets.values()
    }

    /// Addresses of the services.
    pub fn bases(&self) -> &Bases {
        &self.bases
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ten_datasets_are_there() {
        let registry = Registry::built_in();
        let ids: Vec<_> = registry.datasets().map(|d| d.id.as_str()).collect();
        assert_eq!(
            ids,
            [
                "brset",
                "g1020",
                "idrid",
                "jsiec1000",
                "mbrset",
                "messidor_2",
                "papila",
                "refuge",
                "rfmid",
                "rfmid_2"
            ]
        );
        for d in registry.datasets() {
            let signs = matches!(d.access, Access::Credentialed | Access::Form);
            assert!(!signs || !d.sign.is_empty(), "{} says what to sign", d.id);
        }
        let steps = registry
            .get("refuge")
            .expect("known")
            .steps(Path::new("data/refuge"))
            .expect("by hand");
        assert!(steps.contains("data/refuge/train"), "{steps}");
        assert!(!steps.contains("{to}"), "{steps}");
    }

    #[test]
    fn a_users_file_replaces_and_adds() {
        let mut registry = Registry::built_in();
        let dir = tempfile::tempdir().expect("folder");
        let path = dir.path().join("mine.toml");
        std::fs::write(
            &path,
            r#"
            [base]
            zenodo = "http://127.0.0.1:9"
            [[dataset]]
            id = "rfmid"
            name = "RFMiD"
            licence = "CC BY 4.0"
            access = "account"
            source = { kind = "kaggle", dataset = "someone/rfmid" }
            "#,
        )
        .expect("writes");
        registry.extend(&path).expect("extends");
        assert!(matches!(
            registry.get("rfmid").expect("known").source,
            Source::Kaggle { .. }
        ));
        assert_eq!(registry.bases().zenodo, "http://127.0.0.1:9");
        assert_eq!(registry.bases().physionet, "https://physionet.org");
        assert_eq!(registry.datasets().count(), 10);
    }

    #[test]
    fn malformed_files_change_nothing() {
        let whole = Registry::built_in();
        let entry = |source: &str| {
            format!(
                "[[dataset]]\nid = \"x\"\nname = \"X\"\nlicence = \"?\"\naccess = \"open\"\nsource = {source}\n"
            )
        };
        for bad in [
            "nonsense".to_owned(),
            "[base]\nzenodo = \"ftp://a\"".into(),
            "[base]\nother = \"https://a\"".into(),
            entry("{ kind = \"gopher\" }"),
            entry("{ kind = \"zenodo\", record = 1, extra = 2 }"),
            entry("{ kind = \"physionet\", project = \"../x\", version = \"1\" }"),
            entry("{ kind = \"physionet\", project = \"..\", version = \"1\" }"),
            entry("{ kind = \"kaggle\", dataset = \"noslash\" }"),
            entry("{ kind = \"kaggle\", dataset = \"a/b/c\" }"),
            entry("{ kind = \"by_hand\", steps = [] }"),
            entry("{ kind = \"web\", files = [{ name = \"a\", url = \"https://u:p@a/\" }] }"),
            entry(
                "{ kind = \"web\", files = [{ name = \"a\", url = \"https://a/\", checksums = [\"sha256:00\"] }] }",
            ),
            entry("{ kind = \"zenodo\", record = 1 }").repeat(2),
        ] {
            let mut registry = whole.clone();
            let error = registry.add(&bad, Path::new("mine.toml")).expect_err(&bad);
            assert!(error.to_string().contains("mine.toml"), "{error}");
            assert_eq!(registry, whole, "{bad}");
        }
        let error = whole.get("nope").expect_err("unknown");
        assert!(error.to_string().contains("brset, g1020"), "{error}");
    }
}
