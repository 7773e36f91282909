//! What can be wrong with a request to resize. Knows no pixels.

/// Why a resize was refused; nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ResizeError {
    /// A side of the source, the target or the window is zero.
    #[error("Image sides must be at least 1, found `{width}` x `{height}` for the {what}")]
    EmptySide {
        /// Which size: source, target or window.
        what: &'static str,
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
    },
    /// Only 1, 3 and 4 interleaved channels have kernels.
    #[error("Expected 1, 3 or 4 channels, found `{found}`")]
    Channels {
        /// What the caller asked for.
        found: usize,
    },
    /// A buffer does not hold width x height x channels values.
    #[error("Expected `{expected}` values in the {what} buffer, found `{found}`")]
    BufferLength {
        /// `source`, `destination`, or which plane.
        what: &'static str,
        /// Width x height x channels; of a plane, the fewest that reach its last sample.
        expected: usize,
        /// The buffer's length.
        found: usize,
    },
    /// The planes are of another size than the scaling's source.
    #[error(
        "Expected planes of `{width}` x `{height}` pixels, found `{found_width}` x `{found_height}`"
    )]
    PlanesSize {
        /// Width of the source in pixels.
        width: u32,
        /// Height of the source in pixels.
        height: u32,
        /// Width of the planes' picture in pixels.
        found_width: u32,
        /// Height of the planes' picture in pixels.
        found_height: u32,
    },
    /// Chroma rows so short that libjpeg-turbo repeats their samples, where longer rows are widened smoothly.
    #[error("Expected chroma rows of at least `3` samples, found `{found}`")]
    NarrowChroma {
        /// Samples in a row.
        found: usize,
    },
    /// The region to read is not finite, is empty, or leaves the source.
    #[error(
        "Region `{left}, {top}, {right}, {bottom}` must be a non-empty part of the source `{width}` x `{height}`"
    )]
    Region {
        /// Left edge in source pixels.
        left: f32,
        /// Upper edge in source pixels.
        top: f32,
        /// Right edge in source pixels.
        right: f32,
        /// Lower edge in source pixels.
        bottom: f32,
        /// Width of the source in pixels.
        width: u32,
        /// Height of the source in pixels.
        height: u32,
    },
    /// The window to write leaves the target.
    #[error(
        "Window of `{width}` x `{height}` at `{x}, {y}` must lie within the target `{target_width}` x `{target_height}`"
    )]
    Window {
        /// Left column.
        x: u32,
        /// Upper row.
        y: u32,
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
        /// Width of the whole target.
        target_width: u32,
        /// Height of the whole target.
        target_height: u32,
    },
    /// Side lengths whose coefficient table or buffers would not fit in memory.
    #[error("Resizing `{from}` pixels to `{to}` needs more memory than can be addressed")]
    TooLarge {
        /// Source side in pixels.
        from: u32,
        /// Target side in pixels.
        to: u32,
    },
    /// The SIMD back end asked for is not available on this processor.
    #[error("Back end `{backend}` is not available on this processor")]
    Backend {
        /// Its name.
        backend: &'static str,
    },
}

impl ResizeError {
    /// What the caller can do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::EmptySide { .. } => "give width and height of at least one pixel".into(),
            Self::Channels { .. } => {
                "expand or split the image into 1, 3 or 4 interleaved channels first".into()
            }
            Self::BufferLength { .. } => {
                "rows are tightly packed: width x height x channels values, no padding".into()
            }
            Self::PlanesSize { .. } => "make the scaling for the planes' own size".into(),
            Self::NarrowChroma { .. } => "decode such pictures to RGB, and resize that".into(),
            Self::Region { .. } => {
                "regions are left, top, right, bottom in source pixels, within the source".into()
            }
            Self::Window { .. } => "windows are in pixels of the target after resizing".into(),
            Self::TooLarge { .. } => "resize in two steps, or to a smaller size".into(),
            Self::Backend { .. } => "use `Backend::best()`".into(),
        })
    }
}
