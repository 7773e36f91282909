//! The zip form (PyTorch 1.6 and later): `*/data.pkl` with a file `*/data/KEY` for each storage, all stored without compression.

use super::Pickled;
use super::machine::Machine;
use crate::LoadError;
use crate::checkpoint::MappedFile;
use std::collections::BTreeMap;
use std::io::Cursor;
use std::ops::Range;
use zip::{CompressionMethod, ZipArchive};

/// Most entries of an archive.
const MAX_ENTRIES: usize = 1_000_000;
/// Longest `data.pkl` in bytes.
const MAX_PICKLE: usize = 512 << 20;

pub(super) fn read(file: &MappedFile) -> Result<Pickled, LoadError> {
    let entries = entries(file)?;
    let roots: Vec<&String> = entries
        .keys()
        .filter(|name| *name == "data.pkl" || name.ends_with("/data.pkl"))
        .collect();
    let [root] = roots.as_slice() else {
        return Err(file.fault(format!("expected one `data.pkl`, found {}", roots.len())));
    };
    let prefix = root.strip_suffix("data.pkl").expect("chosen by its end");
    let part = |name: &str| {
        let range = entries.get(&format!("{prefix}{name}"))?;
        file.get(range.clone())
    };
    if part("constants.pkl").is_some() {
        return Err(file.fault("it is a TorchScript program, not a file of weights"));
    }
    if part("byteorder").is_some_and(|order| order != b"little") {
        return Err(file.fault("its values are big-endian"));
    }
    let pickle =
        part("data.pkl").ok_or_else(|| file.fault("`data.pkl` reaches beyond the file"))?;
    if pickle.len() > MAX_PICKLE {
        return Err(file.fault(format!("`data.pkl` is longer than {MAX_PICKLE} bytes")));
    }
    let mut machine = Machine::new(pickle);
    let root = machine.run().map_err(|fault| LoadError::Refused {
        file: file.name().to_owned(),
        at: fault.at,
        reason: fault.reason,
    })?;
    let folder = format!("{prefix}data/");
    let storages = entries
        .iter()
        .filter_map(|(name, range)| Some((name.strip_prefix(&folder)?.to_owned(), range.clone())))
        .collect();
    Ok(Pickled {
        heap: machine.into_heap(),
        root,
        storages,
    })
}

/// Where each entry's bytes are in the file.
fn entries(file: &MappedFile) -> Result<BTreeMap<String, Range<usize>>, LoadError> {
    let fault =
        |error: zip::result::ZipError| file.fault(format!("the archive is damaged: {error}"));
    let mut archive = ZipArchive::new(Cursor::new(file.bytes())).map_err(fault)?;
    if archive.len() > MAX_ENTRIES {
        return Err(file.fault(format!("the archive has more than {MAX_ENTRIES} entries")));
    }
    let mut entries = BTreeMap::new();
    for index in 0..archive.len() {
        let entry = archive.by_index_raw(index).map_err(fault)?;
        let name = entry.name().map_err(fault)?.into_owned();
        if entry.compression() != CompressionMethod::Stored || entry.encrypted() {
            return Err(file.fault(format!("entry `{name}` is compressed or encrypted")));
        }
        let start = entry
            .data_start()
            .ok_or_else(|| file.fault(format!("entry `{name}` has no place in the file")))?;
        let range = usize::try_from(start).ok().and_then(|start| {
            let end = start.checked_add(usize::try_from(entry.size()).ok()?)?;
            Some(start..end)
        });
        let range = range
            .filter(|range| range.end <= file.bytes().len())
            .ok_or_else(|| file.fault(format!("entry `{name}` reaches beyond the file")))?;
        entries.insert(name, range);
    }
    Ok(entries)
}
