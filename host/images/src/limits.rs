//! The caps on what is read and decoded, in one place. Knows no formats.

/// Caps that hold before anything is allocated. The defaults admit every photograph of the public retinal sets with room to spare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest file that is read, in bytes. Default 512 MiB.
    pub max_file_bytes: u64,
    /// Largest image that is decoded, in pixels: width x height as stored. Default 256 million, which is 768 MB of RGB.
    /// Half of it for JPEG in inks and for TIFF of more than eight bytes a pixel, which need a second buffer.
    pub max_pixels: u64,
    /// Scans that a progressive JPEG may have; each costs a pass over the image. Default 500; real encoders write about ten.
    pub max_jpeg_scans: u32,
    /// What the PNG and WebP decoders may allocate for text, profiles and the like, in bytes. Default 64 MiB.
    pub max_extra_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_file_bytes: 512 << 20,
            max_pixels: 256_000_000,
            max_jpeg_scans: 500,
            max_extra_bytes: 64 << 20,
        }
    }
}
