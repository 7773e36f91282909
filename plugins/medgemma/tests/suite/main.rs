//! The plugin against the reference's numbers on a tiny model (`scripts/copy_fixtures.py`), and on what must be refused.

#![expect(clippy::unwrap_used, reason = "tests")]

mod adapters;
mod answers;
mod data;
mod folders;
mod numbers;
mod toy;
mod traps;
