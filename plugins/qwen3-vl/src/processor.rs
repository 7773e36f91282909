//! Pictures to patches, as Qwen2-VL's image processor makes them: a size that keeps the aspect within a budget of pixels, Pillow's bicubic
//! on bytes, mean and deviation, patches in the order in which the tower merges them. Knows no tensors of the network.

use crate::config::VisionConfig;
use focus_plugin_sdk::Picture;
use focus_resize::{Filter, PassOrder, ResizeError, Resizer, Scaling};
use serde::Deserialize;
use serde_json::Value;

/// Longest side over shortest that the reference takes.
const LONGEST_ASPECT: usize = 200;

/// Bound on the area that every picture is enlarged to.
const MOST_PIXELS: u64 = 1 << 30;

/// Preparation of pictures.
#[derive(Debug, Clone, PartialEq)]
pub struct Processor {
    /// Side of a patch in pixels.
    pub patch: usize,
    /// Patches along a side of a merged row.
    pub merge: usize,
    /// Frames: how often a still picture is given.
    pub frames: usize,
    /// Smallest area after resizing, in pixels.
    pub min_pixels: u64,
    /// Largest.
    pub max_pixels: u64,
    /// Resampling kernel.
    pub filter: Filter,
    /// Subtracted, in units of pixel/255.
    pub mean: [f64; 3],
    /// Divided by.
    pub std: [f64; 3],
}

/// A prepared picture.
#[derive(Debug, Clone, PartialEq)]
pub struct Patches {
    /// Patches along height and width: (rows, columns).
    pub grid: (usize, usize),
    /// rows * columns patches of `channels * frames * patch * patch` values. Patches come merged square by merged square, row by row
    /// within each.
    pub values: Vec<f32>,
}

/// A picture or a processor file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProcessorError {
    /// Too long and thin.
    #[error(
        "A picture of {width} x {height} is too long: expected sides at most {LONGEST_ASPECT} to 1"
    )]
    Aspect {
        /// Pixels.
        width: usize,
        /// Pixels.
        height: usize,
    },
    /// The resampler refused.
    #[error("A picture could not be resized: {0}")]
    Resize(#[from] ResizeError),
    /// The file.
    #[error("`{file}` cannot be used: {reason}")]
    File {
        /// Its name.
        file: String,
        /// Why.
        reason: String,
    },
}

#[derive(Deserialize)]
struct File {
    #[serde(default = "yes")]
    do_resize: bool,
    #[serde(default = "yes")]
    do_rescale: bool,
    #[serde(default = "yes")]
    do_normalize: bool,
    size: Option<Size>,
    min_pixels: Option<u64>,
    max_pixels: Option<u64>,
    patch_size: Option<usize>,
    merge_size: Option<usize>,
    temporal_patch_size: Option<usize>,
    resample: Option<u32>,
    rescale_factor: Option<f64>,
    image_mean: Option<[f64; 3]>,
    image_std: Option<[f64; 3]>,
}

fn yes() -> bool {
    true
}

/// Areas, in spite of the names.
#[derive(Deserialize)]
struct Size {
    shortest_edge: Option<u64>,
    longest_edge: Option<u64>,
}

impl Processor {
    /// That of the published Qwen3-VL models.
    pub fn qwen3_vl() -> Self {
        Self {
            patch: 16,
            merge: 2,
            frames: 2,
            min_pixels: 65_536,
            max_pixels: 16_777_216,
            filter: Filter::Bicubic,
            mean: [0.5; 3],
            std: [0.5; 3],
        }
    }

    /// `preprocessor_config.json`, or the `image_processor` inside transformers 5's `processor_config.json`. The budget of pixels must
    /// be there: it decides the results, and the class's own is Qwen2-VL's.
    pub fn parse(file: &str, text: &str, vision: &VisionConfig) -> Result<Self, ProcessorError> {
        let wrong = |reason: String| ProcessorError::File {
            file: file.to_owned(),
            reason,
        };
        let json: Value =
            serde_json::from_str(text).map_err(|e| wrong(format!("it is not JSON: {e}")))?;
        let json = json.get("image_processor").unwrap_or(&json);
        let read: File =
            serde_json::from_value(json.clone()).map_err(|error| wrong(error.to_string()))?;
        if !(read.do_resize && read.do_rescale && read.do_normalize) {
            return Err(wrong(
                "expected a processor that resizes, rescales and normalises".into(),
            ));
        }
        let factor = read.rescale_factor.unwrap_or(1.0 / 255.0);
        if (factor * 255.0 - 1.0).abs() > 1e-6 {
            return Err(wrong(format!(
                "expected `rescale_factor` 1/255, found {factor}"
            )));
        }
        for (name, found, wanted) in [
            ("patch_size", read.patch_size, vision.patch),
            ("merge_size", read.merge_size, vision.merge),
            (
                "temporal_patch_size",
                read.temporal_patch_size,
                vision.frames,
            ),
        ] {
            if found.is_some_and(|found| found != wanted) {
                return Err(wrong(format!(
                    "`{name}` differs from that of config.json: expected {wanted}, found {}",
                    found.unwrap_or(0)
                )));
            }
        }
        let filter = match read.resample.unwrap_or(3) {
            1 => Filter::Lanczos,
            2 => Filter::Bilinear,
            3 => Filter::Bicubic,
            4 => Filter::Box,
            other => return Err(wrong(format!("`resample` {other} is not supported"))),
        };
        let size = read.size.as_ref();
        let min = read.min_pixels.or(size.and_then(|s| s.shortest_edge));
        let max = read.max_pixels.or(size.and_then(|s| s.longest_edge));
        let (Some(min_pixels), Some(max_pixels)) = (min, max) else {
            return Err(wrong(
                "it has neither `size` with `shortest_edge` and `longest_edge` nor `min_pixels` and `max_pixels`"
                    .into(),
            ));
        };
        let processor = Self {
            patch: vision.patch,
            merge: vision.merge,
            frames: vision.frames,
            min_pixels,
            max_pixels,
            filter,
            mean: read.image_mean.unwrap_or([0.5; 3]),
            std: read.image_std.unwrap_or([0.5; 3]),
        };
        processor.check().map_err(wrong)?;
        Ok(processor)
    }

