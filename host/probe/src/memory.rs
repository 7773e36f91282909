//! A preconditioner out of past conjugate directions and their curvature: the limited-memory BFGS inverse built on the
//! identity. It must not know where the pairs come from.
//!
//! The Hessian of the probe is the identity plus a part that changes slowly from step to step, so what earlier solves
//! learned of its large eigenvalues saves products in later ones (Morales and Nocedal, "Automatic preconditioning by
//! limited memory quasi-Newton updating", SIAM J. Optim. 10, 2000).

use std::collections::VecDeque;

use crate::objective::{add_scaled, dot};

/// Pairs kept: applying them must stay cheap beside a pass over the embeddings.
const CAPACITY: usize = 48;

struct Pair {
    direction: Vec<f64>,
    image: Vec<f64>,
    inverse_curvature: f64,
}

/// The last pairs `(direction, Hessian times direction)`, oldest first.
#[derive(Default)]
pub(crate) struct Memory {
    pairs: VecDeque<Pair>,
}

impl Memory {
    /// Remembers a pair; one whose curvature is not positive is left out, so that the inverse stays positive definite.
    pub fn push(&mut self, direction: Vec<f64>, image: Vec<f64>) {
        let curvature = dot(&direction, &image);
        if !(curvature.is_normal() && curvature > 0.0) {
            return;
        }
        if self.pairs.len() == CAPACITY {
            self.pairs.pop_front();
        }
        self.pairs.push_back(Pair {
            direction,
            image,
            inverse_curvature: 1.0 / curvature,
        });
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.pairs.clear();
    }

    /// The approximate inverse Hessian times `residual`.
    pub fn apply(&self, residual: &[f64]) -> Vec<f64> {
        let mut out = residual.to_vec();
        let mut steps = Vec::with_capacity(self.pairs.len());
        for pair in self.pairs.iter().rev() {
            let step = pair.inverse_curvature * dot(&pair.direction, &out);
            add_scaled(&mut out, -step, &pair.image);
            steps.push(step);
        }
        for (pair, step) in self.pairs.iter().zip(steps.into_iter().rev()) {
            let back = pair.inverse_curvature * dot(&pair.image, &out);
            add_scaled(&mut out, step - back, &pair.direction);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_pair_is_inverted_exactly() {
        let mut memory = Memory::default();
        assert_eq!(memory.apply(&[1.0, 2.0]), [1.0, 2.0]);
        memory.push(vec![1.0, 1.0], vec![5.0, 3.0]);
        memory.push(vec![1.0, -1.0], vec![2.0, -4.0]);
        let back = memory.apply(&[2.0, -4.0]);
        assert!(
            (back[0] - 1.0).abs() < 1e-14 && (back[1] + 1.0).abs() < 1e-14,
            "{back:?}"
        );
    }

    #[test]
    fn useless_pairs_are_left_out_and_old_ones_dropped() {
        let mut memory = Memory::default();
        memory.push(vec![1.0, 0.0], vec![-1.0, 0.0]);
        memory.push(vec![0.0, 0.0], vec![0.0, 0.0]);
        memory.push(vec![f64::NAN, 0.0], vec![1.0, 0.0]);
        assert!(memory.pairs.is_empty());
        for _ in 0..CAPACITY + 5 {
            memory.push(vec![1.0, 0.5], vec![2.0, 1.0]);
        }
        assert_eq!(memory.pairs.len(), CAPACITY);
        memory.clear();
        assert!(memory.pairs.is_empty());
    }
}
