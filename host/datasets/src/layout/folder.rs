//! The files of one image folder, looked up by the name a mapper gives. A mapper's name is only ever a key of this
//! index, so no name can reach a file that is not in the folder.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use crate::descriptor::{Folder, ImageKey};
use crate::error::DatasetError;
use crate::layout::Root;
use crate::limits::Limits;

/// Index of a folder.
pub(crate) struct ImageFolder {
    /// Path below the data folder.
    pub(crate) path: String,
    key: ImageKey,
    /// Paths below the folder, sorted.
    names: Vec<String>,
    used: Vec<bool>,
    by_key: HashMap<String, Vec<u32>>,
}

/// What a name leads to.
pub(crate) enum Lookup {
    /// A file: its path below the data folder.
    Found(String),
    /// Several.
    Ambiguous(Vec<String>),
    /// None.
    Missing,
}

impl ImageFolder {
    /// Lists the folder. Hidden files and those of other extensions do not count; neither does what is not a file.
    pub(crate) fn read(
        root: &Root,
        path: String,
        spec: &Folder,
        limits: &Limits,
        budget: &mut usize,
    ) -> Result<Self, DatasetError> {
        let mut walk = Walk {
            root,
            base: &path,
            spec,
            names: Vec::new(),
            budget,
            limits,
        };
        walk.folder("", 0)?;
        let mut names = walk.names;
        names.sort_unstable();
        let mut by_key: HashMap<String, Vec<u32>> = HashMap::with_capacity(names.len());
        for (index, name) in names.iter().enumerate() {
            by_key
                .entry(key_of_file(spec.key, name))
                .or_default()
                .push(index as u32);
        }
        Ok(Self {
            path,
            key: spec.key,
            used: vec![false; names.len()],
            names,
            by_key,
        })
    }

    /// Finds the file of a name, and notes that it is used.
    pub(crate) fn take(&mut self, name: &str) -> Lookup {
        let folded;
        let key = match self.key {
            ImageKey::Name | ImageKey::Stem => name,
            ImageKey::NameAnyCase | ImageKey::StemAnyCase => {
                folded = name.to_lowercase();
                &folded
            }
        };
        match self.by_key.get(key).map(Vec::as_slice) {
            Some(&[index]) => {
                self.used[index as usize] = true;
                Lookup::Found(self.below_root(index as usize))
            }
            Some(several) => Lookup::Ambiguous(
                several
                    .iter()
                    .map(|i| self.below_root(*i as usize))
                    .collect(),
            ),
            None => Lookup::Missing,
        }
    }

    /// Files that no name led to, below the data folder.
    pub(crate) fn unused(&self) -> impl Iterator<Item = String> {
        (0..self.names.len())
            .filter(|index| !self.used[*index])
            .map(|index| self.below_root(index))
    }

    /// Paths below the folder, sorted.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    fn below_root(&self, index: usize) -> String {
        format!("{}/{}", self.path, self.names[index])
    }
}

/// Whether a mapper's name for an image could be one: below its folder, without control characters.
pub(crate) fn valid_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 1024
        && !name.contains('\\')
        && !name.chars().any(char::is_control)
        && name
            .split('/')
            .all(|part| !part.is_empty() && part != "." && part != "..")
}

fn key_of_file(key: ImageKey, name: &str) -> String {
    // Only the last extension goes: JSIEC's `<uuid>..JPG` keeps its first dot.
    let stem = || name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    match key {
        ImageKey::Name => name.into(),
        ImageKey::Stem => stem().into(),
        ImageKey::NameAnyCase => name.to_lowercase(),
        ImageKey::StemAnyCase => stem().to_lowercase(),
    }
}

struct Walk<'a> {
    root: &'a Root,
    base: &'a str,
    spec: &'a Folder,
    names: Vec<String>,
    budget: &'a mut usize,
    limits: &'a Limits,
}

impl Walk<'_> {
    fn folder(&mut self, below: &str, depth: usize) -> Result<(), DatasetError> {
        let relative = if below.is_empty() {
            self.base.to_owned()
        } else {
            format!("{}/{below}", self.base)
        };
        let path = self.root.real().join(&relative);
        for entry in fs::read_dir(&path).map_err(|e| DatasetError::io(&path, e))? {
            let entry = entry.map_err(|e| DatasetError::io(&path, e))?;
            // A name that is no UTF-8 fits no cell of any table.
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            // `._x.jpg` and `__MACOSX` are what a Mac leaves in an archive: never photographs.
            if name.starts_with('.') || name == "__MACOSX" {
                continue;
            }
            let below = if below.is_empty() {
                name
            } else {
                format!("{below}/{name}")
            };
            let kind = entry
                .file_type()
                .map_err(|e| DatasetError::io(entry.path(), e))?;
            if kind.is_dir() {
                if self.spec.recursive && depth < self.limits.folder_depth {
                    self.folder(&below, depth + 1)?;
                }
            } else if has_extension(&below, &self.spec.extensions) {
                if kind.is_symlink() {
                    self.root.contain(&format!("{}/{below}", self.base))?;
                    if !entry.path().is_file() {
                        continue;
                    }
                }
                let limit = self.limits.images;
                *self.budget =
                    self.budget
                        .checked_sub(1)
                        .ok_or_else(|| DatasetError::TooManyImages {
                            folder: self.base.to_owned(),
                            limit,
                        })?;
                self.names.push(below);
            }
        }
        Ok(())
    }
}

