//! The dataset on disk: layout, atomic writing, reuse. Knows nothing of how pictures are drawn.
//!
//! ```text
//! <folder>/images/<16 hex>.png   masks/<what>/<16 hex>.png   labels.csv   truth.jsonl   README.md   synthetic.json
//! ```
//! Everything is written to a sibling folder that is renamed at the end, so a folder that exists is complete. A folder
//! written before is used again when config, generator version and the digest of its files agree; one that this crate did
//! not write is never touched. Pictures are drawn in batches: memory does not grow with their number.

use crate::config::{Config, ConfigError};
use crate::encode::{encode_mask, encode_png};
use crate::tally::{Tally, digest_on_disk};
use crate::truth::Split;
use crate::{COLUMNS, GENERATOR_VERSION, MASK_KINDS, generate, table};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const GENERATOR: &str = "focus-synth";
const ENTRIES: [&str; 6] = [
    "images",
    "masks",
    "labels.csv",
    "truth.jsonl",
    "README.md",
    "synthetic.json",
];
/// Pictures between two writes of the tables.
const BATCH: u32 = 64;

/// What was written, or found written.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Summary {
    /// The dataset's folder.
    pub dir: PathBuf,
    /// Pictures in all.
    pub images: u32,
    /// Patients in all.
    pub patients: u32,
    /// Pictures in the training split.
    pub train: u32,
    /// Pictures in the validation split.
    pub validation: u32,
    /// Pictures in the test split.
    pub test: u32,
    /// Pictures of each true ICDR grade.
    pub grades: [u32; 5],
    /// Pictures that truly have edema.
    pub edema: u32,
    /// Pictures with a truly glaucomatous disc.
    pub gon: u32,
    /// Pictures with a recorded label that is not the true one.
    pub mislabelled: u32,
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
            Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => Some(
                "320 x 320 pixels take about 0.2 MB a picture, 1024 x 1024 about 2 MB".to_owned(),
            ),
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
    write_dataset_with(dir, config, &mut |_| {})
}

