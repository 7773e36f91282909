//! Tables over cells, against numbers worked out by hand or from the cells themselves.

use crate::support::{analysed, cell, random_cell, record, records, rich};
use focus_analysis::{Board, Family, GridAnalysis, Group, MeansRow, MemorySource, Seen, Track};
use focus_store::{Predictions, Records};

const VIT: &str = "google/vit-large-patch16-224";
const DINO: &str = "facebook/dinov2-large";
const RETFOUND: &str = "YukunZhou/RETFound_mae_meh";

/// 10 positives and 10 negatives; `won` of the 100 pairs are in the right order.
fn ladder(
    dataset: &str,
    task: &str,
    model: &str,
    method: &str,
    won: u32,
) -> (Records, Predictions) {
    let rows = (0..20)
        .map(|i| record(dataset, &format!("{task}{i:02}"), task, i < 10))
        .collect();
    let records = records(rows);
    // Negatives score 0.30, 0.31, ...; each positive is put above as many of them as are still to be won.
    let mut left = won;
    let scores: Vec<f64> = (0..20)
        .map(|i| {
            if i >= 10 {
                return 0.30 + f64::from(i - 10) / 100.0;
            }
            let above = left.min(10);
            left -= above;
            0.295 + f64::from(above) / 100.0
        })
        .collect();
    let predictions = cell([dataset, task, method, model], &records, &scores);
    (records, predictions)
}

/// One run for each cell of (dataset, task, model, method, pairs won of 100).
fn ladders(cells: &[(&str, &str, &str, &str, u32)]) -> GridAnalysis {
    let sources = cells
        .iter()
        .enumerate()
        .map(|(at, (dataset, task, model, method, won))| {
            let (records, predictions) = ladder(dataset, task, model, method, *won);
            MemorySource::new(&format!("run{at}"), records, vec![predictions])
        })
        .collect();
    analysed(sources)
}

fn means(found: &GridAnalysis, track: Track) -> &focus_analysis::MeansTable {
    found
        .summary
        .means
        .iter()
        .find(|table| table.track == track)
        .expect("there")
}

fn close(found: Option<f64>, expected: f64) {
    let found = found.expect("a number");
    assert!(
        (found - expected).abs() < 1e-12,
        "{found} is not {expected}"
    );
}

#[test]
fn means_shift_and_spread_by_hand() {
    let found = ladders(&[
        ("brset", "binary_dr", VIT, "linear_probing", 90),
        ("idrid", "binary_dr", VIT, "linear_probing", 60),
        ("brset", "binary_dr", DINO, "linear_probing", 80),
        ("idrid", "binary_dr", DINO, "linear_probing", 70),
    ]);
    for track in Track::ALL {
        let table = means(&found, track);
        let [row] = &table.rows[..] else {
            panic!("one row")
        };
        assert_eq!((row.family, row.group), (Family::Vm, Group::General));
        assert_eq!((row.models, row.cells, row.datasets.len()), (2, 4, 2));
        close(row.auroc.value, 0.75);
        // Datasets: 0.85 and 0.65.
        close(row.shift.value, 0.8);
        assert!(table.left_out.is_empty());
        assert_eq!(
            row.fairness.missing,
            Some("no_subgroups"),
            "{track:?}: nothing to fill with"
        );
    }
    let corrected = &means(&found, Track::Corrected).rows[0];
    close(
        corrected.between_dataset_sd.expect("corrected").value,
        0.02_f64.sqrt(),
    );
    assert!(
        means(&found, Track::AsPublished).rows[0]
            .between_dataset_sd
            .is_none()
    );
}

