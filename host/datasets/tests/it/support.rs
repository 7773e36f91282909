//! Folders and mappers for the tests.

use std::fs;
use std::path::{Path, PathBuf};

use focus_datasets::{DatasetError, Job, Limits, Mapped, MapperSource, map_stream};

/// A folder that goes away with the test.
pub struct Data {
    dir: tempfile::TempDir,
}

impl Data {
    pub fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Writes a file, with the folders above it.
    pub fn file(&self, path: &str, bytes: impl AsRef<[u8]>) -> &Self {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
        self
    }

    pub fn remove(&self, path: &str) -> &Self {
        fs::remove_file(self.dir.path().join(path)).unwrap();
        self
    }
}

pub fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// A component of `datasets-wasm/dist`, or of the folder under test.
pub fn component(file: &str) -> PathBuf {
    match std::env::var_os("FOCUS_MAPPERS_DIR") {
        Some(folder) => Path::new(&folder).join(file),
        None => project().join("datasets-wasm/dist").join(file),
    }
}

pub fn mapper(file: &str) -> MapperSource {
    MapperSource::Path(component(file))
}

pub fn map(file: &str, data: &Path) -> Result<Mapped, DatasetError> {
    map_with(file, data, &[], &Limits::default())
}

pub fn map_with(
    file: &str,
    data: &Path,
    options: &[(&str, &str)],
    limits: &Limits,
) -> Result<Mapped, DatasetError> {
    let options: Vec<(String, String)> = options
        .iter()
        .map(|(n, v)| ((*n).into(), (*v).into()))
        .collect();
    let mapper = mapper(file);
    let mut records = Vec::new();
    // Compiling is most of a run's time; the cache is shared by all tests.
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mappers");
    let job = Job {
        mapper: &mapper,
        data,
        options: &options,
        limits,
        cache: Some(&cache),
    };
    let summary = map_stream(&job, &mut |batch| {
        records.extend(batch);
        Ok(())
    })?;
    Ok(Mapped { summary, records })
}

/// The message, with the folder of the components taken out.
pub fn message(result: Result<Mapped, DatasetError>) -> String {
    let message = result.expect_err("expected an error").to_string();
    let folder = component("").display().to_string();
    message.replace(&folder, "")
}

/// One line of JSON a record.
pub fn lines(mapped: &Mapped) -> String {
    let lines = mapped
        .records
        .iter()
        .map(|record| serde_json::to_string(record).unwrap());
    lines.collect::<Vec<_>>().join("\n")
}
