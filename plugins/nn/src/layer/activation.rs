//! Activations by the names that config.json gives them.

use candle_core::{Result, Tensor};

/// An activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Activation {
    /// `x Phi(x)` with the error function.
    Gelu,
    /// GELU by the hyperbolic tangent.
    GeluTanh,
    /// `x sigmoid(1.702 x)`, as OpenAI's CLIP has it.
    QuickGelu,
    /// `x sigmoid(x)`.
    Silu,
    /// `max(x, 0)`.
    Relu,
}

impl Activation {
    /// By its name in `hidden_act`; `None` for one that is not known.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "gelu" => Self::Gelu,
            "gelu_new" | "gelu_fast" | "gelu_pytorch_tanh" => Self::GeluTanh,
            "quick_gelu" => Self::QuickGelu,
            "silu" | "swish" => Self::Silu,
            "relu" => Self::Relu,
            _ => return None,
        })
    }

    /// Of basic operations: any device, with gradients.
    pub fn forward(self, x: &Tensor) -> Result<Tensor> {
        match self {
            Self::Gelu => x.gelu_erf(),
            Self::GeluTanh => x.gelu(),
            Self::QuickGelu => x * candle_nn::ops::sigmoid(&(x * 1.702)?)?,
            Self::Silu => x.silu(),
            Self::Relu => x.relu(),
        }
    }
}
