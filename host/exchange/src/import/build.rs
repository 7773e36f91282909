//! Rows of many files into records and predictions: ids to images, one label for each image and task, one cell for each
//! file. It must not know file names or columns.

use super::{
    ImportSummary, ONCE, OnBadRow, Source,
    roster::{Found, Index, last_part},
};
use crate::error::{BadRow, BadRows, Conflict, ExchangeError, LISTED, Result, shorten};
use focus_store::{Fold, PredictionRow, Predictions, Record, Records};
use std::collections::{BTreeSet, HashMap, HashSet, hash_map::Entry};

pub(super) const DISPUTED: &str = "names an image that another row names";

pub(super) struct Build<'a> {
    known: &'a [Record],
    /// Tasks whose corrected labels come from the known records.
    label_tasks: BTreeSet<String>,
    on_bad: OnBadRow,
    /// Images that are not known, after the known ones.
    added: Vec<Record>,
    /// For each source, the image of each row; none: left out.
    images: Vec<Vec<Option<usize>>>,
    /// Rows left out for naming an image that another row of the file names.
    disputed: u64,
    /// Ground truth by dataset, task and image.
    truth: HashMap<(usize, &'a str), bool>,
    remarks: Vec<String>,
}

impl<'a> Build<'a> {
    pub fn new(known: &'a [Record], label_tasks: BTreeSet<String>, on_bad: OnBadRow) -> Self {
        Self {
            known,
            label_tasks,
            on_bad,
            added: Vec::new(),
            images: Vec::new(),
            disputed: 0,
            truth: HashMap::new(),
            remarks: Vec::new(),
        }
    }

    /// Find the image of each row.
    pub fn resolve(&mut self, sources: &[Source], bad: &mut BadRows) -> Result<()> {
        let index = Index::new(self.known);
        // Written id -> image, and stored id -> as first written, by dataset.
        let mut found: HashMap<(&str, &str), usize> = HashMap::new();
        let mut stored: HashMap<(&str, &str), &str> = HashMap::new();
        for source in sources {
            let dataset = source.reading.dataset.as_str();
            let mut images: Vec<Option<usize>> = Vec::with_capacity(source.file.rows.len());
            let mut lines: HashMap<usize, (usize, u64)> = HashMap::new();
            for (i, row) in source.file.rows.iter().enumerate() {
                let ambiguous = |candidates: Vec<String>| ExchangeError::AmbiguousId {
                    file: source.name.clone(),
                    line: row.line,
                    dataset: dataset.into(),
                    id: shorten(&row.id, 120),
                    candidates,
                };
                let image = match found.entry((dataset, &row.id)) {
                    Entry::Occupied(place) => *place.get(),
                    Entry::Vacant(place) => *place.insert(match index.find(dataset, &row.id) {
                        Found::One(image) => image,
                        Found::Many(all) => {
                            return Err(ambiguous(
                                all.iter().take(LISTED).map(|i| index.name(*i)).collect(),
                            ));
                        }
                        Found::None => {
                            // Paths of another machine stay out of the store.
                            let id = last_part(&row.id);
                            if id.is_empty() {
                                return Err(ambiguous(vec!["a folder".into()]));
                            }
                            if let Some(other) = stored.insert((dataset, id), &row.id) {
                                return Err(ambiguous(vec![
                                    format!("`{other}`"),
                                    format!("`{}`", row.id),
                                ]));
                            }
                            self.added.push(Record {
                                dataset: dataset.into(),
                                id: id.into(),
                                split: Some("test".into()),
                                ..Record::default()
                            });
                            self.known.len() + self.added.len() - 1
                        }
                    }),
                };
                match lines.entry(image) {
                    Entry::Vacant(place) => {
                        place.insert((i, row.line));
                        images.push(Some(image));
                    }
                    Entry::Occupied(place) => {
                        let (first, line) = *place.get();
                        // The same text twice has been told already.
                        if source.file.rows[first].id != row.id {
                            bad.push(BadRow {
                                file: source.name.clone(),
                                line: row.line,
                                rule: ONCE,
                                found: format!(
                                    "`{}`, the image of line {line}",
                                    shorten(&row.id, 60)
                                ),
                            });
                            self.disputed += 1 + u64::from(images[first].take().is_some());
                        }
                        images.push(None);
                    }
                }
            }
            self.images.push(images);
        }
        self.remark_on_positions(sources);
        Ok(())
    }

    // The published encoders' files of mBRSET count rows instead of naming images.
    fn remark_on_positions(&mut self, sources: &[Source]) {
        for (source, images) in sources.iter().zip(&self.images) {
            let unknown = images.iter().flatten().all(|i| *i >= self.known.len());
            let counted = source.file.rows.iter().all(|r| r.id.parse::<u32>().is_ok());
            if !self.known.is_empty() && !images.is_empty() && unknown && counted {
                self.remarks.push(format!(
                    "`{}`: its ids are numbers that name no known image (row positions, perhaps); they were joined to nothing",
                    source.name
                ));
            }
        }
    }

