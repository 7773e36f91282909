//! Exponential, logarithm and the normal distribution out of IEEE operations alone, so that one seed gives the same bytes
//! on every platform: the system's own functions differ in the last bits. It must not know what is simulated.

const LN2_HIGH: f64 = 0.693_147_180_369_123_8;
const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
/// 1 / sqrt(2 pi).
const DENSITY: f64 = 0.398_942_280_401_432_7;

/// e^x, for x within [-700, 700]; relative error below 1e-15.
pub(super) fn exp(x: f64) -> f64 {
    let x = x.clamp(-700.0, 700.0);
    let k = (x / std::f64::consts::LN_2 + 0.5).floor();
    let r = (x - k * LN2_HIGH) - k * LN2_LOW;
    let mut sum = 1.0;
    for n in (1..=14).rev() {
        sum = 1.0 + sum * r / f64::from(n);
    }
    sum * f64::from_bits(((k as i64 + 1023) as u64) << 52)
}

/// ln x, for finite x > 0 that is not subnormal; absolute error below 1e-15 of the larger of 1 and the result.
pub(super) fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut k = ((bits >> 52) & 0x7ff) as i64 - 1023;
    let mut m = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) | (1023 << 52));
    if m > std::f64::consts::SQRT_2 {
        m /= 2.0;
        k += 1;
    }
    let s = (m - 1.0) / (m + 1.0);
    let square = s * s;
    let mut sum = 0.0;
    for n in (0..12).rev() {
        sum = sum * square + 1.0 / f64::from(2 * n + 1);
    }
    let k = k as f64;
    k * LN2_HIGH + (2.0 * s * sum + k * LN2_LOW)
}

/// Density of the standard normal distribution.
pub(super) fn density(x: f64) -> f64 {
    DENSITY * exp(-0.5 * x * x)
}

/// Distribution function of the standard normal distribution; absolute error below 1e-15. Marsaglia's series.
pub(super) fn normal(x: f64) -> f64 {
    let size = x.abs();
    if size > 9.0 {
        return if x > 0.0 { 1.0 } else { 0.0 };
    }
    let (mut term, mut sum, mut n) = (size, size, 1.0);
    while term > sum * 1e-17 {
        n += 2.0;
        term *= size * size / n;
        sum += term;
    }
    let half = (density(size) * sum).min(0.5);
    if x > 0.0 { 0.5 + half } else { 0.5 - half }
}

/// 1 / (1 + e^-x).
pub(super) fn logistic(x: f64) -> f64 {
    if x >= 0.0 {
        1.0 / (1.0 + exp(-x))
    } else {
        let e = exp(x);
        e / (1.0 + e)
    }
}

/// ln(p / (1 - p)), for p within (0, 1).
pub(super) fn logit(p: f64) -> f64 {
    ln(p) - ln(1.0 - p)
}

/// Where the rising function `of` is `target`, within [-12, 12], to the last bits.
pub(super) fn solve(target: f64, of: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (-12.0, 12.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if of(middle) < target {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// The integral of `of` over [`low`, `high`]: five-point Gauss-Legendre on panels of at most a quarter.
pub(super) fn integral(low: f64, high: f64, of: impl Fn(f64) -> f64) -> f64 {
    const NODES: [(f64, f64); 5] = [
        (0.0, 0.568_888_888_888_888_9),
        (-0.538_469_310_105_683_1, 0.478_628_670_499_366_5),
        (0.538_469_310_105_683_1, 0.478_628_670_499_366_5),
        (-0.906_179_845_938_664, 0.236_926_885_056_189_1),
        (0.906_179_845_938_664, 0.236_926_885_056_189_1),
    ];
    if high <= low {
        return 0.0;
    }
    let panels = ((high - low) / 0.25).ceil().max(1.0) as usize;
    let half = (high - low) / panels as f64 / 2.0;
    (0..panels)
        .map(|i| {
            let centre = low + half * (2 * i + 1) as f64;
            NODES
                .iter()
                .map(|(x, w)| w * of(centre + half * x))
                .sum::<f64>()
                * half
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_values_of_the_normal_distribution() {
        // scipy.stats.norm.cdf
        for (x, p) in [
            (0.0, 0.5),
            (1.0, 0.8413447460685429),
            (-1.959963984540054, 0.025),
            (3.5, 0.9997673709209645),
            (-6.0, 9.865876450376946e-10),
        ] {
            assert!(
                (normal(x) - p).abs() < 2e-16 + 1e-15 * p,
                "{x}: {}",
                normal(x)
            );
        }
        assert!((integral(-8.0, 1.0, density) - normal(1.0)).abs() < 1e-12);
        assert!((solve(0.975, normal) - 1.959963984540054).abs() < 1e-12);
        assert_eq!((exp(0.0), ln(1.0), logistic(0.0)), (1.0, 0.0, 0.5));
    }

    proptest! {
        #[test]
        fn as_the_system_computes(x in -600.0..600.0_f64, y in 1e-300..1e300_f64, p in 1e-9..0.999_999_f64) {
            prop_assert!((exp(x) / x.exp() - 1.0).abs() < 3e-15);
            prop_assert!((ln(y) - y.ln()).abs() <= 1e-15 * y.ln().abs().max(1.0));
            prop_assert!((logistic(logit(p)) - p).abs() < 1e-14);
        }
    }
}
