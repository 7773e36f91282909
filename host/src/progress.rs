//! How long work tells the outside how far it is. The CLI draws bars; tests and libraries pass `Silent`.

/// Receives progress; called from one thread.
pub trait Progress {
    /// A stage begins; `total` units, 0 when unknown.
    fn begin(&self, stage: &str, total: u64);
    /// That many more units are done.
    fn advance(&self, units: u64);
    /// The stage is over; `summary` is one line for people.
    fn end(&self, summary: &str);
    /// Something worth a line now.
    fn note(&self, line: &str);
}

/// Says nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _: &str, _: u64) {}
    fn advance(&self, _: u64) {}
    fn end(&self, _: &str) {}
    fn note(&self, _: &str) {}
}
