//! Finding plugins by path or name. Looks at folders and file names; loads nothing.

use crate::config::Folders;
use std::path::{Path, PathBuf};

/// A plugin was asked for that cannot be found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FindError {
    /// A path was given and nothing is there.
    #[error("No plugin at `{0}`")]
    NoSuchFile(PathBuf),
    /// A name was given and no folder has it.
    #[error("No plugin named `{name}`: found {found}")]
    NoSuchName {
        /// The name.
        name: String,
        /// Names that were found, in words.
        found: String,
        /// Folders searched, in words.
        searched: String,
    },
}

impl FindError {
    /// Advice.
    pub fn hint(&self) -> String {
        match self {
            Self::NoSuchFile(_) => {
                "Build it first (`scripts/build` builds this project's own into target/release), or check the path".into()
            }
            Self::NoSuchName { searched, .. } => format!(
                "Give a path (`--plugin ./libname.so`), or put the dylib and its sidecar in a folder of FOCUS_PLUGIN_PATH; searched: {searched}"
            ),
        }
    }
}

/// The dylib for what the user wrote: anything with a slash or an extension is a path, else a name.
pub fn find(wanted: &str, folders: &Folders) -> Result<PathBuf, FindError> {
    let path = Path::new(wanted);
    if wanted.contains('/') || path.extension().is_some() {
        let found = path
            .canonicalize()
            .map_err(|_| FindError::NoSuchFile(path.to_path_buf()))?;
        return if found.is_file() {
            Ok(found)
        } else {
            Err(FindError::NoSuchFile(path.to_path_buf()))
        };
    }
    let all = installed(folders);
    // Libraries have no `-` in their names where packages have one.
    let spelt = wanted.replace('-', "_");
    if let Some(found) = all
        .iter()
        .find(|file| name_of(file).replace('-', "_") == spelt)
    {
        return Ok(found.clone());
    }
    let names: Vec<_> = all
        .iter()
        .map(|file| format!("`{}`", name_of(file)))
        .collect();
    let searched: Vec<_> = folders
        .plugin_path
        .iter()
        .map(|dir| dir.display().to_string())
        .collect();
    Err(FindError::NoSuchName {
        name: wanted.into(),
        found: if names.is_empty() {
            "none".into()
        } else {
            names.join(", ")
        },
        searched: searched.join(", "),
    })
}

/// Every dylib with a sidecar in the search path, first hit of a name wins, sorted by name.
pub fn installed(folders: &Folders) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for folder in &folders.plugin_path {
        let Ok(entries) = std::fs::read_dir(folder) else {
            continue;
        };
        for file in entries.filter_map(Result::ok).map(|entry| entry.path()) {
            let is_dylib =
                file.extension().is_some_and(|e| e == "so") && !name_of(&file).is_empty();
            let sealed = file.with_extension("toml").is_file();
            let known = found.iter().any(|other| name_of(other) == name_of(&file));
            if is_dylib && sealed && !known {
                found.push(file.canonicalize().unwrap_or(file));
            }
        }
    }
    found.sort_by(|a, b| name_of(a).cmp(name_of(b)));
    found
}

/// `handcrafted` for `libhandcrafted.so`; empty for other names.
pub fn name_of(file: &Path) -> &str {
    file.file_stem()
        .and_then(|stem| stem.to_str())
        .and_then(|stem| stem.strip_prefix("lib"))
        .unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders(dir: &Path) -> Folders {
        Folders {
            hub: dir.join("hub"),
            cache: dir.join("cache"),
            plugin_path: vec![dir.join("absent"), dir.to_path_buf()],
            weights: dir.join("weights"),
        }
    }

    #[test]
    fn a_name_is_found_only_with_its_sidecar() {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::write(dir.path().join("libone.so"), b"x").expect("writes");
        std::fs::write(dir.path().join("libtwo.so"), b"x").expect("writes");
        std::fs::write(dir.path().join("libtwo.toml"), b"").expect("writes");
        let folders = folders(dir.path());
        assert!(find("two", &folders).expect("found").ends_with("libtwo.so"));
        for file in ["libtwo_parts.so", "libtwo_parts.toml"] {
            std::fs::write(dir.path().join(file), b"x").expect("writes");
        }
        let dashed = find("two-parts", &folders).expect("found");
        assert!(dashed.ends_with("libtwo_parts.so"));
        for file in ["libtwo_parts.so", "libtwo_parts.toml"] {
            std::fs::remove_file(dir.path().join(file)).expect("removes");
        }
        let error = find("one", &folders).expect_err("not sealed");
        assert_eq!(error.to_string(), "No plugin named `one`: found `two`");
        assert!(error.hint().contains("FOCUS_PLUGIN_PATH"));
    }

    #[test]
    fn a_path_must_be_a_file() {
        let dir = tempfile::tempdir().expect("a folder");
        let folders = folders(dir.path());
        let wanted = dir.path().join("libx.so");
        assert!(matches!(
            find(&wanted.to_string_lossy(), &folders),
            Err(FindError::NoSuchFile(_))
        ));
        std::fs::create_dir(&wanted).expect("creates");
        assert!(matches!(
            find(&wanted.to_string_lossy(), &folders),
            Err(FindError::NoSuchFile(_))
        ));
    }
}