    /// Refuse a budget that no picture can keep.
    pub fn check(&self) -> Result<(), String> {
        let square = (self.factor() * self.factor()) as u64;
        if self.min_pixels > self.max_pixels || self.max_pixels < square {
            return Err(format!(
                "expected min_pixels <= max_pixels and at least {square} of the latter, found {} and {}",
                self.min_pixels, self.max_pixels
            ));
        }
        if self.min_pixels > MOST_PIXELS {
            return Err(format!(
                "expected min_pixels at most {MOST_PIXELS}, found {}",
                self.min_pixels
            ));
        }
        if self.std.iter().any(|&std| std <= 0.0) {
            return Err("a standard deviation is not positive".into());
        }
        Ok(())
    }

    /// Sides are multiples of it, in pixels.
    pub fn factor(&self) -> usize {
        self.patch * self.merge
    }

    /// Width and height after resizing: near the picture's, in multiples of [`Self::factor`], within the budget of pixels. Sides are
    /// rounded as Python's `round` does, half to even.
    pub fn smart_resize(
        &self,
        width: usize,
        height: usize,
    ) -> Result<(usize, usize), ProcessorError> {
        let (short, long) = (width.min(height), width.max(height));
        if short == 0 || long as f64 / short as f64 > LONGEST_ASPECT as f64 {
            return Err(ProcessorError::Aspect { width, height });
        }
        let factor = self.factor() as f64;
        let sides = [width as f64, height as f64];
        let area = sides[0] * sides[1];
        let [mut across, mut down] = sides.map(|side| (side / factor).round_ties_even() * factor);
        let (min, max) = (self.min_pixels as f64, self.max_pixels as f64);
        if across * down > max {
            let beta = (area / max).sqrt();
            [across, down] = sides.map(|side| factor.max((side / beta / factor).floor() * factor));
        } else if across * down < min {
            let beta = (min / area).sqrt();
            [across, down] = sides.map(|side| (side * beta / factor).ceil() * factor);
        }
        Ok((across as usize, down as usize))
    }

    /// Resize, normalise and cut.
    pub fn prepare(&self, picture: &Picture<'_>) -> Result<Patches, ProcessorError> {
        let (width, height) = self.smart_resize(picture.width, picture.height)?;
        let from = (picture.width as u32, picture.height as u32);
        // As torchvision has it, which the reference resizes with, and as Pillow had it before version 13.
        let scaling = Scaling::new(from, (width as u32, height as u32), self.filter)
            .with_order(PassOrder::HorizontalFirst);
        let mut rgb = vec![0; width * height * 3];
        Resizer::new().resize(&scaling, 3, picture.rgb, &mut rgb)?;
        Ok(self.cut(&rgb, width, height))
    }

    /// u8 RGB whose sides are multiples of [`Self::factor`] to patches.
    fn cut(&self, rgb: &[u8], width: usize, height: usize) -> Patches {
        let table: [[f32; 256]; 3] = std::array::from_fn(|channel| {
            std::array::from_fn(|level| {
                ((level as f64 / 255.0 - self.mean[channel]) / self.std[channel]) as f32
            })
        });
        let (patch, merge) = (self.patch, self.merge);
        let (rows, columns) = (height / patch, width / patch);
        let mut values = Vec::with_capacity(rgb.len() * self.frames);
        for square_row in 0..rows / merge {
            for square_column in 0..columns / merge {
                for row in 0..merge {
                    for column in 0..merge {
                        let top = (square_row * merge + row) * patch;
                        let left = (square_column * merge + column) * patch;
                        for (channel, levels) in table.iter().enumerate() {
                            let start = values.len();
                            for y in top..top + patch {
                                let line = &rgb[(y * width + left) * 3..][..patch * 3];
                                values.extend(
                                    line.iter()
                                        .skip(channel)
                                        .step_by(3)
                                        .map(|&level| levels[usize::from(level)]),
                                );
                            }
                            let end = values.len();
                            for _ in 1..self.frames {
                                values.extend_from_within(start..end);
                            }
                        }
                    }
                }
            }
        }
        Patches {
            grid: (rows, columns),
            values,
        }
    }
}
