//! Gaps between groups: what exchanging groups, reordering rows and changing threads may alter, and whether intervals and
//! permutation p-values do what they claim.

use focus_metrics::{
    Direction, Gaps, MetricSpec, Missing, Plan, Role, Scored, Shuffled, Units, gap_nulls, gaps,
    gaps_from, metric, metrics, metrics_of, rank_series, resample, resample_with_groups,
    standardised_gaps,
};
use proptest::prelude::*;

/// One row: label, decision, score, patient, group.
type Row = (bool, bool, f64, u32, Option<bool>);

fn table() -> impl Strategy<Value = Vec<Row>> {
    let score = prop_oneof![
        0.0..=1.0_f64,
        (0..=10_u8).prop_map(|tenth| f64::from(tenth) / 10.0)
    ];
    let group = prop_oneof![
        Just(None),
        Just(Some(true)),
        Just(Some(true)),
        Just(Some(false)),
        Just(Some(false))
    ];
    prop::collection::vec(
        (any::<bool>(), any::<bool>(), score, 0..12_u32, group),
        1..50,
    )
}

fn all_metrics() -> Vec<&'static MetricSpec> {
    let mut all = metrics();
    all.extend(metrics_of(Role::Rate));
    all
}

struct Columns {
    labels: Vec<bool>,
    predicted: Vec<bool>,
    scores: Vec<f64>,
    patients: Vec<u32>,
    groups: Vec<Option<bool>>,
}

impl Columns {
    fn of(rows: &[Row]) -> Self {
        Self {
            labels: rows.iter().map(|row| row.0).collect(),
            predicted: rows.iter().map(|row| row.1).collect(),
            scores: rows.iter().map(|row| row.2).collect(),
            patients: rows.iter().map(|row| row.3).collect(),
            groups: rows.iter().map(|row| row.4).collect(),
        }
    }

    /// Every patient in one group: that of the parity of its number.
    fn whole_patients(mut self) -> Self {
        for (group, patient) in self.groups.iter_mut().zip(&self.patients) {
            *group = group.map(|_| patient % 2 == 1);
        }
        self
    }

    fn exchanged(&self) -> Vec<Option<bool>> {
        self.groups
            .iter()
            .map(|group| group.map(|group| !group))
            .collect()
    }

    fn arm(&self) -> Scored<'_> {
        Scored::new(&self.labels, &self.predicted, &self.scores).unwrap()
    }

    fn plan(&self, by_patient: bool) -> Plan<'_> {
        let units = if by_patient {
            Units::Patients(&self.patients)
        } else {
            Units::Images
        };
        Plan {
            resamples: 40,
            seed: 7,
            units,
        }
    }

    fn known(&self) -> bool {
        self.groups.iter().any(Option::is_some)
    }

    fn gaps(&self, by_patient: bool) -> Gaps {
        gaps(
            &self.arm(),
            &self.groups,
            &all_metrics(),
            &self.plan(by_patient),
            30,
        )
        .unwrap()
    }

    /// What one group's rows hold, in an order of their own.
    fn contents(&self, group: bool) -> Vec<(bool, bool, u64)> {
        let rows = (0..self.labels.len()).filter(|&row| self.groups[row] == Some(group));
        let mut rows: Vec<_> = rows
            .map(|row| {
                (
                    self.labels[row],
                    self.predicted[row],
                    self.scores[row].to_bits(),
                )
            })
            .collect();
        rows.sort_unstable();
        rows
    }
}

/// Every bit of a result. `Debug` prints floats so that they come back exactly, signed zeros included.
fn bits<T: std::fmt::Debug>(value: &T) -> String {
    format!("{value:?}")
}

