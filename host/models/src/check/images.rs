//! Batches of images: what was opened must be something the host can feed, and a reply must have the shape asked for. Knows no texts.

use super::{MAX_BATCH, MAX_SIDE};
use crate::error::wire_error;
use crate::{ModelError, PreparedImage};
use focus_plugin_abi::v1::message::{EncodeRequest, OpenedModel, PixelMode, PixelType};
use focus_wire::{FailureKind, MAX_FRAME, Matrix, Reply, WireError};

/// The shape of every call to one open model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) batch_size: u32,
    pub(crate) dim: u32,
    /// Number type of the channels.
    pub(crate) pixels: PixelType,
    /// Bytes of one image.
    pub(crate) image_bytes: usize,
}

impl Plan {
    /// What was opened, if the host can feed it.
    pub(crate) fn new(opened: &OpenedModel) -> Result<Self, WireError> {
        let card = &opened.preprocessing;
        let bad = |what: String| {
            wire_error(
                FailureKind::BadReply,
                format!("Opened model `{}`: {what}", opened.model),
            )
        };
        let pixels = match card.mode {
            PixelMode::Resized => PixelType::U8,
            PixelMode::Float => PixelType::F32,
            PixelMode::Own => {
                return Err(bad(
                    "an image encoder cannot take full images (mode `self`)".to_owned(),
                ));
            }
        };
        for (name, side) in [("width", card.width), ("height", card.height)] {
            if side == 0 || side > MAX_SIDE {
                return Err(bad(format!(
                    "{name} must be 1 to {MAX_SIDE} pixels, found {side}"
                )));
            }
        }
        if opened.batch_size == 0 || opened.batch_size > MAX_BATCH {
            return Err(bad(format!(
                "batch size must be 1 to {MAX_BATCH}, found {}",
                opened.batch_size
            )));
        }
        let reply = u64::from(opened.batch_size) * u64::from(opened.embedding_dim) * 4;
        if reply == 0 || reply > MAX_FRAME as u64 / 2 {
            return Err(bad(format!(
                "a reply of {} rows of {} values has no place in a message",
                opened.batch_size, opened.embedding_dim
            )));
        }
        let bytes =
            u64::from(card.width) * u64::from(card.height) * u64::from(pixels.pixel_bytes());
        if bytes * u64::from(opened.batch_size) > focus_os::shm::MAX_BYTES / 4 {
            return Err(bad(format!(
                "a batch of {} images of {bytes} bytes is too large",
                opened.batch_size
            )));
        }
        Ok(Self {
            width: card.width,
            height: card.height,
            batch_size: opened.batch_size,
            dim: opened.embedding_dim,
            pixels,
            image_bytes: bytes as usize,
        })
    }

    /// Bytes of one batch.
    pub(crate) fn batch_bytes(&self) -> u64 {
        self.image_bytes as u64 * u64::from(self.batch_size)
    }

    /// Header of a call whose last real image lies in row `used - 1`. Never 0: an all-black call is about one black image.
    pub(crate) fn header(&self, used: usize) -> String {
        let request = EncodeRequest {
            width: self.width,
            height: self.height,
            rows: self.batch_size,
            used: used.max(1) as u32,
            pixels: self.pixels,
        };
        serde_json::to_string(&request).expect("numbers are JSON")
    }

    /// The caller's batch must fit.
    pub(crate) fn admit(&self, model: &str, images: &[PreparedImage]) -> Result<(), ModelError> {
        let bad = |expected: String, found: String| ModelError::BadBatch {
            model: model.to_owned(),
            expected,
            found,
        };
        if images.len() > self.batch_size as usize {
            return Err(bad(
                format!("at most {} images", self.batch_size),
                format!("{} images", images.len()),
            ));
        }
        match images
            .iter()
            .find(|image| image.pixels.len() != self.image_bytes)
        {
            Some(image) => Err(bad(
                format!(
                    "{} bytes an image ({} x {} x {})",
                    self.image_bytes,
                    self.width,
                    self.height,
                    self.pixels.pixel_bytes()
                ),
                format!("{} bytes for sample {}", image.pixels.len(), image.sample),
            )),
            None => Ok(()),
        }
    }

