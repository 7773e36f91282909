//! Agreement with scikit-learn, fairlearn and scipy on thousands of random cases, drawn and answered by
//! `data/agreement.py` in the Python that `FOCUS_PYTHON` names. Needs `tests/requirements.txt` of the workspace.

use std::{io::Write, path::Path, process::Command};

use focus_metrics::{
    Direction, MetricSpec, Plan, Scored, Units, benjamini_hochberg, correlate, gaps, median,
    metric, mid_ranks, recalibrate,
};
use serde_json::Value;

/// For everything that both sides compute in a closed form.
const TOLERANCE: f64 = 1e-12;
/// For the fitted line, relative to 1 + its size: scikit-learn's solver stops where the gradient is small, and where
/// classes barely overlap a small gradient is still some way from the maximum.
const FITTED: f64 = 1e-6;
const CASES: usize = 2000;
const SEED: &str = "20260919";

fn numbers(value: &Value) -> Vec<f64> {
    let array = value.as_array().unwrap().iter();
    array.map(|number| number.as_f64().unwrap()).collect()
}

fn booleans(value: &Value) -> Vec<bool> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|flag| flag == 1)
        .collect()
}

fn close(ours: f64, theirs: f64) -> bool {
    (ours - theirs).abs() <= TOLERANCE * theirs.abs().max(1.0)
}

fn same(ours: Option<f64>, theirs: &Value) -> bool {
    match (ours, theirs.as_f64()) {
        (Some(ours), Some(theirs)) => close(ours, theirs),
        (ours, theirs) => ours.is_none() && theirs.is_none(),
    }
}