#[test]
fn overall_weighs_tasks_as_the_paper_does_and_by_datasets_when_corrected() {
    let found = ladders(&[
        ("brset", "binary_dr", VIT, "linear_probing", 90),
        ("idrid", "binary_dr", VIT, "linear_probing", 90),
        ("brset", "referable_dr", VIT, "linear_probing", 80),
        ("brset", "glaucoma", VIT, "linear_probing", 50),
    ]);
    let overall = |track| &means(&found, track).overall[0];
    close(
        overall(Track::AsPublished).auroc.value,
        (7.0 * 0.9 + 7.0 * 0.8 + 5.0 * 0.5) / 19.0,
    );
    close(
        overall(Track::Corrected).auroc.value,
        (2.0 * 0.9 + 0.8 + 0.5) / 4.0,
    );
    // Tasks pooled: brset (0.9 + 0.8 + 0.5) / 3, idrid 0.9.
    close(
        overall(Track::Corrected).shift.value,
        1.0 - (0.9 - 2.2 / 3.0),
    );
    assert_eq!(overall(Track::Corrected).task, "overall");
}

#[test]
fn corrected_means_are_over_common_datasets_and_say_what_they_leave_out() {
    let found = ladders(&[
        ("brset", "binary_dr", VIT, "linear_probing", 90),
        ("idrid", "binary_dr", VIT, "linear_probing", 60),
        ("brset", "binary_dr", RETFOUND, "linear_probing", 70),
        ("brset", "binary_dr", "stranger/model", "linear_probing", 70),
    ]);
    let row = |track, group| -> MeansRow {
        let table = means(&found, track);
        table
            .rows
            .iter()
            .find(|row| row.group == group)
            .expect("there")
            .clone()
    };
    close(row(Track::AsPublished, Group::General).auroc.value, 0.75);
    close(row(Track::Corrected, Group::General).auroc.value, 0.9);
    close(row(Track::Corrected, Group::Ophthalmic).auroc.value, 0.7);
    assert_eq!(
        row(Track::Corrected, Group::General).shift.missing,
        Some("one_dataset")
    );
    close(row(Track::AsPublished, Group::Ophthalmic).shift.value, 1.0);
    let reasons: Vec<_> = means(&found, Track::Corrected)
        .left_out
        .iter()
        .map(|left| (left.cell.dataset.as_str(), left.reason))
        .collect();
    assert_eq!(
        reasons,
        [("brset", "model_type_unknown"), ("idrid", "not_common")]
    );
}

#[test]
fn a_cell_under_ten_positives_counts_as_published_only() {
    let (records, _) = ladder("idrid", "binary_dr", VIT, "linear_probing", 60);
    let mut few = records.clone();
    few.rows.remove(0);
    let scores: Vec<f64> = (0..19).map(|i| f64::from(i) / 20.0).collect();
    let names = ["idrid", "binary_dr", "linear_probing", VIT];
    let found = analysed(vec![MemorySource::new(
        "run",
        few.clone(),
        vec![cell(names, &few, &scores)],
    )]);
    assert_eq!(means(&found, Track::AsPublished).rows.len(), 1);
    assert!(means(&found, Track::Corrected).rows.is_empty());
    assert_eq!(
        means(&found, Track::Corrected).left_out[0].reason,
        "under_10_positives"
    );
    assert_eq!(
        found.summary.leaderboards.boards[0].track,
        Track::AsPublished,
        "none corrected"
    );
}