    /// Lay images at their rows in `memory`. Rows left out before the last image repeat the first one: a model counts them as
    /// used, and may refuse a black image where it would ignore black padding. Rows after the last image are black.
    pub(crate) fn lay(&self, memory: &mut [u8], images: &[(usize, &[u8])]) {
        let size = self.image_bytes;
        let mut next = 0;
        for (row, pixels) in images {
            for gap in next..*row {
                memory[gap * size..][..size].copy_from_slice(images[0].1);
            }
            memory[row * size..][..size].copy_from_slice(pixels);
            next = row + 1;
        }
        memory[next * size..self.batch_size as usize * size].fill(0);
    }

    /// The reply as a whole: as many rows and values as asked for.
    pub(crate) fn check(&self, reply: Reply) -> Result<Vec<f32>, WireError> {
        let bad = |what: String| Err(wire_error(FailureKind::BadReply, what));
        let Some(Matrix { rows, dim, values }) = reply.matrix else {
            return bad("Reply has no embeddings".to_owned());
        };
        if rows != self.batch_size {
            return bad(format!(
                "Reply has the wrong number of rows: expected {}, found {rows}",
                self.batch_size
            ));
        }
        if dim != self.dim {
            return bad(format!(
                "Reply has the wrong width: expected {} values a row, found {dim}",
                self.dim
            ));
        }
        let expected = rows as usize * dim as usize;
        if values.len() != expected {
            return bad(format!(
                "Reply has the wrong length: expected {expected} values, found {}",
                values.len()
            ));
        }
        Ok(values)
    }

    /// The rows asked for out of a checked reply, each if all of it is finite. The copies of the first image that fill the gaps
    /// (see [`Self::lay`]) count as that image: a model may well trip over the first copy it meets.
    pub(crate) fn rows(
        &self,
        values: &[f32],
        rows: impl IntoIterator<Item = usize>,
    ) -> Vec<Result<Vec<f32>, WireError>> {
        let mut results = Vec::new();
        let mut next = 0;
        let mut copy = None;
        for row in rows {
            copy = copy.or_else(|| (next..row).find_map(|gap| self.row(values, gap).err()));
            results.push(self.row(values, row));
            next = row + 1;
        }
        if let (Some(error), Some(first)) = (copy, results.first_mut())
            && first.is_ok()
        {
            *first = Err(error);
        }
        results
    }

