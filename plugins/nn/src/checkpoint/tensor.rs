//! One tensor of a checkpoint: where its values lie and how to lay them out. Knows neither names nor architectures.

use super::MappedFile;
use candle_core::{DType, Device, Tensor};
use std::borrow::Cow;
use std::ops::Range;

/// Most axes of a tensor.
pub(crate) const MAX_RANK: usize = 16;

/// Type of the stored values, little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// 64-bit float.
    F64,
    /// 32-bit float.
    F32,
    /// 16-bit float, IEEE.
    F16,
    /// 16-bit float, bfloat.
    Bf16,
    /// 64-bit signed.
    I64,
    /// 32-bit signed.
    I32,
    /// 16-bit signed.
    I16,
    /// 8-bit unsigned; also truth values.
    U8,
}

impl Kind {
    /// Bytes of a value.
    pub fn size(self) -> usize {
        match self {
            Self::F64 | Self::I64 => 8,
            Self::F32 | Self::I32 => 4,
            Self::F16 | Self::Bf16 | Self::I16 => 2,
            Self::U8 => 1,
        }
    }

    /// Whether values are floating point.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F64 | Self::F32 | Self::F16 | Self::Bf16)
    }

    fn dtype(self) -> DType {
        match self {
            Self::F64 => DType::F64,
            Self::F32 => DType::F32,
            Self::F16 => DType::F16,
            Self::Bf16 => DType::BF16,
            Self::I64 => DType::I64,
            Self::I32 => DType::I32,
            Self::I16 => DType::I16,
            Self::U8 => DType::U8,
        }
    }
}

/// A tensor as stored.
#[derive(Debug, Clone)]
pub struct RawTensor {
    file: MappedFile,
    kind: Kind,
    shape: Vec<usize>,
    /// In values; `None` when contiguous.
    strides: Option<Vec<usize>>,
    /// Bytes of the values from the first one on, checked to hold all that shape and strides reach.
    range: Range<usize>,
}

impl RawTensor {
    /// A tensor whose values begin at the start of `range` of `file`. Refuses what reaches beyond it.
    pub(crate) fn new(
        file: &MappedFile,
        kind: Kind,
        shape: Vec<usize>,
        strides: Option<Vec<usize>>,
        range: Range<usize>,
    ) -> Result<Self, String> {
        let rank = shape.len();
        if rank > MAX_RANK {
            return Err(format!("expected at most {MAX_RANK} axes, found {rank}"));
        }
        if strides.as_ref().is_some_and(|s| s.len() != rank) {
            return Err("shape and strides differ in length".into());
        }
        let count = shape
            .iter()
            .try_fold(1_usize, |n, &side| n.checked_mul(side))
            .ok_or("its shape overflows")?;
        let strides = strides.filter(|strides| *strides != contiguous(&shape));
        let reach = match &strides {
            _ if count == 0 => Some(0),
            None => Some(count),
            Some(strides) => shape
                .iter()
                .zip(strides)
                .try_fold(0_usize, |sum, (&side, &stride)| {
                    (side - 1).checked_mul(stride)?.checked_add(sum)
                })
                .and_then(|last| last.checked_add(1)),
        };
        let needed = reach
            .and_then(|values| values.checked_mul(kind.size()))
            .ok_or("its strides overflow")?;
        let found = range.len();
        if range.end > file.bytes().len() || range.start > range.end || needed > found {
            return Err(format!(
                "shape {shape:?} needs {needed} bytes, found {found}"
            ));
        }
        Ok(Self {
            file: file.clone(),
            kind,
            shape,
            strides,
            range: range.start..range.start + needed,
        })
    }

    /// Sides.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Type of the stored values.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The values, little-endian, in row-major order: borrowed where they are stored so. A shape with stride 0 can name many times
    /// what the file holds, so the caller compares the shape with what it expects first.
    pub fn bytes(&self) -> Cow<'_, [u8]> {
        let stored = self
            .file
            .get(self.range.clone())
            .expect("checked when the tensor was found");
        match &self.strides {
            None => Cow::Borrowed(stored),
            Some(strides) => Cow::Owned(gather(stored, self.kind.size(), &self.shape, strides)),
        }
    }

    /// The values on a device, as `dtype`.
    pub fn to_tensor(&self, device: &Device, dtype: DType) -> candle_core::Result<Tensor> {
        Tensor::from_raw_buffer(&self.bytes(), self.kind.dtype(), &self.shape, device)?
            .to_dtype(dtype)
    }
}

fn contiguous(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    strides
}

/// Copy strided values into row-major order.
fn gather(stored: &[u8], size: usize, shape: &[usize], strides: &[usize]) -> Vec<u8> {
    let count: usize = shape.iter().product();
    let mut out = Vec::with_capacity(count * size);
    let mut index = vec![0_usize; shape.len()];
    for _ in 0..count {
        let at: usize = index.iter().zip(strides).map(|(i, s)| i * s).sum();
        out.extend_from_slice(&stored[at * size..][..size]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    out
}
