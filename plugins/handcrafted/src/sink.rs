//! Collects features with their names. Knows nothing of what they mean.

use std::fmt::Arguments;

/// Values in order, and names where they are wanted.
pub struct Sink {
    values: Vec<f32>,
    names: Option<Vec<String>>,
}

impl Sink {
    pub fn new(named: bool) -> Self {
        Self {
            values: Vec::with_capacity(512),
            names: named.then(Vec::new),
        }
    }

    /// Adds one feature. Whatever arithmetic gave, what is kept is finite.
    pub fn push(&mut self, name: Arguments<'_>, value: f32) {
        self.values
            .push(if value.is_finite() { value } else { 0.0 });
        if let Some(names) = &mut self.names {
            names.push(name.to_string());
        }
    }

    pub fn values(self) -> Vec<f32> {
        self.values
    }

    pub fn names(self) -> Vec<String> {
        self.names.unwrap_or_default()
    }
}
