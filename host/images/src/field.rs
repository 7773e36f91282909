//! Field-of-view steps: named things that are done to the upright photograph before it is brought to a model's shape. Off unless asked for.
//!
//! Owns the names, the finding of the circular field, and what each step does. Must not know files, formats or the final size.

mod find;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub(crate) use find::find;

/// One step. They are done in this order, whichever order they were asked in; the field is looked for once, before the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FieldStep {
    /// What lies outside the circular field becomes black: burned-in text, stamps, the frame's noise.
    Mask,
    /// The picture is cut to the box around the field.
    Crop,
    /// Black rows or columns, half on each side, make the picture square.
    Pad,
}

impl FieldStep {
    /// All steps, in the order in which they are done.
    pub const ALL: [Self; 3] = [Self::Mask, Self::Crop, Self::Pad];

    /// The name that the command line and the records use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mask => "mask",
            Self::Crop => "crop",
            Self::Pad => "pad",
        }
    }
}

impl fmt::Display for FieldStep {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A set of steps. Read from a list of names such as `crop,pad,mask`, in any order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "Vec<FieldStep>", into = "Vec<FieldStep>")]
pub struct FieldSteps([bool; 3]);

impl FieldSteps {
    /// No step.
    pub const NONE: Self = Self([false; 3]);

    /// Whether there is no step.
    pub fn is_empty(&self) -> bool {
        *self == Self::NONE
    }

    /// Whether `step` is among them.
    pub fn has(self, step: FieldStep) -> bool {
        self.0[step as usize]
    }

    /// The same with `step`.
    #[must_use]
    pub fn with(mut self, step: FieldStep) -> Self {
        self.0[step as usize] = true;
        self
    }

    /// The steps, in the order in which they are done.
    pub fn iter(self) -> impl Iterator<Item = FieldStep> {
        FieldStep::ALL
            .into_iter()
            .filter(move |&step| self.has(step))
    }

    /// Whether the field must be found.
    pub(crate) fn need_field(self) -> bool {
        self.has(FieldStep::Mask) || self.has(FieldStep::Crop)
    }
}

impl fmt::Display for FieldSteps {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.iter().map(FieldStep::name).collect();
        formatter.write_str(&names.join(","))
    }
}

/// A list of steps that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldStepsError {
    /// A name that is no step's.
    #[error("Unknown field-of-view step `{name}`: expected `mask`, `crop` or `pad`")]
    Unknown {
        /// What was found.
        name: String,
    },
    /// A step was named twice.
    #[error("Field-of-view step `{name}` is named twice: expected each at most once")]
    Twice {
        /// The step.
        name: &'static str,
    },
}

impl FieldStepsError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        Some("give a list such as `crop,pad`; the steps are always done in the order mask, crop, pad".into())
    }
}

impl TryFrom<Vec<FieldStep>> for FieldSteps {
    type Error = FieldStepsError;

    fn try_from(list: Vec<FieldStep>) -> Result<Self, FieldStepsError> {
        list.into_iter().try_fold(Self::NONE, |steps, step| {
            if steps.has(step) {
                return Err(FieldStepsError::Twice { name: step.name() });
            }
            Ok(steps.with(step))
        })
    }
}

impl From<FieldSteps> for Vec<FieldStep> {
    fn from(steps: FieldSteps) -> Self {
        steps.iter().collect()
    }
}

impl FromStr for FieldSteps {
    type Err = FieldStepsError;

    /// From names with commas between them; the empty text is no step.
    fn from_str(text: &str) -> Result<Self, FieldStepsError> {
        let names = text.split(',').map(str::trim);
        let steps = names
            .filter(|name| !name.is_empty() || text.contains(','))
            .map(|name| {
                FieldStep::ALL
                    .into_iter()
                    .find(|step| step.name() == name)
                    .ok_or_else(|| FieldStepsError::Unknown { name: name.into() })
            });
        Self::try_from(steps.collect::<Result<Vec<_>, _>>()?)
    }
}

/// A circle in an upright picture, in pixels of it as it was decoded. The centre may lie between the sides of a cut field only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldCircle {
    /// Column of the centre.
    pub x: u32,
    /// Row of the centre.
    pub y: u32,
    /// Radius in pixels.
    pub radius: u32,
}

/// Part of an upright picture, in pixels of it as it was decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PixelBox {
    /// Left column.
    pub x: u32,
    /// Upper row.
    pub y: u32,
    /// Width in pixels, at least 1.
    pub width: u32,
    /// Height in pixels, at least 1.
    pub height: u32,
}

