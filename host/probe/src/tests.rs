//! The two objectives against each other and against finite differences. Owns no public behaviour.

use candle_core::Device;
use pulp::{Arch, Scalar, WithSimd};

use crate::host::HostObjective;
use crate::kernel::{Curve, Evaluate, Rows};
use crate::objective::{Costs, Objective, Point, Precision};
use crate::tensor::TensorObjective;
use crate::{Features, ProbeSpec, Status};

const ROWS: usize = 203;
const WIDTH: usize = 37;
const COSTS: Costs = Costs {
    positive: 1.7,
    negative: 0.6,
};

fn wave(index: usize, scale: f64) -> f64 {
    (index as f64 * 0.737 + scale).sin() + 0.3 * (index as f64 * 2.311 * scale).cos()
}

fn data() -> (Vec<f32>, Vec<bool>) {
    let values = (0..ROWS * WIDTH)
        .map(|index| (wave(index, 1.3) + 0.5) as f32)
        .collect();
    (values, (0..ROWS).map(|row| wave(row, 0.4) > 0.1).collect())
}

fn somewhere() -> Point {
    let mut point = Point::at((0..WIDTH).map(|index| wave(index, 2.0)).collect(), 0.3);
    point.loss = f64::NAN;
    point
}

fn close(a: &[f64], b: &[f64], tolerance: f64) {
    let size = b.iter().fold(0.0_f64, |size, value| size.max(value.abs()));
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() <= tolerance * size, "{a} against {b}");
    }
}

#[test]
fn gradient_and_curvature_are_the_derivatives() {
    let (values, labels) = data();
    let features = Features::copied(&values, ROWS, &Device::Cpu).unwrap();
    let mut objective = HostObjective::new(&features, &labels, COSTS);
    let step = 1e-5;
    let mut at = |weights: &[f64], intercept: f64| {
        let mut point = Point::at(weights.to_vec(), intercept);
        objective.evaluate(&mut point).unwrap();
        point
    };
    let point = at(&somewhere().weights, 0.3);
    for index in 0..=WIDTH {
        let shifted = |amount: f64| {
            let (mut weights, mut intercept) = (point.weights.clone(), point.intercept);
            *weights.get_mut(index).unwrap_or(&mut intercept) += amount;
            (weights, intercept)
        };
        let (up, down) = (shifted(step), shifted(-step));
        let (up, down) = (at(&up.0, up.1), at(&down.0, down.1));
        let slope = (up.loss - down.loss) / (2.0 * step);
        let claimed = point
            .gradient
            .get(index)
            .copied()
            .unwrap_or(point.intercept_gradient);
        assert!(
            (slope - claimed).abs() < 1e-6,
            "{index}: {slope} against {claimed}"
        );
        let bend = (up.intercept_gradient - down.intercept_gradient) / (2.0 * step);
        let claimed = point
            .pull
            .get(index)
            .copied()
            .unwrap_or(point.intercept_curvature);
        assert!(
            (bend - claimed).abs() < 1e-6,
            "{index}: {bend} against {claimed}"
        );
    }

    let direction: Vec<f64> = (0..WIDTH).map(|index| wave(index, 5.0)).collect();
    let moved = |amount: f64| -> Vec<f64> {
        point
            .weights
            .iter()
            .zip(&direction)
            .map(|(weight, way)| weight + amount * way)
            .collect()
    };
    let (up, down) = (
        at(&moved(step), 0.3 - 0.2 * step),
        at(&moved(-step), 0.3 + 0.2 * step),
    );
    let bends: Vec<f64> = up
        .gradient
        .iter()
        .zip(&down.gradient)
        .zip(&direction)
        .map(|((up, down), way)| (up - down) / (2.0 * step) - way)
        .collect();
    let mut again = point.clone();
    objective.evaluate(&mut again).unwrap();
    objective.settle().unwrap();
    let mut claimed = vec![0.0; WIDTH];
    objective
        .curvature(&direction, 0.2, Precision::Double, &mut claimed)
        .unwrap();
    close(&claimed, &bends, 1e-7);
    let mut single = vec![0.0; WIDTH];
    objective
        .curvature(&direction, 0.2, Precision::Single, &mut single)
        .unwrap();
    close(&single, &claimed, 1e-5);
    assert_ne!(single, claimed, "single precision must be what it says");
}

