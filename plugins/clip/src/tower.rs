//! The networks, from tensors to tensors. Knows no files, no text and no plugin.
//!
//! [`vision`] and [`text`] are the two towers of CLIP and SigLIP on one kind of block; [`bert`] and [`resnet`] are those of RET-CLIP and
//! FLAIR; [`image`] and [`words`] put a side of any family behind one type.

pub mod bert;
mod block;
mod head;
pub mod image;
pub mod resnet;
pub mod text;
pub mod vision;
pub mod words;

use focus_nn::candle::{D, Result};
use focus_nn::{DType, Init, Linear, LoadError, Tensor, Weights};

use crate::names::Projection;

/// Standard deviation of drawn tables.
const DEVIATION: f32 = 0.02;

/// A map without bias, whichever way it is stored.
fn projection(
    weights: &Weights,
    stored: Projection,
    inputs: usize,
    outputs: usize,
) -> std::result::Result<Linear, LoadError> {
    // As wide as it keeps the length of what passes.
    let init = Init::Normal((inputs as f32).powf(-0.5));
    let weight = match stored {
        Projection::Rows(name) => weights.get(name, &[outputs, inputs], init)?,
        Projection::Columns(name) => weights
            .get(name, &[inputs, outputs], init)?
            .t()?
            .contiguous()?,
    };
    Ok(Linear::new(weight, None))
}

/// Rows of the last axis brought to length 1, in f32 within.
pub(crate) fn unit(x: &Tensor) -> Result<Tensor> {
    let wide = x.to_dtype(DType::F32)?;
    let length = wide.sqr()?.sum_keepdim(D::Minus1)?.sqrt()?;
    wide.broadcast_div(&length)?.to_dtype(x.dtype())
}

/// Rows of a table by id: (count) ids to (count, dim).
fn rows(table: &Tensor, ids: &[u32]) -> Result<Tensor> {
    let ids = Tensor::from_slice(ids, ids.len(), table.device())?;
    table.index_select(&ids, 0)
}
