//! Agreement with scikit-learn, scipy and numpy to 1e-12 on the cases of `data/reference.json`, which
//! `data/reference.py` regenerates.

use focus_metrics::{
    Interval, Plan, Ranking, Role, Scored, Units, benjamini_hochberg, bootstrap, metric,
    metrics_of, paired_bootstrap, shortest_decimals,
};
use serde_json::Value;

const TOLERANCE: f64 = 1e-12;

fn reference() -> Value {
    serde_json::from_str(include_str!("data/reference.json")).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|number| number.as_f64().unwrap())
        .collect()
}

fn booleans(value: &Value) -> Vec<bool> {
    value.as_str().unwrap().chars().map(|c| c == '1').collect()
}

fn close(ours: f64, theirs: f64) -> bool {
    (ours - theirs).abs() <= TOLERANCE * theirs.abs().max(1.0)
}

#[test]
fn every_metric_agrees_on_every_case() {
    let reference = reference();
    let (mut cases, mut present, mut missing) = (0, 0, 0);
    for (index, case) in reference["cases"].as_array().unwrap().iter().enumerate() {
        let (labels, predicted) = (booleans(&case["labels"]), booleans(&case["predicted"]));
        let mut scores = numbers(&case["scores"]);
        if case["f32"] == true {
            let singles: Vec<f32> = scores.iter().map(|&score| score as f32).collect();
            let decimals = shortest_decimals(&singles);
            assert_eq!(
                decimals, scores,
                "case {index}: numpy prints the same shortest decimals"
            );
            scores = decimals;
        }
        let rows = Scored::new(&labels, &predicted, &scores).unwrap();
        let expected = case["expected"].as_object().unwrap();
        let ours = metrics_of(Role::Headline);
        assert_eq!(ours.len(), expected.len(), "a metric without reference");
        for spec in ours {
            let value = spec.compute(&rows);
            match (value.value(), expected[spec.id].as_f64()) {
                (Some(ours), Some(theirs)) => {
                    assert!(
                        close(ours, theirs),
                        "case {index}, {}: {ours} against {theirs}",
                        spec.id
                    );
                    present += 1;
                }
                (None, None) => missing += 1,
                other => panic!("case {index}, {}: {other:?}", spec.id),
            }
        }
        cases += 1;
    }
    assert!(
        cases >= 300 && present > 1500 && missing > 300,
        "{cases} cases, {present}, {missing}"
    );
}

#[test]
fn q_values_agree() {
    for family in reference()["families"].as_array().unwrap() {
        let p: Vec<Option<f64>> = numbers(&family["p"]).into_iter().map(Some).collect();
        let ours = benjamini_hochberg(&p).unwrap().q;
        for (ours, theirs) in ours.into_iter().zip(numbers(&family["q"])) {
            assert!(close(ours.unwrap(), theirs), "{ours:?} against {theirs}");
        }
    }
}

#[test]
fn kendall_tau_agrees() {
    let reference = reference();
    let rankings = reference["rankings"].as_array().unwrap();
    assert!(rankings.len() > 80);
    for triple in rankings {
        let [gold, answer] = [0, 1].map(|i| Ranking::parse(triple[i].as_str().unwrap()).unwrap());
        assert!(
            close(gold.kendall_tau(answer), triple[2].as_f64().unwrap()),
            "{triple}"
        );
    }
}

#[test]
fn percentile_intervals_agree() {
    for sample in reference()["percentiles"].as_array().unwrap() {
        let interval = Interval::of(&mut numbers(&sample["values"])).unwrap();
        let ends = numbers(&sample["ends"]);
        assert!(
            close(interval.low, ends[0]) && close(interval.high, ends[1]),
            "{interval:?}, {ends:?}"
        );
    }
}

/// Both sides draw 20,000 resamples from streams of their own. The ends' standard
/// error is about 0.001, and accuracy moves in steps of 1/151; image and patient level are 0.05 apart.
#[test]
fn bootstrap_intervals_agree_statistically() {
    let reference = reference();
    let data = &reference["bootstraps"];
    let labels = booleans(&data["labels"]);
    let patients: Vec<u32> = numbers(&data["patients"])
        .into_iter()
        .map(|id| id as u32)
        .collect();
    let scores = [0, 1].map(|arm| numbers(&data["arms"][arm]));
    let predicted = scores
        .each_ref()
        .map(|scores| scores.iter().map(|&score| score > 0.5).collect::<Vec<_>>());
    let [base, other] =
        [0, 1].map(|arm| Scored::new(&labels, &predicted[arm], &scores[arm]).unwrap());
    let names = ["auroc", "accuracy"];
    let specs = names.map(|id| metric(id).unwrap());
    for (level, units) in [
        ("images", Units::Images),
        ("patients", Units::Patients(&patients)),
    ] {
        let plan = Plan {
            resamples: 20_000,
            seed: 13,
            units,
        };
        let plain = bootstrap(&base, &specs, &plan).unwrap();
        let paired = paired_bootstrap(&base, &other, &specs, &plan).unwrap();
        for (index, name) in names.iter().enumerate() {
            let delta = format!("delta {name}");
            let pairs = [
                (*name, plain[index].interval),
                (&delta, paired[index].interval),
            ];
            for (name, ours) in pairs {
                let (ours, theirs) = (ours.unwrap(), numbers(&data["ends"][level][name]));
                let gap = (ours.low - theirs[0])
                    .abs()
                    .max((ours.high - theirs[1]).abs());
                assert!(gap < 0.009, "{level}, {name}: {ours:?} against {theirs:?}");
            }
        }
    }
}
