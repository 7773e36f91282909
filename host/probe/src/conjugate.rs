//! The Newton step by preconditioned conjugate gradients. It must not know the line search or the stopping rule.
//!
//! The intercept is eliminated exactly: with `u = sum D_i z_i` and `s = sum D_i`, the weights' step solves
//! `(I + sum D_i (z_i - u/s)(z_i - u/s)') p = -(g - u g_b / s)`. The mean of L2-normalised embeddings is their largest
//! direction by far, and it is gone from this system.

use crate::ProbeError;
use crate::memory::Memory;
use crate::objective::{Objective, Point, Precision, add_scaled, dot};

/// Most products in one solve; a solve cut short still gives a direction of descent.
const MAX_PRODUCTS: usize = 500;
/// Least curvature taken for the intercept, should every row be saturated.
const LEAST_CURVATURE: f64 = 1e-12;

/// A direction for weights and intercept.
pub(crate) struct Step {
    pub weights: Vec<f64>,
    pub intercept: f64,
    pub products: usize,
}

/// The Newton step at `point` (which is settled), its residual within `forcing` of the right-hand side.
pub(crate) fn newton_step(
    objective: &mut dyn Objective,
    point: &Point,
    memory: &mut Memory,
    precision: Precision,
    forcing: f64,
) -> Result<Step, ProbeError> {
    let width = point.weights.len();
    let spread = point.intercept_curvature.max(LEAST_CURVATURE);
    let mut residual: Vec<f64> = point
        .gradient
        .iter()
        .zip(&point.pull)
        .map(|(g, u)| u * (point.intercept_gradient / spread) - g)
        .collect();
    let target = forcing * dot(&residual, &residual).sqrt();
    let mut solution = vec![0.0; width];
    let mut pairs = Vec::new();
    let mut direction = memory.apply(&residual);
    let mut energy = dot(&residual, &direction);
    let mut products = 0;
    while products < MAX_PRODUCTS && energy > 0.0 {
        let mut image = vec![0.0; width];
        objective.curvature(
            &direction,
            dot(&point.pull, &direction) / spread,
            precision,
            &mut image,
        )?;
        products += 1;
        add_scaled(&mut image, 1.0, &direction);
        let curvature = dot(&direction, &image);
        if !(curvature.is_normal() && curvature > 0.0) {
            break;
        }
        let length = energy / curvature;
        add_scaled(&mut solution, length, &direction);
        add_scaled(&mut residual, -length, &image);
        let done = dot(&residual, &residual).sqrt() <= target;
        let next = if done {
            Vec::new()
        } else {
            memory.apply(&residual)
        };
        if done {
            pairs.push((direction, image));
            break;
        }
        let next_energy = dot(&residual, &next);
        let keep = next_energy / energy;
        let conjugate = next
            .iter()
            .zip(&direction)
            .map(|(next, old)| next + keep * old)
            .collect();
        pairs.push((std::mem::replace(&mut direction, conjugate), image));
        energy = next_energy;
    }
    for (direction, image) in pairs {
        memory.push(direction, image);
    }
    let intercept = -(point.intercept_gradient + dot(&point.pull, &solution)) / spread;
    Ok(Step {
        weights: solution,
        intercept,
        products,
    })
}
