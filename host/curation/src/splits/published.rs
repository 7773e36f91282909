//! From a published split file to a plan, in either track, with every defect counted. Reads no files and draws nothing itself.

use std::collections::{BTreeMap, BTreeSet};

use focus_store::Records;

use super::account::{Action, Defect, Notes, SplitCounts, SplitKind, SplitSource, Track};
use super::file::{FileShape, PublishedFile, PublishedRow};
use super::matching::{Fit, Index};
use super::own::{self, OwnSplit};
use super::{Split, SplitPlan, Use, dataset_of, defects, name_of, tally};
use crate::{CurationError, Result};

/// The split of a published file. `own` is drawn with where the corrected track has to split anew: patients of the file stand in two splits.
///
/// Rows that fit no photograph are noted; a row that fits several is an error, and so is, in the corrected track, a photograph in two splits.
pub fn published(
    records: &Records,
    file: &PublishedFile,
    track: Track,
    own: &OwnSplit,
) -> Result<SplitPlan> {
    let dataset = dataset_of(records)?;
    let index = Index::new(records);
    let fits: Vec<(Fit, Fit)> = file
        .rows
        .iter()
        .map(|row| (index.by_path(row), index.by_split(row)))
        .collect();
    let chosen = |fit: &(Fit, Fit)| match track {
        Track::AsPublished => fit.0.clone(),
        Track::Corrected => fit.1.clone(),
    };
    refuse_ambiguous(records, file, fits.iter().map(chosen))?;
    let targets: Vec<Option<usize>> = fits
        .iter()
        .map(|fit| match chosen(fit) {
            Fit::One(record) => Some(record),
            _ => None,
        })
        .collect();
    if targets.iter().all(Option::is_none) {
        return Err(CurationError::NoRowMatches {
            file: file.file.clone(),
            dataset,
            rows: file.rows.len() as u64,
        });
    }
    let repaired = match track {
        Track::AsPublished => Action::Kept,
        Track::Corrected => Action::Repaired,
    };
    let mut notes = Notes::default();
    let merged = Merged::of(file);
    defects::note_file(file, &dataset, &merged, repaired, &mut notes);
    defects::note_matches(records, file, &fits, &targets, track, &mut notes);

    let mut splits = place(records, file, &targets, track, &mut notes)?;
    let mut rule = match track {
        Track::AsPublished => "The published file, each row the photograph that its path names; a photograph in two splits stands under test".to_owned(),
        Track::Corrected => "The published file, each row the photograph of its name in its split".to_owned(),
    };
    let straddling = tally::straddling(records, &splits);
    notes.add(
        Defect::PatientInTwoSplits,
        repaired,
        straddling.len(),
        "patients of the file with photographs in more than one split",
        straddling.iter().cloned(),
    );
    let drawn = track == Track::Corrected && !straddling.is_empty();
    if drawn {
        let among: Vec<usize> = (0..splits.len()).filter(|&i| splits[i].is_some()).collect();
        splits = own::draw(records, &among, own)?;
        rule = format!(
            "Photographs of the published file, whose own split has {} patients on both sides. {}",
            straddling.len(),
            own::rule(own)
        );
    }
    let mut account = tally::account(records, &splits, SplitKind::Published, rule)?;
    let keyless = records.rows.iter().zip(&splits);
    notes.add(
        Defect::NoPatientKey,
        Action::Kept,
        account.without_patient as usize,
        "photographs without a patient key: a patient in two splits cannot be excluded",
        keyless
            .filter(|(r, split)| split.is_some() && r.patient.is_none())
            .map(|(r, _)| name_of(r)),
    );
    defects::note_labels(records, file, &targets, &splits, &mut notes);
    let labels = match track {
        Track::AsPublished => &account.published_labels,
        Track::Corrected => &account.labels,
    };
    for (task, by_split) in labels {
        for split in [Split::Train, Split::Test] {
            let counts = by_split.get(&split).copied().unwrap_or_default();
            let known = counts.positive + counts.negative;
            if known > 0 && (counts.positive == 0 || counts.negative == 0) {
                let detail = format!(
                    "labels of task `{task}` in {split}, all of one class: {} positive, {} negative",
                    counts.positive, counts.negative
                );
                notes.add(
                    Defect::OneClassOnly,
                    Action::Kept,
                    known as usize,
                    detail,
                    [],
                );
            }
        }
    }
    account.track = Some(track);
    account.file = Some(SplitSource {
        name: file
            .file
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        digest: file.digest.clone(),
        shape: file.shape,
        rows: file.rows.len() as u64,
    });
    account.file_counts = Some(merged.file);
    account.effective_counts = Some(merged.effective);
    account.analysed_rows = Some(merged.analysed);
    if drawn {
        account.seed = Some(own.seed);
        account.shares = Some(own.shares());
    }
    account.notes = notes.sorted();
    let uses = match track {
        Track::AsPublished => uses(records, file, &targets, &merged),
        Track::Corrected => Vec::new(),
    };
    Ok(SplitPlan {
        splits,
        uses,
        account,
    })
}

fn refuse_ambiguous(
    records: &Records,
    file: &PublishedFile,
    fits: impl Iterator<Item = Fit>,
) -> Result<()> {
    let mut several = file
        .rows
        .iter()
        .zip(fits)
        .filter_map(|(row, fit)| match fit {
            Fit::Several(found) => Some((row, found)),
            _ => None,
        });
    let Some((row, found)) = several.next() else {
        return Ok(());
    };
    let names: Vec<String> = found
        .iter()
        .take(3)
        .map(|&i| name_of(&records.rows[i]))
        .collect();
    Err(CurationError::AmbiguousRows {
        file: file.file.clone(),
        rows: 1 + several.count() as u64,
        line: row.line,
        example: format!("`{}` fits `{}`", row.image, names.join("`, `")),
    })
}

