//! Which format the bytes are, by their first bytes; names are never asked. Decodes nothing.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::ImageError;

/// Formats that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageFormat {
    /// JPEG, baseline or progressive; the first picture of a multi-picture file (MPO).
    Jpeg,
    /// PNG.
    Png,
    /// TIFF; the first page.
    Tiff,
    /// Windows or OS/2 bitmap.
    Bmp,
    /// WebP; the first frame.
    Webp,
    /// GIF; the first frame.
    Gif,
    /// Portable anymap: PBM, PGM, PPM, binary.
    Pnm,
}

impl ImageFormat {
    /// The format of a file's bytes, where it is one that is read here.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        sniff(bytes).ok()
    }

    /// Extensions that names of such files have, in lower case.
    fn extensions(self) -> &'static [&'static str] {
        match self {
            Self::Jpeg => &["jpg", "jpeg", "jpe", "jfif", "mpo"],
            Self::Png => &["png"],
            Self::Tiff => &["tif", "tiff"],
            Self::Bmp => &["bmp", "dib"],
            Self::Webp => &["webp"],
            Self::Gif => &["gif"],
            Self::Pnm => &["pbm", "pgm", "ppm", "pnm"],
        }
    }

    /// A remark where a file's name promises something else than its content is; `None` where they agree or the name promises nothing.
    pub fn remark_on_name(self, path: &Path) -> Option<String> {
        let extension = path.extension()?.to_str()?;
        let lower = extension.to_ascii_lowercase();
        (!self.extensions().contains(&lower.as_str()))
            .then(|| format!("the name ends in `.{extension}`, and the content is {self}"))
    }
}

impl fmt::Display for ImageFormat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Jpeg => "JPEG",
            Self::Png => "PNG",
            Self::Tiff => "TIFF",
            Self::Bmp => "BMP",
            Self::Webp => "WebP",
            Self::Gif => "GIF",
            Self::Pnm => "PNM",
        })
    }
}

/// First bytes of what is read here.
const READ: &[(&[u8], ImageFormat)] = &[
    (b"\xFF\xD8\xFF", ImageFormat::Jpeg),
    (b"\x89PNG\r\n\x1A\n", ImageFormat::Png),
    (b"II*\0", ImageFormat::Tiff),
    (b"MM\0*", ImageFormat::Tiff),
    // BigTIFF, for the reader to name.
    (b"II+\0", ImageFormat::Tiff),
    (b"MM\0+", ImageFormat::Tiff),
    (b"GIF87a", ImageFormat::Gif),
    (b"GIF89a", ImageFormat::Gif),
    (b"P4", ImageFormat::Pnm),
    (b"P5", ImageFormat::Pnm),
    (b"P6", ImageFormat::Pnm),
    (b"BM", ImageFormat::Bmp),
];

/// First bytes of what people keep pictures in, or get in place of them.
const KNOWN: &[(&[u8], &str)] = &[
    (b"RIFF", "RIFF container, such as sound"),
    (b"\0\0\0\x0CjP  ", "JPEG 2000"),
    (b"\xFF\x4F\xFF\x51", "JPEG 2000 code stream"),
    (b"\x1F\x8B", "gzip archive"),
    (b"P1", "portable anymap in text form"),
    (b"P2", "portable anymap in text form"),
    (b"P3", "portable anymap in text form"),
    (b"8BPS", "Photoshop document"),
    (b"PK\x03\x04", "ZIP archive"),
    (b"%PDF", "PDF"),
    (b"\x89HDF", "HDF5"),
    (b"\x93NUMPY", "NumPy array"),
    (b"version https://git-lfs", "Git LFS pointer"),
    (b"<", "HTML page"),
];

/// The format of `bytes`, or an error that shows what was found.
pub(crate) fn sniff(bytes: &[u8]) -> Result<ImageFormat, ImageError> {
    if bytes.is_empty() {
        return Err(ImageError::Empty);
    }
    if bytes.starts_with(b"RIFF") {
        match bytes.get(8..12) {
            Some(b"WEBP") => return Ok(ImageFormat::Webp),
            Some(_) => {}
            None => {
                return Err(ImageError::Truncated {
                    format: ImageFormat::Webp,
                    detail: "the signature is not complete".into(),
                });
            }
        }
    }
    for &(magic, format) in READ {
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
        for (bytes, format) in [
            (&b"\xFF\xD8\xFF\xE0..."[..], ImageFormat::Jpeg),
            (b"\x89PNG\r\n\x1A\n....", ImageFormat::Png),
            (b"II*\0....", ImageFormat::Tiff),
            (b"MM\0*....", ImageFormat::Tiff),
            (b"RIFF....WEBPVP8 ", ImageFormat::Webp),
            (b"GIF89a..", ImageFormat::Gif),
            (b"BM......", ImageFormat::Bmp),
            (b"P5 3 2 255 ", ImageFormat::Pnm),
        ] {
            assert_eq!(sniff(bytes).unwrap(), format);
        }
        assert_eq!(sniff(b"").unwrap_err().kind(), "empty");
        for bytes in [&b"\x89PNG"[..], b"II", b"RIFF....WEB", b"GIF89"] {
            assert_eq!(sniff(bytes).unwrap_err().kind(), "truncated");
        }
        let error = sniff(b"%PDF-1.7 and more").unwrap_err();
        assert_eq!(
            error.to_string(),
            "Unknown image format: expected JPEG, PNG, TIFF, BMP, WebP, GIF or PNM, found a file that begins with `25 50 44 46 2d 31 2e 37 20 61 6e 64` (PDF)"
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

    #[test]
    fn names_that_promise_something_else_are_remarked_on() {
        let remark = |name: &str| ImageFormat::Png.remark_on_name(Path::new(name));
        assert_eq!(remark("a.png"), None);
        assert_eq!(remark("a.PNG"), None);
        assert_eq!(remark("a"), None);
        assert_eq!(
            remark("a..JPG").unwrap(),
            "the name ends in `.JPG`, and the content is PNG"
        );
    }
}
