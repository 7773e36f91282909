//! The dataset on disk: layout, atomic writing, reuse. Knows nothing of how pictures are drawn.
//!
//! ```text
//! <folder>/images/<16 hex>.png   labels.csv   README.md   synthetic.json
//! ```
//! Everything is written to a sibling folder that is renamed at the end, so a folder that exists is complete. A folder
//! written before is used again when config, generator version and the digest of its files agree; one that this crate did
//! not write is never touched.

use crate::config::{Config, ConfigError};
use crate::truth::{Split, Truth};
use crate::{GENERATOR_VERSION, encode_png, generate};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Columns of `labels.csv`, in order. `eye` right or left; `sex` F or M; `quality` good or poor; `edema` and `gon` 0 or 1;
/// centres in pixels of the picture; `image` relative to the folder.
pub const COLUMNS: &str = "image,split,patient,eye,age,sex,quality,icdr_grade,edema,gon,disc_x,disc_y,fovea_x,fovea_y,width,height";

const GENERATOR: &str = "focus-synth";
const ENTRIES: [&str; 4] = ["images", "labels.csv", "README.md", "synthetic.json"];

/// What was written, or found written.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The dataset's folder.
    pub dir: PathBuf,
    /// Pictures in all.
    pub images: u32,
    /// Patients in all.
    pub patients: u32,
    /// Pictures in the training split.
    pub train: u32,
    /// Pictures in the test split.
    pub test: u32,
    /// Pictures of each ICDR grade.
    pub grades: [u32; 5],
    /// Pictures with edema.
    pub edema: u32,
    /// Pictures with a glaucomatous disc.
    pub gon: u32,
    /// `blake3:` and the hexadecimal digest of all files but `synthetic.json`.
    pub digest: String,
    /// Whether an intact folder was found and nothing was drawn.
    pub reused: bool,
}

/// Why a dataset could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The config is out of range.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The folder holds something that this crate did not write.
    #[error("Folder `{dir}` is not a synthetic dataset: found `{found}`")]
    Foreign {
        /// The folder.
        dir: PathBuf,
        /// An entry that does not belong.
        found: String,
    },
    /// A file operation failed.
    #[error("Synthetic dataset `{path}` could not be written: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A picture could not be encoded.
    #[error("Picture `{name}` could not be encoded: {source}")]
    Encode {
        /// The picture's name.
        name: String,
        /// The encoder's reason.
        source: png::EncodingError,
    },
}

impl Error {
    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Foreign { .. } => {
                Some("name an empty folder or one that does not exist yet".to_owned())
            }
            Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                Some("the default dataset needs about 50 MB".to_owned())
            }
            Self::Io { .. } | Self::Config(_) | Self::Encode { .. } => None,
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Record {
    generator: String,
    generator_version: u32,
    synthetic: bool,
    config: Config,
    images: u32,
    digest: String,
}

/// Writes the dataset of `config` to `dir`, or finds it there intact. Draws on all threads of the current rayon pool.
pub fn write_dataset(dir: &Path, config: &Config) -> Result<Summary, Error> {
    config.check()?;
    let truths = truths(config);
    let reused = |digest| summary(dir, config, &truths, digest, true);
    if let Some(digest) = intact(dir, config)? {
        return Ok(reused(digest));
    }
    let parent = dir
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(|source| failed(parent, source))?;
    let fresh = sibling(dir, parent, "partial");
    let digest = match write_all(&fresh, config, &truths) {
        Ok(digest) => digest,
        Err(error) => {
            // The reason for failing matters more than the leftovers.
            let _ = fs::remove_dir_all(&fresh);
            return Err(error);
        }
    };
    if let Err(error) = install(&fresh, dir, parent) {
        let _ = fs::remove_dir_all(&fresh);
        // Another process may have been first; its folder is as good.
        return match intact(dir, config) {
            Ok(Some(digest)) => Ok(reused(digest)),
            _ => Err(failed(dir, error)),
        };
    }
    Ok(summary(dir, config, &truths, digest, false))
}

