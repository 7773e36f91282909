//! Large draws against what is said to be true, with fixed seeds: four standard errors, no retries.

use super::*;
use focus_metrics::{Scored, metric};
use focus_store::{CellKey, PredictionRow, RunView};

fn big(
    images: usize,
    patients: Option<usize>,
    effects: Vec<Effect>,
    calibration: Calibration,
) -> SimPlan {
    let set = SimDataset {
        id: "big".into(),
        images,
        patients,
        demographics: true,
        quality: true,
        tasks: vec![SimTask {
            task: "glaucoma".into(),
            positives: images * 3 / 10,
            disease: "glaucoma".into(),
        }],
    };
    let reader = |model: &str, auroc: f64, base| SimCell {
        cell: CellKey::new("big", "glaucoma", "prompting", model),
        auroc,
        calibration,
        effects: effects.clone(),
        base,
    };
    SimPlan {
        seed: 11,
        datasets: vec![set],
        cells: vec![
            reader("base", 0.8, None),
            reader("base+lora-x-glaucoma", 0.85, Some(0)),
        ],
        patient_correlation: 0.4,
        shared_difficulty: 0.3,
        arm_correlation: 0.8,
    }
}

fn value(id: &str, rows: &[&PredictionRow]) -> f64 {
    let labels: Vec<bool> = rows.iter().map(|r| r.label.expect("known")).collect();
    let predicted: Vec<bool> = rows.iter().map(|r| r.predicted.expect("there")).collect();
    let scores: Vec<f64> = rows.iter().map(|r| r.score.expect("there")).collect();
    let scored = Scored::new(&labels, &predicted, &scores).expect("sound");
    let spec = metric(id).expect("a metric");
    (spec.from_tally)(scored.tally()).value().expect("defined")
}

fn rate(rows: &[&PredictionRow], label: bool) -> f64 {
    let of: Vec<_> = rows.iter().filter(|r| r.label == Some(label)).collect();
    of.iter().filter(|r| r.predicted == Some(true)).count() as f64 / of.len() as f64
}

// Hanley and McNeil's standard error, doubled in variance for pairs of eyes.
fn auroc_error(auroc: f64, n_pos: usize, n_neg: usize) -> f64 {
    let (q1, q2) = (auroc / (2.0 - auroc), 2.0 * auroc * auroc / (1.0 + auroc));
    let (p, n) = (n_pos as f64, n_neg as f64);
    let variance = (auroc * (1.0 - auroc)
        + (p - 1.0) * (q1 - auroc * auroc)
        + (n - 1.0) * (q2 - auroc * auroc))
        / (p * n);
    (2.0 * variance).sqrt()
}

fn near(what: &str, found: f64, truth: f64, error: f64) {
    assert!(
        (found - truth).abs() < 4.0 * error,
        "{what}: found {found}, truth {truth}, standard error {error}"
    );
}

const EFFECTS: [Effect; 3] = [
    Effect {
        attribute: Attribute::Age,
        shift: 0.4,
        separation: -0.3,
    },
    Effect {
        attribute: Attribute::Sex,
        shift: -0.2,
        separation: 0.0,
    },
    Effect {
        attribute: Attribute::Quality,
        shift: 0.1,
        separation: 0.5,
    },
];

