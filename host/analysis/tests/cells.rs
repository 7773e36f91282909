//! One cell in both tracks.

use crate::support::{alone, cell, failed, random_cell, record, records, rich, row, unchecked};
use focus_analysis::{CellStatus, Track, metric_rows};
use focus_store::{Metrics, Outcome, Predictions, Records};

const NAMES: [&str; 4] = ["d", "t", "prompting", "m"];

fn four() -> Records {
    records(
        [("a", true), ("b", true), ("c", false), ("e", false)]
            .map(|(id, label)| record("d", id, "t", label))
            .to_vec(),
    )
}

/// a right, b unparseable with a score, c right, e without any answer.
fn mixed() -> Predictions {
    let rows = vec![
        row(0, "a", true, 0.9),
        failed(row(1, "b", true, 0.0), Outcome::Unparseable, Some(0.8)),
        row(2, "c", false, 0.2),
        failed(row(3, "e", false, 0.0), Outcome::ModelError, None),
    ];
    Predictions::new(unchecked(NAMES, vec![]).cell, rows, vec![]).expect("sound")
}

#[test]
fn an_unparseable_answer_is_wrong_and_still_ranked_in_the_corrected_track() {
    let found = alone(&four(), &mixed(), 0.25);
    assert_eq!(found.status, CellStatus::Ok, "one failure of four");
    assert_eq!(found.excluded["unparseable:because"], 1);
    assert_eq!(found.excluded["model_error:because"], 1);
    let corrected = found.track(Track::Corrected).expect("both tracks");
    assert_eq!((corrected.n, corrected.n_pos, corrected.n_neg), (3, 2, 1));
    assert_eq!(corrected.value("auroc"), Some(1.0));
    assert_eq!(corrected.value("accuracy"), Some(2.0 / 3.0));
    assert_eq!(corrected.value("recall"), Some(0.5));
    let published = found.track(Track::AsPublished).expect("both tracks");
    assert_eq!((published.n, published.n_pos), (2, 1));
    assert_eq!(published.value("accuracy"), Some(1.0));
    assert_eq!(published.metric("auroc").expect("there").interval, None);
    assert!(published.metric("brier").is_none(), "not in the paper");
}

#[test]
fn an_unparseable_answer_without_a_score_leaves_only_the_ranks() {
    let mut predictions = mixed();
    predictions.rows[1].score = None;
    let found = alone(&four(), &predictions, 0.25);
    let corrected = found.track(Track::Corrected).expect("there");
    assert_eq!((corrected.n, corrected.decided.map(|d| d.n)), (2, Some(3)));
    assert_eq!(corrected.value("accuracy"), Some(2.0 / 3.0));
    assert_eq!(corrected.value("auroc"), Some(1.0));
    let rows = metric_rows(&[found]);
    let n = |metric: &str| {
        rows.iter()
            .find(|r| r.metric == metric && r.track == "corrected" && r.subset == "test")
            .map(|r| r.n)
    };
    assert_eq!((n("auroc"), n("accuracy")), (Some(2), Some(3)));
}

#[test]
fn failures_beyond_the_budget_fail_the_cell_and_bad_answers_do_not() {
    assert_eq!(alone(&four(), &mixed(), 0.24).status, CellStatus::Failed);
    let rows = (0..4)
        .map(|i| {
            let id = ["a", "b", "c", "e"][i as usize];
            failed(row(i, id, i < 2, 0.0), Outcome::Unparseable, Some(0.5))
        })
        .collect();
    let all_bad = Predictions::new(unchecked(NAMES, vec![]).cell, rows, vec![]).expect("sound");
    let found = alone(&four(), &all_bad, 0.0);
    assert_eq!(found.status, CellStatus::Ok);
    assert_eq!(found.tracks[0].value("accuracy"), Some(0.0));
    assert_eq!(found.tracks[1].n, 0, "as published nothing is left");
    assert_eq!(
        found.tracks[1].metric("accuracy").expect("there").missing,
        Some("empty")
    );
}

/// 24 images: the first 12 of patients aged 40, the others aged 70; within each 6 positive, 6 negative... but the rule of
/// the corrected track asks for ten of each class.
fn aged(each: u32) -> (Records, Vec<f64>) {
    let mut rows = Vec::new();
    let mut scores = Vec::new();
    for i in 0..4 * each {
        let (old, label) = (i >= 2 * each, i % 2 == 0);
        let mut image = record("d", &format!("i{i:03}"), "t", label);
        image.age = Some(if old { 70.0 } else { 40.0 });
        image.quality = Some(if i % 4 < 2 { "good" } else { "poor" }.into());
        rows.push(image);
        // The young are always right; of the old positives every fourth is missed.
        let missed = old && label && i % 8 == 0;
        scores.push(if label && !missed { 0.9 } else { 0.1 });
    }
    (records(rows), scores)
}