fn in_pool<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .unwrap();
    pool.install(work)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn row_order_and_threads_change_no_bit((rows, shuffled) in table().prop_flat_map(|rows| (Just(rows.clone()), Just(rows).prop_shuffle()))) {
        let (a, b) = (Columns::of(&rows), Columns::of(&shuffled));
        prop_assume!(a.known());
        for by_patient in [false, true] {
            let one = in_pool(1, || bits(&a.gaps(by_patient)));
            prop_assert_eq!(&one, &in_pool(3, || bits(&b.gaps(by_patient))));
        }
        let (a, b) = (a.whole_patients(), b.whole_patients());
        prop_assert_eq!(bits(&a.gaps(true)), bits(&b.gaps(true)));
    }

    #[test]
    fn exchanging_groups_turns_signs_and_nothing_else(rows in table(), by_patient: bool, whole: bool) {
        let mut a = Columns::of(&rows);
        if whole {
            a = a.whole_patients();
        }
        prop_assume!(a.known());
        // Groups that hold the same rows cannot be told apart, so nothing can turn.
        prop_assume!(a.contents(true) != a.contents(false));
        let mut b = Columns::of(&rows);
        b.groups = a.exchanged();
        let (a, b) = (a.gaps(by_patient), b.gaps(by_patient));
        prop_assert_eq!(a.counts, [b.counts[1], b.counts[0]]);
        prop_assert_eq!(a.equalized_odds, b.equalized_odds);
        prop_assert_eq!(&a.nulls, &b.nulls);
        for (a, b) in a.gaps.iter().zip(&b.gaps) {
            prop_assert_eq!(a.signed, b.signed.map(|gap| -gap));
            prop_assert_eq!(a.absolute, b.absolute);
            prop_assert_eq!((a.p, a.valid), (b.p, b.valid));
            if let (Some(a), Some(b)) = (a.interval, b.interval) {
                prop_assert!((a.low + b.high).abs() < 1e-12 * a.low.abs().max(1.0), "{:?} {:?}", a, b);
                prop_assert!((a.high + b.low).abs() < 1e-12 * a.high.abs().max(1.0), "{:?} {:?}", a, b);
            }
        }
    }

    #[test]
    fn groupings_leave_the_whole_alone(rows in table(), by_patient: bool) {
        let a = Columns::of(&rows);
        let (arm, plan, specs) = (a.arm(), a.plan(by_patient), all_metrics());
        let second: Vec<Option<bool>> = a.scores.iter().map(|&score| Some(score > 0.3)).collect();
        let grouped = resample_with_groups(&[&arm], &specs, &[&a.groups, &second], &specs, &plan).unwrap();
        prop_assert_eq!(&grouped.whole, &resample(&[&arm], &specs, &plan).unwrap());
        // A grouping that puts all rows into group 1 gives the whole's values there, and nothing in group 0.
        let all = vec![Some(true); rows.len()];
        let grouped = resample_with_groups(&[&arm], &specs, &[&all], &specs, &plan).unwrap();
        prop_assert_eq!(&grouped.groups[0][1], &grouped.whole);
        prop_assert!((0..specs.len()).all(|metric| grouped.groups[0][0].valid(0, metric).is_empty()));
    }

    #[test]
    fn gaps_of_joint_draws_are_gaps_where_every_group_is_known(rows in table(), by_patient: bool) {
        let mut a = Columns::of(&rows);
        a.groups.iter_mut().for_each(|group| *group = Some(group.unwrap_or(true)));
        let (arm, plan, specs) = (a.arm(), a.plan(by_patient), all_metrics());
        let joint = resample_with_groups(&[&arm], &[], &[&a.groups], &specs, &plan).unwrap();
        let joint = gaps_from(&arm, &a.groups, &specs, &joint, 0, 0).unwrap();
        prop_assert_eq!(bits(&joint), bits(&gaps(&arm, &a.groups, &specs, &plan, 0).unwrap()));
    }

    #[test]
    fn monotone_maps_leave_rank_gaps_alone(rows in table()) {
        let a = Columns::of(&rows);
        prop_assume!(a.known());
        let mut b = Columns::of(&rows);
        // Exact in binary, so that no two scores fall together.
        b.scores.iter_mut().for_each(|score| *score *= 4.0);
        let specs = ["auroc", "auprc"].map(|id| metric(id).unwrap());
        let of = |a: &Columns| bits(&gaps(&a.arm(), &a.groups, &specs, &a.plan(false), 20).unwrap());
        prop_assert_eq!(of(&a), of(&b));
    }

    #[test]
    fn one_stratum_standardises_to_the_plain_gap(rows in table(), by_patient: bool) {
        let a = Columns::of(&rows);
        prop_assume!(a.known());
        let specs = ["accuracy", "positive_rate", "true_positive_rate", "false_positive_rate", "specificity"].map(|id| metric(id).unwrap());
        let (arm, plan) = (a.arm(), a.plan(by_patient));
        let plain = gaps(&arm, &a.groups, &specs, &plan, 0).unwrap();
        let strata = vec![Some(3); rows.len()];
        for (standardised, plain) in standardised_gaps(&arm, &a.groups, &strata, &specs, &plan).unwrap().iter().zip(&plain.gaps) {
            prop_assert!(standardised.signed.is_some() == plain.signed.is_some());
            if let (Some(ours), Some(plain)) = (standardised.signed, plain.signed) {
                prop_assert!((ours - plain).abs() < 1e-12);
                prop_assert_eq!((standardised.strata, standardised.covered), (1, Some(1.0)));
            }
            prop_assert_eq!(standardised.valid, plain.valid);
        }
    }

    #[test]
    fn numbered_units_draw_the_same_patients_in_every_call(rows in table()) {
        let a = Columns::of(&rows);
        let units = Units::Numbered { count: 12, of_row: &a.patients };
        let plan = Plan { units, ..a.plan(false) };
        let specs = all_metrics();
        // Alone, or beside an arm that sorts rows otherwise: the draws are the units', not the contents'.
        let flipped: Vec<f64> = a.scores.iter().map(|score| 1.0 - score).collect();
        let (arm, other) = (a.arm(), Scored::new(&a.labels, &a.labels, &flipped).unwrap());
        let alone = resample(&[&arm], &specs, &plan).unwrap();
        let beside = resample(&[&other, &arm], &specs, &plan).unwrap();
        for metric in 0..specs.len() {
            prop_assert_eq!(alone.of(0, metric).collect::<Vec<_>>(), beside.of(1, metric).collect::<Vec<_>>());
        }
        // A task with fewer labelled rows: the accuracy on patients 0..6 follows the same draws.
        let half: Vec<usize> = (0..rows.len()).filter(|&row| a.patients[row] < 6).collect();
        prop_assume!(!half.is_empty());
        let b = Columns::of(&half.iter().map(|&row| rows[row]).collect::<Vec<_>>());
        let plan = Plan { units: Units::Numbered { count: 12, of_row: &b.patients }, ..plan };
        let accuracy = [metric("accuracy").unwrap()];
        let part = resample(&[&b.arm()], &accuracy, &plan).unwrap();
        let plan = Plan { units: Units::Numbered { count: 12, of_row: &a.patients }, ..plan };
        let mask: Vec<Option<bool>> = a.patients.iter().map(|&patient| (patient < 6).then_some(true)).collect();
        let grouped = resample_with_groups(&[&arm], &[], &[&mask], &accuracy, &plan).unwrap();
        prop_assert_eq!(&part, &grouped.groups[0][1]);
    }
}

