//! Pearson's correlation with its two-sided p-value, and the least-squares line. Owns the incomplete beta function that
//! the p-value needs. It must not know what is plotted.

use crate::value::Missing;

/// A correlation and the least-squares line of y on x.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Correlation {
    /// Points.
    pub n: u64,
    /// Pearson's r, in [-1, 1].
    pub r: f64,
    /// Two-sided p-value of r against 0 for normal errors: t = r sqrt((n - 2) / (1 - r^2)) with n - 2 degrees of
    /// freedom.
    pub p: f64,
    /// Slope of y on x.
    pub slope: f64,
    /// y at x = 0 on the line.
    pub intercept: f64,
}

/// Correlates points (x, y). Their order does not matter.
///
/// # Errors
/// [`Missing::NotFinite`]; [`Missing::TooFewPoints`] below 3; [`Missing::Constant`] where all x or all y are the same.
pub fn correlate(points: &[(f64, f64)]) -> Result<Correlation, Missing> {
    if !points.iter().all(|(x, y)| x.is_finite() && y.is_finite()) {
        return Err(Missing::NotFinite);
    }
    if points.len() < 3 {
        return Err(Missing::TooFewPoints);
    }
    let mut sorted = points.to_vec();
    sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let constant =
        |of: fn(&(f64, f64)) -> f64| sorted.iter().all(|point| of(point) == of(&sorted[0]));
    if constant(|point| point.0) || constant(|point| point.1) {
        return Err(Missing::Constant);
    }
    let n = sorted.len() as f64;
    // Powers of two change no digit of what follows, and keep squares of huge and of tiny coordinates finite.
    let scale = |of: fn(&(f64, f64)) -> f64| {
        power_of_two(sorted.iter().map(of).fold(0.0, |a: f64, b| a.max(b.abs())))
    };
    let (x_scale, y_scale) = (scale(|point| point.0), scale(|point| point.1));
    let scaled: Vec<(f64, f64)> = sorted
        .iter()
        .map(|(x, y)| (x / x_scale, y / y_scale))
        .collect();
    let (x_mean, y_mean) = (
        mean(scaled.iter().map(|point| point.0), n),
        mean(scaled.iter().map(|point| point.1), n),
    );
    let (mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0);
    for (x, y) in &scaled {
        let (x, y) = (x - x_mean, y - y_mean);
        xx += x * x;
        yy += y * y;
        xy += x * y;
    }
    if xx == 0.0 || yy == 0.0 {
        return Err(Missing::Constant);
    }
    let r = (xy / (xx * yy).sqrt()).clamp(-1.0, 1.0);
    let slope = xy / xx;
    let correlation = Correlation {
        n: points.len() as u64,
        r,
        p: two_sided(r, points.len() as u64 - 2),
        slope: slope * y_scale / x_scale,
        intercept: (y_mean - slope * x_mean) * y_scale,
    };
    let finite = correlation.slope.is_finite() && correlation.intercept.is_finite();
    if finite {
        Ok(correlation)
    } else {
        Err(Missing::NotFinite)
    }
}

/// The mean, corrected by the mean of what the first pass leaves over.
fn mean(values: impl Iterator<Item = f64> + Clone, n: f64) -> f64 {
    let first = values.clone().sum::<f64>() / n;
    first + values.map(|value| value - first).sum::<f64>() / n
}

/// The largest power of two not above a positive number.
fn power_of_two(largest: f64) -> f64 {
    let exponent_only = f64::from_bits(largest.to_bits() & (0x7ff << 52));
    // Subnormal numbers have no exponent.
    if exponent_only == 0.0 {
        f64::MIN_POSITIVE
    } else {
        exponent_only
    }
}

/// P(|T| >= |t|) for Student's t with `freedom` degrees of freedom, as the regularised incomplete beta function
/// I(1 - r^2; freedom / 2, 1 / 2).
fn two_sided(r: f64, freedom: u64) -> f64 {
    // Both factors exact near 1, where 1 - r * r would lose its digits.
    let x = (1.0 - r) * (1.0 + r);
    if x <= 0.0 {
        return 0.0;
    }
    let a = freedom as f64 / 2.0;
    // 1 / B(a, 1/2) = G(a + 1/2) / (G(a) G(1/2)), climbing from a = 1/2 or a = 1.
    let mut start = if freedom % 2 == 1 { 0.5 } else { 1.0 };
    let mut inverse_beta = if freedom % 2 == 1 {
        core::f64::consts::FRAC_1_PI
    } else {
        0.5
    };
    while start < a {
        inverse_beta *= (start + 0.5) / start;
        start += 1.0;
    }
    let front = libm::pow(x, a) * r.abs() * inverse_beta;
    // The fraction converges fast below the mean of the distribution; above it the mirrored one does.
    let p = if x < (a + 1.0) / (a + 2.5) {
        front * fraction(a, 0.5, x) / a
    } else {
        1.0 - front * fraction(0.5, a, r * r) / 0.5
    };
    p.clamp(0.0, 1.0)
}

/// The continued fraction of the incomplete beta function, by Lentz's method (Press et al., Numerical Recipes, 6.4).
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let floor = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / floor(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for m in 1..10_000_u32 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / floor(1.0 + even * d);
        c = floor(1.0 + even / c);
        value *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / floor(1.0 + odd * d);
        c = floor(1.0 + odd / c);
        let change = d * c;
        value *= change;
        if (change - 1.0).abs() < 1e-16 {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_whatever_its_scale() {
        for scale in [1.0, 1e-200, 1e150] {
            let points: Vec<_> = (0..5)
                .map(|i| (f64::from(i) * scale, 3.0 - 2.0 * f64::from(i)))
                .collect();
            let line = correlate(&points).unwrap();
            assert!((line.r + 1.0).abs() < 1e-15 && line.p < 1e-20, "{line:?}");
            assert!(
                (line.slope * scale + 2.0).abs() < 1e-14 && (line.intercept - 3.0).abs() < 1e-14
            );
        }
    }

    #[test]
    fn p_values_have_closed_forms_for_one_and_two_degrees_of_freedom() {
        for step in 1..100 {
            let r = f64::from(step) / 100.0;
            let cauchy = 1.0 - 2.0 / core::f64::consts::PI * r.asin();
            assert!((two_sided(r, 1) - cauchy).abs() < 1e-14, "{r}");
            assert!((two_sided(-r, 2) - (1.0 - r)).abs() < 1e-14, "{r}");
        }
        assert_eq!(two_sided(0.0, 5), 1.0);
        assert_eq!(two_sided(1.0, 5), 0.0);
    }

    #[test]
    fn what_has_no_correlation_says_why() {
        let flat = [(0.0, 1.0), (1.0, 1.0), (2.0, 1.0)];
        assert_eq!(correlate(&flat), Err(Missing::Constant));
        assert_eq!(
            correlate(&flat.map(|(x, y)| (y, x))),
            Err(Missing::Constant)
        );
        assert_eq!(correlate(&flat[..2]), Err(Missing::TooFewPoints));
        assert_eq!(correlate(&[(0.0, f64::NAN)]), Err(Missing::NotFinite));
    }
}
