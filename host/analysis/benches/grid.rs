//! The whole benchmark at its published split sizes: 532 cells and 228 adapters' cells, generated on demand, analysed at
//! the default options on two threads. Prints wall time and the peak of resident memory.
//!
//! `cargo bench -p focus-analysis`. `-- --quick` draws a tenth as often; `-- brset` takes one dataset.

use focus_analysis::{
    Catalogue, CellSource, DatasetEntry, Grid, Listed, ModelFacts, ModelName, Options, Result,
    Track,
};
use focus_store::{CellKey, Fold, Outcome, PredictionRow, Predictions, Record, Records};
use std::time::Instant;

/// One dataset's cells; predictions are made when asked for, as if read from a folder.
struct Synthetic {
    name: String,
    records: Records,
    cells: Vec<CellKey>,
}

/// SplitMix64.
struct Noise(u64);

impl Noise {
    fn of(text: &str) -> Self {
        Self(
            text.bytes()
                .fold(7, |sum, byte| sum * 31 % 1_000_003 + u64::from(byte)),
        )
    }

    /// In [0, 1).
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

impl Synthetic {
    fn new(dataset: &DatasetEntry, cells: Vec<CellKey>) -> Self {
        let mut noise = Noise::of(&dataset.id);
        let known = ["brset", "mbrset", "papila"].contains(&dataset.id.as_str());
        let graded = known && dataset.id != "papila";
        let test = dataset.splits.expect("published sizes").test;
        let rows = (0..test)
            .map(|i| {
                let labels: std::collections::BTreeMap<_, _> = dataset
                    .published
                    .iter()
                    .map(|task| (task.clone(), noise.next() < 0.25))
                    .collect();
                Record {
                    dataset: dataset.id.clone(),
                    id: format!("i{i:05}"),
                    split: Some("test".into()),
                    patient: known.then(|| format!("p{:05}", i / 2)),
                    eye: known.then(|| if i % 2 == 0 { "left" } else { "right" }.into()),
                    age: known.then(|| (30.0 + noise.next() * 50.0).floor()),
                    sex: known.then(|| if noise.next() < 0.6 { "female" } else { "male" }.into()),
                    quality: graded
                        .then(|| if noise.next() < 0.2 { "poor" } else { "good" }.into()),
                    grade: graded.then(|| (noise.next() * 5.0) as i32),
                    published_labels: labels.clone(),
                    labels,
                    ..Record::default()
                }
            })
            .collect();
        Self {
            name: dataset.id.clone(),
            records: Records {
                tasks: dataset.published.iter().cloned().collect(),
                rows,
            },
            cells,
        }
    }
}

impl CellSource for Synthetic {
    fn name(&self) -> &str {
        &self.name
    }

    fn records(&self) -> Result<Records> {
        Ok(self.records.clone())
    }

    fn cells(&self) -> Result<Vec<Listed>> {
        let listed = |cell: &CellKey| Listed {
            cell: cell.clone(),
            skipped: None,
        };
        Ok(self.cells.iter().map(listed).collect())
    }

    fn predictions(&self, cell: &CellKey) -> Result<Predictions> {
        // An adapter's scores are its base's, moved a little: paired differences are small, as they are in truth.
        let base = ModelName::parse(&cell.model)?.without_adapter();
        let mut shared = Noise::of(&format!(
            "{}{}{base}{}",
            cell.dataset, cell.task, cell.method
        ));
        let mut own = Noise::of(&cell.to_string());
        let probe = cell.method == "linear_probing";
        let mut row = |sample: u32, id: String, fold: Fold, label: bool| {
            let middle = (shared.next() + shared.next() + shared.next()) / 3.0 + own.next() * 0.05;
            let raw = middle + if label { 0.12 } else { -0.08 };
            let score = (raw.clamp(0.0, 1.0) * 1e6).round() / 1e6;
            PredictionRow {
                sample,
                id,
                fold,
                copy: 0,
                split: None,
                patient: None,
                label: Some(label),
                published_label: Some(label),
                score: Some(score),
                predicted: Some(score > 0.5),
                outcome: Outcome::Ok,
                reason: None,
                text: None,
            }
        };
        let mut rows: Vec<PredictionRow> = (0..)
            .zip(&self.records.rows)
            .map(|(sample, record)| {
                row(
                    sample,
                    record.id.clone(),
                    Fold::Test,
                    record.labels[&cell.task],
                )
            })
            .collect();
        let train = if probe { 1000 } else { 0 };
        rows.extend((0..train).map(|i| row(100_000 + i, format!("t{i}"), Fold::Train, i % 5 == 0)));
        Ok(Predictions::new(cell.clone(), rows, vec![])?)
    }

    fn error_budget(&self) -> f64 {
        0.0
    }

    fn synthetic(&self) -> bool {
        true
    }

    fn facts(&self) -> Result<Option<ModelFacts>> {
        Ok(None)
    }
}

/// Peak of resident memory, in MiB, where the system tells.
fn peak() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024.0)
}

#[expect(
    clippy::print_stdout,
    reason = "a benchmark's result is what it prints"
)]
fn main() {
    let quick = std::env::args().any(|arg| arg == "--quick" || arg == "--test");
    let mut options = Options::default();
    if quick {
        options.resamples /= 10;
        options.secondary_resamples /= 10;
        options.permutations /= 10;
        options.family_resamples /= 10;
        options.published_resamples /= 10;
    }
    rayon::ThreadPoolBuilder::new()
        .num_threads(2)
        .build_global()
        .expect("the pool is not built yet");
    let catalogue = Catalogue::embedded();
    let expected = Catalogue::benchmark(Track::AsPublished);
    let named: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let sources = catalogue
        .datasets()
        .iter()
        .filter(|dataset| named.is_empty() || named.contains(&dataset.id))
        .map(|dataset| {
            let cells = expected.iter().map(|cell| &cell.cell);
            let cells = cells
                .filter(|cell| cell.dataset == dataset.id)
                .cloned()
                .collect();
            Box::new(Synthetic::new(dataset, cells)) as Box<dyn CellSource>
        })
        .collect();
    let start = Instant::now();
    let grid = Grid::open(sources, catalogue).expect("opens");
    let found = grid.analyse(&options).expect("analyses");
    let wall = start.elapsed().as_secs_f64();
    println!(
        "{} cells, {} comparisons, {} boards; {options:?}",
        found.cells.len(),
        found.summary.fine_tuning.tables[0].comparisons.len(),
        found.summary.leaderboards.boards.len(),
    );
    println!("wall {wall:.1} s on 2 threads");
    if let Ok(stat) = std::fs::read_to_string("/proc/self/stat") {
        // Fields 14 and 15: user and system time, in hundredths of a second on Linux.
        let ticks: Vec<f64> = stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .skip(11)
            .take(2)
            .filter_map(|field| field.parse().ok())
            .collect();
        println!("processor time {:.1} s", ticks.iter().sum::<f64>() / 100.0);
    }
    if let Some(peak) = peak() {
        println!("peak memory {peak:.0} MiB");
    }
}
