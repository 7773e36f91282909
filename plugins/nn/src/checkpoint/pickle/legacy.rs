//! The form before PyTorch 1.6: five pickles in a row (magic number, version, facts of the system, the object, keys of storages), then
//! each storage as a count of 8 bytes and its values.

use super::Pickled;
use super::machine::Machine;
use super::value::{Heap, Id, Node};
use crate::LoadError;
use crate::checkpoint::MappedFile;
use std::collections::BTreeMap;

/// Version of the form; the only one there ever was.
const VERSION: i64 = 1001;

pub(super) fn read(file: &MappedFile) -> Result<Pickled, LoadError> {
    let mut machine = Machine::new(file.bytes());
    let mut next = || {
        machine.run().map_err(|fault| LoadError::Refused {
            file: file.name().to_owned(),
            at: fault.at,
            reason: fault.reason,
        })
    };
    // The magic number has 80 bits, of which the machine keeps that it was a number.
    let (magic, version, system, root, keys) = (next()?, next()?, next()?, next()?, next()?);
    let mut at = machine.at;
    let heap = machine.into_heap();
    if *heap.get(magic) != Node::Number || *heap.get(version) != Node::Int(VERSION) {
        return Err(file.fault("it is a pickle, but not one that `torch.save` wrote"));
    }
    if entry(&heap, system, "little_endian") == Some(&Node::Bool(false)) {
        return Err(file.fault("its values are big-endian"));
    }
    let sizes = storage_sizes(&heap);
    let Node::List(keys) = heap.get(keys) else {
        return Err(file.fault("the list of its storages is missing"));
    };
    let mut storages = BTreeMap::new();
    for &key in keys {
        let found = heap
            .text(key)
            .and_then(|key| Some((key, *sizes.get(key)?)))
            .ok_or_else(|| file.fault("a storage is listed that no tensor uses"))?;
        let (key, size) = found;
        let range = file
            .get(at..at.saturating_add(8))
            .map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
            .and_then(|count| usize::try_from(count).ok()?.checked_mul(size))
            .and_then(|bytes| Some(at + 8..(at + 8).checked_add(bytes)?))
            .filter(|range| range.end <= file.bytes().len())
            .ok_or_else(|| file.fault(format!("it ends in the middle of storage `{key}`")))?;
        at = range.end;
        storages.insert(key.to_owned(), range);
    }
    Ok(Pickled {
        heap,
        root,
        storages,
    })
}

/// Bytes of a value of each storage.
fn storage_sizes(heap: &Heap) -> BTreeMap<String, usize> {
    heap.nodes()
        .filter_map(|node| match node {
            Node::Storage(kind, key, _) => Some((heap.text(*key)?.to_owned(), kind.size())),
            _ => None,
        })
        .collect()
}

fn entry<'a>(heap: &'a Heap, dict: Id, name: &str) -> Option<&'a Node> {
    heap.dict(dict)?
        .iter()
        .find(|(key, _)| heap.text(*key) == Some(name))
        .map(|(_, value)| heap.get(*value))
}
