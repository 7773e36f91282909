//! Label tables: bytes to text, text to rows, rows to the columns a mapper asked for, rows joined to rows.

mod csv;
mod decode;
mod header;
mod join;
mod json;
mod reader;
mod sheet;
mod whole;

pub use csv::{Cells, CsvTable};

pub use decode::Encoding;
pub(crate) use join::Partners;
pub(crate) use reader::Reader;
