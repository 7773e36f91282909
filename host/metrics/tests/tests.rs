//! Tests of the crate from outside, by theme.

mod agreement;
mod golden;
mod properties;
mod table3;
