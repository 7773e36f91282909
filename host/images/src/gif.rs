//! GIF: the first frame, as indices. Later frames are counted by nobody: a photograph has one.

use std::num::NonZeroU64;

use gif::{DecodeOptions, DecodingError, MemoryLimit};

use crate::raster::{Color, Raster, Samples, check_size};
use crate::{ImageError, ImageFormat, Limits};

const FORMAT: ImageFormat = ImageFormat::Gif;

/// The first frame, which must cover the whole picture.
pub(crate) fn decode(bytes: &[u8], limits: &Limits) -> Result<Raster, ImageError> {
    let mut options = DecodeOptions::new();
    let most = NonZeroU64::new(limits.max_pixels.max(1)).expect("at least one");
    options.set_memory_limit(MemoryLimit::Bytes(most));
    options.check_frame_consistency(true);
    let mut decoder = options.read_info(bytes).map_err(|error| fault(&error))?;
    let (width, height) = (decoder.width(), decoder.height());
    check_size(width.into(), height.into(), FORMAT, limits)?;
    let global = decoder.global_palette().map(<[u8]>::to_vec);
    let frame = decoder
        .read_next_frame()
        .map_err(|error| fault(&error))?
        .ok_or_else(|| ImageError::Truncated {
            format: FORMAT,
            detail: "no frame".into(),
        })?;
    let covers = (frame.left, frame.top, frame.width, frame.height) == (0, 0, width, height);
    if !covers {
        return Err(ImageError::Unsupported {
            format: FORMAT,
            what: "a first frame that does not cover the picture".into(),
        });
    }
    let palette = frame.palette.clone().or(global).unwrap_or_default();
    let colors = palette.as_chunks::<3>().0.iter().enumerate();
    let colors = colors
        .map(|(index, &[r, g, b])| {
            let clear = frame.transparent.is_some_and(|at| usize::from(at) == index);
            [r, g, b, if clear { 0 } else { 255 }]
        })
        .collect();
    Ok(Raster {
        width: width.into(),
        height: height.into(),
        color: Color::Palette(colors),
        bits: 8,
        stride: 1,
        premultiplied: false,
        samples: Samples::Bytes(frame.buffer.to_vec()),
    })
}

fn fault(error: &DecodingError) -> ImageError {
    let detail = error.to_string().trim_end_matches('.').to_owned();
    match error {
        DecodingError::UnexpectedEof => ImageError::Truncated {
            format: FORMAT,
            detail,
        },
        DecodingError::Io(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            ImageError::Truncated {
                format: FORMAT,
                detail,
            }
        }
        DecodingError::OutOfMemory | DecodingError::MemoryLimit => ImageError::Unsupported {
            format: FORMAT,
            what: "it needs more memory than is allowed".into(),
        },
        _ => ImageError::Corrupt {
            format: FORMAT,
            detail,
        },
    }
}