/// A little generator, so that simulations do not depend on the crate's own.
struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Rows of which each is decided right with the probability of its group; scores say nothing but the decision.
fn simulated(random: &mut Random, n: usize, right: [f64; 2]) -> Columns {
    let rows = (0..n).map(|i| {
        let (label, group) = (random.unit() < 0.4, random.unit() < 0.5);
        let decided = if random.unit() < right[usize::from(group)] {
            label
        } else {
            !label
        };
        let score = f64::from(u8::from(decided)) * 0.5 + random.unit() / 2.0;
        (label, decided, score, i as u32, Some(group))
    });
    Columns::of(&rows.collect::<Vec<_>>())
}

#[test]
fn intervals_of_signed_gaps_cover_the_true_gap() {
    let mut random = Random(5);
    let accuracy = [metric("accuracy").unwrap()];
    let (mut covered, repeats) = (0, 600);
    for _ in 0..repeats {
        let data = simulated(&mut random, 200, [0.7, 0.85]);
        let plan = Plan {
            resamples: 400,
            seed: 3,
            units: Units::Images,
        };
        let gap = &gaps(&data.arm(), &data.groups, &accuracy, &plan, 0)
            .unwrap()
            .gaps[0];
        let interval = gap.interval.unwrap();
        covered += usize::from((interval.low..=interval.high).contains(&0.15));
    }
    // Standard deviation is 0.009; percentile intervals of 100 rows a group fall a little short.
    let share = covered as f64 / f64::from(repeats);
    assert!((0.915..0.98).contains(&share), "{share}");
}

