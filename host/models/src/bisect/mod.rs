//! From a failed call to what fails in it. Works over any way of calling a model; knows no processes.

mod groups;
mod images;

pub(crate) use groups::{GroupCaller, settle_groups};
pub(crate) use images::{Called, Caller, RowResult, settle};
