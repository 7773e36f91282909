//! Elementary functions of f32 as plain arithmetic that compilers vectorise. No platform mathematics.

#![expect(
    clippy::inline_always,
    reason = "vector instructions reach only what is inlined"
)]

/// `e^x`, relative error below 2e-7; 0 below about -87, the largest power of two's neighbourhood above 88.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    // Adding and taking away 1.5 * 2^23 rounds to the nearest integer.
    const ROUND: f32 = 12_582_912.0;
    // ln 2 in two parts: the first has few enough bits for exact products.
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    let x = x.clamp(-87.3, 88.3);
    let power = x * std::f32::consts::LOG2_E + ROUND - ROUND;
    let r = x - power * LN2_HIGH - power * LN2_LOW;
    // Taylor's series to the seventh power: |r| is at most ln 2 / 2.
    let series = 1.0
        + r * (1.0
            + r * (0.5
                + r * (1.0 / 6.0
                    + r * (1.0 / 24.0 + r * (1.0 / 120.0 + r * (1.0 / 720.0 + r / 5040.0))))));
    let scale = f32::from_bits(((power as i32 + 127) as u32) << 23);
    series * scale
}

/// The error function, absolute error below 4e-7: a rational approximation in x^2, fitted by `scripts/fit_erf.py`.
#[inline(always)]
pub(super) fn erf(x: f32) -> f32 {
    // From here on the function is 1 within f32.
    const END: f32 = 3.95;
    let x = x.clamp(-END, END);
    let z = x * x;
    let above = std::f32::consts::FRAC_2_SQRT_PI
        + z * (0.185_169_23
            + z * (0.054_274_77
                + z * (3.843_374_8e-3
                    + z * (3.779_361e-4 + z * (4.640_412e-6 + z * -1.296_696_3e-8)))));
    let below = 1.0
        + z * (0.497_435_36
            + z * (0.113_911_055
                + z * (0.015_443_725 + z * (1.304_062_3e-3 + z * 6.269_228_5e-5))));
    x * above / below
}

/// `tanh x`.
#[inline(always)]
pub(super) fn tanh(x: f32) -> f32 {
    1.0 - 2.0 / (exp(2.0 * x) + 1.0)
}

/// `1 / (1 + e^-x)`.
#[inline(always)]
pub(super) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(from: f32, to: f32) -> impl Iterator<Item = f32> {
        (0..200_001).map(move |i| from + (to - from) * i as f32 / 200_000.0)
    }

    #[test]
    fn exp_is_close() {
        for x in grid(-87.0, 88.0) {
            let wanted = f64::from(x).exp();
            assert!((f64::from(exp(x)) / wanted - 1.0).abs() < 2.5e-7, "{x}");
        }
        assert!(exp(-1000.0) < 2e-38 && exp(f32::NEG_INFINITY) < 2e-38 && exp(1000.0) > 1e38);
        assert_eq!(exp(0.0), 1.0);
    }

    /// The series of the error function; converges well to 4 in f64.
    fn erf_reference(x: f64) -> f64 {
        let (mut term, mut sum) = (x, x);
        for n in 1..200 {
            term *= -x * x / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        sum * std::f64::consts::FRAC_2_SQRT_PI
    }

    #[test]
    fn erf_is_close() {
        for x in grid(-4.0, 4.0).step_by(20) {
            let difference = f64::from(erf(x)) - erf_reference(f64::from(x));
            assert!(difference.abs() < 4.5e-7, "{x}: {difference}");
        }
        assert!((erf(9.0) - 1.0).abs() < 2e-7 && erf(0.0) == 0.0);
    }

    #[test]
    fn tanh_and_sigmoid_are_close() {
        for x in grid(-20.0, 20.0).step_by(20) {
            let wide = f64::from(x);
            assert!((f64::from(tanh(x)) - wide.tanh()).abs() < 3e-7, "{x}");
            let wanted = 1.0 / (1.0 + (-wide).exp());
            assert!((f64::from(sigmoid(x)) - wanted).abs() < 2e-7, "{x}");
        }
    }
}
