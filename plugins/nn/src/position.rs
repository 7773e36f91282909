//! Where a patch lies: learnt tables brought to another grid, and rotary angles. Must not know any model.

mod rotary;
mod table;

pub use rotary::Rotary;
pub use table::{Interpolation, interpolate};