#[test]
fn auroc_rates_gaps_and_calibration_are_as_stated() {
    let drawn = draw(&big(
        100_000,
        Some(60_000),
        EFFECTS.to_vec(),
        Calibration {
            slope: 1.5,
            intercept: 0.4,
        },
    ))
    .expect("draws");
    for (cell, truth) in drawn.cells.iter().zip(&drawn.truth.cells) {
        let all: Vec<&PredictionRow> = cell.rows.iter().collect();
        let overall = &truth.overall;
        near(
            "auroc",
            value("auroc", &all),
            overall.auroc.expect("two classes"),
            auroc_error(0.8, overall.n_pos, overall.n_neg),
        );
        near(
            "accuracy",
            value("accuracy", &all),
            overall.accuracy,
            (2.0 * 0.25 / 100_000.0_f64).sqrt(),
        );
        // Noise in ten bins adds up to about 0.003 by itself.
        assert!((value("ece", &all) - overall.ece.expect("two classes")).abs() < 0.006);
        assert_eq!(truth.gaps.len(), 3);
        for group in &truth.groups {
            let of: Vec<&PredictionRow> = cell
                .rows
                .iter()
                .filter(|row| {
                    let record = &drawn.records.rows[row.sample as usize];
                    let age = if record.age.expect("known") > 58.0 {
                        "age:older"
                    } else {
                        "age:younger"
                    };
                    let sex = format!("sex:{}", record.sex.as_deref().expect("known"));
                    let quality = format!("quality:{}", record.quality.as_deref().expect("known"));
                    [age, &sex, &quality].contains(&group.subset.as_str())
                })
                .collect();
            assert_eq!(
                (
                    of.len(),
                    of.iter().filter(|r| r.label == Some(true)).count()
                ),
                (group.n, group.n_pos)
            );
            near(
                &group.subset,
                value("auroc", &of),
                group.auroc.expect("two classes"),
                auroc_error(0.8, group.n_pos, group.n_neg),
            );
            let share = |n: usize| (2.0 * 0.25 / n as f64).sqrt();
            near(
                &group.subset,
                rate(&of, true),
                group.tpr.expect("positives"),
                share(group.n_pos),
            );
            near(
                &group.subset,
                rate(&of, false),
                group.fpr.expect("negatives"),
                share(group.n_neg),
            );
            near(
                &group.subset,
                value("accuracy", &of),
                group.accuracy,
                share(group.n),
            );
        }
    }
    let [base, arm] = &drawn.truth.cells[..] else {
        panic!("two cells")
    };
    assert!(
        (base.overall.auroc.expect("there") - 0.8).abs() < 1e-12,
        "the target is met exactly"
    );
    assert!(
        (arm.delta_auroc.expect("there") - 0.05).abs() < 1e-12
            && arm.base.as_deref() == Some("base")
    );
    let age = &base.gaps[0];
    assert!(
        age.auroc.expect("there") < -0.03 && age.fpr.expect("there") > 0.05,
        "{age:?}"
    );
}

#[test]
fn a_calibrated_reader_says_probabilities() {
    let drawn = draw(&big(100_000, None, Vec::new(), Calibration::PERFECT)).expect("draws");
    let truth = &drawn.truth.cells[0];
    assert!(
        truth.overall.ece.expect("there") < 1e-9,
        "{:?}",
        truth.overall.ece
    );
    assert_eq!(
        (truth.calibration_slope, truth.calibration_intercept),
        (Some(1.0), Some(-0.0))
    );
    let rows: Vec<&PredictionRow> = drawn.cells[0].rows.iter().collect();
    assert!(value("ece", &rows) < 0.008);
    // In each tenth, the share of positives is the mean score.
    for k in 0..10 {
        let of: Vec<_> = rows
            .iter()
            .filter(|r| (r.score.expect("there") * 10.0).floor() as i32 == k)
            .collect();
        let n = of.len() as f64;
        let mean = of.iter().filter_map(|r| r.score).sum::<f64>() / n;
        let share = of.iter().filter(|r| r.label == Some(true)).count() as f64 / n;
        near("bin", share, mean, (mean * (1.0 - mean) / n).sqrt());
    }
}

