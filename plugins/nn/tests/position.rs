//! Position tables against PyTorch's own resampling (`scripts/position_expected.py`).

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use focus_nn::position::{Interpolation, interpolate};
use focus_nn::{Device, Tensor};

#[derive(serde::Deserialize)]
struct Case {
    from: (usize, usize),
    to: (usize, usize),
    offset: Option<f64>,
    values: Vec<f32>,
}

fn cases() -> Vec<Case> {
    serde_json::from_str(include_str!("data/position.json")).unwrap()
}

fn table(case: &Case) -> Tensor {
    let count = case.from.0 * case.from.1 * 2;
    let values: Vec<f32> = (0..count)
        .map(|i| ((i * 7919) % 1009) as f32 / 512.0 - 1.0)
        .collect();
    Tensor::from_vec(values, (count / 2, 2), &Device::Cpu).unwrap()
}

fn difference(case: &Case, how: Interpolation) -> f32 {
    let found = interpolate(&table(case), case.from, case.to, how).unwrap();
    let found: Vec<f32> = found.flatten_all().unwrap().to_vec1().unwrap();
    assert_eq!(found.len(), case.values.len());
    found
        .iter()
        .zip(&case.values)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f32::max)
}

fn rule(case: &Case) -> Interpolation {
    case.offset
        .map_or(Interpolation::Size, |offset| Interpolation::Factor {
            offset,
        })
}

#[test]
fn tables_equal_pytorch() {
    for case in cases() {
        let found = difference(&case, rule(&case));
        assert!(found < 5e-6, "{:?} to {:?}: {found}", case.from, case.to);
    }
}

#[test]
fn the_offset_matters() {
    for case in cases().iter().filter(|case| case.offset.is_some()) {
        assert!(difference(case, Interpolation::Size) > 1e-3);
    }
}

#[test]
fn equal_grids_stay_and_misfits_are_refused() {
    let case = &cases()[0];
    let table = table(case);
    let how = Interpolation::Factor { offset: 0.1 };
    let same = interpolate(&table, (5, 5), (5, 5), how).unwrap();
    assert_eq!(
        same.to_vec2::<f32>().unwrap(),
        table.to_vec2::<f32>().unwrap()
    );
    let error = interpolate(&table, (4, 4), (5, 5), how)
        .unwrap_err()
        .to_string();
    assert!(error.contains("expected 4 x 4 rows, found 25"), "{error}");
}
