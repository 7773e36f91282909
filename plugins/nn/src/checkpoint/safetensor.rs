//! safetensors files. Knows one file at a time; shards are the folder's.

use super::{Kind, MappedFile, RawTensor};
use crate::LoadError;
use safetensors::{Dtype, SafeTensors};

/// Tensors of one file. The format's own reader checks the header, the offsets and that they cover the file.
pub(super) fn read(file: &MappedFile) -> Result<Vec<(String, RawTensor)>, LoadError> {
    let (header, metadata) =
        SafeTensors::read_metadata(file.bytes()).map_err(|error| file.fault(error.to_string()))?;
    // Eight bytes of length stand before the header.
    let start = header + 8;
    let mut tensors = Vec::new();
    for (name, info) in metadata.tensors() {
        let kind = match info.dtype {
            Dtype::F64 => Kind::F64,
            Dtype::F32 => Kind::F32,
            Dtype::F16 => Kind::F16,
            Dtype::BF16 => Kind::Bf16,
            Dtype::I64 => Kind::I64,
            Dtype::I32 => Kind::I32,
            Dtype::I16 => Kind::I16,
            Dtype::U8 | Dtype::BOOL => Kind::U8,
            other => {
                return Err(LoadError::Tensor {
                    name,
                    reason: format!("values of type {other:?} are not supported"),
                });
            }
        };
        let (from, to) = info.data_offsets;
        let range = start + from..start + to;
        let tensor =
            RawTensor::new(file, kind, info.shape.clone(), None, range).map_err(|reason| {
                LoadError::Tensor {
                    name: name.clone(),
                    reason,
                }
            })?;
        tensors.push((name, tensor));
    }
    Ok(tensors)
}