fn truths(config: &Config) -> Vec<Truth> {
    (0..config.images())
        .into_par_iter()
        .map(|index| {
            let case = crate::cohort::case(config, index);
            let anatomy = crate::anatomy::Anatomy::draw(config, &case);
            crate::truth::assemble(config, &case, &anatomy, &[])
        })
        .collect()
}

fn write_all(dir: &Path, config: &Config, truths: &[Truth]) -> Result<String, Error> {
    let images = dir.join("images");
    fs::create_dir_all(&images).map_err(|source| failed(&images, source))?;
    let mut hashes: BTreeMap<String, blake3::Hash> = (0..config.images())
        .into_par_iter()
        .map(|index| {
            let eye = generate(config, index);
            let name = format!("images/{}.png", eye.truth.name);
            let bytes =
                encode_png(eye.truth.width, eye.truth.height, &eye.rgb).map_err(|source| {
                    Error::Encode {
                        name: name.clone(),
                        source,
                    }
                })?;
            write(&dir.join(&name), &bytes)?;
            Ok((name, blake3::hash(&bytes)))
        })
        .collect::<Result<_, Error>>()?;
    for (name, text) in [
        ("labels.csv", labels(truths)),
        ("README.md", readme(config)),
    ] {
        write(&dir.join(name), text.as_bytes())?;
        hashes.insert(name.to_owned(), blake3::hash(text.as_bytes()));
    }
    let digest = digest_of(&hashes);
    let record = Record {
        generator: GENERATOR.to_owned(),
        generator_version: GENERATOR_VERSION,
        synthetic: true,
        config: config.clone(),
        images: config.images(),
        digest: digest.clone(),
    };
    let mut json =
        serde_json::to_string_pretty(&record).expect("a record of numbers and text is JSON");
    json.push('\n');
    write(&dir.join("synthetic.json"), json.as_bytes())?;
    Ok(digest)
}

// The table, one row a picture, in the order of patients.
fn labels(truths: &[Truth]) -> String {
    let mut text = format!("{COLUMNS}\n");
    for t in truths {
        writeln!(
            text,
            "images/{}.png,{},P{:06},{},{},{},{},{},{},{},{:.2},{:.2},{:.2},{:.2},{},{}",
            t.name,
            t.split.as_str(),
            t.patient,
            t.eye.as_str(),
            t.age,
            t.sex.as_str(),
            t.quality.as_str(),
            t.grade,
            u8::from(t.edema),
            u8::from(t.gon),
            t.disc.0,
            t.disc.1,
            t.fovea.0,
            t.fovea.1,
            t.width,
            t.height
        )
        .expect("writing to a string does not fail");
    }
    text
}

fn readme(config: &Config) -> String {
    format!(
        "# SYNTHETIC fundus photographs\n\n\
         Every picture here was drawn by a program ({GENERATOR}, version {GENERATOR_VERSION}, seed {}). No person, no patient and no camera\n\
         was involved; results on these pictures say nothing of performance on real eyes.\n\n\
         | path | what |\n| --- | --- |\n\
         | `images/*.png` | {} pictures, {} x {} pixels, 8-bit RGB; names are random and say nothing of the labels |\n\
         | `labels.csv` | one row a picture: `{COLUMNS}` |\n\
         | `synthetic.json` | config, generator version and a digest of the other files |\n\n\
         `split` train or test, by patient; `eye` right or left; `sex` F or M; `quality` good or poor; `icdr_grade` 0 to 4; `edema` 1 where\n\
         hard exudates lie within one disc diameter of the fovea; `gon` 1 where the vertical cup-to-disc ratio is 0.6 or more;\n\
         centres of disc and fovea in pixels, origin at the top left. Labels are exact: they are what was drawn.\n",
        config.seed,
        config.images(),
        config.size,
        config.size
    )
}

