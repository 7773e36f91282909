//! Properties that hold for any rows: order, thread count and patients' numbers change no bit; monotone maps leave
//! ranks alone; values stay in range.

use focus_metrics::{
    Delta, Estimate, Plan, Scored, Units, bootstrap, evaluate_all, metric, metrics,
    paired_bootstrap,
};
use proptest::prelude::*;

/// One row: label, decisions and scores of two arms, patient.
type Row = (bool, bool, f64, bool, f64, u32);

fn score() -> impl Strategy<Value = f64> {
    prop_oneof![
        0.0..=1.0_f64,
        (0..=10_u8).prop_map(|tenth| f64::from(tenth) / 10.0),
        Just(-0.0),
        -5.0..5.0_f64,
    ]
}

fn table() -> impl Strategy<Value = Vec<Row>> {
    let row = (
        any::<bool>(),
        any::<bool>(),
        score(),
        any::<bool>(),
        score(),
        0..12_u32,
    );
    prop::collection::vec(row, 1..60)
}

fn table_and_shuffle() -> impl Strategy<Value = (Vec<Row>, Vec<Row>)> {
    table().prop_flat_map(|rows| (Just(rows.clone()), Just(rows).prop_shuffle()))
}

struct Columns {
    labels: Vec<bool>,
    predicted: [Vec<bool>; 2],
    scores: [Vec<f64>; 2],
    patients: Vec<u32>,
}

impl Columns {
    fn of(rows: &[Row]) -> Self {
        Self {
            labels: rows.iter().map(|row| row.0).collect(),
            predicted: [
                rows.iter().map(|row| row.1).collect(),
                rows.iter().map(|row| row.3).collect(),
            ],
            scores: [
                rows.iter().map(|row| row.2).collect(),
                rows.iter().map(|row| row.4).collect(),
            ],
            patients: rows.iter().map(|row| row.5).collect(),
        }
    }

    fn arm(&self, arm: usize) -> Scored<'_> {
        Scored::new(&self.labels, &self.predicted[arm], &self.scores[arm]).unwrap()
    }

    fn plain(&self, by_patient: bool) -> Vec<Estimate> {
        bootstrap(&self.arm(0), &metrics(), &self.plan(by_patient)).unwrap()
    }

    fn paired(&self, by_patient: bool) -> Vec<Delta> {
        paired_bootstrap(
            &self.arm(0),
            &self.arm(1),
            &metrics(),
            &self.plan(by_patient),
        )
        .unwrap()
    }

    fn plan(&self, by_patient: bool) -> Plan<'_> {
        let units = if by_patient {
            Units::Patients(&self.patients)
        } else {
            Units::Images
        };
        Plan {
            resamples: 60,
            seed: 7,
            units,
        }
    }
}

/// Every bit of a result. `Debug` prints floats so that they come back exactly, signed zeros included.
fn bits<T: std::fmt::Debug>(value: &T) -> String {
    format!("{value:?}")
}

fn in_pool<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .unwrap()
        .install(work)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn row_order_changes_no_bit((rows, shuffled) in table_and_shuffle()) {
        let (a, b) = (Columns::of(&rows), Columns::of(&shuffled));
        prop_assert_eq!(bits(&evaluate_all(&a.arm(0))), bits(&evaluate_all(&b.arm(0))));
        for by_patient in [false, true] {
            prop_assert_eq!(bits(&a.plain(by_patient)), bits(&b.plain(by_patient)));
            prop_assert_eq!(bits(&a.paired(by_patient)), bits(&b.paired(by_patient)));
        }
    }

    #[test]
    fn patients_numbers_do_not_matter(rows in table(), factor in 1..1000_u32) {
        let a = Columns::of(&rows);
        let mut b = Columns::of(&rows);
        b.patients.iter_mut().for_each(|patient| *patient = (12 - *patient) * factor);
        prop_assert_eq!(bits(&a.paired(true)), bits(&b.paired(true)));
    }

    #[test]
    fn one_image_for_each_patient_is_the_image_level(rows in table()) {
        let mut a = Columns::of(&rows);
        a.patients = (0..rows.len() as u32).collect();
        prop_assert_eq!(bits(&a.plain(true)), bits(&a.plain(false)));
    }

    #[test]
    fn threads_change_no_bit(rows in table()) {
        let a = Columns::of(&rows);
        let [one, two] = [1, 2].map(|threads| in_pool(threads, || bits(&a.paired(true))));
        prop_assert_eq!(one, two);
    }

    #[test]
    fn monotone_maps_leave_ranks_alone(rows in table(), scale in 1..50_u32, shift in -9..9_i32) {
        let a = Columns::of(&rows);
        // Scaling by a power of two is exact, so no two scores can fall together; the cube of a tenth stays distinct.
        let mut b = Columns::of(&rows);
        let scale = f64::from(scale.next_power_of_two());
        b.scores[0].iter_mut().for_each(|score| *score *= scale);
        let mut c = Columns::of(&rows);
        let mut distinct = a.scores[0].iter().map(|score| score + 0.0).collect::<Vec<_>>();
        distinct.sort_by(f64::total_cmp);
        distinct.dedup();
        let place = |score: &f64| distinct.iter().position(|other| other == score).unwrap();
        c.scores[0].iter_mut().for_each(|score| *score = place(score) as f64 + f64::from(shift));
        for id in ["auroc", "auprc"] {
            let spec = metric(id).unwrap();
            prop_assert_eq!(spec.compute(&a.arm(0)), spec.compute(&b.arm(0)));
            prop_assert_eq!(spec.compute(&a.arm(0)), spec.compute(&c.arm(0)));
        }
    }

    #[test]
    fn negated_scores_mirror_auroc(rows in table()) {
        let a = Columns::of(&rows);
        let mut b = Columns::of(&rows);
        b.scores[0].iter_mut().for_each(|score| *score = -*score);
        let auroc = metric("auroc").unwrap();
        if let (Some(a), Some(b)) = (auroc.compute(&a.arm(0)).value(), auroc.compute(&b.arm(0)).value()) {
            prop_assert!((a + b - 1.0).abs() < 1e-15);
        }
    }

    #[test]
    fn values_are_finite_and_in_range(rows in table()) {
        let a = Columns::of(&rows);
        for (spec, value) in evaluate_all(&a.arm(0)) {
            if let Some(value) = value.value() {
                let (low, high) = match spec.id {
                    "brier_skill" => (f64::MIN, 1.0),
                    "ece_debiased" => (-1.0, 1.0),
                    "calibration_slope" | "calibration_intercept" => (f64::MIN, f64::MAX),
                    _ => (0.0, 1.0),
                };
                prop_assert!(value >= low && value <= high, "{}: {}", spec.id, value);
            }
        }
        for estimate in a.plain(true) {
            prop_assert!(estimate.valid <= estimate.resamples);
            if let Some(interval) = estimate.interval {
                prop_assert!(interval.low <= interval.high && interval.low.is_finite() && interval.high.is_finite());
            }
        }
    }
}
