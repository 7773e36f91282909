//! An architecture claims tensors by name and shape; at the end nothing may be missing, left over or of another shape.
//!
//! [`load`] takes them from a checkpoint, [`random`] draws them: the control that shows what an encoder's architecture alone is worth.
//! Must not know any architecture.

mod claims;
mod draw;

use crate::{Checkpoint, LoadError};
use candle_core::{DType, Device, Tensor};
use claims::Claims;
use std::cell::RefCell;
use std::fmt::Display;
use std::rc::Rc;

/// How a tensor is drawn when weights are random.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Init {
    /// All ones: scales of norms.
    Ones,
    /// All zeros: biases.
    Zeros,
    /// One value.
    Constant(f32),
    /// Bell-shaped around 0 with this standard deviation, never beyond six of them.
    Normal(f32),
}

/// Where tensors come from, at one place in the tree of names. Cheap to clone.
#[derive(Clone)]
pub struct Weights {
    shared: Rc<Shared>,
    prefix: String,
}

struct Shared {
    source: Source,
    device: Device,
    dtype: DType,
    claims: RefCell<Claims>,
}

enum Source {
    Checkpoint(Checkpoint),
    Random(u64),
}

/// Build an architecture from a checkpoint. `ignored` names tensors that may be left over: exact names, or beginnings that end in
/// `*` (`decoder_*`). Fails with every missing, unexpected and misshapen tensor named.
pub fn load<T>(
    checkpoint: Checkpoint,
    device: &Device,
    dtype: DType,
    ignored: &[&str],
    build: impl FnOnce(&Weights) -> Result<T, LoadError>,
) -> Result<T, LoadError> {
    let weights = Weights::new(Source::Checkpoint(checkpoint), device, dtype);
    let built = build(&weights)?;
    weights.settle(ignored)?;
    Ok(built)
}

/// Build an architecture with weights drawn from `seed`: each tensor depends on the seed and its own name alone, and is the same on
/// every machine.
pub fn random<T>(
    seed: u64,
    device: &Device,
    dtype: DType,
    build: impl FnOnce(&Weights) -> Result<T, LoadError>,
) -> Result<T, LoadError> {
    build(&Weights::new(Source::Random(seed), device, dtype))
}

impl Weights {
    fn new(source: Source, device: &Device, dtype: DType) -> Self {
        Self {
            shared: Rc::new(Shared {
                source,
                device: device.clone(),
                dtype,
                claims: RefCell::default(),
            }),
            prefix: String::new(),
        }
    }

    /// One level down: names are looked for behind `part` and a dot.
    #[must_use]
    pub fn at(&self, part: impl Display) -> Self {
        Self {
            shared: Rc::clone(&self.shared),
            prefix: format!("{}{part}.", self.prefix),
        }
    }

    /// The device tensors go to.
    pub fn device(&self) -> &Device {
        &self.shared.device
    }

    /// The type values get.
    pub fn dtype(&self) -> DType {
        self.shared.dtype
    }

    /// Whether weights are drawn.
    pub fn is_random(&self) -> bool {
        matches!(self.shared.source, Source::Random(_))
    }

    /// The shape that the checkpoint has for a name; `None` where it has none, or weights are drawn.
    pub fn shape_of(&self, name: &str) -> Option<Vec<usize>> {
        match &self.shared.source {
            Source::Checkpoint(checkpoint) => {
                let tensor = checkpoint.get(&format!("{}{name}", self.prefix))?;
                Some(tensor.shape().to_vec())
            }
            Source::Random(_) => None,
        }
    }

    /// Claim a tensor. Where the checkpoint lacks it or has another shape, zeros stand in so that the rest can be looked at too, and
    /// [`load`] fails in the end, or at once where there is too much to stand in for.
    pub fn get(&self, name: &str, shape: &[usize], init: Init) -> Result<Tensor, LoadError> {
        self.get_as(name, shape, init, self.shared.dtype)
    }

    /// Claim a tensor in a type of its own.
    pub fn get_as(
        &self,
        name: &str,
        shape: &[usize],
        init: Init,
        dtype: DType,
    ) -> Result<Tensor, LoadError> {
        let name = format!("{}{name}", self.prefix);
        let device = &self.shared.device;
        let mut claims = self.shared.claims.borrow_mut();
        claims.take(&name);
        let checkpoint = match &self.shared.source {
            Source::Random(seed) => {
                return Ok(draw::tensor(*seed, &name, shape, init, device, dtype)?);
            }
            Source::Checkpoint(checkpoint) => checkpoint,
        };
        let stand_in = || Tensor::zeros(shape, dtype, device);
        let Some(raw) = checkpoint.get(&name) else {
            claims.missing(&name, shape)?;
            return Ok(stand_in()?);
        };
        if raw.shape() != shape {
            let reason = format!(
                "shape of `{name}`: expected {shape:?}, found {:?}",
                raw.shape()
            );
            claims.misfit(reason, shape)?;
            return Ok(stand_in()?);
        }
        if !raw.kind().is_float() {
            let reason = format!(
                "values of `{name}`: expected floats, found {:?}",
                raw.kind()
            );
            claims.misfit(reason, shape)?;
            return Ok(stand_in()?);
        }
        raw.to_tensor(device, dtype)
            .map_err(|error| LoadError::Tensor {
                name,
                reason: error.to_string(),
            })
    }

    /// Claim `name` where the checkpoint has it: it may only repeat `of_name` of `of`, claimed with `shape`, value by value.
    pub fn claim_copy(
        &self,
        name: &str,
        of: &Self,
        of_name: &str,
        shape: &[usize],
    ) -> Result<(), LoadError> {
        let Source::Checkpoint(checkpoint) = &self.shared.source else {
            return Ok(());
        };
        let copy = format!("{}{name}", self.prefix);
        let of = format!("{}{of_name}", of.prefix);
        let (Some(found), Some(wanted)) = (checkpoint.get(&copy), checkpoint.get(&of)) else {
            return Ok(());
        };
        self.shared.claims.borrow_mut().take(&copy);
        // Another shape of the original was told when that was claimed.
        if wanted.shape() != shape {
            return Ok(());
        }
        let same = found.kind() == wanted.kind()
            && found.shape() == wanted.shape()
            && found.bytes() == wanted.bytes();
        if same {
            Ok(())
        } else {
            Err(LoadError::Tied { copy, of })
        }
    }

    fn settle(&self, ignored: &[&str]) -> Result<(), LoadError> {
        let Source::Checkpoint(checkpoint) = &self.shared.source else {
            return Ok(());
        };
        self.shared.claims.borrow().settle(checkpoint, ignored)
    }
}