    /// One row, if all of it is finite.
    fn row(&self, values: &[f32], row: usize) -> Result<Vec<f32>, WireError> {
        let dim = self.dim as usize;
        let values = &values[row * dim..][..dim];
        match values.iter().position(|value| !value.is_finite()) {
            Some(at) => {
                let message = format!(
                    "Embedding is not finite: found {} at position {at} of {dim}",
                    values[at]
                );
                Err(wire_error(FailureKind::BadReply, message))
            }
            None => Ok(values.to_vec()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::opened;

    fn reply(rows: u32, dim: u32, values: Vec<f32>) -> Reply {
        Reply {
            header: String::new(),
            matrix: Some(Matrix { rows, dim, values }),
        }
    }

    #[test]
    fn shapes_that_cannot_be_fed_are_refused() {
        let good = opened(4, 3, 2, 2);
        let plan = Plan::new(&good).expect("fits");
        assert_eq!((plan.image_bytes, plan.batch_bytes()), (12, 48));
        for spoil in [
            |o: &mut OpenedModel| o.batch_size = 0,
            |o: &mut OpenedModel| o.batch_size = 5000,
            |o: &mut OpenedModel| o.embedding_dim = 0,
            |o: &mut OpenedModel| o.embedding_dim = u32::MAX,
            |o: &mut OpenedModel| o.preprocessing.width = 0,
            |o: &mut OpenedModel| o.preprocessing.height = u32::MAX,
            |o: &mut OpenedModel| {
                o.batch_size = 4096;
                (o.preprocessing.width, o.preprocessing.height) = (16384, 16384);
            },
        ] {
            let mut bad = good.clone();
            spoil(&mut bad);
            assert_eq!(
                Plan::new(&bad).expect_err("refused").kind,
                FailureKind::BadReply
            );
        }
        let mut float = good;
        float.preprocessing.mode = PixelMode::Float;
        let plan = Plan::new(&float).expect("fits");
        assert_eq!((plan.image_bytes, plan.batch_bytes()), (48, 192));
        assert!(plan.header(1).contains(r#""pixels":"f32""#));
        float.preprocessing.mode = PixelMode::Own;
        assert!(
            Plan::new(&float)
                .expect_err("refused")
                .message
                .contains("full images")
        );
    }

    #[test]
    fn replies_of_another_shape_are_refused_with_expected_and_found() {
        let plan = Plan::new(&opened(2, 3, 1, 1)).expect("fits");
        let message = |rows, dim, len| {
            plan.check(reply(rows, dim, vec![0.0; len]))
                .expect_err("refused")
                .message
        };
        assert_eq!(
            message(1, 3, 3),
            "Reply has the wrong number of rows: expected 2, found 1"
        );
        assert_eq!(
            message(2, 4, 8),
            "Reply has the wrong width: expected 3 values a row, found 4"
        );
        assert_eq!(
            message(2, 3, 5),
            "Reply has the wrong length: expected 6 values, found 5"
        );
        assert_eq!(plan.check(reply(2, 3, vec![0.5; 6])), Ok(vec![0.5; 6]));
        let values = [1.0, 2.0, 3.0, 4.0, f32::INFINITY, 6.0];
        assert_eq!(plan.row(&values, 0), Ok(vec![1.0, 2.0, 3.0]));
        assert_eq!(
            plan.row(&values, 1).expect_err("infinite").message,
            "Embedding is not finite: found inf at position 1 of 3"
        );
    }

    #[test]
    fn a_copy_that_is_not_finite_counts_as_its_image() {
        let plan = Plan::new(&opened(4, 1, 1, 1)).expect("fits");
        let ok = |rows: &[usize], values: [f32; 4]| -> Vec<bool> {
            plan.rows(&values, rows.iter().copied())
                .iter()
                .map(Result::is_ok)
                .collect()
        };
        assert_eq!(ok(&[1, 3], [1.0, 1.0, f32::NAN, 1.0]), [false, true]);
        assert_eq!(ok(&[1], [f32::NAN, 1.0, 1.0, 1.0]), [false]);
        assert_eq!(
            ok(&[1], [1.0, 1.0, f32::NAN, f32::NAN]),
            [true],
            "padding is ignored"
        );
        assert_eq!(ok(&[], [f32::NAN; 4]), [true; 0]);
    }

    #[test]
    fn images_lie_at_their_rows_gaps_repeat_the_first_and_tails_are_black() {
        let plan = Plan::new(&opened(5, 1, 1, 1)).expect("fits");
        let mut memory = [9; 17];
        plan.lay(&mut memory, &[(1, &[1, 2, 3]), (3, &[4, 5, 6])]);
        assert_eq!(memory, [1, 2, 3, 1, 2, 3, 1, 2, 3, 4, 5, 6, 0, 0, 0, 9, 9]);
        plan.lay(&mut memory, &[]);
        assert_eq!(memory[..15], [0; 15]);
    }

    #[test]
    fn batches_that_do_not_fit_are_the_callers_fault() {
        let plan = Plan::new(&opened(1, 1, 1, 1)).expect("fits");
        let image = |bytes| PreparedImage {
            sample: 7,
            pixels: vec![0; bytes].into(),
        };
        assert!(plan.admit("m", &vec![image(3)]).is_ok());
        let error = plan.admit("m", &vec![image(4)]).expect_err("refused");
        assert_eq!(
            error.to_string(),
            "Batch does not fit the model `m`: expected 3 bytes an image (1 x 1 x 3), found 4 bytes for sample 7"
        );
        let error = plan
            .admit("m", &vec![image(3), image(3)])
            .expect_err("refused");
        assert_eq!(
            error.to_string(),
            "Batch does not fit the model `m`: expected at most 1 images, found 2 images"
        );
    }
}
