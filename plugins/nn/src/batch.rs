//! Rows of one call when nobody names a number. Must not know any model.
//!
//! A function of architecture and kind of device alone, never of the memory that happens to be free: batch shape decides last bits, so
//! a run that is resumed while another program uses the device must still be asked in the same shape.

use candle_core::{DType, Device};

/// Bytes of intermediate values that a device other than the CPU is taken to have beside the weights.
const ROOM: u64 = 4 << 30;
/// Largest batch: beyond it products are no faster.
const LARGEST: u32 = 128;

/// On the CPU the card's number, which suits its caches; elsewhere the largest power of two whose intermediate values fit into 4 GiB
/// at `image_bytes` an image, at least 1.
pub fn auto(card: u32, device: &Device, image_bytes: u64) -> u32 {
    if device.is_cpu() {
        card
    } else {
        within(ROOM, image_bytes)
    }
}

fn within(room: u64, image_bytes: u64) -> u32 {
    let fit = u32::try_from(room / image_bytes.max(1)).unwrap_or(u32::MAX);
    let fit = fit.clamp(1, LARGEST);
    // The largest power of two that is no larger.
    1 << fit.ilog2()
}

/// Most bytes that live at once while one block of a transformer runs on an image: residual, normed input, queries, keys and values,
/// their arrangement by heads, scores before and after softmax, both sides of the feed-forward's activation.
pub fn transformer_bytes(
    tokens: usize,
    dim: usize,
    hidden: usize,
    heads: usize,
    dtype: DType,
) -> u64 {
    let (tokens, dim, hidden, heads) = (tokens as u64, dim as u64, hidden as u64, heads as u64);
    let values = tokens * (2 * dim + 6 * dim + 2 * hidden) + 2 * heads * tokens * tokens;
    values * dtype.size_in_bytes() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_takes_the_cards_number_and_others_what_fits() {
        assert_eq!(auto(8, &Device::Cpu, u64::MAX), 8);
        // ViT-L/16 at 224 pixels in f32: 197 tokens.
        let image = transformer_bytes(197, 1024, 4096, 16, DType::F32);
        assert!((15_000_000..25_000_000).contains(&image), "{image}");
        assert_eq!(within(ROOM, image), 128);
        // At 448 pixels scores grow with the square.
        let large = transformer_bytes(1024, 1152, 4304, 16, DType::F32);
        assert_eq!(within(ROOM, large), 16);
        assert_eq!(within(ROOM, u64::MAX), 1);
        assert_eq!(within(3 * 1000, 1000), 2);
    }
}
