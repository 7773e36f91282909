//! Dataset mappers: the sandboxed runtime, the tables and image folders it is fed from, the records that come back.
//!
//! Owns: finding files below a data folder, reading label tables, joining them, running a mapper under limits, checking
//! everything it returns. Must not know: any dataset's columns or codings (those live in the mappers), pixels, models,
//! metrics. Prints nothing.

#![forbid(unsafe_code)]

mod accounts;
mod check;
mod contour;
mod contract;
mod descriptor;
mod error;
mod feed;
mod layout;
mod limits;
mod map;
mod outcome;
mod record;
mod registry;
mod run;
mod runtime;
mod table;
mod text;

pub use descriptor::{
    Access, Column, Descriptor, Device, DeviceKind, Field, Folder, ImageKey, Join, OptionSpec,
    Sheet, Table, TableSource, Task,
};
pub use error::{DatasetError, ErrorKind, MapperFault, MapperName, Place, TableFault};
pub use limits::Limits;
pub use map::{Job, Sink, map_dataset, map_stream};
pub use record::{
    Age, BoundingBox, Contour, Dropped, Eye, Finding, Frame, JoinReport, Landmark, LandmarkKind,
    Mapped, Mask, Missing, Quality, Record, SampleId, Sex, Split, Structure, Summary, TableReport,
    TaskLabel, Track, Truth, Unusable, View,
};
pub use registry::{Embedded, MapperSource, describe, registry};
pub use table::{Cells, CsvTable, Encoding};
