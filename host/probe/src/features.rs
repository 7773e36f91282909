//! Owns checked embeddings as a candle tensor with their inverse norms. It must not know labels or the objective.

use candle_core::{Device, Tensor};

use crate::ProbeError;

/// Most embedding values (rows times width) that a fit accepts: 8 GiB of f32.
pub const MAX_VALUES: usize = 1 << 31;

/// Embeddings checked and put on a device once, for any number of fits (balanced, unweighted, several tasks).
///
/// On the CPU the tensor keeps the raw f32 values and every pass multiplies by the f64 inverse norm, which halves the
/// memory traffic; other devices hold the normalised f64 matrix.
#[derive(Debug, Clone)]
pub struct Features {
    pub(crate) values: Tensor,
    pub(crate) inverse_norms: Vec<f64>,
    pub(crate) width: usize,
    pub(crate) zero_rows: usize,
}

impl Features {
    /// Takes `rows` embeddings, row-major, without copying them when `device` is the CPU.
    pub fn new(embeddings: Vec<f32>, rows: usize, device: &Device) -> Result<Self, ProbeError> {
        let (width, inverse_norms) = check(&embeddings, rows)?;
        Self::build(
            Tensor::from_vec(embeddings, (rows, width), &Device::Cpu)?,
            inverse_norms,
            width,
            device,
        )
    }

    /// As `new`, copying borrowed embeddings.
    pub fn copied(embeddings: &[f32], rows: usize, device: &Device) -> Result<Self, ProbeError> {
        let (width, inverse_norms) = check(embeddings, rows)?;
        Self::build(
            Tensor::from_slice(embeddings, (rows, width), &Device::Cpu)?,
            inverse_norms,
            width,
            device,
        )
    }

    /// The same with the normalised f64 matrix as a tensor even on the CPU: the path that other devices take.
    #[cfg(test)]
    pub(crate) fn generic(embeddings: &[f32], rows: usize) -> Result<Self, ProbeError> {
        let (width, inverse_norms) = check(embeddings, rows)?;
        let mut features = Self::build(
            Tensor::from_slice(embeddings, (rows, width), &Device::Cpu)?,
            inverse_norms,
            width,
            &Device::Cpu,
        )?;
        features.values = normalised(&features.values, &features.inverse_norms)?;
        Ok(features)
    }

    fn build(
        values: Tensor,
        inverse_norms: Vec<f64>,
        width: usize,
        device: &Device,
    ) -> Result<Self, ProbeError> {
        let zero_rows = inverse_norms
            .iter()
            .filter(|&&inverse| inverse == 0.0)
            .count();
        let values = if device.is_cpu() {
            values
        } else {
            normalised(&values.to_device(device)?, &inverse_norms)?
        };
        Ok(Self {
            values,
            inverse_norms,
            width,
            zero_rows,
        })
    }

    /// Number of embeddings.
    pub fn rows(&self) -> usize {
        self.inverse_norms.len()
    }

    /// Values per embedding.
    pub fn width(&self) -> usize {
        self.width
    }

    /// How many embeddings are all zeros, and stay so.
    pub fn zero_rows(&self) -> usize {
        self.zero_rows
    }
}

fn normalised(values: &Tensor, inverse_norms: &[f64]) -> Result<Tensor, ProbeError> {
    let inverse = Tensor::from_slice(inverse_norms, (inverse_norms.len(), 1), values.device())?;
    Ok(values
        .to_dtype(candle_core::DType::F64)?
        .broadcast_mul(&inverse)?)
}

/// The width and each row's inverse norm.
fn check(embeddings: &[f32], rows: usize) -> Result<(usize, Vec<f64>), ProbeError> {
    if rows == 0 {
        return Err(if embeddings.is_empty() {
            ProbeError::NoRows
        } else {
            ProbeError::Ragged {
                rows,
                values: embeddings.len(),
            }
        });
    }
    if embeddings.is_empty() {
        return Err(ProbeError::NoColumns { rows });
    }
    if embeddings.len() > MAX_VALUES {
        return Err(ProbeError::TooLarge {
            limit: MAX_VALUES,
            values: embeddings.len(),
        });
    }
    if !embeddings.len().is_multiple_of(rows) {
        return Err(ProbeError::Ragged {
            rows,
            values: embeddings.len(),
        });
    }
    let width = embeddings.len() / rows;
    Ok((width, crate::host::inverse_norms(embeddings, width)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_checked() {
        let make = |values: &[f32], rows| {
            Features::copied(values, rows, &Device::Cpu).map(|features| features.width())
        };
        assert!(matches!(make(&[], 0), Err(ProbeError::NoRows)));
        assert!(matches!(
            make(&[1.0], 0),
            Err(ProbeError::Ragged { rows: 0, values: 1 })
        ));
        assert!(matches!(
            make(&[], 2),
            Err(ProbeError::NoColumns { rows: 2 })
        ));
        assert!(matches!(
            make(&[1.0; 5], 2),
            Err(ProbeError::Ragged { rows: 2, values: 5 })
        ));
        assert!(matches!(make(&[1.0; 6], 2), Ok(3)));
    }

    #[test]
    fn the_first_value_that_is_not_finite_is_named() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut values = vec![0.5_f32; 40 * 19];
            values[31 * 19 + 17] = bad;
            values[35 * 19] = bad;
            assert!(matches!(
                Features::copied(&values, 40, &Device::Cpu),
                Err(ProbeError::NotFinite {
                    row: 31,
                    column: 17,
                    ..
                })
            ));
        }
    }

    #[test]
    fn norms_hold_for_the_smallest_and_the_largest_values() {
        let features = Features::new(
            vec![3e38, 3e38, 0.0, -0.0, 1e-45, 0.0, 3.0, 4.0],
            4,
            &Device::Cpu,
        )
        .unwrap();
        assert_eq!(features.zero_rows(), 1);
        assert_eq!(features.inverse_norms[1], 0.0);
        assert!((features.inverse_norms[0] * f64::from(3e38_f32) - 0.5_f64.sqrt()).abs() < 1e-15);
        assert_eq!(features.inverse_norms[2] * f64::from(1e-45_f32), 1.0);
        assert_eq!(features.inverse_norms[3], 0.2);
    }
}