#[test]
fn fairness_is_one_minus_the_mean_of_gap_columns_and_the_median_fills_as_published() {
    let brset = rich("brset", &["binary_dr"], 160, 1);
    let cells: Vec<_> = [(VIT, 5), (DINO, 6)]
        .map(|(model, seed)| {
            random_cell(
                ["brset", "binary_dr", "linear_probing", model],
                &brset,
                0.1,
                seed,
            )
        })
        .to_vec();
    let (idrid, plain) = ladder("idrid", "referable_dr", VIT, "linear_probing", 60);
    let found = analysed(vec![
        MemorySource::new("brset", brset, cells),
        MemorySource::new("idrid", idrid, vec![plain]),
    ]);
    let column = |track: Track, attribute: &str, gap: &str| -> f64 {
        let gaps: Vec<f64> = found
            .cells
            .iter()
            .filter_map(|cell| cell.track(track)?.gap(attribute, gap))
            .collect();
        assert_eq!(gaps.len(), 2);
        f64::midpoint(gaps[0], gaps[1])
    };
    let gaps = focus_analysis::FAIRNESS_GAPS;
    let age = gaps.map(|gap| column(Track::AsPublished, "age", gap));
    let expected = 1.0 - age.iter().sum::<f64>() / 3.0;
    let published = means(&found, Track::AsPublished);
    close(published.rows[0].fairness.value, expected);
    // The other row has no subgroups: it takes the median of the column, and says so.
    assert_eq!(published.rows[1].task, "referable_dr");
    close(published.rows[1].fairness.value, expected);
    assert!(published.rows[1].fairness.filled && !published.rows[0].fairness.filled);
    let corrected = means(&found, Track::Corrected);
    let both: f64 = ["age", "sex"]
        .iter()
        .flat_map(|attribute| gaps.map(|gap| column(Track::Corrected, attribute, gap)))
        .sum();
    close(corrected.rows[0].fairness.value, 1.0 - both / 6.0);
    assert_eq!(corrected.rows[1].fairness.missing, Some("no_subgroups"));
    let quality: f64 = focus_analysis::QUALITY_GAPS
        .map(|gap| column(Track::Corrected, "quality", gap))
        .iter()
        .sum();
    close(corrected.rows[0].quality.value, 1.0 - quality / 5.0);
}

#[test]
fn encoders_by_dataset_and_types_by_task() {
    let found = ladders(&[
        ("brset", "binary_dr", VIT, "linear_probing", 90),
        ("brset", "glaucoma", VIT, "linear_probing", 70),
        ("brset", "binary_dr", RETFOUND, "linear_probing", 60),
        ("mbrset", "binary_dr", VIT, "linear_probing", 95),
        ("mbrset", "binary_dr", RETFOUND, "linear_probing", 55),
        ("mbrset", "binary_dr", "FLAIR", "zero_shot", 20),
        ("mbrset", "binary_dr", "FLAIR", "linear_probing", 40),
        ("idrid", "binary_dr", VIT, "linear_probing", 50),
        ("idrid", "binary_dr", VIT, "linear_probing_unweighted", 99),
    ]);
    let table = &found.summary.encoders[0];
    let rows: Vec<_> = table.rows.iter().map(|row| row.dataset.as_str()).collect();
    assert_eq!(rows, ["mbrset", "brset", "idrid"]);
    close(table.rows[0].difference, 0.4);
    assert_eq!(table.rows[0].device.as_deref(), Some("mobile"));
    close(table.rows[1].general.value, 0.8);
    close(table.rows[1].difference, 0.2);
    assert_eq!(table.rows[2].ophthalmic.missing, Some("no_values"));
    assert_eq!(table.rows[2].difference, None);
    let types = &found.summary.types[0];
    assert_eq!(types.tasks, ["binary_dr", "glaucoma"]);
    let flair = types
        .rows
        .iter()
        .find(|row| row.family == Family::Vlm)
        .expect("there");
    close(flair.auroc[0].value, 0.3);
    assert_eq!(flair.auroc[1].missing, Some("no_values"));
    let vit = types
        .rows
        .iter()
        .find(|row| row.group == Group::General)
        .expect("there");
    // 0.90, 0.95 and 0.50: the unweighted probe is no method of the paper.
    close(vit.auroc[0].value, 2.35 / 3.0);
}

fn board<'a>(found: &'a GridAnalysis, dataset: Option<&str>, task: Option<&str>) -> &'a Board {
    let boards = &found.summary.leaderboards.boards;
    let wanted = |board: &&Board| {
        board.track == Track::Corrected
            && board.metric == "auroc"
            && (board.dataset.as_deref(), board.task.as_deref()) == (dataset, task)
    };
    boards.iter().find(wanted).expect("there")
}

