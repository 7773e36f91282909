//! From raw features to the embedding: fixed constants, no statistics of the data at hand.
//!
//! The benchmark's probe L2-normalises an embedding and regularises it strongly, so that features must come at comparable
//! sizes: each is centred, divided by twice its half-width and squashed by tanh. The constants are data: see
//! `scaling_table` and the script that derives them.

use crate::scaling_table::TABLE;

/// Length of an embedding.
pub const DIM: usize = TABLE.len();

/// Scales raw features; each value of the result lies within [-1, 1].
///
/// # Panics
/// When the number of features is not [`DIM`].
pub fn embed(raw: &[f32]) -> Vec<f32> {
    assert_eq!(raw.len(), DIM, "features and constants differ in number");
    raw.iter()
        .zip(&TABLE)
        .map(|(value, (_, centre, half))| ((value - centre) / (2.0 * half)).tanh())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_belong_to_the_features() {
        let names = crate::names();
        assert_eq!(names.len(), DIM);
        for (name, (constant, centre, half)) in names.iter().zip(&TABLE) {
            assert_eq!(name, constant);
            assert!(centre.is_finite() && *half > 0.0, "{name}");
        }
    }

    #[test]
    fn the_centre_is_zero_and_extremes_are_bounded() {
        let centre: Vec<f32> = TABLE.iter().map(|(_, centre, _)| *centre).collect();
        assert!(embed(&centre).iter().all(|v| *v == 0.0));
        assert!(embed(&[f32::MAX; DIM]).iter().all(|v| *v == 1.0));
    }
}
