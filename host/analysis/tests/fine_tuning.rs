//! Adapters against their bases.

use crate::support::{analysed, cell, few, random_cell, record, records, rich};
use focus_analysis::{FineTuningTable, GridAnalysis, MemorySource, Track};

const BASE: &str = "google/medgemma-4b-it";

fn table(found: &GridAnalysis, track: Track) -> &FineTuningTable {
    found
        .summary
        .fine_tuning
        .tables
        .iter()
        .find(|table| table.track == track)
        .expect("there")
}

fn tuned(dataset: &str, task: &str) -> String {
    format!("{BASE}+lora-{dataset}-{task}")
}

fn full() -> GridAnalysis {
    let brset = rich("brset", &["binary_dr"], 120, 1);
    let mbrset = rich("mbrset", &["binary_dr"], 100, 2);
    let g1020 = records(
        (0..60)
            .map(|i| record("g1020", &format!("g{i}"), "binary_dr", i % 3 == 0))
            .collect(),
    );
    let sources =
        [(&brset, "brset"), (&mbrset, "mbrset"), (&g1020, "g1020")].map(|(records, id)| {
            let model = tuned("brset", "binary_dr");
            let cells = vec![
                random_cell([id, "binary_dr", "prompting", BASE], records, 0.05, 3),
                random_cell([id, "binary_dr", "prompting", &model], records, 0.20, 3),
                random_cell(
                    [id, "binary_dr", "prompting", &tuned("mbrset", "binary_dr")],
                    records,
                    0.05,
                    3,
                ),
            ];
            MemorySource::new(id, records.clone(), cells)
        });
    analysed(sources.to_vec())
}

#[test]
fn deltas_pair_adapters_with_their_base_in_and_out_of_domain() {
    let found = full();
    let corrected = table(&found, Track::Corrected);
    assert_eq!(corrected.comparisons.len(), 6);
    let first = &corrected.comparisons[0];
    assert_eq!(
        (
            first.trained_on.as_str(),
            first.dataset.as_str(),
            first.domain
        ),
        ("brset", "brset", "in_domain")
    );
    assert_eq!((first.n, first.resampled), (120, "patient"));
    let value = |model: &str| {
        let cell = found
            .cells
            .iter()
            .find(|c| c.cell.dataset == "brset" && c.cell.model == model);
        cell.expect("there").tracks[0].value("auroc")
    };
    let auroc = &first.deltas[0];
    assert_eq!((auroc.metric, auroc.base), ("auroc", value(BASE)));
    assert_eq!(auroc.other, value(&tuned("brset", "binary_dr")));
    assert!(auroc.delta.expect("defined") > 0.0 && auroc.q >= auroc.p);
    assert_eq!(auroc.valid_resamples[1], few().family_resamples);
    // The second adapter answers as its base: every difference is 0.
    let same = corrected
        .comparisons
        .iter()
        .filter(|c| c.trained_on == "mbrset");
    for comparison in same {
        for delta in &comparison.deltas {
            assert_eq!((delta.delta, delta.interval), (Some(0.0), Some([0.0, 0.0])));
            assert_eq!(delta.p, Some(1.0));
        }
    }
    assert_eq!(
        corrected
            .comparisons
            .iter()
            .filter(|c| c.domain == "in_domain")
            .count(),
        2
    );
    let images = corrected
        .comparisons
        .iter()
        .find(|c| c.dataset == "g1020")
        .expect("there");
    assert_eq!(images.resampled, "image");
}

