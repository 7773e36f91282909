//! Resolves relative patterns below the data folder. A path never leaves it: the folder itself may be a symbolic link,
//! what lies in it may not point elsewhere.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::DatasetError;
use crate::text;

/// The data folder.
pub(crate) struct Root {
    /// As the user gave it, for messages.
    given: PathBuf,
    /// Symbolic links resolved.
    real: PathBuf,
}

impl Root {
    pub(crate) fn open(path: &Path) -> Result<Self, DatasetError> {
        if !path.is_dir() {
            return Err(DatasetError::NoFolder { path: path.into() });
        }
        let real = path.canonicalize().map_err(|e| DatasetError::io(path, e))?;
        Ok(Self {
            given: path.into(),
            real,
        })
    }

    pub(crate) fn given(&self) -> &Path {
        &self.given
    }

    pub(crate) fn real(&self) -> &Path {
        &self.real
    }

    /// The relative path that the first matching alternative names. An alternative that names several is an error.
    pub(crate) fn find(
        &self,
        patterns: &[String],
        kind: Kind,
    ) -> Result<Option<String>, DatasetError> {
        for pattern in patterns {
            let matches = matches(&self.real, pattern, kind);
            match matches.as_slice() {
                [] => {}
                [one] => {
                    self.contain(one)?;
                    return Ok(Some(one.clone()));
                }
                several => {
                    let (pattern, matches) = (text::quote(pattern, 300), text::list(several, 4));
                    return Err(DatasetError::Ambiguous { pattern, matches });
                }
            }
        }
        Ok(None)
    }

    /// Refuses a path whose target lies outside.
    pub(crate) fn contain(&self, relative: &str) -> Result<(), DatasetError> {
        let path = self.real.join(relative);
        let target = path
            .canonicalize()
            .map_err(|e| DatasetError::io(&path, e))?;
        if target.starts_with(&self.real) {
            Ok(())
        } else {
            Err(DatasetError::Escape {
                path: relative.into(),
            })
        }
    }

    /// What lies directly in the folder, sorted, folders with a final `/`.
    pub(crate) fn entries(&self) -> Vec<String> {
        let mut names = names(&self.real);
        for name in &mut names {
            if self.real.join(&*name).is_dir() {
                name.push('/');
            }
        }
        names
    }

    /// A folder near this one in which all of these are found: a sub-folder or the parent.
    pub(crate) fn better(&self, wanted: &[(&[String], Kind)]) -> Option<PathBuf> {
        const LOOKED_AT: usize = 64;
        let holds = |folder: &Path| {
            !wanted.is_empty()
                && wanted.iter().all(|(patterns, kind)| {
                    patterns
                        .iter()
                        .any(|p| !matches(folder, p, *kind).is_empty())
                })
        };
        let below = names(&self.real).into_iter().take(LOOKED_AT);
        let found = below
            .filter(|name| self.real.join(name).is_dir())
            .find(|name| holds(&self.real.join(name)));
        found.map(|name| self.given.join(name)).or_else(|| {
            let parent = self.real.parent()?;
            holds(parent).then(|| self.given.join(".."))
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Folder,
}

/// Whether a pattern of a descriptor stays below the data folder.
pub(crate) fn valid_pattern(pattern: &str) -> bool {
    !pattern.is_empty()
        && !pattern.contains(['\\', '\0'])
        && pattern
            .split('/')
            .all(|part| !part.is_empty() && part != "." && part != "..")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort_unstable();
    names
}

/// Relative paths below `root` that fit a pattern, sorted.
fn matches(root: &Path, pattern: &str, kind: Kind) -> Vec<String> {
    let mut found = vec![String::new()];
    for part in pattern.split('/') {
        let mut next = Vec::new();
        for base in found {
            let join = |name: &str| {
                if base.is_empty() {
                    name.to_owned()
                } else {
                    format!("{base}/{name}")
                }
            };
            if part.contains(['*', '?']) {
                let names = names(&root.join(&base));
                next.extend(
                    names
                        .iter()
                        .filter(|name| fits(part, name))
                        .map(|name| join(name)),
                );
            } else if root.join(join(part)).exists() {
                next.push(join(part));
            }
        }
        found = next;
    }
    found.retain(|path| {
        let path = root.join(path);
        match kind {
            Kind::File => path.is_file(),
            Kind::Folder => path.is_dir(),
        }
    });
    found
}

/// Whether a name fits a pattern of literal characters, `?` (one) and `*` (any number). Hidden names fit no `*`.
fn fits(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(&c) if c == '?' || c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match star {
                // The last star swallows one character more.
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    p = at + 1;
                    n = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards() {
        for (pattern, name, expected) in [
            ("a.csv", "a.csv", true),
            ("a.csv", "A.csv", false),
            ("*.csv", "labels.csv", true),
            ("*.csv", ".csv", false),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("?_x", "é_x", true),
            ("?", "", false),
            ("*", "", true),
            ("**", "abc", true),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn patterns_stay_inside() {
        for good in ["a", "a b/c.csv", "a/*/c?.csv", "..a/b", "B.%20Disease/x"] {
            assert!(valid_pattern(good), "{good}");
        }
        for bad in [
            "", "/a", "a/", "a//b", "../a", "a/../b", "./a", "a\\b", "a\0",
        ] {
            assert!(!valid_pattern(bad), "{bad:?}");
        }
    }

    #[test]
    fn first_alternative_that_fits_wins_and_two_matches_are_an_error() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("x y")).unwrap();
        fs::write(dir.path().join("x y/b1.csv"), "").unwrap();
        fs::write(dir.path().join("x y/b2.csv"), "").unwrap();
        let root = Root::open(dir.path()).unwrap();
        let find = |patterns: &[&str], kind| {
            root.find(
                &patterns.iter().map(|p| (*p).to_owned()).collect::<Vec<_>>(),
                kind,
            )
        };
        assert_eq!(
            find(&["nope.csv", "x y/b2.csv", "x y/b1.csv"], Kind::File)
                .unwrap()
                .unwrap(),
            "x y/b2.csv"
        );
        assert_eq!(find(&["X y/b2.csv", "x y"], Kind::File).unwrap(), None);
        assert_eq!(find(&["x?y"], Kind::Folder).unwrap().unwrap(), "x y");
        let error = find(&["*/b*.csv"], Kind::File).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`*/b*.csv` fits more than one file: `x y/b1.csv`, `x y/b2.csv`"
        );
        assert!(error.hint().is_some());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_may_not_lead_out_but_the_root_may_be_one() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("labels.csv"), "").unwrap();
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(
            outside.path().join("labels.csv"),
            dir.path().join("labels.csv"),
        )
        .unwrap();
        let patterns = ["labels.csv".to_owned()];
        let error = Root::open(dir.path())
            .unwrap()
            .find(&patterns, Kind::File)
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "`labels.csv` leads out of the data folder"
        );
        let link = dir.path().join("data");
        std::os::unix::fs::symlink(outside.path(), &link).unwrap();
        assert_eq!(
            Root::open(&link)
                .unwrap()
                .find(&patterns, Kind::File)
                .unwrap()
                .unwrap(),
            "labels.csv"
        );
    }
}
