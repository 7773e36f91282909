//! Adding a branch back to the stream.

use crate::kernel::op;
use candle_core::{Result, Tensor};

/// `x + gamma * branch`, both of shape (.., dim), `gamma` of shape (dim) or 1. Takes the branch, whose memory holds the sum.
pub fn add_residual(x: &Tensor, branch: Tensor, gamma: Option<&Tensor>) -> Result<Tensor> {
    let in_place = op::fused(x)
        && op::fused(&branch)
        && gamma.is_none_or(op::fused)
        && x.is_contiguous()
        && branch.is_contiguous()
        && x.dims() == branch.dims();
    if in_place {
        match gamma {
            None => branch.inplace_op2(x, &op::Add)?,
            Some(gamma) => branch.inplace_op3(x, gamma, &op::ScaledAdd)?,
        }
        return Ok(branch);
    }
    match gamma {
        None => x + branch,
        Some(gamma) => x + branch.broadcast_mul(gamma)?,
    }
}
