//! Which mappers there are: those built into the host, and any file.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::descriptor::Descriptor;
use crate::error::{DatasetError, MapperFault, MapperName};
use crate::limits::Limits;
use crate::runtime::Module;
use crate::text;

/// A mapper built into the host.
#[derive(Clone, Copy)]
pub struct Embedded {
    /// Id of its dataset.
    pub id: &'static str,
    /// The component.
    pub bytes: &'static [u8],
}

impl fmt::Debug for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Embedded({}, {} bytes)", self.id, self.bytes.len())
    }
}

macro_rules! embedded {
    ($($id:literal),+ $(,)?) => {
        &[$(Embedded {
            id: $id,
            bytes: include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets-wasm/dist/", $id, ".wasm")),
        }),+]
    };
}

const EMBEDDED: &[Embedded] = embedded![
    "brset",
    "g1020",
    "idrid",
    "jsiec1000",
    "mbrset",
    "messidor_2",
    "papila",
    "refuge",
    "rfmid",
    "rfmid_2",
    "synthetic",
];

/// The mappers built into the host, by id.
pub fn registry() -> &'static [Embedded] {
    EMBEDDED
}

/// A mapper to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MapperSource {
    /// One built into the host.
    Embedded(String),
    /// A component file.
    Path(PathBuf),
}

impl FromStr for MapperSource {
    type Err = DatasetError;

    /// An id of the registry, or a path: whatever ends in `.wasm` or holds a `/`.
    fn from_str(name: &str) -> Result<Self, DatasetError> {
        if EMBEDDED.iter().any(|mapper| mapper.id == name) {
            return Ok(Self::Embedded(name.into()));
        }
        let is_path = name.contains('/')
            || Path::new(name)
                .extension()
                .is_some_and(|e| e.eq_ignore_ascii_case("wasm"));
        if is_path {
            Ok(Self::Path(name.into()))
        } else {
            Err(unknown(name))
        }
    }
}

impl fmt::Display for MapperSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Embedded(id) => f.write_str(id),
            Self::Path(path) => write!(f, "{}", path.display()),
        }
    }
}

impl MapperSource {
    pub(crate) fn load(
        &self,
        limits: &Limits,
        cache: Option<&Path>,
    ) -> Result<Module, DatasetError> {
        match self {
            Self::Embedded(id) => {
                let mapper = EMBEDDED
                    .iter()
                    .find(|mapper| mapper.id == id)
                    .ok_or_else(|| unknown(id))?;
                Module::load(id, mapper.bytes, limits, cache)
            }
            Self::Path(path) => {
                let name = path.display().to_string();
                let size = fs::metadata(path)
                    .map_err(|e| DatasetError::io(path, e))?
                    .len();
                if size > limits.module_bytes {
                    let mapper = Box::new(MapperName {
                        name,
                        version: None,
                    });
                    let fault = MapperFault::TooLarge {
                        bytes: size,
                        limit: limits.module_bytes,
                    };
                    return Err(DatasetError::Mapper { mapper, fault });
                }
                let bytes = fs::read(path).map_err(|e| DatasetError::io(path, e))?;
                Module::load(&name, &bytes, limits, cache)
            }
        }
    }
}

fn unknown(name: &str) -> DatasetError {
    let ids: Vec<&str> = EMBEDDED.iter().map(|mapper| mapper.id).collect();
    DatasetError::UnknownMapper {
        name: text::quote(name, 80),
        known: text::list(&ids, 64),
    }
}

/// What a mapper says about itself, and the BLAKE3 of its file. Reads no data.
pub fn describe(
    mapper: &MapperSource,
    limits: &Limits,
    cache: Option<&Path>,
) -> Result<(Descriptor, String), DatasetError> {
    let module = mapper.load(limits, cache)?;
    let (_, descriptor) = module.start()?;
    Ok((descriptor, module.digest().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_paths() {
        assert_eq!(
            "idrid".parse::<MapperSource>().unwrap(),
            MapperSource::Embedded("idrid".into())
        );
        assert_eq!(
            "./x".parse::<MapperSource>().unwrap(),
            MapperSource::Path("./x".into())
        );
        assert_eq!(
            "x.wasm".parse::<MapperSource>().unwrap(),
            MapperSource::Path("x.wasm".into())
        );
        let error = "Idrid".parse::<MapperSource>().unwrap_err().to_string();
        assert!(
            error.starts_with("No mapper `Idrid`, expected one of `brset`, `g1020`, ")
                && error.ends_with("`synthetic` or the path of a `.wasm` file"),
            "{error}"
        );
    }

    #[test]
    fn each_embedded_mapper_is_of_the_dataset_it_is_listed_under() {
        for mapper in registry() {
            let source = MapperSource::Embedded(mapper.id.into());
            let (descriptor, digest) = describe(&source, &Limits::default(), None).unwrap();
            assert_eq!(descriptor.id, mapper.id);
            assert_eq!(digest.len(), 64);
        }
    }
}
