//! Two runs against each other.

use crate::support::{failed, few, random_cell, rich};
use focus_analysis::{AnalysisError, Catalogue, CompareSide, MemorySource, RunComparison, compare};
use focus_store::{Outcome, Predictions, Records};

fn source(name: &str, records: &Records, cells: Vec<Predictions>) -> MemorySource {
    MemorySource::new(name, records.clone(), cells)
}

fn compared(
    a: &MemorySource,
    b: &MemorySource,
    sides: &[CompareSide; 2],
) -> Result<RunComparison, AnalysisError> {
    compare(a, b, sides, &Catalogue::embedded(), &few())
}

fn any() -> [CompareSide; 2] {
    Default::default()
}

fn probe(records: &Records, task: &str, model: &str, seed: u64) -> Predictions {
    random_cell(["d", task, "linear_probing", model], records, 0.15, seed)
}

#[test]
fn the_same_run_twice_differs_by_nothing() {
    let records = rich("d", &["t", "u"], 80, 1);
    let cells = vec![probe(&records, "t", "m", 1), probe(&records, "u", "m", 2)];
    let (a, b) = (
        source("a", &records, cells.clone()),
        source("b", &records, cells),
    );
    let found = compared(&a, &b, &any()).expect("pairs");
    assert_eq!(found.tasks.len(), 2);
    for task in &found.tasks {
        assert_eq!((task.n, task.only_in_a, task.failed_in_b), (80, 0, 0));
        assert_eq!(task.resampled, "patient");
        for delta in &task.deltas {
            assert_eq!(
                (delta.delta, delta.p, delta.q),
                (Some(0.0), Some(1.0), Some(1.0))
            );
        }
    }
    assert_eq!(found.families.len(), found.tasks[0].deltas.len());
    assert_eq!(
        (found.families[0].size, found.families[0].resamples),
        (2, 200)
    );
}

#[test]
fn the_only_cells_of_two_models_are_paired_and_swapping_turns_the_sign() {
    let records = rich("d", &["t"], 80, 1);
    let a = source("a", &records, vec![probe(&records, "t", "m", 1)]);
    let b = source("b", &records, vec![probe(&records, "t", "n", 2)]);
    let ab = compared(&a, &b, &any()).expect("pairs");
    let ba = compared(&b, &a, &any()).expect("pairs");
    for (forth, back) in ab.tasks[0].deltas.iter().zip(&ba.tasks[0].deltas) {
        assert_eq!(
            forth.delta,
            back.delta.map(|delta| -delta),
            "{}",
            forth.metric
        );
        assert_eq!(forth.p, back.p);
        let ([low, high], [other_low, other_high]) = (
            forth.interval.expect("drawn"),
            back.interval.expect("drawn"),
        );
        assert!((low + other_high).abs() < 1e-12 && (high + other_low).abs() < 1e-12);
    }
}

#[test]
fn images_that_are_not_in_both_are_counted_by_reason() {
    let records = rich("d", &["t"], 80, 1);
    let (mut left, mut right) = (probe(&records, "t", "m", 1), probe(&records, "t", "m", 2));
    left.rows.remove(0);
    right.rows.truncate(77);
    for at in [10, 11] {
        left.rows[at] = failed(left.rows[at].clone(), Outcome::ModelError, None);
    }
    right.rows[20] = failed(right.rows[20].clone(), Outcome::ImageError, None);
    let found = compared(
        &source("a", &records, vec![left]),
        &source("b", &records, vec![right]),
        &any(),
    )
    .expect("pairs");
    let task = &found.tasks[0];
    assert_eq!((task.only_in_a, task.only_in_b), (3, 1));
    assert_eq!((task.failed_in_a, task.failed_in_b), (2, 1));
    assert_eq!(task.n, 80 - 4 - 3);
}

#[test]
fn ambiguity_asks_for_names_and_names_resolve_it() {
    let records = rich("d", &["t"], 80, 1);
    let of = |models: [&str; 2]| models.map(|model| probe(&records, "t", model, 1)).to_vec();
    let a = source("a", &records, of(["m", "n"]));
    let b = source("b", &records, of(["x", "y"]));
    let error = compared(&a, &b, &any()).expect_err("four cells");
    assert!(
        error.to_string().contains("2 cells of A against 2 of B"),
        "{error}"
    );
    assert!(error.hint().is_some());
    let named = |model: &str| CompareSide {
        method: None,
        model: Some(model.into()),
    };
    let found = compared(&a, &b, &[named("n"), named("x")]).expect("pairs");
    assert_eq!(
        (
            found.tasks[0].a.model.as_str(),
            found.tasks[0].b.model.as_str()
        ),
        ("n", "x")
    );
    let error = compared(&a, &b, &[named("q"), named("x")]).expect_err("no such model");
    assert!(error.to_string().contains("Nothing to compare"), "{error}");
}

#[test]
fn what_one_side_lacks_is_listed() {
    let records = rich("d", &["t", "u"], 80, 1);
    let mut published = probe(&records, "t", "m", 1);
    published.cell.method = "linear_probing+as_published".into();
    let a = source(
        "a",
        &records,
        vec![
            probe(&records, "t", "m", 1),
            probe(&records, "u", "m", 1),
            published,
        ],
    );
    let mut b = source("b", &records, vec![probe(&records, "t", "m", 2)]);
    b.skipped.insert(
        a.cells.keys().last().expect("some").clone(),
        "one class".into(),
    );
    let found = compared(&a, &b, &any()).expect("pairs");
    assert_eq!(found.tasks.len(), 1);
    let reasons: Vec<_> = found
        .unpaired
        .iter()
        .map(|u| (u.side, u.reason.as_str()))
        .collect();
    assert_eq!(
        reasons,
        [
            ("a", "its labels are the published ones"),
            ("a", "B has no cell of this dataset and task"),
            ("b", "no result: one class"),
        ]
    );
}

#[test]
fn runs_that_disagree_about_a_label_are_not_compared() {
    let records = rich("d", &["t"], 80, 1);
    let mut other = records.clone();
    let label = other.rows[3].labels.get_mut("t").expect("known");
    *label = !*label;
    let a = source("a", &records, vec![probe(&records, "t", "m", 1)]);
    let b = source("b", &other, vec![probe(&other, "t", "m", 1)]);
    let error = compared(&a, &b, &any()).expect_err("labels differ");
    let text = error.to_string();
    assert!(
        text.contains("`i0003`") && text.contains("`a`") && text.contains("`b`"),
        "{text}"
    );
}
