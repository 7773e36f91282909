//! Tests of the crate from outside, by theme.
#![expect(
    clippy::unwrap_used,
    reason = "a test stops at the first surprise; helpers are not seen as tests"
)]

mod agreement;
mod gap;
mod golden;
mod properties;
mod python;
mod table3;