#[test]
fn means_by_domain_average_comparisons_and_leave_sets_out() {
    let found = full();
    for track in Track::ALL {
        let table = table(&found, track);
        let of = |domain: &str| -> Vec<f64> {
            let all = table.comparisons.iter().filter(|c| c.domain == domain);
            all.map(|c| c.deltas[0].delta.expect("defined")).collect()
        };
        for domain in ["in_domain", "out_of_domain"] {
            let row = table
                .means
                .iter()
                .find(|r| (r.by, r.value.as_str(), r.metric) == ("domain", domain, "auroc"))
                .expect("there");
            let deltas = of(domain);
            let mean = deltas.iter().sum::<f64>() / deltas.len() as f64;
            assert!((row.delta - mean).abs() < 1e-12);
            assert_eq!(row.comparisons as usize, deltas.len());
            assert!(row.q >= row.p && row.interval.is_some());
        }
        let note = table
            .families
            .iter()
            .find(|note| (note.family, note.metric) == ("comparisons", "ece"))
            .expect("there");
        assert_eq!(note.size, 6);
        let b = if track == Track::Corrected { 400 } else { 100 };
        assert_eq!(note.resamples, b);
        let bound = (6.0 * 2.0 / f64::from(b + 1)).min(1.0);
        assert!((note.smallest_lone_q.expect("a family") - bound).abs() < 1e-12);
    }
    let corrected = table(&found, Track::Corrected);
    let ood = corrected
        .means
        .iter()
        .find(|r| (r.by, r.value.as_str(), r.metric) == ("domain", "out_of_domain", "auroc"))
        .expect("there");
    // brset (by the mbrset adapter), mbrset (by the brset adapter), g1020 (by both).
    assert_eq!((ood.sets, ood.comparisons), (3, 4));
    let without: Vec<_> = ood
        .leave_one_out
        .iter()
        .map(|l| l.dataset.as_str())
        .collect();
    assert_eq!(without, ["brset", "g1020", "mbrset"]);
    let metrics: Vec<_> = corrected.comparisons[0]
        .deltas
        .iter()
        .map(|d| d.metric)
        .collect();
    assert_eq!(metrics, ["auroc", "auprc", "accuracy", "f1", "ece"]);
    let published = table(&found, Track::AsPublished);
    let metrics: Vec<_> = published.comparisons[0]
        .deltas
        .iter()
        .map(|d| d.metric)
        .collect();
    assert_eq!(metrics, ["auroc", "accuracy", "ece"]);
    assert!(published.comparisons.iter().all(|c| c.resampled == "image"));
    assert_eq!(published.levels.len(), 10, "five metrics in two domains");
}

#[test]
fn one_eye_of_each_patient_is_a_sensitivity_where_eyes_are_known() {
    let found = full();
    let corrected = table(&found, Track::Corrected);
    assert_eq!(corrected.one_eye_sets, ["brset", "mbrset"]);
    let row = corrected
        .one_eye
        .iter()
        .find(|r| (r.value.as_str(), r.metric) == ("in_domain", "auroc"))
        .expect("there");
    let all = corrected
        .means
        .iter()
        .find(|r| (r.by, r.value.as_str(), r.metric) == ("domain", "in_domain", "auroc"))
        .expect("there");
    assert_eq!(row.comparisons, all.comparisons);
    assert_ne!(row.delta, all.delta, "half of the images");
    assert!(table(&found, Track::AsPublished).one_eye.is_empty());
}

#[test]
fn an_adapter_without_a_partner_is_named_with_the_reason() {
    let idrid = rich("idrid", &["binary_dr", "glaucoma"], 60, 4);
    let of =
        |task: &str, model: &str| random_cell(["idrid", task, "prompting", model], &idrid, 0.1, 8);
    let cells = vec![
        of("binary_dr", &tuned("brset", "binary_dr")),
        of("glaucoma", BASE),
        of("glaucoma", &tuned("brset", "binary_dr")),
    ];
    let found = analysed(vec![MemorySource::new("run", idrid.clone(), cells)]);
    for track in Track::ALL {
        let table = table(&found, track);
        assert!(table.comparisons.is_empty());
        let reasons: Vec<_> = table.unpaired.iter().map(|u| u.reason.as_str()).collect();
        assert_eq!(
            reasons,
            [
                "no cell of `google/medgemma-4b-it` without an adapter",
                "the adapter was trained for `binary_dr`"
            ]
        );
    }
}

#[test]
fn adapters_stay_out_of_the_base_tables() {
    let found = full();
    let means = &found.summary.means[0];
    assert_eq!((means.rows.len(), means.rows[0].models), (1, 1));
    let boards = &found.summary.leaderboards.boards;
    assert!(
        boards
            .iter()
            .flat_map(|b| &b.entries)
            .all(|entry| entry.model == BASE)
    );
}

#[test]
fn an_adapter_that_failed_on_some_images_is_compared_on_the_common_ones() {
    let records = records(
        (0..40)
            .map(|i| record("idrid", &format!("i{i:02}"), "binary_dr", i % 2 == 0))
            .collect(),
    );
    let scores: Vec<f64> = (0..40).map(|i| f64::from(i * 7 % 40) / 40.0).collect();
    let base = cell(["idrid", "binary_dr", "prompting", BASE], &records, &scores);
    let model = tuned("idrid", "binary_dr");
    let mut adapter = cell(
        ["idrid", "binary_dr", "prompting", &model],
        &records,
        &scores,
    );
    adapter.rows.truncate(30);
    let found = analysed(vec![MemorySource::new(
        "run",
        records.clone(),
        vec![base, adapter],
    )]);
    let comparison = &table(&found, Track::Corrected).comparisons[0];
    assert_eq!((comparison.n, comparison.n_pos), (30, 15));
    assert!(
        comparison
            .deltas
            .iter()
            .all(|delta| delta.delta == Some(0.0))
    );
}