/// What the steps found and did. Pixels are those of the upright picture as decoded, which [`crate::Decode::Fast`] makes smaller than the stored one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldNotes {
    /// The steps that were asked for.
    pub steps: FieldSteps,
    /// The field, if it was looked for and found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circle: Option<FieldCircle>,
    /// What was kept by the crop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crop: Option<PixelBox>,
    /// Pixels outside the field that the mask made black and that were not.
    #[serde(default)]
    pub masked_pixels: u64,
    /// Why mask and crop did nothing, where no field was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
}

/// The part of the field beyond its radius that still counts as inside, in hundredths: the rim is soft, and must not be darkened.
const MARGIN_PERCENT: u64 = 1;

impl FieldCircle {
    /// Radius with the margin, at least one pixel more.
    fn wide(self) -> u64 {
        let radius = u64::from(self.radius);
        radius + (radius * MARGIN_PERCENT).div_ceil(100).max(1)
    }

    /// The box around the field with its margin, within a picture.
    pub(crate) fn bounds(self, (width, height): (u32, u32)) -> PixelBox {
        let reach = self.wide();
        let along = |center: u32, side: u32| {
            let from = u64::from(center).saturating_sub(reach) as u32;
            let to = (u64::from(center) + reach + 1).min(side.into()) as u32;
            (from, to.max(from + 1) - from)
        };
        let ((x, width), (y, height)) = (along(self.x, width), along(self.y, height));
        PixelBox {
            x,
            y,
            width,
            height,
        }
    }

    /// Makes RGB pixels outside black; returns how many were not.
    fn mask(self, pixels: &mut [u8], width: u32) -> u64 {
        let reach = self.wide();
        let mut changed = 0;
        for (y, row) in pixels.chunks_exact_mut(width as usize * 3).enumerate() {
            let rise = (y as u64).abs_diff(self.y.into());
            // Columns within: those whose distance from the centre is at most this.
            let half = (reach * reach).checked_sub(rise * rise).map(u64::isqrt);
            let inside = half.map_or((0, 0), |half| {
                let from = u64::from(self.x).saturating_sub(half);
                let to = (u64::from(self.x) + half + 1).min(width.into());
                (from as usize, to as usize)
            });
            let (left, rest) = row.split_at_mut(inside.0 * 3);
            let right = &mut rest[(inside.1 - inside.0) * 3..];
            for part in [left, right] {
                let bright = |pixel: &&[u8]| pixel.iter().any(|&value| value != 0);
                changed += part.chunks_exact(3).filter(bright).count() as u64;
                part.fill(0);
            }
        }
        changed
    }
}

/// Does `steps` to an upright RGB picture in place; `circle` is what [`find`] found. Returns the new size.
pub(crate) fn apply(
    steps: FieldSteps,
    circle: Result<Option<FieldCircle>, String>,
    pixels: &mut Vec<u8>,
    mut size: (u32, u32),
) -> ((u32, u32), FieldNotes) {
    let (circle, fallback) = match circle {
        Ok(circle) => (circle, None),
        Err(reason) => (None, Some(reason)),
    };
    let mut notes = FieldNotes {
        steps,
        circle,
        crop: None,
        masked_pixels: 0,
        fallback,
    };
    if let Some(circle) = circle {
        if steps.has(FieldStep::Mask) {
            notes.masked_pixels = circle.mask(pixels, size.0);
        }
        if steps.has(FieldStep::Crop) {
            let bounds = circle.bounds(size);
            crop(pixels, size.0, bounds);
            size = (bounds.width, bounds.height);
            notes.crop = Some(bounds);
        }
    }
    if steps.has(FieldStep::Pad) {
        size = pad(pixels, size);
    }
    (size, notes)
}

/// The size that `steps` lead to, given what is cropped.
pub(crate) fn size_after(steps: FieldSteps, size: (u32, u32)) -> (u32, u32) {
    if steps.has(FieldStep::Pad) {
        let side = size.0.max(size.1);
        return (side, side);
    }
    size
}

fn crop(pixels: &mut Vec<u8>, width: u32, part: PixelBox) {
    let stride = width as usize * 3;
    let row = part.width as usize * 3;
    for y in 0..part.height as usize {
        let from = (part.y as usize + y) * stride + part.x as usize * 3;
        pixels.copy_within(from..from + row, y * row);
    }
    pixels.truncate(row * part.height as usize);
}

fn pad(pixels: &mut Vec<u8>, (width, height): (u32, u32)) -> (u32, u32) {
    let side = width.max(height) as usize;
    let (width, height) = (width as usize, height as usize);
    let (left, top) = ((side - width) / 2, (side - height) / 2);
    if width == height {
        return (side as u32, side as u32);
    }
    let mut square = vec![0; side * side * 3];
    for (y, row) in pixels.chunks_exact(width * 3).enumerate() {
        square[((top + y) * side + left) * 3..][..width * 3].copy_from_slice(row);
    }
    *pixels = square;
    (side as u32, side as u32)
}

#[cfg(test)]
mod tests;