/// As [`write_dataset`]; tells after each batch how many pictures have been drawn.
pub fn write_dataset_with(
    dir: &Path,
    config: &Config,
    drawn: &mut dyn FnMut(u32),
) -> Result<Summary, Error> {
    config.check()?;
    let reused = |digest| summary(dir, config, digest, true);
    if let Some(digest) = intact(dir, config)? {
        return Ok(reused(digest));
    }
    let parent = dir
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(|source| failed(parent, source))?;
    let fresh = sibling(dir, parent, "partial");
    let digest = match write_all(&fresh, config, drawn) {
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
    Ok(summary(dir, config, digest, false))
}

fn write_all(dir: &Path, config: &Config, drawn: &mut dyn FnMut(u32)) -> Result<String, Error> {
    let mut folders = vec!["images".to_owned()];
    if config.masks {
        folders.extend(MASK_KINDS.map(|what| format!("masks/{what}")));
    }
    for folder in &folders {
        let folder = dir.join(folder);
        fs::create_dir_all(&folder).map_err(|source| failed(&folder, source))?;
    }
    let mut tally = Tally::default();
    let mut labels = Growing::new(dir, "labels.csv")?;
    let mut truths = Growing::new(dir, "truth.jsonl")?;
    labels.add(&format!("{COLUMNS}\n"))?;
    for start in (0..config.images()).step_by(BATCH as usize) {
        let end = start.saturating_add(BATCH).min(config.images());
        let batch = (start..end)
            .into_par_iter()
            .map(|index| write_eye(dir, config, index))
            .collect::<Result<Vec<_>, Error>>()?;
        for written in batch {
            labels.add(&written.row)?;
            truths.add(&written.line)?;
            tally.join(&written.tally);
        }
        drawn(end);
    }
    labels.finish(&mut tally)?;
    truths.finish(&mut tally)?;
    let readme = table::readme(config);
    write(&dir.join("README.md"), readme.as_bytes())?;
    tally.add("README.md", blake3::hash(readme.as_bytes()));
    let digest = tally.digest();
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

struct Written {
    row: String,
    line: String,
    tally: Tally,
}

fn write_eye(dir: &Path, config: &Config, index: u32) -> Result<Written, Error> {
    let eye = generate(config, index);
    let truth = &eye.truth;
    let mut tally = Tally::default();
    let mut keep = |name: String, bytes: Result<Vec<u8>, png::EncodingError>| {
        let bytes = bytes.map_err(|source| Error::Encode {
            name: name.clone(),
            source,
        })?;
        write(&dir.join(&name), &bytes)?;
        tally.add(&name, blake3::hash(&bytes));
        Ok::<_, Error>(())
    };
    keep(
        table::image(truth),
        encode_png(truth.width, truth.height, &eye.rgb),
    )?;
    if config.masks {
        for mask in &eye.masks {
            let bytes = encode_mask(truth.width, truth.height, &mask.pixels);
            keep(table::mask(truth, mask.what), bytes)?;
        }
    }
    Ok(Written {
        row: table::row(truth, config.masks),
        line: table::line(truth),
        tally,
    })
}

// A text file that grows batch by batch.
struct Growing {
    name: &'static str,
    path: PathBuf,
    file: io::BufWriter<fs::File>,
    hasher: blake3::Hasher,
}

impl Growing {
    fn new(dir: &Path, name: &'static str) -> Result<Self, Error> {
        let path = dir.join(name);
        let file = fs::File::create(&path).map_err(|source| failed(&path, source))?;
        Ok(Self {
            name,
            path,
            file: io::BufWriter::new(file),
            hasher: blake3::Hasher::new(),
        })
    }

    fn add(&mut self, text: &str) -> Result<(), Error> {
        self.hasher.update(text.as_bytes());
        self.file
            .write_all(text.as_bytes())
            .map_err(|source| failed(&self.path, source))
    }

    fn finish(mut self, tally: &mut Tally) -> Result<(), Error> {
        tally.add(self.name, self.hasher.finalize());
        self.file
            .flush()
            .map_err(|source| failed(&self.path, source))
    }
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

fn summary(dir: &Path, config: &Config, digest: String, reused: bool) -> Summary {
    let mut summary = Summary {
        dir: dir.to_owned(),
        images: config.images(),
        patients: config.patients,
        train: 0,
        validation: 0,
        test: 0,
        grades: [0; 5],
        edema: 0,
        gon: 0,
        mislabelled: 0,
        digest,
        reused,
    };
    for index in 0..config.images() {
        let case = crate::cohort::case(config, index);
        *match case.split {
            Split::Train => &mut summary.train,
            Split::Validation => &mut summary.validation,
            Split::Test => &mut summary.test,
        } += 1;
        summary.grades[usize::from(case.labels.grade)] += 1;
        summary.edema += u32::from(case.labels.edema > 0);
        summary.gon += u32::from(case.labels.gon);
        summary.mislabelled += u32::from(case.labels != case.recorded);
    }
    summary
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
        assert_eq!((first.images, first.train, first.test), (10, 6, 4));
        assert!(!first.reused);
        let names = [
            "README.md",
            "images",
            "labels.csv",
            "masks",
            "synthetic.json",
            "truth.jsonl",
        ];
        assert_eq!(entries(&dir), names);
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
        assert!(rows.len() == 11 && rows.iter().all(|row| row.len() == rows[0].len()));
        let mut masks = 0;
        for row in &rows[1..] {
            for what in row.last().unwrap().split(';') {
                let name = row[0].strip_prefix("images/").unwrap();
                assert!(dir.join("masks").join(what).join(name).is_file());
                masks += 1;
            }
        }
        let found: usize = entries(&dir.join("masks"))
            .iter()
            .map(|what| entries(&dir.join("masks").join(what)).len())
            .sum();
        assert_eq!(masks, found, "no mask that the table does not name");
        let truths = fs::read_to_string(dir.join("truth.jsonl")).unwrap();
        for (line, row) in truths.lines().zip(&rows[1..]) {
            let truth: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(truth["image"], row[0]);
        }
        assert_eq!(truths.lines().count(), 10);
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
        let mask = dir.join("masks/optic_cup");
        fs::remove_file(mask.join(&entries(&mask)[0])).unwrap();
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
    fn a_write_that_fails_leaves_nothing() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        fs::write(&file, b"x").unwrap();
        let error = write_dataset(&file.join("s"), &small()).unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{error}");
        // A folder in the way of a file, found when the pictures are drawn already.
        let dir = root.path().join("s");
        let blocked = write_dataset_with(&dir, &small(), &mut |_| {
            let partial = entries(root.path())
                .into_iter()
                .find(|n| n.contains("partial"));
            fs::create_dir(root.path().join(partial.unwrap()).join("README.md")).unwrap();
        });
        assert!(matches!(blocked, Err(Error::Io { .. })));
        assert_eq!(entries(root.path()), ["file"], "no leftovers");
        let mut told = Vec::new();
        write_dataset_with(&dir, &small(), &mut |n| told.push(n)).unwrap();
        assert_eq!(told, [10]);
    }

    #[test]
    fn bytes_do_not_depend_on_threads() {
        let root = tempfile::tempdir().unwrap();
        let config = Config {
            patients: 40,
            ..small()
        };
        let digests: Vec<_> = [1, 2, 3]
            .iter()
            .map(|&threads| {
                let pool = rayon::ThreadPoolBuilder::new()
                    .num_threads(threads)
                    .build()
                    .unwrap();
                let dir = root.path().join(threads.to_string());
                pool.install(|| write_dataset(&dir, &config).unwrap().digest)
            })
            .collect();
        assert!(digests.iter().all(|d| d == &digests[0]));
        let bytes = |n: &str| fs::read(root.path().join(n).join("labels.csv")).unwrap();
        assert_eq!(bytes("1"), bytes("2"));
    }

    #[test]
    fn without_masks_none_are_written_and_the_rest_is_the_same() {
        let root = tempfile::tempdir().unwrap();
        let (with, without) = (root.path().join("with"), root.path().join("without"));
        write_dataset(&with, &small()).unwrap();
        write_dataset(
            &without,
            &Config {
                masks: false,
                ..small()
            },
        )
        .unwrap();
        assert!(!without.join("masks").exists());
        let truth = |dir: &Path| fs::read(dir.join("truth.jsonl")).unwrap();
        assert_eq!(truth(&with), truth(&without));
        let table = fs::read_to_string(without.join("labels.csv")).unwrap();
        assert!(table.lines().skip(1).all(|line| line.ends_with(',')));
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
