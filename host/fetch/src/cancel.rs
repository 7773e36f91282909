//! The flag that stops a download between two reads.

use crate::error::{FetchError, Result};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Set once, by any thread or a signal handler; copies share the flag.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// A flag not yet set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stop: running transfers end at their next read, and keep what they have for another time.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it is set.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// `FetchError::Cancelled` if it is set.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_cancelled() {
            Err(FetchError::Cancelled)
        } else {
            Ok(())
        }
    }
}
