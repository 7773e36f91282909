//! Grids of several runs: coverage, determinism, the same numbers as cells alone.

use crate::support::{alone, analysed, few, grid, random_cell, rich};
use focus_analysis::{CoverageStatus, Expectation, Grid, MemorySource, RunSource, Track};
use focus_store::{CellKey, Records, RunFolder, RunManifest};
use std::collections::BTreeMap;

const VIT: &str = "google/vit-large-patch16-224";
const DINO: &str = "facebook/dinov2-large";

fn sources() -> Vec<MemorySource> {
    let brset = rich("brset", &["binary_dr", "glaucoma"], 120, 1);
    let idrid = rich("idrid", &["binary_dr"], 90, 2);
    let of = |name: &str, records: &Records, dataset: &str, tasks: &[&str], model: &str, seed| {
        let cells = tasks
            .iter()
            .map(|task| random_cell([dataset, task, "linear_probing", model], records, 0.1, seed))
            .collect();
        MemorySource::new(name, records.clone(), cells)
    };
    vec![
        of("a", &brset, "brset", &["binary_dr", "glaucoma"], VIT, 10),
        of("b", &brset, "brset", &["binary_dr"], DINO, 11),
        of("c", &idrid, "idrid", &["binary_dr"], VIT, 12),
    ]
}

#[test]
fn a_cell_in_a_grid_is_what_it_is_alone() {
    let found = analysed(sources());
    assert_eq!(found.cells.len(), 4);
    for source in sources() {
        for predictions in source.cells.values() {
            let expected = alone(&source.records, predictions, 0.0);
            let held = found
                .cells
                .iter()
                .find(|cell| cell.cell == predictions.cell);
            assert_eq!(held, Some(&expected));
        }
    }
}

#[test]
fn order_of_runs_and_number_of_threads_change_no_byte() {
    let text = |mut sources: Vec<MemorySource>, reverse: bool, threads: usize| {
        if reverse {
            sources.reverse();
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .expect("a pool");
        let mut found = pool.install(|| grid(sources).analyse(&few()).expect("analyses"));
        found.runs.sort();
        serde_json::to_string(&found).expect("JSON")
    };
    let expected = text(sources(), false, 1);
    assert_eq!(text(sources(), true, 1), expected);
    assert_eq!(text(sources(), false, 3), expected);
    assert!(!expected.contains("NaN"));
}

#[test]
fn coverage_says_what_is_missing_failed_and_skipped() {
    let mut sources = sources();
    sources[2].skipped.insert(
        CellKey::new("idrid", "referable_dr", "linear_probing", VIT),
        "no test image has a known label".into(),
    );
    let bad = sources[1].cells.values_mut().next().expect("one");
    for row in bad.rows.iter_mut().take(20) {
        row.outcome = focus_store::Outcome::ModelError;
        (row.score, row.predicted, row.reason) = (None, None, Some("crash".into()));
    }
    let found = analysed(sources);
    let of = |track, against| {
        let all = &found.summary.coverage;
        all.iter()
            .find(|c| (c.track, c.against) == (track, against))
            .expect("there")
    };
    let seen = of(Track::Corrected, Expectation::Seen);
    // Two models on four pairs.
    assert_eq!((seen.expected, seen.expected_fine_tuned), (8, 0));
    let expected: BTreeMap<_, _> = [
        (CoverageStatus::Present, 3),
        (CoverageStatus::Failed, 1),
        (CoverageStatus::Skipped, 1),
        (CoverageStatus::Missing, 3),
    ]
    .into();
    assert_eq!(seen.counts, expected);
    let failed = seen
        .absent
        .iter()
        .find(|row| row.status == CoverageStatus::Failed);
    assert_eq!(
        failed.expect("there").reason,
        "of 120 test images: 20 model_error:crash"
    );
    let benchmark = of(Track::AsPublished, Expectation::Benchmark);
    assert_eq!(
        (benchmark.expected, benchmark.expected_fine_tuned),
        (532, 228)
    );
    assert_eq!(benchmark.counts[&CoverageStatus::Present], 3);
    let benchmark = of(Track::Corrected, Expectation::Benchmark);
    assert_eq!(
        (benchmark.expected, benchmark.expected_fine_tuned),
        (476, 204)
    );
    assert!(benchmark.unexpected.is_empty());
}

#[test]
fn run_folders_give_what_memory_gives() {
    let folder = tempfile::tempdir().expect("folder");
    let mut boxed: Vec<Box<dyn focus_analysis::CellSource>> = Vec::new();
    for source in sources() {
        let manifest = RunManifest {
            tool_version: "0".into(),
            models: vec![],
            datasets: vec![],
            tasks: vec![],
            methods: vec![],
            device_kind: "cpu".into(),
            seeds: BTreeMap::new(),
            permissions: vec![],
            synthetic: true,
            options: [("error_budget".to_owned(), 0.0.into())].into(),
        };
        let path = folder.path().join(&source.name);
        let run = RunFolder::create_or_resume(&path, &manifest).expect("starts");
        run.write_records(&source.records).expect("writes");
        for predictions in source.cells.values() {
            run.write_predictions(predictions).expect("writes");
        }
        drop(run);
        boxed.push(Box::new(RunSource::open(&path).expect("opens")));
    }
    let catalogue = focus_analysis::Catalogue::embedded();
    let from_disk = Grid::open(boxed, catalogue)
        .expect("opens")
        .analyse(&few())
        .expect("analyses");
    let from_memory = analysed(sources());
    assert!(from_disk.synthetic);
    assert_eq!(from_disk.cells, from_memory.cells);
    assert_eq!(from_disk.summary, from_memory.summary);
}

#[test]
fn a_cell_on_published_labels_stands_beside_the_corrected_one() {
    let mut records = rich("jsiec1000", &["binary_dr"], 100, 7);
    // Ambiguous classes: unknown when corrected, negative as published.
    for record in records.rows.iter_mut().take(20) {
        record.labels.clear();
        record.published_labels.insert("binary_dr".into(), false);
    }
    let names = ["jsiec1000", "binary_dr", "linear_probing", VIT];
    let corrected = random_cell(names, &records, 0.2, 3);
    let mut published = corrected.clone();
    published.cell.method = "linear_probing+as_published".into();
    for (sample, record) in (0..).zip(&records.rows).take(20) {
        let mut row = crate::support::row(sample, &record.id, false, 0.1);
        row.label = None;
        published.rows.push(row);
    }
    published.rows.sort_by_key(|row| row.sample);
    let found = analysed(vec![MemorySource::new(
        "run",
        records,
        vec![corrected, published],
    )]);
    let tracks: Vec<Vec<Track>> = found
        .cells
        .iter()
        .map(|cell| cell.tracks.iter().map(|track| track.track).collect())
        .collect();
    assert_eq!(tracks, [[Track::Corrected], [Track::AsPublished]]);
    let rows = |track: Track| {
        let table = found
            .summary
            .means
            .iter()
            .find(|t| t.track == track)
            .expect("there");
        (
            table.rows.len(),
            table.rows[0].method.clone(),
            table.rows[0].cells,
        )
    };
    assert_eq!(rows(Track::Corrected), (1, "linear_probing".into(), 1));
    assert_eq!(rows(Track::AsPublished), (1, "linear_probing".into(), 1));
    assert_eq!(found.cells[1].tracks[0].n, 100);
}
