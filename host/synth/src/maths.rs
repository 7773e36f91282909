//! Sine, cosine, exponential and interpolation from IEEE basic operations alone, so that pictures have the same bytes on
//! every platform (the standard library's transcendental functions come from the platform). Knows nothing of pictures.
//!
//! Accuracy: below 1e-12 absolute for `sin` and `cos` at |x| < 1,000, and relative for `exp` at |x| < 700.

use std::f64::consts::{FRAC_PI_2, LN_2};

// The part of pi/2 that the nearest f64 leaves out, for a two-step range reduction.
const FRAC_PI_2_REST: f64 = 6.123_233_995_736_766e-17;

// 1/1 to 1/14: a division each would cost more than the rest of `exp`.
const INVERSE: [f64; 14] = {
    let mut table = [0.0; 14];
    let mut n = 0;
    while n < 14 {
        table[n] = 1.0 / (n as f64 + 1.0);
        n += 1;
    }
    table
};

/// Sine, `x` in radians.
pub fn sin(x: f64) -> f64 {
    let quarter = (x / FRAC_PI_2).round();
    let r = (x - quarter * FRAC_PI_2) - quarter * FRAC_PI_2_REST;
    match (quarter as i64).rem_euclid(4) {
        0 => sine_kernel(r),
        1 => cosine_kernel(r),
        2 => -sine_kernel(r),
        _ => -cosine_kernel(r),
    }
}

/// Cosine, `x` in radians.
pub fn cos(x: f64) -> f64 {
    sin(x + FRAC_PI_2)
}

/// e to the `x`; 0 below -700, clamped at e^700 above.
pub fn exp(x: f64) -> f64 {
    if x < -700.0 {
        return 0.0;
    }
    let x = x.min(700.0);
    let k = (x / LN_2).round();
    let r = x - k * LN_2;
    let series = INVERSE
        .iter()
        .rev()
        .fold(1.0, |sum, inverse| 1.0 + sum * (r * inverse));
    series * f64::from_bits(((1023 + k as i64) as u64) << 52)
}

/// 0 below `low`, 1 above `high`, a smooth cubic between.
pub fn smoothstep(low: f64, high: f64, x: f64) -> f64 {
    let t = ((x - low) / (high - low)).clamp(0.0, 1.0);
    t * t * (3.0 - 2.0 * t)
}

/// Linear interpolation from `a` to `b`.
pub fn lerp(a: f64, b: f64, t: f64) -> f64 {
    a + (b - a) * t
}

fn sine_kernel(r: f64) -> f64 {
    let r2 = r * r;
    let tail = [17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0]
        .iter()
        .fold(1.0, |sum, n| 1.0 - sum * r2 / (n * (n - 1.0)));
    r * tail
}

fn cosine_kernel(r: f64) -> f64 {
    let r2 = r * r;
    [16.0, 14.0, 12.0, 10.0, 8.0, 6.0, 4.0, 2.0]
        .iter()
        .fold(1.0, |sum, n| 1.0 - sum * r2 / (n * (n - 1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agree_with_the_standard_library() {
        for i in -4000..4000 {
            let x = f64::from(i) * 0.0137;
            assert!((sin(x) - x.sin()).abs() < 1e-12, "sin {x}");
            assert!((cos(x) - x.cos()).abs() < 1e-12, "cos {x}");
            assert!((exp(x) / x.exp() - 1.0).abs() < 1e-12, "exp {x}");
        }
        assert_eq!(exp(-1e9), 0.0);
        assert!(exp(1e9).is_finite());
        assert_eq!(
            (
                smoothstep(0.0, 1.0, -1.0),
                smoothstep(0.0, 1.0, 0.5),
                smoothstep(0.0, 1.0, 2.0)
            ),
            (0.0, 0.5, 1.0)
        );
    }
}