#[test]
fn without_a_difference_permutation_p_is_uniform_and_with_one_it_is_small() {
    let mut random = Random(11);
    let auroc = [metric("auroc").unwrap()];
    let mut p_values = |right: [f64; 2], repeats: u32| -> Vec<f64> {
        let mut p: Vec<f64> = (0..repeats)
            .map(|seed| {
                let data = simulated(&mut random, 80, right);
                let plan = Plan {
                    resamples: 1,
                    seed: u64::from(seed),
                    units: Units::Images,
                };
                let nulls = gap_nulls(&data.arm(), &data.groups, &auroc, &plan, 199).unwrap();
                nulls.gaps[0].unwrap().p
            })
            .collect();
        p.sort_by(f64::total_cmp);
        p
    };
    let p = p_values([0.75, 0.75], 600);
    // Kolmogorov-Smirnov: 1.63 / sqrt(600) is passed once in a hundred times; the grid of 1/200 adds half a step.
    let furthest = p
        .iter()
        .enumerate()
        .map(|(i, p)| (p - (i as f64 + 0.5) / 600.0).abs())
        .fold(0.0, f64::max);
    assert!(furthest < 0.07, "{furthest}");
    let p = p_values([0.55, 0.95], 60);
    assert!(p[45] < 0.05, "{p:?}");
}

#[test]
fn equalized_odds_is_far_from_zero_without_any_difference() {
    // PAPILA's size: 195 rows, about a third positive, TPR about 0.7 and FPR about 0.2.
    let mut random = Random(23);
    let rows = (0..195).map(|i| {
        let label = i % 3 == 0;
        let decided = random.unit() < if label { 0.7 } else { 0.2 };
        (
            label,
            decided,
            random.unit(),
            i / 2,
            Some(random.unit() < 0.5),
        )
    });
    let data = Columns::of(&rows.collect::<Vec<_>>());
    let nulls = gap_nulls(&data.arm(), &data.groups, &[], &data.plan(false), 4000).unwrap();
    let null = nulls.equalized_odds_corrected.unwrap();
    assert!((null.mean - 0.11).abs() < 0.02, "{null:?}");
    assert!(null.p95 > 0.2 && null.valid == 4000, "{null:?}");
    assert_eq!(nulls.equalized_odds_as_published, Some(null));
}

#[test]
fn patients_are_shuffled_whole_only_where_each_lies_in_one_group() {
    let rows: Vec<Row> = (0..40_u32)
        .map(|i| {
            (
                i % 3 == 0,
                i % 4 == 0,
                f64::from(i) / 40.0,
                i / 2,
                Some(i % 4 < 2),
            )
        })
        .collect();
    let mut data = Columns::of(&rows);
    let shuffled = |data: &Columns, by_patient| {
        gap_nulls(&data.arm(), &data.groups, &[], &data.plan(by_patient), 5)
            .unwrap()
            .shuffled
    };
    assert_eq!(shuffled(&data, true), Shuffled::Patients);
    assert_eq!(shuffled(&data, false), Shuffled::Images);
    data.groups[0] = Some(false);
    assert_eq!(shuffled(&data, true), Shuffled::Images);
    data.groups[0] = None;
    assert_eq!(
        shuffled(&data, true),
        Shuffled::Patients,
        "a row of unknown group splits nobody"
    );
}

#[test]
fn a_gap_to_a_group_without_positives_is_missing_in_the_rate_and_made_of_convention_in_recall() {
    let labels = [true, true, false, false, false];
    let predicted = [true, false, true, false, false];
    let groups = [Some(true), Some(true), Some(true), Some(false), Some(false)];
    let rows = Scored::without_scores(&labels, &predicted).unwrap();
    let specs = ["true_positive_rate", "recall", "auroc"].map(|id| metric(id).unwrap());
    let plan = Plan {
        resamples: 200,
        seed: 1,
        units: Units::Images,
    };
    let found = gaps(&rows, &groups, &specs, &plan, 20).unwrap();
    let [rate, recall, auroc] = &found.gaps[..] else {
        panic!()
    };
    assert_eq!((rate.signed, rate.interval, rate.p), (None, None, None));
    assert_eq!(rate.values[0].missing(), Some(Missing::NoPositives));
    assert_eq!(
        (recall.signed, recall.values[0].flag()),
        (Some(0.5), Some("no_positives"))
    );
    assert_eq!(auroc.values[1].missing(), Some(Missing::NoScores));
    assert_eq!(
        (
            found.equalized_odds.as_published,
            found.equalized_odds.corrected
        ),
        (Some(1.0), None)
    );
    let nulls = found.nulls.unwrap();
    assert!(
        nulls.gaps[0].is_none()
            && nulls.gaps[2].is_none()
            && nulls.equalized_odds_corrected.is_none()
    );
    assert!(nulls.equalized_odds_as_published.is_some());
}

