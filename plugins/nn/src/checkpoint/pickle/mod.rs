//! PyTorch's `.pth`, `.pt` and `.bin`: pickles read as data. Nothing in them is ever called.
//!
//! A pickle is a program for a stack machine, and Python's reader imports and calls whatever it names. This one knows the handful of
//! names that make up tensors and dictionaries; every other class becomes an inert object whose content is dropped, and a name that
//! no checkpoint has reason to mention (`os.system`) refuses the file. Limits are in [`machine`].

mod archive;
mod legacy;
mod machine;
mod opcode;
mod state;
mod value;

#[cfg(test)]
mod tests;

use super::{Layout, MappedFile, RawTensor};
use crate::LoadError;
use std::collections::BTreeMap;
use std::ops::Range;
use value::{Heap, Id, Node};

/// The root of a pickle, and where each storage's bytes are in the file.
struct Pickled {
    heap: Heap,
    root: Id,
    storages: BTreeMap<String, Range<usize>>,
}

/// Tensors of the state dictionary.
pub(super) fn read(
    file: &MappedFile,
    layout: &Layout,
) -> Result<Vec<(String, RawTensor)>, LoadError> {
    let bytes = file.bytes();
    let pickled = if bytes.starts_with(b"PK\x03\x04") {
        archive::read(file)?
    } else if bytes.starts_with(&[machine::PROTO]) {
        legacy::read(file)?
    } else if bytes.get(257..262) == Some(b"ustar") {
        return Err(file.fault(
            "it is a tar file, as PyTorch wrote before 0.1.10; save it again with a newer one",
        ));
    } else {
        return Err(
            file.fault("it is neither safetensors nor a PyTorch file: it begins with other bytes")
        );
    };
    let entries = state::find(&pickled, file.name(), &layout.keys())?;
    let mut tensors = Vec::new();
    for (name, id) in entries {
        let Node::Tensor(view) = pickled.heap.get(id) else {
            continue;
        };
        let tensor = state::resolve(&pickled, view, file).map_err(|reason| LoadError::Tensor {
            name: name.clone(),
            reason,
        })?;
        tensors.push((name, tensor));
    }
    Ok(tensors)
}
