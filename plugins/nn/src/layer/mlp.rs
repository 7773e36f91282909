//! The feed-forward block.

use super::{Activation, Linear};
use candle_core::{D, Result, Tensor};

/// Feed-forward, plain or gated.
#[derive(Debug, Clone)]
pub enum Mlp {
    /// `down(activation(up(x)))`.
    Plain {
        /// Widens.
        up: Linear,
        /// Narrows.
        down: Linear,
        /// Between them.
        activation: Activation,
    },
    /// `down(activation(gate(x)) * up(x))`.
    Gated {
        /// Passes through the activation.
        gate: Linear,
        /// Is multiplied.
        up: Linear,
        /// Narrows.
        down: Linear,
        /// Of the gate.
        activation: Activation,
    },
    /// As `Gated`, gate and up in one matrix, gate first (DINOv2's SwiGLU).
    Packed {
        /// Gate over up.
        both: Linear,
        /// Narrows.
        down: Linear,
        /// Of the gate.
        activation: Activation,
    },
}

impl Mlp {
    /// Apply to the last axis of `x`.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        match self {
            Self::Plain {
                up,
                down,
                activation,
            } => down.forward(&up.forward_activated(x, *activation)?),
            Self::Gated {
                gate,
                up,
                down,
                activation,
            } => {
                let gate = gate.forward_activated(x, *activation)?;
                down.forward(&(gate * up.forward(x)?)?)
            }
            Self::Packed {
                both,
                down,
                activation,
            } => {
                let parts = both.forward(x)?.chunk(2, D::Minus1)?;
                let gate = activation.forward(&parts[0].contiguous()?)?;
                down.forward(&(gate * parts[1].contiguous()?)?)
            }
        }
    }
}
