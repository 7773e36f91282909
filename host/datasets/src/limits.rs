//! Every bound on a mapper and on the files it is fed from, in one struct. What a mapper may not do at all (any import)
//! is no limit and is not here.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Bounds on one mapping run. Whatever exceeds one ends the run with an error that names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Size of a mapper's file, in bytes. Default 8 MiB; the built mappers are of 90 to 140 kB.
    pub module_bytes: u64,
    /// Linear memory of the guest, in bytes, all memories together. Default 64 MiB.
    pub memory_bytes: usize,
    /// Elements of the guest's tables, all together. Default 20,000.
    pub table_elements: usize,
    /// Core instances in the component. Default 16.
    pub instances: usize,
    /// Fuel (about one unit an instruction) of one call into the guest. Default 2,000,000,000, a few seconds.
    pub fuel_per_call: u64,
    /// Wall-clock time of one call into the guest. Default 30 s: fuel is what stops a guest, this is what stops a guest
    /// that found work which costs no fuel.
    pub time_per_call: Duration,
    /// Bytes that one call may return, as laid out on the host. Default 16 MiB.
    pub returned_bytes: usize,
    /// Bytes of one text in what a mapper returns. Default 4,096.
    pub text_bytes: usize,
    /// Items of one list within a descriptor or a sample. Default 4,096.
    pub list_items: usize,
    /// Samples of one row. Default 16.
    pub samples_per_row: usize,
    /// Characters of a guest's text that reach an error message. Default 300.
    pub message_chars: usize,
    /// Rows of one call. Default 1,024.
    pub batch_rows: usize,
    /// Bytes of cells of one call; a batch ends with the row that passes it. Default 1 MiB.
    pub batch_bytes: usize,
    /// Size of one table's file, in bytes. Default 2 GiB.
    pub file_bytes: u64,
    /// Size of one workbook or JSON table, in bytes, and what a workbook may unpack to. Default 64 MiB: these are held in
    /// memory.
    pub document_bytes: u64,
    /// Contours of one sample, each of which is a file that is read. Default 64.
    pub contours: usize,
    /// Size of one contour's file, in bytes. Default 1 MiB.
    pub contour_bytes: u64,
    /// Data rows of one table. Default 10,000,000.
    pub rows: u32,
    /// Columns of one table. Default 4,096.
    pub columns: usize,
    /// Bytes of one record (a line, or several where a quoted cell spans them). Default 1 MiB.
    pub record_bytes: usize,
    /// Bytes of one cell. Default 64 KiB.
    pub cell_bytes: usize,
    /// Bytes of cells of the joined tables that are held in memory, all together. Default 256 MiB.
    pub join_bytes: usize,
    /// Files below the image folders, all together. Default 5,000,000.
    pub images: usize,
    /// Levels of sub-folders in a recursive image folder. Default 16.
    pub folder_depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            module_bytes: 8 << 20,
            memory_bytes: 64 << 20,
            table_elements: 20_000,
            instances: 16,
            fuel_per_call: 2_000_000_000,
            time_per_call: Duration::from_secs(30),
            returned_bytes: 16 << 20,
            text_bytes: 4096,
            list_items: 4096,
            samples_per_row: 16,
            message_chars: 300,
            batch_rows: 1024,
            batch_bytes: 1 << 20,
            file_bytes: 2 << 30,
            document_bytes: 64 << 20,
            contours: 64,
            contour_bytes: 1 << 20,
            rows: 10_000_000,
            columns: 4096,
            record_bytes: 1 << 20,
            cell_bytes: 64 << 10,
            join_bytes: 256 << 20,
            images: 5_000_000,
            folder_depth: 16,
        }
    }
}
