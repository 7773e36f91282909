//! Caps on what the store reads. A damaged or hostile file must not be able to exhaust memory; it knows no format.

/// Caps on reading, all inclusive. The defaults are far above anything a run writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one file that is streamed (answer log, Parquet). Default 256 GiB.
    pub file_bytes: u64,
    /// Bytes of one file that is read whole (JSON, reports). Default 64 MiB.
    pub text_bytes: u64,
    /// Bytes of a Parquet footer. Default 64 MiB.
    pub footer_bytes: u64,
    /// Bytes of one Parquet page after decompression. Default 64 MiB.
    pub page_bytes: u64,
    /// Bytes of one Parquet row group after decompression. Default 512 MiB.
    pub row_group_bytes: u64,
    /// Rows of one row group. Default 1,048,576.
    pub row_group_rows: u64,
    /// Rows of one table. Default 50 million.
    pub rows: u64,
    /// Bytes of one text value. Default 1 MiB.
    pub string_bytes: usize,
    /// Bytes of one answer-log frame. Default 256 MiB.
    pub frame_bytes: u32,
    /// Values of one embedding. Default 65,536.
    pub dim: usize,
    /// Bytes of one cache segment. Default 1 GiB.
    pub segment_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            file_bytes: 256 << 30,
            text_bytes: 64 << 20,
            footer_bytes: 64 << 20,
            page_bytes: 64 << 20,
            row_group_bytes: 512 << 20,
            row_group_rows: 1 << 20,
            rows: 50_000_000,
            string_bytes: 1 << 20,
            frame_bytes: 256 << 20,
            dim: 1 << 16,
            segment_bytes: 1 << 30,
        }
    }
}