#[test]
fn standardising_takes_away_a_gap_that_strata_explain() {
    // In both groups the easy stratum is decided right, the hard one wrong; group 1 has more of the hard one.
    let mut rows = Vec::new();
    let mut strata = Vec::new();
    for (group, easy, hard) in [(false, 30, 10), (true, 10, 30)] {
        for i in 0..easy + hard {
            let label = i % 2 == 0;
            let wrong = i >= easy;
            rows.push((label, label != wrong, 0.5, 0, Some(group)));
            strata.push(Some(u32::from(wrong)));
        }
    }
    // A stratum that only group 1 has, and a row whose stratum is unknown.
    rows.push((true, true, 0.5, 0, Some(true)));
    strata.push(Some(9));
    rows.push((true, true, 0.5, 0, Some(true)));
    strata.push(None);
    let data = Columns::of(&rows);
    let accuracy = [metric("accuracy").unwrap()];
    let plan = Plan {
        resamples: 300,
        seed: 1,
        units: Units::Images,
    };
    let gap = &standardised_gaps(&data.arm(), &data.groups, &strata, &accuracy, &plan).unwrap()[0];
    assert_eq!(
        (gap.values, gap.signed, gap.strata),
        (Some([0.5, 0.5]), Some(0.0), 2)
    );
    assert_eq!(gap.covered, Some(80.0 / 82.0));
    assert_eq!(
        (gap.interval.unwrap().low, gap.interval.unwrap().high, gap.p),
        (0.0, 0.0, Some(1.0))
    );
    let error = standardised_gaps(
        &data.arm(),
        &data.groups,
        &strata,
        &[metric("auroc").unwrap()],
        &plan,
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "Metric `auroc` cannot be standardised: expected a share of rows, found another form"
    );
    assert!(error.hint().is_some());
}

#[test]
fn wrong_columns_and_empty_plans_are_named() {
    let data = Columns::of(&[
        (true, true, 0.5, 0, Some(true)),
        (false, true, 0.5, 0, None),
    ]);
    let (arm, plan) = (data.arm(), data.plan(false));
    let short = gaps(&arm, &data.groups[..1], &metrics(), &plan, 0)
        .unwrap_err()
        .to_string();
    assert_eq!(
        short,
        "Column `groups` has the wrong length: expected 2 rows, found 1"
    );
    let none = gaps(&arm, &[None, None], &metrics(), &plan, 0)
        .unwrap_err()
        .to_string();
    assert_eq!(
        none,
        "Nothing to resample: expected at least 1 row, found 0"
    );
    let none = gap_nulls(&arm, &data.groups, &metrics(), &plan, 0)
        .unwrap_err()
        .to_string();
    assert_eq!(
        none,
        "Nothing to permute: expected at least 1 permutation, found 0"
    );
    let units = Units::Numbered {
        count: 3,
        of_row: &[2, 3],
    };
    let beyond = resample(&[&arm], &metrics(), &Plan { units, ..plan })
        .unwrap_err()
        .to_string();
    assert_eq!(
        beyond,
        "Unit of row 1 is out of range: expected a number below 3, found 3"
    );
    let alone = gaps(&arm, &data.groups, &metrics(), &plan, 5).unwrap();
    assert!(
        alone
            .gaps
            .iter()
            .all(|gap| gap.signed.is_none() && gap.interval.is_none())
    );
    assert_eq!(alone.unknown, 1);
}

#[test]
fn identical_arms_share_the_first_place() {
    let mut random = Random(2);
    let data = simulated(&mut random, 60, [0.8, 0.8]);
    let arm = data.arm();
    let spec = [metric("auroc").unwrap()];
    let resamples = resample(&[&arm, &arm, &arm], &spec, &data.plan(false)).unwrap();
    let point = spec[0].compute(&arm).value();
    let series = [0, 1, 2].map(|arm| resamples.series(arm, 0, point));
    for rank in rank_series(&series, Direction::HigherIsBetter).unwrap() {
        assert_eq!(rank.rank, Some(2.0));
        assert!((rank.first.unwrap() - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(
            (rank.interval.unwrap().low, rank.interval.unwrap().high),
            (2.0, 2.0)
        );
    }
    let none = series[0].minus(&series[1]).unwrap().estimate().unwrap();
    assert_eq!(
        (none.value, none.p, none.interval.unwrap().low),
        (0.0, Some(1.0), 0.0)
    );
}