#[test]
fn gaps_are_signed_with_intervals_when_corrected_and_bare_sizes_as_published() {
    let (records, scores) = aged(12);
    let found = alone(&records, &cell(NAMES, &records, &scores), 0.0);
    let corrected = found.track(Track::Corrected).expect("there");
    let age = &corrected.subgroups[0];
    assert_eq!(
        (age.attribute, age.skipped, age.threshold),
        ("age", None, Some(55.0))
    );
    assert_eq!(
        (age.groups[0].group, age.groups[1].group),
        ("younger", "older")
    );
    assert_eq!(
        (age.groups[1].counts.n, age.groups[1].counts.n_pos),
        (24, 12)
    );
    let gap = |id: &str| age.gaps.iter().find(|gap| gap.id == id).expect("there");
    // 3 of the 12 old positives are missed.
    assert_eq!(gap("gap_equal_opportunity").signed, Some(-0.25));
    assert_eq!(gap("gap_accuracy").signed, Some(-0.125));
    assert_eq!(gap("gap_false_positive_rate").absolute, Some(0.0));
    assert_eq!(gap("gap_demographic_parity").absolute, Some(0.125));
    let odds = gap("gap_equalized_odds");
    assert_eq!((odds.signed, odds.absolute), (None, Some(0.25)));
    assert!(odds.null.expect("shuffled").p <= 1.0);
    let [low, high] = gap("gap_accuracy").interval.expect("drawn");
    assert!(
        low <= -0.125 && (-0.125..=0.0).contains(&high),
        "{low} {high}"
    );
    assert_eq!(corrected.subgroups[1].skipped, Some("attribute_absent"));

    let published = found.track(Track::AsPublished).expect("there");
    let age = &published.subgroups[0];
    assert!(
        age.gaps
            .iter()
            .all(|gap| gap.signed.is_none() && gap.interval.is_none())
    );
    assert_eq!(published.gap("age", "gap_accuracy"), Some(0.125));
    assert_eq!(published.gap("age", "gap_equalized_odds"), Some(0.25));
}

#[test]
fn small_groups_are_skipped_with_their_reason_by_track() {
    let (records, scores) = aged(6);
    let found = alone(&records, &cell(NAMES, &records, &scores), 0.0);
    let skipped = |track: Track| -> Vec<_> {
        let found = found.track(track).expect("there");
        found.subgroups.iter().map(|a| a.skipped).collect()
    };
    // 12 images a group with 6 positives: enough for the paper, not for the correction.
    assert_eq!(
        skipped(Track::Corrected),
        [
            Some("class_too_small"),
            Some("attribute_absent"),
            Some("class_too_small")
        ]
    );
    assert_eq!(
        skipped(Track::AsPublished),
        [None, Some("attribute_absent"), None]
    );
    let (records, scores) = aged(2);
    let found = alone(&records, &cell(NAMES, &records, &scores), 0.0);
    let published = &found.track(Track::AsPublished).expect("there").subgroups;
    // 4 images a group: too few for age (10) and for quality (5).
    assert_eq!(published[0].skipped, Some("group_too_small"));
    assert_eq!(published[2].skipped, Some("group_too_small"));
    let (records, scores) = aged(3);
    let found = alone(&records, &cell(NAMES, &records, &scores), 0.0);
    let published = &found.track(Track::AsPublished).expect("there").subgroups;
    assert_eq!(published[0].skipped, Some("group_too_small"));
    assert_eq!(published[2].skipped, None, "six of each quality");
}

#[test]
fn the_corrected_threshold_is_the_test_splits_and_the_published_one_the_analysed_rows() {
    let (mut records, scores) = aged(12);
    // Two old images that no label admits: they are of the test split all the same.
    for i in 0..30 {
        let mut extra = record("d", &format!("z{i}"), "other", true);
        extra.age = Some(90.0);
        records.rows.push(extra);
    }
    records.tasks.insert("other".into());
    let found = alone(&records, &cell(NAMES, &records, &scores), 0.0);
    let threshold = |track: Track| found.track(track).expect("there").subgroups[0].threshold;
    assert_eq!(threshold(Track::Corrected), Some(70.0));
    assert_eq!(threshold(Track::AsPublished), Some(55.0));
    let corrected = &found.track(Track::Corrected).expect("there").subgroups[0];
    assert_eq!(
        corrected.skipped,
        Some("one_group"),
        "nobody analysed is above 70"
    );
}

#[test]
fn as_published_sex_is_lost_in_the_base_analysis_and_kept_in_fine_tuning() {
    let records = rich("d", &["t"], 120, 5);
    let sex = |model: &str| {
        let predictions = random_cell(["d", "t", "prompting", model], &records, 0.1, 9);
        let found = alone(&records, &predictions, 0.0);
        found.track(Track::AsPublished).expect("there").subgroups[1].skipped
    };
    assert_eq!(sex("m"), Some("lost_as_published"));
    assert_eq!(sex("m+lora-brset-t"), None);
}

