//! Which format the bytes are, by their first bytes; names are never asked. Decodes nothing.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ImageError;

/// Formats that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageFormat {
    /// JPEG, baseline or progressive.
    Jpeg,
    /// PNG.
    Png,
}

impl fmt::Display for ImageFormat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Jpeg => "JPEG",
            Self::Png => "PNG",
        })
    }
}

const JPEG: &[u8] = b"\xFF\xD8\xFF";
const PNG: &[u8] = b"\x89PNG\r\n\x1A\n";

/// First bytes of what people keep pictures in, or get in place of them.
const KNOWN: &[(&[u8], &str)] = &[
    (b"GIF8", "GIF"),
    (b"II*\0", "TIFF"),
    (b"MM\0*", "TIFF"),
    (b"II+\0", "BigTIFF"),
    (b"BM", "BMP"),
    (b"RIFF", "RIFF container, perhaps WebP"),
    (b"\0\0\0\x0CjP  ", "JPEG 2000"),
    (b"\xFF\x4F\xFF\x51", "JPEG 2000 code stream"),
    (b"\x1F\x8B", "gzip archive"),
    (b"PK\x03\x04", "ZIP archive"),
    (b"%PDF", "PDF"),
    (b"\x89HDF", "HDF5"),
    (b"\x93NUMPY", "NumPy array"),
    (b"P5", "PGM"),
    (b"P6", "PPM"),
    (b"version https://git-lfs", "Git LFS pointer"),
    (b"<", "HTML page"),
];

/// The format of `bytes`, or an error that shows what was found.
pub(crate) fn sniff(bytes: &[u8]) -> Result<ImageFormat, ImageError> {
    if bytes.is_empty() {
        return Err(ImageError::Empty);
    }
    for (magic, format) in [(JPEG, ImageFormat::Jpeg), (PNG, ImageFormat::Png)] {
        if bytes.starts_with(magic) {
            return Ok(format);
        }
        if magic.starts_with(bytes) {
            return Err(ImageError::Truncated {
                format,
                detail: format!(
                    "only the first `{}` bytes of the signature are there",
                    bytes.len()
                ),
            });
        }
    }
    let found = bytes
        .iter()
        .take(12)
        .map(|byte| format!("{byte:02x}"))
        .collect::<Vec<_>>()
        .join(" ");
    Err(ImageError::UnknownFormat {
        found,
        looks_like: looks_like(bytes),
    })
}

fn looks_like(bytes: &[u8]) -> Option<&'static str> {
    if bytes.get(128..132) == Some(b"DICM") {
        return Some("DICOM");
    }
    if bytes.get(4..8) == Some(b"ftyp") {
        return Some("ISO media file, perhaps HEIC or AVIF");
    }
    KNOWN
        .iter()
        .find(|(magic, _)| bytes.starts_with(magic))
        .map(|&(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_recognised_and_others_named() {
        assert_eq!(sniff(b"\xFF\xD8\xFF\xE0...").unwrap(), ImageFormat::Jpeg);
        assert_eq!(sniff(b"\x89PNG\r\n\x1A\n....").unwrap(), ImageFormat::Png);
        assert_eq!(sniff(b"").unwrap_err().kind(), "empty");
        assert_eq!(sniff(b"\x89PNG").unwrap_err().kind(), "truncated");
        let error = sniff(b"II*\0rest of a TIFF").unwrap_err();
        assert_eq!(
            error.to_string(),
            "Unknown image format: expected JPEG or PNG, found a file that begins with `49 49 2a 00 72 65 73 74 20 6f 66 20` (TIFF)"
        );
        let mut dicom = vec![0; 200];
        dicom[128..132].copy_from_slice(b"DICM");
        assert!(sniff(&dicom).unwrap_err().to_string().ends_with("(DICOM)"));
        assert!(
            sniff(b"version https://git-lfs.github.com/spec/v1")
                .unwrap_err()
                .hint()
                .unwrap()
                .contains("git lfs pull")
        );
        assert!(
            sniff(b"\x01\x02")
                .unwrap_err()
                .to_string()
                .ends_with("`01 02`")
        );
    }
}
