//! Contrast at four sizes with what every group of features needs of each. Knows nothing of the features.

use crate::disc::Landmarks;
use crate::frame::Frame;
use crate::plane::Plane;
use crate::zone::Zones;

/// Number of levels; scales up to 1.5 pixels of the last, 12 of the frame.
pub const LEVELS: u32 = 4;
/// Smoothing of `Level::smooth`, in pixels of the level.
pub const SIGMA: f32 = 1.0;

/// Contrast halved some times.
pub struct Level {
    /// The contrast itself.
    pub plane: Plane,
    /// Smoothed by [`SIGMA`].
    pub smooth: Plane,
    /// Where each pixel lies.
    pub zones: Zones,
}

/// All levels, the finest first.
pub fn build(frame: &Frame, landmarks: &Landmarks) -> Vec<Level> {
    let mut levels: Vec<Level> = Vec::with_capacity(LEVELS as usize);
    let mut mask = frame.mask.clone();
    for level in 0..LEVELS {
        let plane = match levels.last() {
            None => frame.contrast.clone(),
            Some(finer) => {
                mask = mask.halved();
                finer.plane.halved()
            }
        };
        let smooth = plane.gaussian(SIGMA);
        levels.push(Level {
            smooth,
            plane,
            zones: Zones::new(&mask, landmarks, level, 3),
        });
    }
    levels
}
