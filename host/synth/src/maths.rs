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

/// The standard normal distribution's probability below `x`: Marsaglia's series, absolute error below 1e-14.
pub fn normal_cdf(x: f64) -> f64 {
    if x.abs() > 8.0 {
        return if x > 0.0 { 1.0 } else { 0.0 };
    }
    let (mut term, mut sum, mut n) = (x, x, 1.0);
    while term.abs() > 1e-17 * sum.abs() && n < 400.0 {
        n += 2.0;
        term *= x * x / n;
        sum += term;
    }
    0.5 + sum * exp(-0.5 * x * x) * 0.398_942_280_401_432_7
}

/// The inverse of [`normal_cdf`] for probabilities from 1e-12 to 1 - 1e-12, beyond which it is clamped.
pub fn normal_quantile(p: f64) -> f64 {
    let p = p.clamp(1e-12, 1.0 - 1e-12);
    let (mut low, mut high) = (-7.2, 7.2);
    for _ in 0..12 {
        let mid = 0.5 * (low + high);
        if normal_cdf(mid) < p {
            low = mid;
        } else {
            high = mid;
        }
    }
    // Newton from within 0.002 of the root.
    let mut x = 0.5 * (low + high);
    for _ in 0..3 {
        let density = exp(-0.5 * x * x) * 0.398_942_280_401_432_7;
        x -= (normal_cdf(x) - p) / density;
        x = x.clamp(low, high);
    }
    x
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
        // Reference: scipy.stats.norm.
        for (x, p) in [
            (0.0, 0.5),
            (1.0, 0.841_344_746_068_542_9),
            (-1.959_963_984_540_054, 0.025),
            (4.5, 0.999_996_602_326_875_3),
        ] {
            assert!((normal_cdf(x) - p).abs() < 1e-14, "cdf {x}");
            assert!((normal_quantile(p) - x).abs() < 1e-10, "quantile {p}");
        }
        assert!(normal_quantile(0.0) < -6.9 && normal_quantile(1.0) > 6.9);
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
