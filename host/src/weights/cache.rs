//! The layout of the Hugging Face cache: `models--ORG--NAME/refs/REVISION` names a commit, `snapshots/COMMIT` holds its files.

use focus_plugin_abi::v1::message::{HubSource, ModelDescriptor};
use std::path::{Path, PathBuf};

/// A branch when a card names none.
const DEFAULT_REVISION: &str = "main";

/// Weights that a model needs and that are not on this machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Model `{model}` needs its weights: expected {} of `{}` in `{}`, found {found}", files.join(", "), hub.repository, cache.display())]
pub struct WeightsError {
    /// The model.
    pub model: String,
    /// Where they are published.
    pub hub: HubSource,
    /// The files it wants.
    pub files: Vec<String>,
    /// The cache that was searched.
    pub cache: PathBuf,
    /// What was there, in words.
    pub found: String,
}

impl WeightsError {
    /// Advice.
    pub fn hint(&self) -> Option<String> {
        let repository = &self.hub.repository;
        let fetch = format!("focus-host weights fetch {}", self.model);
        let gated = format!(
            "Accept the licence at https://huggingface.co/{repository}, set HF_TOKEN and fetch them: `{fetch}`"
        );
        let open = format!("Fetch them: `{fetch}`");
        let first = if self.hub.gated { gated } else { open };
        Some(format!(
            "{first}; or give a folder: --weights DIR; or try the model out: --weights random:1 --size tiny"
        ))
    }
}

/// The folder with the weights of a card that is published on the hub and wants files; `None` for one that is not or wants none.
pub fn in_cache(
    model: &ModelDescriptor,
    cache: &Path,
) -> Result<Option<PathBuf>, Box<WeightsError>> {
    let Some(hub) = model
        .hub
        .as_ref()
        .filter(|_| !model.weight_files.is_empty())
    else {
        return Ok(None);
    };
    let failed = |found: String| {
        Box::new(WeightsError {
            model: model.id.clone(),
            hub: hub.clone(),
            files: model.weight_files.clone(),
            cache: cache.to_path_buf(),
            found,
        })
    };
    let Some(folder) = snapshot(hub, cache) else {
        return Err(failed("no snapshot of it".into()));
    };
    match super::resolve(&folder, &model.weight_files) {
        Ok(_) => Ok(Some(folder)),
        Err(missing) => Err(failed(format!("a snapshot without {}", missing.join(", ")))),
    }
}

/// The snapshot of a repository's revision, where the cache has one.
pub fn snapshot(hub: &HubSource, cache: &Path) -> Option<PathBuf> {
    let repository = cache.join(folder_name(&hub.repository)?);
    let revision = hub.revision.as_deref().unwrap_or(DEFAULT_REVISION);
    let plain = |name: &str| !name.split('/').any(|part| matches!(part, "" | "." | ".."));
    if !plain(revision) {
        return None;
    }
    let named = std::fs::read_to_string(repository.join("refs").join(revision)).ok();
    // A revision without a reference is a commit itself.
    let commit = named.as_deref().map_or(revision, str::trim);
    let folder = repository.join("snapshots").join(commit);
    (plain(commit) && folder.is_dir()).then_some(folder)
}

/// `models--google--medgemma-4b-it`.
fn folder_name(repository: &str) -> Option<String> {
    let parts: Vec<&str> = repository.split('/').collect();
    let plain = |part: &&str| !part.is_empty() && !part.starts_with('.') && !part.contains('\\');
    (parts.len() <= 2 && parts.iter().all(plain)).then(|| format!("models--{}", parts.join("--")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hub(revision: Option<&str>) -> HubSource {
        HubSource {
            repository: "org/name".into(),
            revision: revision.map(str::to_owned),
            gated: true,
        }
    }

    fn card(hub: Option<HubSource>, files: &[&str]) -> ModelDescriptor {
        let mut card = serde_json::json!({
            "id": "m", "title": "M", "family": "mllm", "group": "general", "interfaces": ["generator"],
            "preprocessing": {"mode": "self", "width": 0, "height": 0, "geometry": {"kind": "squash"}, "filter": "bicubic"},
            "dtypes": ["f32"], "devices": ["cpu"], "batch_size": 1,
        });
        card["weight_files"] = serde_json::json!(files);
        card["hub"] = serde_json::to_value(hub).expect("JSON");
        serde_json::from_value(card).expect("a card")
    }

    #[test]
    fn a_snapshot_is_found_by_branch_and_by_commit() {
        let cache = tempfile::tempdir().expect("a folder");
        let root = cache.path().join("models--org--name");
        for commit in ["aaa", "bbb"] {
            std::fs::create_dir_all(root.join("snapshots").join(commit)).expect("makes");
            std::fs::write(root.join("snapshots").join(commit).join("w"), commit).expect("writes");
        }
        std::fs::create_dir_all(root.join("refs")).expect("makes");
        std::fs::write(root.join("refs/main"), "bbb\n").expect("writes");
        let found = |revision| {
            let folder = in_cache(&card(Some(hub(revision)), &["w"]), cache.path());
            let folder = folder.expect("whole").expect("there");
            std::fs::read_to_string(folder.join("w")).expect("reads")
        };
        assert_eq!(found(None), "bbb");
        assert_eq!(found(Some("aaa")), "aaa");
        for revision in ["ccc", "../..", "", "."] {
            assert_eq!(
                snapshot(&hub(Some(revision)), cache.path()),
                None,
                "{revision:?}"
            );
        }
    }

    #[test]
    fn what_is_missing_is_said_with_how_to_get_it() {
        let cache = tempfile::tempdir().expect("a folder");
        let card = card(Some(hub(None)), &["config.json", "w"]);
        let error = in_cache(&card, cache.path()).expect_err("nothing there");
        assert!(
            error.to_string().ends_with("found no snapshot of it"),
            "{error}"
        );
        let hint = error.hint().expect("advice");
        for word in [
            "focus-host weights fetch m",
            "HF_TOKEN",
            "huggingface.co/org/name",
            "--weights DIR",
        ] {
            assert!(hint.contains(word), "{hint}");
        }
        let root = cache.path().join("models--org--name");
        std::fs::create_dir_all(root.join("snapshots/c")).expect("makes");
        std::fs::create_dir_all(root.join("refs")).expect("makes");
        std::fs::write(root.join("refs/main"), "c").expect("writes");
        std::fs::write(root.join("snapshots/c/w"), "").expect("writes");
        let error = in_cache(&card, cache.path()).expect_err("half there");
        assert!(
            error
                .to_string()
                .ends_with("a snapshot without config.json"),
            "{error}"
        );
    }

    #[test]
    fn a_model_without_a_hub_or_without_files_needs_nothing_here() {
        let nowhere = Path::new("/nowhere");
        assert_eq!(in_cache(&card(None, &["w"]), nowhere), Ok(None));
        assert_eq!(in_cache(&card(Some(hub(None)), &[]), nowhere), Ok(None));
    }

    #[test]
    fn names_do_not_leave_the_cache() {
        assert_eq!(folder_name("a/b").as_deref(), Some("models--a--b"));
        for name in ["../b", "a/..", "a/b/c", "", "a/", "/a", "a\\b"] {
            assert_eq!(folder_name(name), None, "{name:?}");
        }
    }
}