#[test]
fn eyes_and_arms_are_correlated_as_asked() {
    let plan = big(100_000, Some(50_000), Vec::new(), Calibration::PERFECT);
    let stage = Stage::new(&plan).expect("sound");
    let people = &stage.people["big"].0;
    let [base, arm] = [0, 1].map(|i| stage.noise(&plan.cells[i], people));
    let correlation =
        |pairs: &[(f64, f64)]| pairs.iter().map(|(a, b)| a * b).sum::<f64>() / pairs.len() as f64;
    let eyes: Vec<_> = base
        .chunks_exact(2)
        .map(|pair| (pair[0], pair[1]))
        .collect();
    near("eyes", correlation(&eyes), 0.4, 1.1 / 50_000.0_f64.sqrt());
    let arms: Vec<_> = base.iter().copied().zip(arm).collect();
    near(
        "arms",
        correlation(&arms),
        0.3 + 0.7 * 0.8,
        2.0 / 100_000.0_f64.sqrt(),
    );
    let labels: Vec<f64> = people
        .records
        .iter()
        .map(|r| f64::from(u8::from(r.labels["glaucoma"])))
        .collect();
    let both = labels
        .chunks_exact(2)
        .filter(|pair| pair[0] + pair[1] == 2.0)
        .count() as f64
        / 50_000.0;
    assert!(
        both > 0.15,
        "eyes of a patient share their disease more often than 0.3 x 0.3: {both}"
    );
}

fn models() -> Vec<SimModel> {
    let of = |n: usize, name: &str, methods: &[&str], adapters: &[&str]| {
        (0..n)
            .map(|i| SimModel {
                id: format!("{name}/{i}"),
                methods: methods.iter().map(|m| (*m).to_owned()).collect(),
                adapters: adapters.iter().map(|m| (*m).to_owned()).collect(),
            })
            .collect::<Vec<_>>()
    };
    [
        of(10, "vision", &["linear_probing"], &[]),
        of(6, "language", &["linear_probing", "zero_shot"], &[]),
        of(6, "multimodal", &["prompting"], &["brset", "mbrset"]),
    ]
    .concat()
}

#[test]
fn the_published_grid_has_its_cells() {
    let plan = Preset::Published.plan(&models(), 1);
    let adapted = plan.cells.iter().filter(|c| c.base.is_some()).count();
    assert_eq!((plan.cells.len() - adapted, adapted), (532, 228));
    assert_eq!(plan.datasets.iter().map(|d| d.images).sum::<usize>(), 4554);
    plan.check().expect("sound");
    let stage = Stage::new(&plan).expect("sound");
    let records = stage.records();
    records.check(Path::new("r")).expect("sound");
    // The median of the patients and that of the images make the same groups.
    for (set, people) in plan
        .datasets
        .iter()
        .filter(|d| d.demographics)
        .map(|d| (d, &stage.people[d.id.as_str()].0))
    {
        let median = |mut ages: Vec<f64>| {
            ages.sort_by(f64::total_cmp);
            f64::midpoint(ages[(ages.len() - 1) / 2], ages[ages.len() / 2])
        };
        let ages: Vec<f64> = people.records.iter().filter_map(|r| r.age).collect();
        let by_patient: BTreeMap<_, f64> = people
            .patient
            .iter()
            .copied()
            .zip(ages.iter().copied())
            .collect();
        assert_eq!(Some(by_patient.len()), set.patients);
        for middle in [
            median(ages.clone()),
            median(by_patient.into_values().collect()),
        ] {
            let groups: Vec<_> = ages.iter().map(|age| Some(*age > middle)).collect();
            assert_eq!(
                groups,
                people.first.iter().map(|f| f[0]).collect::<Vec<_>>(),
                "{}",
                set.id
            );
        }
    }
    // Referable disease is disease.
    assert!(
        records
            .rows
            .iter()
            .all(|r| r.labels.get("referable_dr") != Some(&true) || r.labels["binary_dr"])
    );
    let none = Preset::Null.plan(&models(), 1);
    assert!(
        none.cells
            .iter()
            .all(|c| c.auroc == 0.75 && c.effects.is_empty())
    );
    let (_, truth) = stage_cell(&none, none.cells.len() - 1);
    assert!(truth.delta_auroc.expect("an arm").abs() < 1e-12);
    assert!(
        truth
            .gaps
            .iter()
            .all(|gap| gap.auroc.is_none_or(|g| g.abs() < 1e-12))
    );
}

