//! Cosines and sines of places. Knows no attention.

use super::{Place, Rope};
use crate::position::Rotary;
use candle_core::{Device, Result, Tensor};
use std::f64::consts::TAU;

/// Frequencies of one kind of layer.
#[derive(Debug, Clone)]
pub(super) struct Frequencies {
    /// head_dim / 2 of them, each with the axis it reads.
    inverse: Vec<(f32, usize)>,
}

impl Frequencies {
    pub(super) fn new(rope: &Rope, head_dim: usize) -> Self {
        let inverse = (0..head_dim / 2)
            .map(|k| {
                let plain = rope.theta.powf(-2.0 * k as f64 / head_dim as f64);
                let scaled = scale(rope, plain);
                (scaled as f32, axis(rope, k))
            })
            .collect();
        Self { inverse }
    }

    /// Tables for places, in f32 as the reference has them: the product of place and frequency is rounded before its cosine is taken.
    pub(super) fn tables(&self, places: &[Place], device: &Device) -> Result<Rotary> {
        let width = self.inverse.len() * 2;
        let mut cos = Vec::with_capacity(places.len() * width);
        let mut sin = Vec::with_capacity(places.len() * width);
        for place in places {
            for _ in 0..2 {
                for &(inverse, axis) in &self.inverse {
                    let angle = f64::from(place[axis] as f32 * inverse);
                    cos.push(angle.cos() as f32);
                    sin.push(angle.sin() as f32);
                }
            }
        }
        let shape = (places.len(), width);
        Ok(Rotary::from_tables(
            Tensor::from_vec(cos, shape, device)?,
            Tensor::from_vec(sin, shape, device)?,
        ))
    }
}

/// Frequency `k`'s axis: 0 time, 1 height, 2 width, taking turns until height and width have their share.
fn axis(rope: &Rope, k: usize) -> usize {
    match rope.sections {
        Some(sections) if !k.is_multiple_of(3) && k < 3 * sections[k % 3] => k % 3,
        _ => 0,
    }
}

fn scale(rope: &Rope, frequency: f64) -> f64 {
    let Some(llama) = rope.llama3 else {
        return frequency / rope.factor;
    };
    let turns = llama.original * frequency / TAU;
    if turns < llama.low {
        frequency / llama.factor
    } else if turns > llama.high {
        frequency
    } else {
        let smooth = (turns - llama.low) / (llama.high - llama.low);
        frequency * ((1.0 - smooth) / llama.factor + smooth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_take_turns_until_their_share_is_used() {
        let rope = Rope {
            sections: Some([24, 20, 20]),
            ..Rope::plain(5e6)
        };
        let axes: Vec<usize> = (0..64).map(|k| axis(&rope, k)).collect();
        assert_eq!(axes[..6], [0, 1, 2, 0, 1, 2]);
        assert!(axes[60..].iter().all(|&a| a == 0));
        for (which, share) in [24, 20, 20].into_iter().enumerate() {
            assert_eq!(axes.iter().filter(|&&a| a == which).count(), share);
        }
    }

    #[test]
    fn long_waves_are_stretched_and_short_ones_left() {
        let rope = Rope {
            llama3: Some(super::super::Llama3Scaling {
                factor: 8.0,
                low: 1.0,
                high: 4.0,
                original: 8192.0,
            }),
            ..Rope::plain(5e5)
        };
        assert_eq!(scale(&rope, 1.0), 1.0);
        assert_eq!(scale(&rope, 1e-5), 1e-5 / 8.0);
        let between = scale(&rope, TAU * 2.0 / 8192.0) / (TAU * 2.0 / 8192.0);
        assert!((between - (2.0 / 3.0 / 8.0 + 1.0 / 3.0)).abs() < 1e-12);
    }
}