/// What the published code joins rows by.
fn key(row: &PublishedRow) -> &str {
    row.path.as_deref().unwrap_or(&row.image)
}

/// The file's rows before and after the published code's merges.
pub(super) struct Merged<'a> {
    pub(super) by_path: BTreeMap<&'a str, Vec<usize>>,
    pub(super) file: SplitCounts,
    pub(super) effective: SplitCounts,
    pub(super) analysed: u64,
}

impl<'a> Merged<'a> {
    fn of(file: &'a PublishedFile) -> Self {
        let mut by_path: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let mut counts = SplitCounts::default();
        for (i, row) in file.rows.iter().enumerate() {
            counts.add(row.split, 1);
            by_path.entry(key(row)).or_default().push(i);
        }
        let mut merged = Self {
            by_path,
            file: counts,
            effective: counts,
            analysed: counts.test,
        };
        match file.shape {
            // Rows and labels are merged on the path, then results and labels again: a path with n rows gives n squared, then n cubed.
            FileShape::SevenColumns => {
                merged.effective = SplitCounts::default();
                merged.analysed = 0;
                for rows in merged.by_path.values() {
                    let n = rows.len() as u64;
                    for &i in rows {
                        let split = file.rows[i].split;
                        merged.effective.add(split, n);
                        merged.analysed += if split == Split::Test { n * n } else { 0 };
                    }
                }
            }
            // Result k of the test rows meets row k of the table, and stays where that row is of the test split too.
            FileShape::Mbrset => {
                let first = file.rows.iter().take(counts.test as usize);
                merged.analysed = first.filter(|row| row.split == Split::Test).count() as u64;
            }
            FileShape::Brset => {}
        }
        merged
    }
}

/// Every photograph's rows after the published merges. Where rows of one path are merged with each other, each row of the path
/// brings its labels to each; where results meet the table by position, row k of the table brings its labels to result k.
fn uses(
    records: &Records,
    file: &PublishedFile,
    targets: &[Option<usize>],
    merged: &Merged<'_>,
) -> Vec<Use> {
    type Labels = Option<BTreeMap<String, bool>>;
    let mut uses: BTreeMap<(u32, Split, Labels), (u64, u64)> = BTreeMap::new();
    let mut add = |sample: usize, split, labels: Labels, rows: u64, analysed: u64| {
        let found = uses.entry((sample as u32, split, labels)).or_default();
        found.0 += rows;
        found.1 += if split == Split::Test { analysed } else { 0 };
    };
    let mut result = 0;
    for (row, target) in file.rows.iter().zip(targets) {
        let place = result;
        result += usize::from(row.split == Split::Test);
        let Some(record) = *target else { continue };
        match file.shape {
            FileShape::SevenColumns => {
                let rows = &merged.by_path[key(row)];
                for &other in rows {
                    let labels = &file.rows[other].labels;
                    let labels = labels
                        .iter()
                        .map(|(task, label)| ((*task).to_owned(), *label));
                    add(
                        record,
                        row.split,
                        Some(labels.collect()),
                        1,
                        rows.len() as u64,
                    );
                }
            }
            FileShape::Brset => add(record, row.split, None, 1, 1),
            FileShape::Mbrset if row.split == Split::Test => {
                let met = targets[place].filter(|_| file.rows[place].split == Split::Test);
                match met {
                    Some(met) if met == record => add(record, row.split, None, 1, 1),
                    Some(met) => {
                        let labels = records.rows[met].published_labels.clone();
                        add(record, row.split, Some(labels), 1, 1);
                    }
                    None => add(record, row.split, None, 1, 0),
                }
            }
            FileShape::Mbrset => add(record, row.split, None, 1, 0),
        }
    }
    let uses = uses.into_iter();
    uses.map(|((sample, split, labels), (rows, analysed))| Use {
        sample,
        split,
        labels,
        rows,
        analysed,
    })
    .collect()
}

/// One split for each record.
fn place(
    records: &Records,
    file: &PublishedFile,
    targets: &[Option<usize>],
    track: Track,
    notes: &mut Notes,
) -> Result<Vec<Option<Split>>> {
    let mut splits: Vec<Option<Split>> = vec![None; records.rows.len()];
    let (mut twice, mut repeated) = (BTreeSet::new(), BTreeSet::new());
    let mut labels: BTreeMap<(usize, &str), bool> = BTreeMap::new();
    for (row, target) in file.rows.iter().zip(targets) {
        let Some(i) = *target else { continue };
        match splits[i] {
            Some(known) if known == row.split => {
                repeated.insert(i);
            }
            Some(_) => {
                twice.insert(i);
            }
            None => {}
        }
        for (&task, &label) in &row.labels {
            let known = *labels.entry((i, task)).or_insert(label);
            if track == Track::Corrected && known != label {
                return Err(CurationError::SplitRow {
                    file: file.file.clone(),
                    line: row.line,
                    rule: "rows of one photograph must agree on its labels",
                    found: format!("both labels of task `{task}` for `{}`", row.image),
                });
            }
        }
        // Splits are ordered, test last.
        splits[i] = splits[i].max(Some(row.split));
    }
    if let (Track::Corrected, Some(first)) = (track, twice.first()) {
        return Err(CurationError::ImageInTwoSplits {
            file: file.file.clone(),
            images: twice.len() as u64,
            example: name_of(&records.rows[*first]),
        });
    }
    notes.add(
        Defect::RepeatedRow,
        Action::Kept,
        repeated.len(),
        "photographs named more than once in one split",
        repeated.iter().map(|&i| name_of(&records.rows[i])),
    );
    Ok(splits)
}
