//! What low-rank adapters add to a layer, and the switch that chooses among them. Knows neither files nor names of layers.

use candle_core::Tensor;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Which adapter the layers of one model use. One switch is shared by all layers of a model: turning it takes effect in the next
/// forward pass, so that no forward function has to pass a name along. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Switch(Arc<AtomicU32>);

impl Switch {
    /// The base model.
    pub const BASE: u32 = 0;

    /// Use adapter `number`, or [`Self::BASE`]. Layers that the adapter does not change go on as the base.
    pub fn select(&self, number: u32) {
        self.0.store(number, Ordering::Relaxed);
    }

    /// The number in use.
    pub fn selected(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What one adapter does to one layer.
#[derive(Debug, Clone)]
pub enum Part {
    /// `y + scale * B A x`.
    LowRank {
        /// (rank, in), f32.
        a: Tensor,
        /// (out, rank), f32.
        b: Tensor,
        /// Factor.
        scale: f64,
    },
    /// Another weight altogether (`modules_to_save`).
    Whole {
        /// In the shape of the base's.
        weight: Tensor,
        /// (out), where the base has one.
        bias: Option<Tensor>,
    },
}

/// Parts of a layer, by adapter.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    switch: Switch,
    parts: Vec<(u32, Part)>,
}

impl Parts {
    pub(crate) fn attach(this: &mut Option<Box<Self>>, switch: &Switch, number: u32, part: Part) {
        let parts = this.get_or_insert_with(|| {
            Box::new(Self {
                switch: switch.clone(),
                parts: Vec::new(),
            })
        });
        parts.parts.retain(|(other, _)| *other != number);
        parts.parts.push((number, part));
    }

    pub(crate) fn detach(this: &mut Option<Box<Self>>, number: u32) -> Option<Part> {
        let parts = this.as_mut()?;
        let at = parts.parts.iter().position(|(other, _)| *other == number)?;
        let part = parts.parts.swap_remove(at).1;
        if parts.parts.is_empty() {
            *this = None;
        }
        Some(part)
    }

    pub(crate) fn active(&self) -> Option<&Part> {
        let number = self.switch.selected();
        self.parts
            .iter()
            .find(|(other, _)| *other == number)
            .map(|(_, part)| part)
    }
}