// The digest of an intact folder of this very config; `None` where there is nothing or something older of ours.
fn intact(dir: &Path, config: &Config) -> Result<Option<String>, Error> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(dir, error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        names.push(
            entry
                .map_err(|source| failed(dir, source))?
                .file_name()
                .to_string_lossy()
                .into_owned(),
        );
    }
    if let Some(found) = names.iter().find(|name| !ENTRIES.contains(&name.as_str())) {
        return Err(Error::Foreign {
            dir: dir.to_owned(),
            found: found.clone(),
        });
    }
    let record = fs::read(dir.join("synthetic.json"))
        .ok()
        .and_then(|b| serde_json::from_slice::<serde_json::Value>(&b).ok());
    let ours = record.as_ref().is_some_and(|r| r["generator"] == GENERATOR);
    if !names.is_empty() && !ours {
        return Err(Error::Foreign {
            dir: dir.to_owned(),
            found: names.swap_remove(0),
        });
    }
    let Some(record) = record.and_then(|r| serde_json::from_value::<Record>(r).ok()) else {
        return Ok(None);
    };
    if record.generator_version != GENERATOR_VERSION || &record.config != config {
        return Ok(None);
    }
    Ok(digest_on_disk(dir).filter(|digest| *digest == record.digest))
}

// Whatever cannot be read is not intact; why does not matter, since the folder is then written anew.
fn digest_on_disk(dir: &Path) -> Option<String> {
    let mut names = vec!["labels.csv".to_owned(), "README.md".to_owned()];
    for entry in fs::read_dir(dir.join("images")).ok()? {
        names.push(format!(
            "images/{}",
            entry.ok()?.file_name().to_string_lossy()
        ));
    }
    let hashes = names
        .into_par_iter()
        .map(|name| fs::read(dir.join(&name)).map(|bytes| (name, blake3::hash(&bytes))))
        .collect::<Result<BTreeMap<_, _>, _>>();
    hashes.ok().map(|hashes| digest_of(&hashes))
}

fn digest_of(hashes: &BTreeMap<String, blake3::Hash>) -> String {
    let mut hasher = blake3::Hasher::new();
    for (name, hash) in hashes {
        hasher.update(&(name.len() as u64).to_le_bytes());
        hasher.update(name.as_bytes());
        hasher.update(hash.as_bytes());
    }
    format!("blake3:{}", hasher.finalize().to_hex())
}

// A rename replaces an empty folder by itself; an older one of ours is moved aside first and removed last.
fn install(fresh: &Path, dir: &Path, parent: &Path) -> io::Result<()> {
    let occupied = fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some());
    if !occupied {
        return fs::rename(fresh, dir);
    }
    let old = sibling(dir, parent, "old");
    fs::rename(dir, &old)?;
    if let Err(error) = fs::rename(fresh, dir) {
        // Put the older one back; if another process took the place, leave that.
        let _ = fs::rename(&old, dir);
        return Err(error);
    }
    fs::remove_dir_all(&old)
}

// A name of this process's own next to the folder: renames must not cross file systems.
fn sibling(dir: &Path, parent: &Path, what: &str) -> PathBuf {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let name = dir.file_name().map_or_else(
        || "synthetic".into(),
        |name| name.to_string_lossy().into_owned(),
    );
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    parent.join(format!(".{name}.{what}-{}-{number}", std::process::id()))
}