    /// Collect the ground truth, which must be one for each image and task.
    pub fn labels(&mut self, sources: &'a [Source]) -> Result<()> {
        let mut first: HashMap<(usize, &str), (&str, u64, bool)> = HashMap::new();
        let mut shown = Vec::new();
        let mut total = 0;
        for (source, images) in sources.iter().zip(&self.images) {
            let task = source.reading.task.as_str();
            for (row, image) in source.file.rows.iter().zip(images) {
                let (Some(image), Some(label)) = (*image, row.label) else {
                    continue;
                };
                let (file, line, other) =
                    *first
                        .entry((image, task))
                        .or_insert((&source.name, row.line, label));
                if other != label {
                    total += 1;
                    if shown.len() < LISTED {
                        shown.push(Conflict {
                            dataset: source.reading.dataset.clone(),
                            task: task.into(),
                            id: row.id.clone(),
                            first: (file.into(), line, other),
                            second: (source.name.clone(), row.line, label),
                        });
                    }
                }
            }
        }
        if total > 0 {
            return Err(ExchangeError::LabelsDisagree { shown, total });
        }
        self.truth = first
            .into_iter()
            .map(|(key, (_, _, label))| (key, label))
            .collect();
        Ok(())
    }

    /// Records and cells. Known records of datasets that no file is of stay out.
    pub fn finish(
        mut self,
        sources: &'a [Source],
        nothing_known: bool,
        summary: &mut ImportSummary,
    ) -> Result<(Records, Vec<Predictions>)> {
        let datasets: BTreeSet<&str> = sources.iter().map(|s| s.reading.dataset.as_str()).collect();
        let tasks: BTreeSet<&'a str> = sources.iter().map(|s| s.reading.task.as_str()).collect();
        if self.on_bad == OnBadRow::Drop && self.disputed > 0 {
            *summary.dropped.entry(DISPUTED.into()).or_default() += self.disputed;
        }
        let used: HashSet<usize> = self.images.iter().flatten().flatten().copied().collect();
        let mut order: Vec<usize> = (0..self.known.len() + self.added.len())
            .filter(|&i| datasets.contains(self.record(i).dataset.as_str()))
            // A bare image that only bad rows named.
            .filter(|i| *i < self.known.len() || used.contains(i))
            .collect();
        if nothing_known {
            // In an order that the files' order cannot change.
            order.sort_by(|a, b| {
                let (a, b) = (self.record(*a), self.record(*b));
                (&a.dataset, &a.id).cmp(&(&b.dataset, &b.id))
            });
        }
        let mut rows = Vec::with_capacity(order.len());
        let mut samples = HashMap::with_capacity(order.len());
        for &i in &order {
            let mut record = self.record(i).clone();
            if record.split.is_none() && used.contains(&i) {
                // The published code evaluates test images.
                record.split = Some("test".into());
            }
            let is_known = i < self.known.len();
            if !is_known && !nothing_known {
                summary
                    .unmatched_ids
                    .add(|| format!("{} `{}`", record.dataset, record.id));
            }
            if is_known && !used.contains(&i) && record.split.as_deref().is_none_or(|s| s == "test")
            {
                summary
                    .unmatched_images
                    .add(|| format!("{} `{}`", record.dataset, record.id));
            }
            for &task in &tasks {
                let Some(&truth) = self.truth.get(&(i, task)) else {
                    continue;
                };
                if record
                    .published_labels
                    .get(task)
                    .is_some_and(|label| *label != truth)
                {
                    summary
                        .published_label_differs
                        .add(|| format!("{} {task} `{}`", record.dataset, record.id));
                }
                record.published_labels.insert(task.into(), truth);
                if !(is_known && self.label_tasks.contains(task)) {
                    record.labels.insert(task.into(), truth);
                }
            }
            samples.insert(i, rows.len());
            rows.push(record);
        }
        let others = self
            .known
            .iter()
            .filter(|r| !datasets.contains(r.dataset.as_str()))
            .count();
        if others > 0 {
            self.remarks.push(format!(
                "{others} known images are of datasets that no result file is of"
            ));
        }
        summary.remarks.append(&mut self.remarks);
        summary.images = rows.len() as u64;
        let mut cells = Vec::with_capacity(sources.len());
        for (source, images) in sources.iter().zip(&self.images) {
            let task = source.reading.task.as_str();
            let mut predictions = Vec::with_capacity(images.len());
            let mut prob_no = Vec::with_capacity(images.len());
            for (row, image) in source.file.rows.iter().zip(images) {
                let Some(image) = image else { continue };
                let sample = samples[image];
                let record = &rows[sample];
                let own = !(*image < self.known.len() && self.label_tasks.contains(task));
                predictions.push(PredictionRow {
                    sample: sample as u32,
                    id: record.id.clone(),
                    fold: Fold::Test,
                    copy: 0,
                    split: record.split.clone(),
                    patient: record.patient.clone(),
                    label: if own {
                        row.label
                    } else {
                        record.labels.get(task).copied()
                    },
                    published_label: row.label,
                    score: row.score,
                    predicted: row.predicted,
                    outcome: row.outcome,
                    reason: row.reason.map(str::to_owned),
                    text: row.text.clone(),
                });
                prob_no.push(row.prob_no);
            }
            if predictions.is_empty() {
                summary.empty_cells.push(source.cell().to_string());
                continue;
            }
            let extra = if source.file.has_prob_no {
                vec![("prob_no".to_owned(), prob_no)]
            } else {
                Vec::new()
            };
            cells.push(Predictions::new(source.cell(), predictions, extra)?);
        }
        let tasks = tasks.into_iter().map(str::to_owned);
        let label_tasks = rows
            .iter()
            .flat_map(|r| r.labels.keys().chain(r.published_labels.keys()));
        let tasks = tasks
            .chain(label_tasks.cloned())
            .chain(self.label_tasks.iter().cloned())
            .collect();
        let records = Records { tasks, rows };
        records.check(std::path::Path::new("records.parquet"))?;
        Ok((records, cells))
    }

    fn record(&self, i: usize) -> &Record {
        self.known
            .get(i)
            .unwrap_or_else(|| &self.added[i - self.known.len()])
    }
}
