//! Answers that name a place in an image: boxes and points in relative coordinates. Owns intersection over union and
//! the point tolerance. It must not know pixels.

/// Largest distance between a point and its gold, in shares of the image, that is a hit.
pub const POINT_TOLERANCE: f64 = 0.05;
/// Slack for decimals that binary numbers cannot hold: 0.55 - 0.5 is a little more than 0.05.
const EPSILON: f64 = 1e-9;

/// An axis-parallel box, in the order x_min, y_min, x_max, y_max. Corners in order, all finite; its area may be zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoundingBox {
    x_min: f64,
    y_min: f64,
    x_max: f64,
    y_max: f64,
}

impl BoundingBox {
    /// A box from its corners. None, an invalid answer to be counted, when corners are inverted or not finite: they
    /// are never swapped into order, for the answer may have used another convention.
    pub fn from_xyxy([x_min, y_min, x_max, y_max]: [f64; 4]) -> Option<Self> {
        let finite = [x_min, y_min, x_max, y_max]
            .iter()
            .all(|value| value.is_finite());
        (finite && x_min <= x_max && y_min <= y_max).then_some(Self {
            x_min,
            y_min,
            x_max,
            y_max,
        })
    }

    fn area(self) -> f64 {
        (self.x_max - self.x_min) * (self.y_max - self.y_min)
    }

    /// Intersection over union with another box, in [0, 1]. A box without area overlaps nothing, itself included.
    pub fn iou(self, other: Self) -> f64 {
        let width = self.x_max.min(other.x_max) - self.x_min.max(other.x_min);
        let height = self.y_max.min(other.y_max) - self.y_min.max(other.y_min);
        if width <= 0.0 || height <= 0.0 {
            return 0.0;
        }
        let shared = width * height;
        let union = self.area() + other.area() - shared;
        // Areas of extreme boxes can underflow or overflow; neither may become NaN.
        if union > 0.0 && union.is_finite() {
            (shared / union).min(1.0)
        } else {
            0.0
        }
    }
}

/// Whether a point, x and y relative to the image, lies within [`POINT_TOLERANCE`] of the gold point. A point that is
/// not finite never does.
pub fn point_hit(gold: [f64; 2], answer: [f64; 2]) -> bool {
    let (dx, dy) = (answer[0] - gold[0], answer[1] - gold[1]);
    dx.hypot(dy) <= POINT_TOLERANCE + EPSILON
}

#[cfg(test)]
mod tests {
    use super::*;

    fn iou(a: [f64; 4], b: [f64; 4]) -> f64 {
        BoundingBox::from_xyxy(a)
            .unwrap()
            .iou(BoundingBox::from_xyxy(b).unwrap())
    }

    #[test]
    fn overlaps_are_shares_of_the_union() {
        assert_eq!(iou([0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 1.0]), 1.0);
        assert_eq!(iou([0.0, 0.0, 1.0, 1.0], [0.5, 0.0, 1.0, 1.0]), 0.5);
        assert_eq!(iou([0.0, 0.0, 0.5, 0.5], [0.5, 0.0, 1.0, 0.5]), 0.0);
        assert_eq!(iou([0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]), 0.0);
        assert_eq!(
            iou(
                [-1e300, -1e300, 1e300, 1e300],
                [-1e300, -1e300, 1e300, 1e300]
            ),
            0.0
        );
    }

    #[test]
    fn inverted_boxes_are_invalid() {
        assert!(BoundingBox::from_xyxy([0.4, 0.2, 0.2, 0.4]).is_none());
        assert!(BoundingBox::from_xyxy([0.2, 0.4, 0.4, 0.2]).is_none());
        assert!(BoundingBox::from_xyxy([f64::NAN, 0.0, 1.0, 1.0]).is_none());
    }

    #[test]
    fn the_tolerance_is_a_distance() {
        assert!(point_hit([0.5, 0.5], [0.53, 0.54]));
        assert!(!point_hit([0.5, 0.5], [0.54, 0.54]));
        assert!(!point_hit([0.5, 0.5], [0.5, 0.550_000_1]));
        assert!(!point_hit([0.5, 0.5], [f64::NAN, 0.5]));
    }
}
