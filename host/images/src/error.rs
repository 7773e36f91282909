//! Image errors: typed, with a stable kind for records and a hint for people. Knows no dataset rows: the caller adds the row.

use std::path::PathBuf;

use crate::ImageFormat;

/// Why an image could not be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// Nothing at the path.
    #[error("No file at `{}`", path.display())]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The file is there and cannot be read.
    #[error("Cannot read `{}`: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// A folder where a file was expected.
    #[error("Expected a file, found a folder: `{}`", path.display())]
    IsADirectory {
        /// The folder.
        path: PathBuf,
    },
    /// A file of no bytes.
    #[error("Image file is empty: expected at least 1 byte, found 0")]
    Empty,
    /// The file is larger than the limit.
    #[error("Image file is too large: expected at most `{limit}` bytes, found `{bytes}`")]
    FileTooLarge {
        /// Bytes found.
        bytes: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// The picture is larger than the limit.
    #[error("Image is too large: expected at most `{limit}` pixels, found `{width}` x `{height}`")]
    TooLarge {
        /// Width in pixels, as the header says.
        width: u64,
        /// Height in pixels, as the header says.
        height: u64,
        /// Pixels allowed.
        limit: u64,
    },
    /// Not a format that is read here.
    #[error("Unknown image format: expected JPEG, PNG, TIFF, BMP, WebP, GIF or PNM, found a file that begins with `{found}`{}", looks_like.map(|name| format!(" ({name})")).unwrap_or_default())]
    UnknownFormat {
        /// First bytes, in hexadecimal.
        found: String,
        /// What the bytes look like, if that is recognised.
        looks_like: Option<&'static str>,
    },
    /// A known format, in a variety that is not read.
    #[error("Unsupported {format} image: {what}")]
    Unsupported {
        /// The format.
        format: ImageFormat,
        /// The variety.
        what: String,
    },
    /// The file ends before the picture does. No part of it is used.
    #[error("Truncated {format} image: {detail}")]
    Truncated {
        /// The format.
        format: ImageFormat,
        /// What the decoder said.
        detail: String,
    },
    /// The file breaks its format's rules, or the decoder warned. No part of it is used.
    #[error("Corrupt {format} image: {detail}")]
    Corrupt {
        /// The format.
        format: ImageFormat,
        /// What the decoder said.
        detail: String,
    },
    /// The picture cannot be brought to the shape asked for.
    #[error("Cannot resize image of `{width}` x `{height}`: {reason}")]
    Geometry {
        /// Width in pixels, oriented.
        width: u32,
        /// Height in pixels, oriented.
        height: u32,
        /// Why.
        reason: String,
    },
    /// A mask holds a value that its coding does not name.
    #[error(
        "Mask value `{value}` is not in the coding: found at `{count}` pixels, expected {expected}"
    )]
    MaskValue {
        /// The stored value, of all such values the one met first.
        value: u16,
        /// Pixels with that value.
        count: u64,
        /// Values of the coding, in words.
        expected: String,
    },
    /// A mask holds colours where labels were expected.
    #[error(
        "Mask holds colours: expected one label a pixel, found `{count}` pixels that are not grey, the first at column `{x}` and row `{y}`"
    )]
    MaskColor {
        /// Column of the first such pixel.
        x: u32,
        /// Row of the first such pixel.
        y: u32,
        /// How many there are.
        count: u64,
    },
    /// The pixel cache's folder cannot be used.
    #[error("Cannot use the pixel cache `{}`: {reason}", path.display())]
    Cache {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// The JPEG library could not be set up.
    #[error("Cannot start the JPEG decoder: {reason}")]
    Decoder {
        /// What the library said.
        reason: String,
    },
}

impl ImageError {
    /// Stable name, for records and counts: `missing`, `unreadable`, `is_a_directory`, `empty`, `too_large`, `unknown_format`, `unsupported`,
    /// `truncated`, `corrupt`, `geometry`, `mask_value`, `mask_color`, `cache` or `decoder`. Names are never changed, only added.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "missing",
            Self::Unreadable { .. } => "unreadable",
            Self::IsADirectory { .. } => "is_a_directory",
            Self::Empty => "empty",
            Self::FileTooLarge { .. } | Self::TooLarge { .. } => "too_large",
            Self::UnknownFormat { .. } => "unknown_format",
            Self::Unsupported { .. } => "unsupported",
            Self::Truncated { .. } => "truncated",
            Self::Corrupt { .. } => "corrupt",
            Self::Geometry { .. } => "geometry",
            Self::MaskValue { .. } => "mask_value",
            Self::MaskColor { .. } => "mask_color",
            Self::Cache { .. } => "cache",
            Self::Decoder { .. } => "decoder",
        }
    }

    /// Whether the fault lies with the image (the run goes on without it) rather than with the machine.
    pub fn is_about_the_image(&self) -> bool {
        !matches!(self, Self::Cache { .. } | Self::Decoder { .. })
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Missing { .. } => "check the data folder and the names in the table, letter case and extension included".into(),
            Self::Unreadable { .. } => "check the file's permissions and the disk".into(),
            Self::IsADirectory { .. } => "give the path of the picture itself".into(),
            Self::Empty => "the download or copy of this file failed: fetch it again".into(),
            Self::FileTooLarge { .. } | Self::TooLarge { .. } => "raise the limit, or store the picture smaller".into(),
            Self::UnknownFormat { looks_like: Some(pointer @ "Git LFS pointer"), .. } => format!("this is a {pointer}, not the picture: fetch the file itself with `git lfs pull`"),
            Self::UnknownFormat { looks_like: Some(page @ "HTML page"), .. } => format!("this is an {page}, often a saved error of a download: fetch the picture again"),
            Self::UnknownFormat { .. } => "convert the picture to PNG without loss; the extension of the name does not matter".into(),
            Self::Unsupported { .. } => "convert the file to PNG without loss: a picture to 8-bit RGB, a mask to 8-bit grey".into(),
            Self::MaskValue { .. } => "check that the file is the mask and not the photograph, that it was never stored with loss (JPEG blurs labels), and the coding of its data set".into(),
            Self::MaskColor { .. } => "store the mask as grey or with a palette, one value for each label".into(),
            Self::Truncated { .. } => "the copy is incomplete: fetch the file again and compare its size or checksum with the source".into(),
            Self::Corrupt { .. } => "fetch the file again; if the source is damaged too, leave the row out".into(),
            Self::Geometry { .. } => "check that the picture is a photograph and not a strip of a few pixels".into(),
            Self::Cache { .. } => "give a folder that you own and that has room".into(),
            Self::Decoder { .. } => return None,
        })
    }
}
