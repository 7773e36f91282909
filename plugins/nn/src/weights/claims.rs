//! What an architecture asked for, and what of that a checkpoint has not. Knows no values.

use crate::{Checkpoint, LoadError};
use std::collections::BTreeSet;

/// Values that zeros may stand in for. Beyond it sizes are not believed, for memory would be gone before the error is told.
const MOST_ZEROS: usize = 1 << 31;
/// Tensors that are missing or misshapen before no more are looked for.
const MOST_FAULTS: usize = 64;

#[derive(Default)]
pub(super) struct Claims {
    taken: BTreeSet<String>,
    missing: Vec<String>,
    shapes: Vec<String>,
    /// Values that zeros stand in for.
    zeros: usize,
}

impl Claims {
    /// A name that the architecture knows.
    pub(super) fn take(&mut self, name: &str) {
        self.taken.insert(name.to_owned());
    }

    /// It is not there. Fails where zeros of `shape` may not stand in for it.
    pub(super) fn missing(&mut self, name: &str, shape: &[usize]) -> Result<(), LoadError> {
        self.missing.push(name.to_owned());
        self.stand_in(shape)
    }

    /// It is there, but not as wanted. As above.
    pub(super) fn misfit(&mut self, reason: String, shape: &[usize]) -> Result<(), LoadError> {
        self.shapes.push(reason);
        self.stand_in(shape)
    }

    fn stand_in(&mut self, shape: &[usize]) -> Result<(), LoadError> {
        let values = shape
            .iter()
            .try_fold(1_usize, |n, &side| n.checked_mul(side))
            .and_then(|values| values.checked_add(self.zeros))
            .filter(|&values| values <= MOST_ZEROS);
        match values {
            Some(values) if self.missing.len() + self.shapes.len() <= MOST_FAULTS => {
                self.zeros = values;
                Ok(())
            }
            // What is left over cannot be told yet.
            _ => Err(self.mismatch(Vec::new())),
        }
    }

    /// At the end nothing may be missing, misshapen or left over, but for what is `ignored`.
    pub(super) fn settle(
        &self,
        checkpoint: &Checkpoint,
        ignored: &[&str],
    ) -> Result<(), LoadError> {
        let is_ignored = |name: &str| {
            ignored
                .iter()
                .any(|pattern| match pattern.strip_suffix('*') {
                    Some(start) => name.starts_with(start),
                    None => name == *pattern,
                })
        };
        let unexpected: Vec<String> = checkpoint
            .names()
            .filter(|name| !self.taken.contains(*name) && !is_ignored(name))
            .map(str::to_owned)
            .collect();
        if self.missing.is_empty() && self.shapes.is_empty() && unexpected.is_empty() {
            return Ok(());
        }
        Err(self.mismatch(unexpected))
    }

    fn mismatch(&self, unexpected: Vec<String>) -> LoadError {
        LoadError::Mismatch {
            missing: self.missing.clone(),
            unexpected,
            shapes: self.shapes.clone(),
            wanted: self.taken.len(),
        }
    }
}