#[test]
fn host_and_candle_objectives_agree() {
    let (values, labels) = data();
    let features = Features::copied(&values, ROWS, &Device::Cpu).unwrap();
    let generic = Features::generic(&values, ROWS).unwrap();
    let mut host = HostObjective::new(&features, &labels, COSTS);
    let mut tensor = TensorObjective::new(&generic, &labels, COSTS);
    let (mut a, mut b) = (somewhere(), somewhere());
    host.evaluate(&mut a).unwrap();
    tensor.evaluate(&mut b).unwrap();
    close(
        &[a.loss, a.intercept_gradient, a.intercept_curvature],
        &[b.loss, b.intercept_gradient, b.intercept_curvature],
        1e-12,
    );
    close(&a.gradient, &b.gradient, 1e-12);
    close(&a.pull, &b.pull, 1e-12);
    host.settle().unwrap();
    tensor.settle().unwrap();
    // A point that is looked at but not settled must leave the curvature alone.
    let mut elsewhere = Point::at(vec![1.0; WIDTH], -2.0);
    host.evaluate(&mut elsewhere).unwrap();
    tensor.evaluate(&mut elsewhere).unwrap();
    let (mut c, mut d) = (vec![0.0; WIDTH], vec![0.0; WIDTH]);
    host.curvature(&a.pull, 0.1, Precision::Double, &mut c)
        .unwrap();
    tensor
        .curvature(&a.pull, 0.1, Precision::Double, &mut d)
        .unwrap();
    close(&c, &d, 1e-12);
}

#[test]
fn a_fit_by_candle_operations_is_the_same_fit() {
    let (values, labels) = data();
    for spec in [ProbeSpec::default(), ProbeSpec::unweighted()] {
        let host = Features::copied(&values, ROWS, &Device::Cpu)
            .unwrap()
            .fit(&labels, &spec)
            .unwrap();
        let tensor = Features::generic(&values, ROWS)
            .unwrap()
            .fit(&labels, &spec)
            .unwrap();
        assert_eq!(
            (host.status, tensor.status),
            (Status::Converged, Status::Converged)
        );
        close(&host.weights, &tensor.weights, 1e-9);
        for (a, b) in host
            .scores(&values)
            .unwrap()
            .iter()
            .zip(tensor.scores(&values).unwrap())
        {
            assert!((a.probability - b.probability).abs() < 1e-9);
        }
    }
}

#[test]
fn machines_without_vector_instructions_agree() {
    let (values, labels) = data();
    let inverse_norms = crate::host::inverse_norms(&values, WIDTH).unwrap();
    let rows = || Rows {
        values: &values,
        width: WIDTH,
        inverse_norms: &inverse_norms,
    };
    let weights = somewhere().weights;
    let evaluate = |simd: bool| {
        let (mut gradient, mut pull, mut curvatures) =
            (vec![0.0; WIDTH], vec![0.0; WIDTH], vec![0.0; ROWS]);
        let work = Evaluate {
            rows: rows(),
            labels: &labels,
            costs: COSTS,
            weights: &weights,
            intercept: 0.3,
            gradient: &mut gradient,
            pull: &mut pull,
            curvatures: &mut curvatures,
        };
        let totals = if simd {
            Arch::new().dispatch(work)
        } else {
            work.with_simd(Scalar::new())
        };
        let mut single = vec![0.0; WIDTH];
        let direction: Vec<f32> = weights.iter().map(|&weight| weight as f32).collect();
        let work = Curve {
            rows: rows(),
            curvatures: &curvatures,
            direction: &direction,
            shift: 0.1,
            out: &mut single,
        };
        if simd {
            Arch::new().dispatch(work);
        } else {
            work.with_simd(Scalar::new());
        }
        let single: Vec<f64> = single.into_iter().map(f64::from).collect();
        (
            [
                vec![totals.loss, totals.slope, totals.curvature],
                gradient,
                pull,
                curvatures,
            ]
            .concat(),
            single,
        )
    };
    let ((vector, vector_single), (scalar, scalar_single)) = (evaluate(true), evaluate(false));
    close(&vector, &scalar, 1e-13);
    close(&vector_single, &scalar_single, 1e-5);
    assert!(
        scalar
            .iter()
            .all(|value| value.is_finite() && *value != 0.0)
    );
}
