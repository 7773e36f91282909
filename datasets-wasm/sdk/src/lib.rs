//! What an author of a dataset mapper sees: the contract's types, a trait over one row, readers of cells that refuse
//! what they do not know, and the rules of the benchmark's tasks.
//!
//! Runs in the guest. It must not know any dataset, and it has nothing to read but the rows it is given.

pub mod bindings;
mod declare;
mod mapper;
mod row;
pub mod rule;

pub use bindings::exports::focus::mapper::mapping::{
    Access, Age, BoundingBox, Cardinality, Column, Contour, Descriptor, Device, DeviceKind, Drop,
    Eye, Failure, Fate, Fields, Finding, Folder, Frame, ImageKey, ImageRef, Join, Label, Landmark,
    LandmarkKind, Mask, OptionSpec, Outcome, Quality, RowRef, Sample, Sex, Sheet, Split, Structure,
    Table, TableSource, Task, Tracks, Truth, View,
};
pub use declare::{
    GLAUCOMA_VCDR, alias, below, files, finding, glaucoma_vcdr, mirrors, optional, required,
    sample, sheet, task,
};
pub use mapper::{Mapper, Options, Session};
pub use row::Row;
