//! The traits an author implements, and what goes in and out of them. Must not know how batches cross.

use crate::{Error, Generator, Host, LoraAdaptable, OpenedModel, PixelType};

/// An open model. Interfaces are asked for one by one; each later interface is another method here with a default of `None`.
pub trait Model {
    /// What was opened: the truth about device, dtype, dimension, card and batch size in force. Asked once, right after `open`.
    fn opened(&self) -> OpenedModel;

    /// Image to embedding (VM, VLM).
    fn image_encoder(&mut self) -> Option<&mut dyn ImageEncoder> {
        None
    }

    /// Texts into the image embeddings' space (VLM).
    fn dual_encoder(&mut self) -> Option<&mut dyn DualEncoder> {
        None
    }

    /// Pictures and prompts to text and token scores (MLLM).
    fn generator(&mut self) -> Option<&mut dyn Generator> {
        None
    }

    /// Low-rank adapters.
    fn lora_adaptable(&mut self) -> Option<&mut dyn LoraAdaptable> {
        None
    }
}

/// The text side of a dual encoder; its image side is its [`ImageEncoder`].
pub trait DualEncoder {
    /// Embed texts, in order. Texts of one call are the classes of one question; see [`crate::TextRequest`].
    fn encode_texts(&mut self, texts: &[String], host: &Host) -> Result<TextEmbeddings, Error>;
}

/// Embeddings of texts, and what the network saw of them.
#[derive(Debug, Clone, PartialEq)]
pub struct TextEmbeddings {
    /// One row for each text.
    pub rows: Embeddings,
    /// Token ids of each text, with padding.
    pub tokens: Vec<Vec<u32>>,
    /// Whether a text was cut, one for each.
    pub truncated: Vec<bool>,
}

/// Image to embedding.
pub trait ImageEncoder {
    /// Embed the used images of a batch, in order: one row for each. (Rows for the padding too are accepted and ignored.)
    fn encode(&mut self, images: &ImageBatch<'_>, host: &Host) -> Result<Embeddings, Error>;
}

/// A batch of RGB images of one size, row-major, channels interleaved, no padding inside an image. Borrowed from the host's memory.
///
/// Channels are bytes or, for cards of mode `float`, f32 in units of pixel/255; [`Self::floats`] gives those.
#[derive(Debug, Clone, Copy)]
pub struct ImageBatch<'a> {
    pixels: &'a [u8],
    kind: PixelType,
    width: usize,
    height: usize,
    rows: usize,
    used: usize,
}

impl<'a> ImageBatch<'a> {
    /// A view of `pixels`: `rows * height * width * 3` bytes, of which the first `used` images are real.
    pub fn new(pixels: &'a [u8], width: usize, height: usize, used: usize) -> Result<Self, Error> {
        Self::of_type(pixels, PixelType::U8, width, height, used)
    }

    /// A view of `pixels` of either number type: `rows * height * width` times `kind`'s bytes a pixel.
    pub fn of_type(
        pixels: &'a [u8],
        kind: PixelType,
        width: usize,
        height: usize,
        used: usize,
    ) -> Result<Self, Error> {
        let image = width
            .checked_mul(height)
            .and_then(|n| n.checked_mul(kind.pixel_bytes() as usize))
            .filter(|&n| n > 0);
        let Some(image) = image.filter(|n| pixels.len().is_multiple_of(*n)) else {
            return Err(Error::invalid_request(format!(
                "Pixels do not divide into images: expected a multiple of {width} x {height} x {} bytes, found {}",
                kind.pixel_bytes(),
                pixels.len()
            )));
        };
        let rows = pixels.len() / image;
        if used > rows {
            return Err(Error::invalid_request(format!(
                "More images used than present: expected at most {rows}, found {used}"
            )));
        }
        Ok(Self {
            pixels,
            kind,
            width,
            height,
            rows,
            used,
        })
    }

    /// Image width in pixels.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Image height in pixels.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Images in the batch with its black padding: always the model's batch size.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Leading images that are real.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Number type of the channels.
    pub fn kind(&self) -> PixelType {
        self.kind
    }

    /// One image, `height * width` times the bytes of a pixel. Panics past `rows`.
    pub fn image(&self, row: usize) -> &'a [u8] {
        let size = self.width * self.height * self.kind.pixel_bytes() as usize;
        &self.pixels[row * size..][..size]
    }

    /// Every image with the padding, as f32 in units of pixel/255, `rows * height * width * 3` values: the values themselves for
    /// [`PixelType::F32`], a division for bytes.
    pub fn floats(&self) -> Vec<f32> {
        match self.kind {
            PixelType::U8 => self.pixels.iter().map(|&v| f32::from(v) / 255.0).collect(),
            PixelType::F32 => self
                .pixels
                .chunks_exact(4)
                .map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]))
                .collect(),
        }
    }

    /// The real images, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let this = *self;
        (0..this.used).map(move |row| this.image(row))
    }

    /// Every image with the padding, one after the other: for models that keep the batch's shape fixed.
    pub fn padded(&self) -> &'a [u8] {
        self.pixels
    }
}

/// Rows of embeddings.
#[derive(Debug, Clone, PartialEq)]
pub struct Embeddings {
    dim: usize,
    values: Vec<f32>,
}

impl Embeddings {
    /// `values` are row-major, `dim` to a row. They go to the host without a copy.
    pub fn new(dim: usize, values: Vec<f32>) -> Result<Self, Error> {
        if dim == 0 || !values.len().is_multiple_of(dim) {
            return Err(Error::internal(format!(
                "Embedding values do not divide into rows: expected a multiple of {dim}, found {}",
                values.len()
            )));
        }
        Ok(Self { dim, values })
    }

    /// Values in a row.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.values.len() / self.dim
    }

    /// The values, row-major.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    pub(crate) fn into_values(self) -> Vec<f32> {
        self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_cut_into_images() {
        let bytes: Vec<u8> = (0..36).collect();
        let batch = ImageBatch::new(&bytes, 2, 2, 2).expect("fits");
        assert_eq!((batch.rows(), batch.used(), batch.iter().len()), (3, 2, 2));
        assert_eq!(batch.iter().nth(1).expect("there"), &bytes[12..24]);
        assert_eq!(batch.padded().len(), 36);
    }

    #[test]
    fn senseless_batches_are_refused() {
        for (bytes, width, height, used) in [
            (11, 2, 2, 0),
            (12, 0, 2, 0),
            (12, 2, 2, 2),
            (12, usize::MAX, 2, 0),
        ] {
            assert!(
                ImageBatch::new(&vec![0; bytes], width, height, used).is_err(),
                "{bytes} {width} {height} {used}"
            );
        }
    }

    #[test]
    fn embeddings_are_whole_rows() {
        assert_eq!(Embeddings::new(2, vec![0.0; 6]).expect("fits").rows(), 3);
        assert!(Embeddings::new(4, vec![0.0; 6]).is_err());
        assert!(Embeddings::new(0, Vec::new()).is_err());
    }
}
