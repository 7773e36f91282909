//! What bad input gets: an error that names it, or a typed missing value.

use crate::support::{alone, cell, few, grid, random_cell, record, records, rich, row, unchecked};
use focus_analysis::{AnalysisError, Catalogue, CellRows, Cohorts, Grid, MemorySource, Track};
use focus_store::{Predictions, Records};

const NAMES: [&str; 4] = ["d", "t", "prompting", "m"];

fn two() -> Records {
    records(vec![
        record("d", "a", "t", true),
        record("d", "b", "t", false),
    ])
}

fn join(records: &Records, predictions: &Predictions) -> Result<CellRows, AnalysisError> {
    let mut cohorts = Cohorts::default();
    cohorts.add("run", records)?;
    CellRows::join(predictions, &cohorts.finish()["d"], "run")
}

fn said(error: &AnalysisError, parts: &[&str]) {
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
    assert!(error.hint().is_some(), "{text}");
}

#[test]
fn an_image_without_a_record_is_counted_and_named() {
    let rows = vec![
        row(0, "a", true, 0.5),
        row(1, "x", true, 0.5),
        row(2, "y", true, 0.5),
    ];
    let error = join(&two(), &unchecked(NAMES, rows)).expect_err("two have no record");
    said(
        &error,
        &["d t prompting m", "3 test images", "none for 2", "`x`"],
    );
}

#[test]
fn an_image_twice_is_an_error() {
    let rows = vec![row(0, "a", true, 0.5), row(1, "a", true, 0.7)];
    let error = join(&two(), &unchecked(NAMES, rows)).expect_err("twice");
    said(&error, &["`a`", "again", "d t prompting m"]);
}

#[test]
fn a_label_that_is_not_the_records_is_an_error() {
    let rows = vec![row(0, "a", false, 0.5)];
    let error = join(&two(), &unchecked(NAMES, rows)).expect_err("another label");
    said(&error, &["`a`", "`d`", "`t`", "`run`"]);
}

#[test]
fn arms_that_disagree_about_a_label_name_image_and_runs() {
    // Records that do not know the label: only the arms do.
    let mut unknown = two();
    for record in &mut unknown.rows {
        record.labels.clear();
        record.published_labels.clear();
    }
    let arm = |model: &str, label: bool| {
        unchecked(
            ["d", "t", "prompting", model],
            vec![row(0, "a", label, 0.5), row(1, "b", false, 0.2)],
        )
    };
    let sources = vec![
        MemorySource::new("first", unknown.clone(), vec![arm("m", true)]),
        MemorySource::new("second", unknown, vec![arm("n", false)]),
    ];
    let error = grid(sources).analyse(&few()).expect_err("they disagree");
    said(
        &error,
        &["`a`", "`t`", "`first`", "`second`", "true", "false"],
    );
}

#[test]
fn one_cell_in_two_runs_is_an_error_unless_it_is_the_same() {
    let records = two();
    let source = |name: &str, score: f64| {
        MemorySource::new(
            name,
            records.clone(),
            vec![cell(NAMES, &records, &[score, 0.2])],
        )
    };
    let open = |sources: Vec<MemorySource>| {
        Grid::open(
            sources.into_iter().map(|s| Box::new(s) as _).collect(),
            Catalogue::embedded(),
        )
    };
    let same = open(vec![source("one", 0.5), source("two", 0.5)]).expect("the same bytes");
    assert_eq!(same.cells().len(), 1);
    let error = open(vec![source("one", 0.5), source("two", 0.6)])
        .err()
        .expect("they differ");
    said(&error, &["`one`", "`two`", "d t prompting m"]);
}

#[test]
fn scores_beyond_probabilities_rank_and_have_no_ece() {
    let records = rich("d", &["t"], 100, 3);
    let mut predictions = random_cell(["d", "t", "linear_probing", "m"], &records, 0.2, 4);
    for row in &mut predictions.rows {
        row.score = row.score.map(|score| score * 3.0 - 1.0);
    }
    for i in 0..4 {
        let mut trained = row(1000 + i, &format!("train{i}"), i < 2, 0.5);
        trained.fold = focus_store::Fold::Train;
        predictions.rows.push(trained);
    }
    let found = alone(&records, &predictions, 0.0);
    for track in &found.tracks {
        assert!(track.value("auroc").is_some());
        assert_eq!(
            track.metric("ece").expect("listed").missing,
            Some("score_out_of_range")
        );
        assert!(track.reliability.is_empty());
    }
    let calibration = found.tracks[0].calibration.as_ref().expect("corrected");
    let shifted = calibration.prior_corrected.as_ref().expect("balanced");
    assert_eq!(shifted.metrics[0].missing, Some("score_out_of_range"));
    let quality = &found.tracks[0].subgroups[2];
    let gap = quality
        .gaps
        .iter()
        .find(|gap| gap.id == "gap_ece")
        .expect("listed");
    assert_eq!(
        (gap.absolute, gap.missing),
        (None, Some("score_out_of_range"))
    );
}

#[test]
fn scores_that_are_not_finite_are_errors_with_the_cell() {
    let mut predictions = cell(NAMES, &two(), &[0.5, 0.2]);
    predictions.rows[1].score = Some(f64::NAN);
    let sources = vec![MemorySource::new("run", two(), vec![predictions])];
    let error = grid(sources).analyse(&few()).expect_err("not a number");
    said(&error, &["d t prompting m", "not finite"]);
}

#[test]
fn one_class_and_no_rows_are_typed() {
    let records = records(vec![
        record("d", "a", "t", true),
        record("d", "b", "t", true),
    ]);
    let found = alone(&records, &cell(NAMES, &records, &[0.9, 0.4]), 0.0);
    for track in &found.tracks {
        assert_eq!(
            track.metric("auroc").expect("listed").missing,
            Some("one_class")
        );
        assert_eq!(track.value("accuracy"), Some(0.5));
    }
    let mut empty = cell(NAMES, &records, &[0.9, 0.4]);
    for row in &mut empty.rows {
        (row.label, row.published_label) = (None, None);
    }
    let found = alone(&records, &empty, 0.0);
    assert_eq!((found.test, found.tracks.len()), (0, 2));
    let corrected = found.track(Track::Corrected).expect("there");
    assert_eq!(corrected.resampled, None);
    assert_eq!(
        corrected.metric("accuracy").expect("listed").missing,
        Some("empty")
    );
    assert_eq!(corrected.subgroups[0].skipped, Some("attribute_absent"));
}

#[test]
fn a_malformed_model_name_is_refused_when_the_grid_opens() {
    let records = two();
    let bad = cell(["d", "t", "prompting", "m+lora-x"], &records, &[0.5, 0.2]);
    let error = Grid::open(
        vec![Box::new(MemorySource::new("run", records, vec![bad]))],
        Catalogue::embedded(),
    )
    .err()
    .expect("malformed");
    said(&error, &["`m+lora-x`"]);
}
