//! The encoder against the publisher's own Python code (`scripts/make_reference.py`), and what it refuses.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod reference;
mod refusals;
mod support;
