//! From a dataset to its list of files: one room per service. Lists are untrusted: names and addresses are checked before anything is fetched.

mod figshare;
mod kaggle;
mod physionet;
mod web;
mod zenodo;

use crate::{
    Context, Folder, Summary, address,
    address::Origin,
    credential::{Keyring, Login, Service},
    error::{FetchError, Result},
    fetch_all,
    folder::check_name,
    http::Ask,
    job::FileJob,
    registry::{Access, Bases, Dataset, Source},
    retry::{Step, persist},
};
use std::path::Path;
use url::Url;

/// The files of a dataset.
#[derive(Debug, Clone)]
pub struct Plan {
    /// One job per file.
    pub files: Vec<FileJob>,
}

impl Plan {
    /// Bytes of all files, if every size is known.
    pub fn bytes(&self) -> Option<u64> {
        self.files.iter().map(|f| f.size).sum()
    }
}

/// What a service's room is given.
struct Ways<'a> {
    context: &'a Context<'a>,
    dataset: &'a Dataset,
    base: Url,
    login: Option<Login>,
}

impl<'a> Ways<'a> {
    fn new(
        context: &'a Context<'a>,
        dataset: &'a Dataset,
        base: &str,
        service: Service,
        keyring: &Keyring,
    ) -> Result<Self> {
        let base = address::parse(base)?;
        let login = keyring.login(service, &Origin::of(&base)?)?;
        let needed = service == Service::Kaggle || dataset.access == Access::Credentialed;
        if needed && login.is_none() {
            return Err(FetchError::NoCredentials {
                service,
                advice: dataset.advice(),
            });
        }
        Ok(Self {
            context,
            dataset,
            base,
            login,
        })
    }

    /// A list, with retries.
    fn text(&self, url: &Url) -> Result<Vec<u8>> {
        let advice = self.dataset.advice();
        let ask = Ask {
            url,
            login: self.login.as_ref(),
            range: None,
            advice: advice.as_deref(),
        };
        let host = url.host_str().unwrap_or_default();
        let (client, machine) = (self.context.client, self.context.machine);
        let (bytes, _) = persist(self.context, &address::shown(url), host, || {
            (client.text(machine, &ask).map(Step::Done), false)
        })?;
        Ok(bytes)
    }

    fn json<T: serde::de::DeserializeOwned>(&self, url: &Url) -> Result<T> {
        let bytes = self.text(url)?;
        serde_json::from_slice(&bytes).map_err(|e| listing(url, None, e.to_string()))
    }

    fn job(&self, name: String, url: Url) -> FileJob {
        FileJob {
            name,
            url,
            size: None,
            checksums: Vec::new(),
            login: self.login.clone(),
            advice: self.dataset.advice(),
        }
    }
}

fn listing(url: &Url, line: Option<usize>, what: impl Into<String>) -> FetchError {
    FetchError::Listing {
        address: address::shown(url),
        line,
        what: what.into(),
    }
}

/// Ask the dataset's source for its files. `ByHand` if no program can fetch it; `to` is named in its steps.
pub fn list_files(
    context: &Context<'_>,
    dataset: &Dataset,
    bases: &Bases,
    keyring: &Keyring,
    to: &Path,
) -> Result<Plan> {
    let ways = |base: &str, service| Ways::new(context, dataset, base, service, keyring);
    let files = match &dataset.source {
        Source::Physionet { project, version } => physionet::list(
            &ways(&bases.physionet, Service::PhysioNet)?,
            project,
            version,
        ),
        Source::Zenodo { record } => zenodo::list(&ways(&bases.zenodo, Service::Zenodo)?, *record),
        Source::Figshare { article } => {
            figshare::list(&ways(&bases.figshare, Service::Figshare)?, *article)
        }
        Source::Kaggle { dataset } => kaggle::list(&ways(&bases.kaggle, Service::Kaggle)?, dataset),
        Source::Web { files } => web::list(dataset, files, keyring),
        Source::ByHand { .. } => Err(FetchError::ByHand {
            id: dataset.id.clone(),
            steps: dataset.steps(to).unwrap_or_default(),
        }),
    }?;
    let limit = context.client.limits().listed_files;
    if files.len() > limit {
        return Err(FetchError::TooLarge {
            address: dataset.id.clone(),
            what: "files in a list",
            limit: limit as u64,
            found: files.len() as u64,
        });
    }
    for file in &files {
        check_name(&file.name)?;
        file.check()?;
    }
    Ok(Plan { files })
}

/// List and fetch a dataset into the folder `to`.
pub fn fetch_dataset(
    context: &Context<'_>,
    dataset: &Dataset,
    bases: &Bases,
    keyring: &Keyring,
    to: &Path,
) -> Result<Summary> {
    let plan = list_files(context, dataset, bases, keyring, to)?;
    fetch_all(context, &Folder::open(to)?, &plan.files)
}

/// A file's address in a list that itself came over TLS must keep TLS.
fn linked(list: &Url, link: &str) -> Result<Url> {
    let url = address::parse(link)?;
    if list.scheme() == "https" && url.scheme() == "http" {
        return Err(FetchError::Downgrade {
            from: address::shown(list),
            to: address::shown(&url),
        });
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_over_tls_names_no_file_without() {
        let list = address::parse("https://a.org/list").expect("address");
        assert!(linked(&list, "https://b.org/f").is_ok());
        let error = linked(&list, "http://b.org/f").expect_err("refused");
        assert!(matches!(error, FetchError::Downgrade { .. }), "{error}");
    }
}