fn summary(dir: &Path, config: &Config, truths: &[Truth], digest: String, reused: bool) -> Summary {
    let count = |f: &dyn Fn(&Truth) -> bool| truths.iter().filter(|t| f(t)).count() as u32;
    Summary {
        dir: dir.to_owned(),
        images: config.images(),
        patients: config.patients,
        train: count(&|t| t.split == Split::Train),
        test: count(&|t| t.split == Split::Test),
        grades: [0, 1, 2, 3, 4].map(|grade| count(&|t| t.grade == grade)),
        edema: count(&|t| t.edema),
        gon: count(&|t| t.gon),
        digest,
        reused,
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    fs::write(path, bytes).map_err(|source| failed(path, source))
}

fn failed(path: &Path, source: io::Error) -> Error {
    Error::Io {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Config {
        Config {
            patients: 5,
            size: 64,
            ..Config::default()
        }
    }

    fn entries(dir: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(dir)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn layout_columns_and_reuse() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("a").join("synthetic");
        let first = write_dataset(&dir, &small()).unwrap();
        assert_eq!(
            (first.images, first.train, first.test, first.reused),
            (10, 6, 4, false)
        );
        assert_eq!(
            entries(&dir),
            ["README.md", "images", "labels.csv", "synthetic.json"]
        );
        assert_eq!(
            entries(dir.parent().unwrap()),
            ["synthetic"],
            "no leftovers"
        );
        let table = fs::read_to_string(dir.join("labels.csv")).unwrap();
        let rows: Vec<Vec<&str>> = table
            .lines()
            .map(|line| line.split(',').collect())
            .collect();
        assert_eq!(table.lines().next(), Some(COLUMNS));
        assert!(rows.len() == 11 && rows.iter().all(|row| row.len() == 16));
        assert!(rows[1..].iter().all(|row| dir.join(row[0]).is_file()));
        assert!(
            fs::read_to_string(dir.join("README.md"))
                .unwrap()
                .contains("SYNTHETIC")
        );
        let again = write_dataset(&dir, &small()).unwrap();
        assert_eq!(
            again,
            Summary {
                reused: true,
                ..first
            }
        );
    }

    #[test]
    fn a_damaged_or_older_folder_is_drawn_again() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("s");
        let first = write_dataset(&dir, &small()).unwrap();
        let picture = dir.join("images").join(&entries(&dir.join("images"))[0]);
        fs::write(&picture, b"gone").unwrap();
        let second = write_dataset(&dir, &small()).unwrap();
        assert_eq!((second.reused, &second.digest), (false, &first.digest));
        fs::remove_file(&picture).unwrap();
        assert!(!write_dataset(&dir, &small()).unwrap().reused);
        let other = write_dataset(&dir, &Config { seed: 1, ..small() }).unwrap();
        assert!(!other.reused && other.digest != first.digest);
        assert_eq!(entries(root.path()), ["s"], "no leftovers");
    }

    #[test]
    fn a_folder_of_somebody_else_is_left_alone() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("s");
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("thesis.tex"), b"x").unwrap();
        let error = write_dataset(&dir, &small()).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("is not a synthetic dataset: found `thesis.tex`"),
            "{error}"
        );
        assert!(error.hint().is_some());
        assert_eq!(entries(&dir), ["thesis.tex"]);
        // The same names without our record are not ours either.
        fs::rename(dir.join("thesis.tex"), dir.join("labels.csv")).unwrap();
        assert!(matches!(
            write_dataset(&dir, &small()),
            Err(Error::Foreign { .. })
        ));
        // An added file in a folder of ours is a reason to stop, not to delete it.
        let ours = root.path().join("ours");
        write_dataset(&ours, &small()).unwrap();
        fs::write(ours.join("notes.txt"), b"x").unwrap();
        assert!(matches!(
            write_dataset(&ours, &small()),
            Err(Error::Foreign { .. })
        ));
    }

    #[test]
    fn two_writers_at_once_agree() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("s");
        let digests: Vec<_> = std::thread::scope(|scope| {
            let handles: Vec<_> = (0..3)
                .map(|_| scope.spawn(|| write_dataset(&dir, &small()).unwrap().digest))
                .collect();
            handles.into_iter().map(|h| h.join().unwrap()).collect()
        });
        assert!(digests.iter().all(|d| d == &digests[0]));
        assert_eq!(entries(root.path()), ["s"]);
        assert!(write_dataset(&dir, &small()).unwrap().reused);
    }
}