fn stage_cell(plan: &SimPlan, i: usize) -> (Predictions, CellTruth) {
    Stage::new(plan).expect("sound").cell(i).expect("draws")
}

#[test]
fn a_run_is_marked_and_repeats_to_the_byte() {
    let folder = tempfile::tempdir().expect("folder");
    let plan = Preset::Small.plan(&models()[14..17], 3);
    let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
    let summary = simulate(&plan, &a, "0.1.0").expect("simulates");
    rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .expect("pool")
        .install(|| simulate(&plan, &b, "0.1.0"))
        .expect("simulates");
    assert_eq!(
        summary,
        SimSummary {
            images: 180,
            cells: plan.cells.len(),
            rows: 100 * plan.cells.len()
        }
    );
    let run = RunView::open(&a).expect("opens");
    assert!(run.manifest().synthetic);
    for name in ["run.json", "truth.json", "records.parquet"] {
        assert_eq!(
            std::fs::read(a.join(name)).expect("a"),
            std::fs::read(b.join(name)).expect("b"),
            "{name}"
        );
    }
    for file in run.prediction_files().expect("lists") {
        let name = file.strip_prefix(&a).expect("below");
        assert_eq!(
            std::fs::read(&file).expect("a"),
            std::fs::read(b.join(name)).expect("b")
        );
    }
    // One more model changes no other's scores.
    let more = draw(&Preset::Small.plan(&models()[13..17], 3)).expect("draws");
    for cell in run.all_predictions().expect("lists") {
        assert!(more.cells.contains(&cell.expect("reads")));
    }
    let truth: Value =
        serde_json::from_slice(&std::fs::read(a.join("truth.json")).expect("reads")).expect("JSON");
    assert_eq!(
        truth["cells"].as_array().map(Vec::len),
        Some(plan.cells.len())
    );
}

#[test]
fn the_first_scores_of_a_seed_are_these_on_every_platform() {
    let (cell, _) = stage_cell(&Preset::Small.plan(&models()[..1], 3), 0);
    let bits: Vec<u64> = cell.rows[..3]
        .iter()
        .map(|r| r.score.expect("there").to_bits())
        .collect();
    assert_eq!(
        bits,
        [
            4600171515958859576,
            4596134055437792703,
            4606927081117076436
        ]
    );
}

#[test]
fn plans_that_cannot_be_drawn_are_refused() {
    type Spoil = fn(&mut SimPlan);
    let cases: [(&str, Spoil); 8] = [
        ("true AUROC", |p| p.cells[0].auroc = 0.5),
        ("positive slope", |p| p.cells[0].calibration.slope = 0.0),
        ("patients", |p| p.datasets[0].patients = Some(1)),
        ("positives", |p| p.datasets[0].tasks[0].positives = 0),
        ("correlation", |p| p.patient_correlation = 1.0),
        ("earlier cell", |p| p.cells[1].base = Some(1)),
        ("dataset and task", |p| p.cells[0].cell.task = "x".into()),
        ("leave room", |p| {
            p.cells[0].auroc = 0.52;
            p.cells[0].effects = vec![Effect {
                attribute: Attribute::Age,
                shift: 0.0,
                separation: 9.0,
            }];
        }),
    ];
    let refused = |plan: &SimPlan| match draw(plan) {
        Ok(_) => panic!("it was drawn"),
        Err(error) => error.to_string(),
    };
    for (text, spoil) in cases {
        let mut plan = big(100, Some(60), Vec::new(), Calibration::PERFECT);
        spoil(&mut plan);
        let error = refused(&plan);
        assert!(error.contains(text), "{error}");
    }
    let mut plan = big(100, None, EFFECTS.to_vec(), Calibration::PERFECT);
    plan.datasets[0].demographics = false;
    assert!(refused(&plan).contains("effects"));
}
