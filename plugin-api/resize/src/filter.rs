//! The resampling filters: each a function of the distance from the output pixel's centre. Knows no sizes and no pixels.

use std::f64::consts::PI;

/// Resampling filters, Pillow's definition of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Filter {
    /// Mean of the covered pixels; support 0.5.
    Box,
    /// Triangle; support 1.
    Bilinear,
    /// Cubic convolution with a = -0.5; support 2.
    Bicubic,
    /// Windowed sinc of three lobes; support 3.
    Lanczos,
}

impl Filter {
    /// All filters, in a fixed order.
    pub const ALL: [Self; 4] = [Self::Box, Self::Bilinear, Self::Bicubic, Self::Lanczos];

    /// Lower-case name, stable: part of cache keys.
    pub fn name(self) -> &'static str {
        match self {
            Self::Box => "box",
            Self::Bilinear => "bilinear",
            Self::Bicubic => "bicubic",
            Self::Lanczos => "lanczos",
        }
    }

    /// Half the filter's width in output pixels when enlarging; scaled up with the ratio when reducing.
    pub fn support(self) -> f64 {
        match self {
            Self::Box => 0.5,
            Self::Bilinear => 1.0,
            Self::Bicubic => 2.0,
            Self::Lanczos => 3.0,
        }
    }

    /// Weight at distance `x`, before normalisation.
    ///
    /// The order of operations is part of the contract: the sums are rounded to 22 bits, and a reordered polynomial can round the other way.
    pub(crate) fn weight(self, x: f64) -> f64 {
        match self {
            // Half open, so that a pixel on the border belongs to one output only.
            Self::Box => f64::from(u8::from(x > -0.5 && x <= 0.5)),
            Self::Bilinear => {
                let x = x.abs();
                if x < 1.0 { 1.0 - x } else { 0.0 }
            }
            Self::Bicubic => {
                const A: f64 = -0.5;
                let x = x.abs();
                if x < 1.0 {
                    ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0
                } else if x < 2.0 {
                    (((x - 5.0) * x + 8.0) * x - 4.0) * A
                } else {
                    0.0
                }
            }
            Self::Lanczos => {
                if (-3.0..3.0).contains(&x) {
                    sinc(x) * sinc(x / 3.0)
                } else {
                    0.0
                }
            }
        }
    }
}

fn sinc(x: f64) -> f64 {
    if x == 0.0 {
        return 1.0;
    }
    let x = x * PI;
    x.sin() / x
}

#[cfg(test)]
mod tests {
    use super::Filter;

    #[test]
    fn filters_are_one_at_zero_and_vanish_beyond_their_support() {
        for filter in Filter::ALL {
            assert_eq!(filter.weight(0.0), 1.0, "{}", filter.name());
            for beyond in [0.001, 0.5, 7.0] {
                assert_eq!(filter.weight(filter.support() + beyond), 0.0);
                assert_eq!(filter.weight(-filter.support() - beyond), 0.0);
            }
        }
    }

    #[test]
    fn box_is_half_open() {
        assert_eq!(Filter::Box.weight(0.5), 1.0);
        assert_eq!(Filter::Box.weight(-0.5), 0.0);
    }

    #[test]
    fn cubic_and_lanczos_vanish_at_whole_distances() {
        for distance in [1.0, 2.0] {
            assert!(Filter::Bicubic.weight(distance).abs() < 1e-15);
            assert!(Filter::Lanczos.weight(distance).abs() < 1e-15);
        }
    }
}
