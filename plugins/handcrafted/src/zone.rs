//! Where a pixel lies: outside, in the periphery, in the macula or on the disc. Knows nothing of what is measured there.

use crate::disc::Landmarks;
use crate::frame::DISC_RADIUS;
use crate::plane::Plane;

/// Parts of the retina.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Zone {
    /// Not visible, or too near the field's edge for the filters of the level.
    Outside,
    /// On the optic disc or its rim.
    Disc,
    /// Within 1.3 disc diameters of the fovea.
    Macula,
    /// Anywhere else.
    Periphery,
}

/// Zones at one level of the pyramid.
pub struct Zones {
    pub zone: Vec<Zone>,
    /// Pixels in the macula and in the periphery.
    pub area: [f32; 2],
}

impl Zones {
    /// Zones of a level, whose mask is the frame's halved `level` times, without the pixels closer than `border` to the edge
    /// of the field.
    pub fn new(mask: &Plane, landmarks: &Landmarks, level: u32, border: usize) -> Self {
        let step = (1 << level) as f32;
        let full = ((2 * border + 1) * (2 * border + 1)) as f32 - 0.5;
        let inside = mask.window_sum(border);
        let width = mask.width;
        let near = |x: f32, y: f32, (cx, cy): (f32, f32), r: f32| {
            (x - cx) * (x - cx) + (y - cy) * (y - cy) < r * r
        };
        let mut zones = Self {
            zone: vec![Zone::Outside; mask.value.len()],
            area: [0.0; 2],
        };
        for (i, zone) in zones.zone.iter_mut().enumerate() {
            if inside.value[i] < full {
                continue;
            }
            let (x, y) = (
                ((i % width) as f32 + 0.5) * step - 0.5,
                ((i / width) as f32 + 0.5) * step - 0.5,
            );
            *zone = if near(x, y, landmarks.disc, 1.35 * DISC_RADIUS) {
                Zone::Disc
            } else if near(x, y, landmarks.fovea, 2.6 * DISC_RADIUS) {
                zones.area[0] += 1.0;
                Zone::Macula
            } else {
                zones.area[1] += 1.0;
                Zone::Periphery
            };
        }
        zones
    }

    /// Pixels of retina off the disc, at least 1.
    pub fn retina(&self) -> f32 {
        (self.area[0] + self.area[1]).max(1.0)
    }
}