fn has_extension(name: &str, extensions: &[String]) -> bool {
    let extension = Path::new(name)
        .extension()
        .and_then(|e| e.to_str())
        .unwrap_or("");
    extensions
        .iter()
        .any(|wanted| wanted.eq_ignore_ascii_case(extension))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(files: &[&str], key: ImageKey, recursive: bool) -> ImageFolder {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            let path = dir.path().join("images").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let spec = Folder {
            id: "images".into(),
            paths: vec!["images".into()],
            required: true,
            recursive,
            extensions: vec!["jpg".into(), "png".into()],
            key,
        };
        let root = Root::open(dir.path()).unwrap();
        let mut budget = 100;
        ImageFolder::read(
            &root,
            "images".into(),
            &spec,
            &Limits::default(),
            &mut budget,
        )
        .unwrap()
    }

    fn found(folder: &mut ImageFolder, name: &str) -> String {
        match folder.take(name) {
            Lookup::Found(path) => path,
            Lookup::Ambiguous(paths) => format!("ambiguous {}", paths.join(" ")),
            Lookup::Missing => "missing".into(),
        }
    }

    #[test]
    fn names_and_stems() {
        let files = [
            "IM1.JPG",
            "a.b.jpg",
            "u..JPG",
            "x.jpg",
            "x.png",
            "._x.jpg",
            "notes.txt",
        ];
        let mut names = index(&files, ImageKey::Name, false);
        assert_eq!(found(&mut names, "IM1.jpg"), "missing");
        assert_eq!(found(&mut names, "x.png"), "images/x.png");
        assert_eq!(names.unused().count(), 4);
        let mut stems = index(&files, ImageKey::Stem, false);
        assert_eq!(found(&mut stems, "a.b"), "images/a.b.jpg");
        assert_eq!(found(&mut stems, "u."), "images/u..JPG");
        assert_eq!(
            found(&mut stems, "x"),
            "ambiguous images/x.jpg images/x.png"
        );
        let mut any = index(&files, ImageKey::NameAnyCase, false);
        assert_eq!(found(&mut any, "im1.jpg"), "images/IM1.JPG");
        let mut any = index(&files, ImageKey::StemAnyCase, false);
        assert_eq!(found(&mut any, "im1"), "images/IM1.JPG");
    }

    #[test]
    fn sub_folders_only_where_wanted() {
        let files = ["a/1.jpg", "b/1.jpg", "2.jpg", "__MACOSX/3.jpg"];
        assert_eq!(index(&files, ImageKey::Name, false).names(), ["2.jpg"]);
        assert_eq!(
            index(&files, ImageKey::Name, true).names(),
            ["2.jpg", "a/1.jpg", "b/1.jpg"]
        );
    }

    #[test]
    fn only_names_below_the_folder_are_names() {
        for good in ["IDRiD_001", "a/b.jpg", "u..JPG", "é.jpg", "..a"] {
            assert!(valid_name(good), "{good}");
        }
        for bad in [
            "",
            "/etc/passwd",
            "../x",
            "a/../x",
            "a//b",
            "a\\b",
            "a\0",
            "a\n",
            ".",
            &"x".repeat(1025),
        ] {
            assert!(!valid_name(bad), "{bad:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_photograph_that_is_a_link_out_is_refused() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("1.jpg"), "").unwrap();
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("images")).unwrap();
        std::os::unix::fs::symlink(
            outside.path().join("1.jpg"),
            dir.path().join("images/1.jpg"),
        )
        .unwrap();
        let spec = Folder {
            id: "images".into(),
            paths: vec!["images".into()],
            required: true,
            recursive: false,
            extensions: vec!["jpg".into()],
            key: ImageKey::Name,
        };
        let root = Root::open(dir.path()).unwrap();
        let error = ImageFolder::read(&root, "images".into(), &spec, &Limits::default(), &mut 9)
            .err()
            .unwrap();
        assert_eq!(
            error.to_string(),
            "`images/1.jpg` leads out of the data folder"
        );
    }
}
