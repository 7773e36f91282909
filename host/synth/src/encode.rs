//! Pixels to PNG bytes. Knows nothing of files and eyes.

/// Encodes as PNG, 8-bit RGB, quickly rather than small.
pub fn encode_png(width: u32, height: u32, rgb: &[u8]) -> Result<Vec<u8>, png::EncodingError> {
    encode(
        width,
        height,
        rgb,
        png::ColorType::Rgb,
        png::BitDepth::Eight,
    )
}

/// Encodes a mask of one byte a pixel, 0 or not, as PNG of one bit a pixel: 0 outside, 1 inside, shown black and white.
pub fn encode_mask(width: u32, height: u32, mask: &[u8]) -> Result<Vec<u8>, png::EncodingError> {
    let bits: Vec<u8> = mask
        .chunks(width.max(1) as usize)
        .flat_map(|row| {
            row.chunks(8).map(|eight| {
                let bit = |(i, m): (usize, &u8)| u8::from(*m != 0) << (7 - i);
                eight.iter().enumerate().map(bit).sum::<u8>()
            })
        })
        .collect();
    encode(
        width,
        height,
        &bits,
        png::ColorType::Grayscale,
        png::BitDepth::One,
    )
}

fn encode(
    width: u32,
    height: u32,
    data: &[u8],
    color: png::ColorType,
    depth: png::BitDepth,
) -> Result<Vec<u8>, png::EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(color);
    encoder.set_depth(depth);
    encoder.set_compression(png::Compression::Fast);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(data)?;
    writer.finish()?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, generate};

    fn decode(bytes: Vec<u8>) -> Vec<u8> {
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes))
            .read_info()
            .unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut pixels).unwrap();
        pixels
    }

    #[test]
    fn png_holds_the_pixels() {
        let config = Config {
            size: 64,
            ..Config::default()
        };
        let eye = generate(&config, 0);
        let bytes = encode_png(64, 64, &eye.rgb).unwrap();
        assert_eq!(decode(bytes), eye.rgb);
    }

    #[test]
    fn a_mask_has_one_bit_a_pixel_and_rows_of_whole_bytes() {
        let mask: Vec<u8> = (0..11 * 3).map(|i| u8::from(i % 4 == 1)).collect();
        let packed = decode(encode_mask(11, 3, &mask).unwrap());
        assert_eq!(packed.len(), 2 * 3);
        for (i, m) in mask.iter().enumerate() {
            let (x, y) = (i % 11, i / 11);
            assert_eq!((packed[y * 2 + x / 8] >> (7 - x % 8)) & 1, *m, "pixel {i}");
        }
    }
}