#[test]
fn leaderboards_rank_with_ties_and_average_over_test_sets() {
    let found = ladders(&[
        ("brset", "binary_dr", VIT, "linear_probing", 90),
        ("brset", "binary_dr", DINO, "linear_probing", 90),
        ("brset", "binary_dr", RETFOUND, "linear_probing", 60),
        ("idrid", "binary_dr", VIT, "linear_probing", 50),
        ("idrid", "binary_dr", DINO, "linear_probing", 70),
    ]);
    let brset = board(&found, Some("brset"), Some("binary_dr"));
    let ranks: Vec<f64> = brset.entries.iter().map(|entry| entry.rank).collect();
    assert_eq!(ranks, [1.5, 1.5, 3.0]);
    assert_eq!((brset.n, brset.resampled), (20, Some("image")));
    assert_eq!(
        brset.entries[0].first, brset.entries[1].first,
        "equal scores stay equal"
    );
    let [low, high] = brset.entries[2].interval.expect("drawn");
    assert!((1.0..=3.0).contains(&low) && high == 3.0);
    let overall = board(&found, None, None);
    assert_eq!((overall.pairs, overall.n), (2, 40));
    let order: Vec<_> = overall
        .entries
        .iter()
        .map(|e| (e.model.as_str(), e.value))
        .collect();
    assert_eq!(order[0].0, DINO);
    close(Some(order[0].1), 0.8);
    assert_eq!(overall.excluded[0].reason, "ranked on 1 of 2 test sets");
    assert_eq!(overall.entries.len(), 2);
    let published = found
        .summary
        .leaderboards
        .boards
        .iter()
        .find(|b| b.track == Track::AsPublished && b.metric == "auroc")
        .expect("there");
    assert!(
        published
            .entries
            .iter()
            .all(|entry| entry.interval.is_none())
    );
    assert_eq!(published.entries[0].rank, 1.5);
}

#[test]
fn an_arm_on_a_part_of_the_images_is_not_ranked_with_the_others() {
    let records = rich("brset", &["binary_dr"], 100, 1);
    let of = |model| {
        random_cell(
            ["brset", "binary_dr", "linear_probing", model],
            &records,
            0.1,
            3,
        )
    };
    let mut part = of(DINO);
    part.rows.truncate(80);
    let mut nearly = of(RETFOUND);
    nearly.rows.truncate(95);
    let found = analysed(vec![MemorySource::new(
        "run",
        records.clone(),
        vec![of(VIT), part, nearly],
    )]);
    let board = board(&found, Some("brset"), Some("binary_dr"));
    assert_eq!((board.n, board.entries.len()), (95, 2));
    assert_eq!(board.excluded[0].reason, "answered 80 of 100 images");
    assert_eq!(
        board.entries[0].rank, 1.5,
        "the same scores on the common images"
    );
}

#[test]
fn trade_offs_correlate_points_of_a_family_and_infer_only_from_ten() {
    let found = ladders(&[
        ("brset", "binary_dr", VIT, "linear_probing", 90),
        ("brset", "binary_dr", DINO, "linear_probing", 70),
        ("brset", "binary_dr", RETFOUND, "linear_probing", 50),
    ]);
    let panel = found
        .summary
        .trade_offs
        .iter()
        .find(|p| p.against == "ece" && p.track == Track::Corrected)
        .expect("there");
    assert_eq!((panel.family, panel.points.len()), (Family::Vm, 3));
    assert!(panel.r.is_some() && panel.slope.is_some());
    assert_eq!((panel.p, panel.missing), (None, Some("too_few_points")));
    assert!(
        found.summary.trade_offs.iter().all(|p| p.against == "ece"),
        "no point has an age gap"
    );
}

#[test]
fn contamination_lists_the_models_and_datasets_of_the_grid() {
    let found = ladders(&[
        ("brset", "binary_dr", "jusiro2/FLAIR", "zero_shot", 90),
        ("refuge", "glaucoma", VIT, "linear_probing", 70),
    ]);
    let matrix = &found.summary.contamination;
    assert_eq!(matrix.datasets, ["brset", "refuge"]);
    assert_eq!(matrix.rows[0].model, "FLAIR");
    assert_eq!(matrix.rows[0].seen, [Seen::Listed, Seen::NotListed]);
    assert_eq!(matrix.rows[1].seen, [Seen::NotListed, Seen::NotListed]);
}