#[test]
fn patients_are_drawn_where_every_test_image_has_one() {
    let mut records = rich("d", &["t"], 120, 5);
    let predictions = random_cell(NAMES, &records, 0.1, 9);
    let kind = |records: &Records| {
        let found = alone(records, &predictions, 0.0);
        found.track(Track::Corrected).expect("there").resampled
    };
    assert_eq!(kind(&records), Some("patient"));
    records.rows[7].patient = None;
    assert_eq!(kind(&records), Some("image"));
}

#[test]
fn a_balanced_probe_is_also_scored_at_its_training_prior() {
    use focus_store::Fold;
    let records = rich("d", &["t"], 120, 5);
    let mut predictions = random_cell(["d", "t", "linear_probing", "m"], &records, 0.2, 9);
    for i in 0..10 {
        let mut trained = row(1000 + i, &format!("train{i}"), i < 2, 0.5);
        trained.fold = Fold::Train;
        predictions.rows.push(trained);
    }
    let found = alone(&records, &predictions, 0.0);
    assert_eq!(found.train, 10);
    let calibration = found.tracks[0].calibration.as_ref().expect("corrected");
    let shifted = calibration.prior_corrected.as_ref().expect("balanced");
    assert_eq!((shifted.train_pos, shifted.train_neg), (2, 8));
    let ece = shifted.metrics[0].value.expect("probabilities");
    assert_ne!(Some(ece), found.tracks[0].value("ece"));
    let ids: Vec<_> = calibration.metrics.iter().map(|entry| entry.id).collect();
    assert_eq!(
        ids,
        ["ece_debiased", "calibration_slope", "calibration_intercept"]
    );
    // Zero-shot scores have no training prior to go back to.
    let other = random_cell(["d", "t", "zero_shot", "m"], &records, 0.2, 9);
    let found = alone(&records, &other, 0.0);
    let calibration = found.tracks[0].calibration.as_ref().expect("corrected");
    assert!(calibration.prior_corrected.is_none());
}

#[test]
fn bins_hold_every_row_once() {
    let records = rich("d", &["t"], 120, 5);
    let found = alone(&records, &random_cell(NAMES, &records, 0.2, 9), 0.0);
    for track in &found.tracks {
        assert_eq!(track.reliability.iter().map(|bin| bin.n).sum::<u64>(), 120);
        let positives: u64 = track.reliability.iter().map(|bin| bin.n_pos).sum();
        assert_eq!(positives, track.n_pos as u64);
    }
}

#[test]
fn the_long_form_is_a_valid_metrics_table() {
    let records = rich("d", &["t"], 160, 5);
    let found = alone(&records, &random_cell(NAMES, &records, 0.2, 9), 0.0);
    let table = Metrics::new(metric_rows(std::slice::from_ref(&found))).expect("keeps its rules");
    let find = |subset: &str, metric: &str, track: &str| {
        let row = table.rows.iter().find(|r| {
            (r.subset.as_str(), r.metric.as_str(), r.track.as_str()) == (subset, metric, track)
        });
        row.unwrap_or_else(|| panic!("{subset} {metric} {track}"))
    };
    let gap = find("age", "gap_auroc", "corrected");
    assert!(gap.ci_low.is_some() && gap.p_value.is_some());
    assert_eq!(
        gap.value,
        found.tracks[0].subgroups[0]
            .gaps
            .iter()
            .find(|g| g.id == "gap_auroc")
            .and_then(|g| g.signed)
    );
    let odds = find("sex", "gap_equalized_odds", "corrected");
    assert!(odds.ci_low.is_none() && odds.p_value.is_some());
    assert!(
        find("age", "gap_auroc", "as_published")
            .value
            .is_some_and(|gap| gap >= 0.0)
    );
    assert!(find("quality", "gap_ece", "corrected").value.is_some());
    for subset in ["age:older", "age:younger", "sex:female", "quality:good"] {
        assert!(find(subset, "accuracy", "corrected").n > 0);
    }
    assert!(
        find("age", "gap_accuracy_by_grade", "corrected")
            .value
            .is_some()
    );
}

#[test]
fn row_order_changes_no_bit() {
    let records = rich("d", &["t"], 120, 5);
    let predictions = random_cell(NAMES, &records, 0.2, 9);
    let expected = alone(&records, &predictions, 0.0);
    let (mut shuffled, mut rows) = (records.clone(), predictions.clone());
    shuffled.rows.reverse();
    rows.rows.rotate_left(37);
    assert_eq!(alone(&shuffled, &rows, 0.0), expected);
}
