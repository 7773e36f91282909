//! Correction for many comparisons: Benjamini-Hochberg q-values within a named family, printed with what makes them
//! readable: the family's size and the smallest q its resampling could have reached. It must not know what is compared.

use crate::error::MetricError;

/// Q-values of one family.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Family {
    /// Q-values in the order of the p-values given; none where p is missing.
    pub q: Vec<Option<f64>>,
    /// m, the p-values present.
    pub size: usize,
}

impl Family {
    /// Smallest q that a lone finding of this family can reach when each p comes from B valid resamples and so cannot
    /// be below 2 / (B + 1): m times that, at most 1. None for an empty family.
    pub fn smallest_lone_q(&self, resamples: u32) -> Option<f64> {
        (self.size > 0).then(|| (self.size as f64 * smallest_p(resamples)).min(1.0))
    }

    /// Smallest q that this family can reach at all, when every p is as small as B resamples allow.
    pub fn smallest_joint_q(&self, resamples: u32) -> Option<f64> {
        (self.size > 0).then(|| smallest_p(resamples).min(1.0))
    }
}

fn smallest_p(resamples: u32) -> f64 {
    2.0 / (f64::from(resamples) + 1.0)
}

/// Benjamini-Hochberg q-values: q of the i-th smallest p is the least of p_j m / j over j >= i, at most 1. The result
/// keeps the order given; a missing p has no q and does not count into m.
///
/// # Errors
/// A p outside [0, 1] (its position is named).
pub fn benjamini_hochberg(p: &[Option<f64>]) -> Result<Family, MetricError> {
    let mut present = Vec::with_capacity(p.len());
    for (position, value) in p.iter().enumerate() {
        match *value {
            Some(found) if !(0.0..=1.0).contains(&found) => {
                return Err(MetricError::PValue { position, found });
            }
            Some(found) => present.push((found, position)),
            None => {}
        }
    }
    present.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let size = present.len();
    let mut q = vec![None; p.len()];
    let mut least = 1.0_f64;
    for (rank, (p, position)) in present.into_iter().enumerate().rev() {
        least = least.min(p * size as f64 / (rank + 1) as f64);
        q[position] = Some(least);
    }
    Ok(Family { q, size })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_values_leave_the_family() {
        let family = benjamini_hochberg(&[Some(0.02), None, Some(0.01), None]).unwrap();
        assert_eq!(family.size, 2);
        assert_eq!(family.q, [Some(0.02), None, Some(0.02), None]);
        assert_eq!(
            benjamini_hochberg(&[None]).unwrap().smallest_lone_q(1000),
            None
        );
    }

    #[test]
    fn a_lone_hit_among_228_cannot_be_below_the_published_bound() {
        let mut p = vec![Some(1.0); 228];
        p[100] = Some(2.0 / 1001.0);
        let family = benjamini_hochberg(&p).unwrap();
        let bound = family.smallest_lone_q(1000).unwrap();
        assert_eq!(family.q[100], Some(bound));
        assert!((bound - 0.456).abs() < 0.0005, "{bound}");
        // Two tests at B = 1000 cannot print q = 0.005 for a lone finding... but 0.002 if both are extreme.
        let pair = benjamini_hochberg(&[Some(0.5), Some(0.5)]).unwrap();
        assert!((pair.smallest_lone_q(1000).unwrap() - 0.003996).abs() < 1e-6);
        assert!((pair.smallest_joint_q(1000).unwrap() - 0.001998).abs() < 1e-6);
    }

    #[test]
    fn ties_share_a_q_and_bad_input_is_named() {
        let family = benjamini_hochberg(&[Some(0.03), Some(0.03), Some(0.5)]).unwrap();
        assert_eq!(family.q[0], family.q[1]);
        assert_eq!(family.q[0], Some(0.045));
        assert_eq!(
            benjamini_hochberg(&[Some(0.1), Some(1.5)])
                .unwrap_err()
                .to_string(),
            "P-value at position 1 is out of range: expected a value in [0, 1], found 1.5"
        );
        assert!(benjamini_hochberg(&[Some(f64::NAN)]).is_err());
    }
}
