//! Vectors of pictures and texts to logits and probabilities. Numbers only.

use crate::config::{Config, Scaling};
use crate::text::Rows;
use focus_nn::{DType, Init, LoadError, Weights};

/// Cosines to logits: `factor * cosine + bias`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// Times the cosine.
    pub factor: f32,
    /// Added.
    pub bias: f32,
}

/// Largest exponent of FLAIR's scale.
const CLAMP: f32 = 4.6052;

impl Scale {
    /// What the published benchmark uses for every model, whatever the model learnt.
    pub const PUBLISHED: Self = Self {
        factor: 100.0,
        bias: 0.0,
    };

    /// Claim the model's own.
    pub fn load(config: &Config, weights: &Weights) -> Result<Self, LoadError> {
        let shape: &[usize] = match config.scaling {
            Scaling::ExpBias => &[1],
            _ => &[],
        };
        let value = |name: &str, init: f32| -> Result<f32, LoadError> {
            let tensor = weights.get_as(name, shape, Init::Constant(init), DType::F32)?;
            Ok(tensor.flatten_all()?.to_vec1::<f32>()?[0])
        };
        // CLIP's first value, 1 / 0.07.
        let exponent = value("logit_scale", 2.6592)?;
        Ok(Self {
            factor: match config.scaling {
                Scaling::ClampedExp => exponent.clamp(0.0, CLAMP),
                _ => exponent,
            }
            .exp(),
            bias: match config.scaling {
                Scaling::ExpBias => value("logit_bias", 0.0)?,
                _ => 0.0,
            },
        })
    }

    /// Logits of every picture with every text, row by row of pictures. Vectors need not be of length 1; one of length 0 has cosine 0.
    pub fn logits(self, images: &Rows, texts: &Rows) -> Rows {
        let units: Vec<Vec<f64>> = texts.iter().map(unit).collect();
        let mut values = Vec::with_capacity(images.iter().len() * units.len());
        for image in images.iter() {
            let image = unit(image);
            for text in &units {
                let cosine: f64 = image.iter().zip(text).map(|(a, b)| a * b).sum();
                values.push((f64::from(self.factor) * cosine + f64::from(self.bias)) as f32);
            }
        }
        Rows {
            dim: units.len(),
            values,
        }
    }
}

fn unit(row: &[f32]) -> Vec<f64> {
    let length = row
        .iter()
        .map(|&v| f64::from(v) * f64::from(v))
        .sum::<f64>()
        .sqrt();
    let factor = if length > 0.0 { 1.0 / length } else { 0.0 };
    row.iter().map(|&v| f64::from(v) * factor).collect()
}

/// Probabilities of the texts for each picture: they exclude one another.
pub fn softmax(logits: &Rows) -> Rows {
    let mut values = Vec::with_capacity(logits.values.len());
    for row in logits.iter() {
        let top = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let powers: Vec<f64> = row.iter().map(|&v| f64::from(v - top).exp()).collect();
        let sum: f64 = powers.iter().sum();
        values.extend(powers.iter().map(|power| (power / sum) as f32));
    }
    Rows {
        dim: logits.dim,
        values,
    }
}

/// Probability of each pair by itself, as SigLIP is trained.
pub fn sigmoid(logits: &Rows) -> Rows {
    let one = |&v: &f32| (1.0 / (1.0 + (-f64::from(v)).exp())) as f32;
    Rows {
        dim: logits.dim,
        values: logits.values.iter().map(one).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_do_not_count_and_rows_sum_to_one() {
        let images = Rows {
            dim: 2,
            values: vec![3.0, 4.0, 0.0, 0.0],
        };
        let texts = Rows {
            dim: 2,
            values: vec![30.0, 40.0, -4.0, 3.0, 1.0, 0.0],
        };
        let logits = Scale {
            factor: 10.0,
            bias: -1.0,
        }
        .logits(&images, &texts);
        assert_eq!(logits.dim, 3);
        for (found, wanted) in logits.values.iter().zip([9.0, -1.0, 5.0, -1.0, -1.0, -1.0]) {
            assert!((found - wanted).abs() < 1e-6, "{found} {wanted}");
        }
        let p = softmax(&logits);
        assert!(
            p.iter()
                .all(|row| (row.iter().sum::<f32>() - 1.0).abs() < 1e-6)
        );
        assert!(p.values[0] > 0.98 && (p.values[3] - 1.0 / 3.0).abs() < 1e-6);
        assert!((sigmoid(&logits).values[1] - 0.268_941_4).abs() < 1e-6);
        let far = softmax(&Rows {
            dim: 2,
            values: vec![1000.0, -1000.0],
        });
        assert_eq!(far.values, [1.0, 0.0]);
    }
}
