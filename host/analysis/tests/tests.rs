//! What the tables say on small grids whose answers are known by hand.

mod adversarial;
mod cells;
mod comparing;
mod fine_tuning;
mod grids;
mod support;
mod tables;
