//! From a pickle's root to named tensors with their bytes. Knows no opcodes.

use super::Pickled;
use super::value::{Heap, Id, Node, View};
use crate::LoadError;
use crate::checkpoint::{MappedFile, RawTensor};

/// Entries of the dictionary of weights: the one under the first of `keys` that the root has, or the root itself where it holds
/// tensors.
pub(super) fn find(
    pickled: &Pickled,
    file: &str,
    keys: &[String],
) -> Result<Vec<(String, Id)>, LoadError> {
    let heap = &pickled.heap;
    let root = named(heap, pickled.root);
    let nested = keys.iter().find_map(|key| {
        let (_, value) = root.iter().find(|(name, _)| name == key)?;
        let entries = named(heap, *value);
        has_tensors(heap, &entries).then_some(entries)
    });
    if let Some(entries) = nested {
        return Ok(entries);
    }
    if has_tensors(heap, &root) {
        return Ok(root);
    }
    Err(LoadError::NoStateDict {
        file: file.to_owned(),
        wanted: keys.to_vec(),
        found: root.into_iter().map(|(name, _)| name).collect(),
    })
}

fn named(heap: &Heap, id: Id) -> Vec<(String, Id)> {
    let entries = heap.dict(id).unwrap_or_default();
    entries
        .iter()
        .filter_map(|(key, value)| Some((heap.text(*key)?.to_owned(), *value)))
        .collect()
}

fn has_tensors(heap: &Heap, entries: &[(String, Id)]) -> bool {
    entries
        .iter()
        .any(|(_, id)| matches!(heap.get(*id), Node::Tensor(_)))
}

/// A view's place in the file.
pub(super) fn resolve(
    pickled: &Pickled,
    view: &View,
    file: &MappedFile,
) -> Result<RawTensor, String> {
    let Node::Storage(kind, key, count) = *pickled.heap.get(view.storage) else {
        return Err("it has no storage".into());
    };
    let key = pickled.heap.text(key).unwrap_or_default();
    let storage = pickled
        .storages
        .get(key)
        .ok_or_else(|| format!("its storage `{key}` is not in the file"))?;
    let bytes = count.checked_mul(kind.size());
    if bytes.is_none_or(|bytes| bytes > storage.len()) {
        return Err(format!(
            "its storage `{key}` is cut short: expected {count} values, found {} bytes",
            storage.len()
        ));
    }
    let end = storage.start + bytes.expect("compared above");
    let start = view
        .offset
        .checked_mul(kind.size())
        .and_then(|offset| storage.start.checked_add(offset))
        .filter(|&start| start <= end)
        .ok_or("it begins beyond its storage")?;
    RawTensor::new(
        file,
        kind,
        view.shape.clone(),
        Some(view.strides.clone()),
        start..end,
    )
}