/// The cases, if there is a Python to draw them.
fn cases() -> Option<Value> {
    let python = std::env::var("FOCUS_PYTHON").unwrap_or_else(|_| "python3".into());
    let imports = "import fairlearn, scipy, sklearn";
    let has = Command::new(&python).args(["-c", imports]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        writeln!(
            std::io::stderr(),
            "skipped: `{python}` lacks scikit-learn, scipy or fairlearn; FOCUS_PYTHON names another"
        )
        .expect("standard error is open");
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/agreement.py");
    let output = Command::new(&python)
        // The arrays are tiny: threads would only wait for each other.
        .env("OMP_NUM_THREADS", "1")
        .arg(script)
        .args([SEED, &CASES.to_string()])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn python_gives_the_same_numbers() {
    let Some(reference) = cases() else {
        return;
    };
    let cases = reference["cases"].as_array().unwrap();
    assert_eq!(cases.len(), CASES);
    let (mut values, mut lines, mut compared) = ([0; 2], 0, 0);
    for (index, case) in cases.iter().enumerate() {
        let (labels, predicted) = (booleans(&case["labels"]), booleans(&case["predicted"]));
        let scores = numbers(&case["scores"]);
        let rows = Scored::new(&labels, &predicted, &scores).unwrap();
        for (id, theirs) in case["expected"].as_object().unwrap() {
            let ours = metric(id).unwrap().compute(&rows).value();
            assert!(
                same(ours, theirs),
                "case {index}, {id}: {ours:?} against {theirs}"
            );
            values[usize::from(ours.is_some())] += 1;
        }
        lines += usize::from(line_agrees(index, &rows, &case["line"]));
        if !case["gaps"].is_null() {
            gaps_agree(index, &rows, &case["groups"], &case["gaps"]);
            compared += 1;
        }
    }
    // Guards against a script that answers nothing.
    assert!(values[0] > 2000 && values[1] > 15_000, "{values:?}");
    assert!(
        lines > 400 && compared > 100,
        "{lines} lines, {compared} gaps"
    );
    correlations(&reference["points"]);
    families(&reference["families"]);
    order(&reference["ranks"]);
}

/// Whether there was a line to compare; the reason for none must be the same.
fn line_agrees(index: usize, rows: &Scored<'_>, theirs: &Value) -> bool {
    match (recalibrate(rows.tally()), theirs.as_str()) {
        (Err(ours), theirs) => {
            assert_eq!(Some(ours.name()), theirs, "case {index}");
            false
        }
        (Ok(ours), None) => {
            let theirs = numbers(theirs);
            let size = 1.0 + theirs[0].abs().max(theirs[1].abs());
            let gap = (ours.slope - theirs[0])
                .abs()
                .max((ours.intercept - theirs[1]).abs());
            assert!(
                gap <= FITTED * size,
                "case {index}: {ours:?} against {theirs:?}"
            );
            true
        }
        (ours, theirs) => panic!("case {index}: {ours:?} against {theirs:?}"),
    }
}

fn gaps_agree(index: usize, rows: &Scored<'_>, groups: &Value, theirs: &Value) {
    let groups: Vec<Option<bool>> = groups
        .as_array()
        .unwrap()
        .iter()
        .map(|group| group.as_u64().map(|g| g == 1))
        .collect();
    let plan = Plan {
        resamples: 1,
        seed: 0,
        units: Units::Images,
    };
    let ids: Vec<&String> = theirs["signed"].as_object().unwrap().keys().collect();
    let specs: Vec<&MetricSpec> = ids.iter().map(|id| metric(id).unwrap()).collect();
    let ours = gaps(rows, &groups, &specs, &plan, 0).unwrap();
    let counts = ours.counts.map(|count| count.n as f64);
    assert_eq!(counts.to_vec(), numbers(&theirs["counts"]), "case {index}");
    for gap in &ours.gaps {
        let (signed, absolute) = (
            &theirs["signed"][gap.metric],
            &theirs["absolute"][gap.metric],
        );
        assert!(
            same(gap.signed, signed),
            "case {index}: {gap:?} against {signed}"
        );
        assert!(
            same(gap.absolute, absolute),
            "case {index}: {gap:?} against {absolute}"
        );
    }
    let parity = ours
        .gaps
        .iter()
        .find(|gap| gap.metric == "positive_rate")
        .unwrap();
    assert!(
        same(parity.absolute, &theirs["absolute"]["demographic_parity"]),
        "case {index}"
    );
    if !theirs["equalized_odds"].is_null() {
        for odds in [
            ours.equalized_odds.corrected,
            ours.equalized_odds.as_published,
        ] {
            assert!(
                same(odds, &theirs["equalized_odds"]),
                "case {index}: {odds:?}"
            );
        }
    }
}

fn correlations(points: &Value) {
    let mut compared = 0;
    for case in points.as_array().unwrap() {
        let pairs: Vec<(f64, f64)> = numbers(&case["x"])
            .into_iter()
            .zip(numbers(&case["y"]))
            .collect();
        let ours = correlate(&pairs);
        if case["expected"].is_null() {
            assert!(ours.is_err(), "{case}");
            continue;
        }
        let (ours, theirs) = (ours.unwrap(), numbers(&case["expected"]));
        assert!(
            close(ours.r, theirs[0]) && close(ours.slope, theirs[2]),
            "{ours:?} against {theirs:?}: {case}"
        );
        // With 3 points p falls like the root of 1 - |r|: the last digit of an r near 1 is the eighth of p.
        let p = if theirs[0].abs() > 1.0 - 1e-9 {
            1e-7
        } else {
            TOLERANCE
        };
        assert!(
            (ours.p - theirs[1]).abs() <= p,
            "{ours:?} against {theirs:?}: {case}"
        );
        // The intercept is a difference of numbers as large as y, whose last digits it inherits.
        let size = pairs
            .iter()
            .fold(1.0, |size: f64, (_, y)| size.max(y.abs()));
        let gap = (ours.intercept - theirs[3]).abs();
        assert!(
            gap <= TOLERANCE * size,
            "{ours:?} against {theirs:?}: {case}"
        );
        compared += 1;
    }
    assert!(compared > 300, "{compared}");
}

fn families(families: &Value) {
    for family in families.as_array().unwrap() {
        let p: Vec<Option<f64>> = numbers(&family["p"]).into_iter().map(Some).collect();
        let ours = benjamini_hochberg(&p).unwrap().q;
        for (ours, theirs) in ours.into_iter().zip(numbers(&family["q"])) {
            assert!(close(ours.unwrap(), theirs), "{ours:?} against {theirs}");
        }
    }
}

fn order(ranks: &Value) {
    for case in ranks.as_array().unwrap() {
        let values = numbers(&case["values"]);
        assert_eq!(
            mid_ranks(&values, Direction::LowerIsBetter).unwrap(),
            numbers(&case["ranks"])
        );
        assert!(same(median(&values), &case["median"]), "{case}");
    }
}
