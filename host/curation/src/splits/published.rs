//! From a published split file to a plan, in either track, with every defect counted. Reads no files and draws nothing itself.

use std::collections::{BTreeMap, BTreeSet};

use focus_store::Records;

use super::account::{Action, Defect, Notes, SplitCounts, SplitKind, SplitSource, Track};
use super::file::{FileShape, PublishedFile, PublishedRow};
use super::matching::{Fit, Index, parts, stem};
use super::own::{self, OwnSplit};
use super::{Split, SplitPlan, Use, dataset_of, name_of, tally};
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
    note_file(file, &dataset, &merged, repaired, &mut notes);
    note_matches(records, file, &fits, &targets, track, &mut notes);

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
    note_labels(records, file, &targets, &splits, &mut notes);
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
        Track::AsPublished => uses(file, &targets, &merged),
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
struct Merged<'a> {
    by_path: BTreeMap<&'a str, Vec<usize>>,
    file: SplitCounts,
    effective: SplitCounts,
    analysed: u64,
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

fn uses(file: &PublishedFile, targets: &[Option<usize>], merged: &Merged<'_>) -> Vec<Use> {
    let mut uses: BTreeMap<(u32, Split), u64> = BTreeMap::new();
    for (row, target) in file.rows.iter().zip(targets) {
        let Some(record) = target else { continue };
        let times = match file.shape {
            FileShape::SevenColumns => merged.by_path[key(row)].len() as u64,
            FileShape::Brset | FileShape::Mbrset => 1,
        };
        *uses.entry((*record as u32, row.split)).or_default() += times;
    }
    let uses = uses.into_iter();
    uses.map(|((sample, split), rows)| Use {
        sample,
        split,
        rows,
    })
    .collect()
}

/// What is odd about the file itself.
fn note_file(
    file: &PublishedFile,
    dataset: &str,
    merged: &Merged<'_>,
    repaired: Action,
    notes: &mut Notes,
) {
    let plain = |text: &str| -> String {
        let letters = text.chars().filter(char::is_ascii_alphanumeric);
        letters.collect::<String>().to_lowercase()
    };
    if let Some(named) = file
        .dataset
        .as_deref()
        .filter(|d| plain(d) != plain(dataset))
    {
        let detail = format!("rows name the dataset `{named}`, the records are of `{dataset}`");
        notes.add(
            Defect::DatasetNameDiffers,
            Action::Kept,
            file.rows.len(),
            detail,
            [],
        );
    }
    let foreign = file.rows.iter().filter_map(|row| row.path.as_deref());
    let foreign = foreign
        .filter(|path| path.starts_with('/') || path.get(1..2) == Some(":"))
        .count();
    notes.add(
        Defect::ForeignAbsolutePaths,
        Action::Repaired,
        foreign,
        "rows with an absolute path of another machine, matched by its last parts",
        [],
    );
    let differs = file.rows.iter().filter(|row| {
        let path = row.path.as_deref().map(parts);
        path.is_some_and(|parts| parts.first() != Some(&stem(&row.image)))
    });
    let differs: Vec<&PublishedRow> = differs.collect();
    notes.add(
        Defect::IdDiffersFromPath,
        Action::Kept,
        differs.len(),
        "rows whose image id is not the name in their path; the path counts",
        differs.iter().map(|row| row.image.clone()),
    );
    let mut by_id: BTreeMap<&str, usize> = BTreeMap::new();
    for row in &file.rows {
        *by_id.entry(&row.image).or_default() += 1;
    }
    let repeats: Vec<&str> = by_id
        .into_iter()
        .filter(|(_, n)| *n > 1)
        .map(|(id, _)| id)
        .collect();
    notes.add(
        Defect::ImageIdRepeats,
        Action::Repaired,
        repeats.len(),
        "image ids that stand in several rows, told apart by path and split",
        repeats.iter().map(|id| (*id).to_owned()),
    );
    let several: Vec<(&str, Vec<&PublishedRow>)> = merged
        .by_path
        .iter()
        .filter(|(_, rows)| rows.len() > 1)
        .map(|(path, rows)| (*path, rows.iter().map(|&i| &file.rows[i]).collect()))
        .collect();
    let short = |path: &str| -> String {
        let mut last: Vec<&str> = path.rsplit(['/', '\\']).take(2).collect();
        last.reverse();
        last.join("/")
    };
    let in_two: Vec<&str> = several
        .iter()
        .filter(|(_, rows)| rows.iter().any(|row| row.split != rows[0].split))
        .map(|(path, _)| *path)
        .collect();
    notes.add(
        Defect::PathInTwoSplits,
        repaired,
        in_two.len(),
        "paths in more than one split",
        in_two.iter().map(|path| short(path)),
    );
    let tasks: BTreeSet<&str> = file
        .rows
        .iter()
        .flat_map(|r| r.labels.keys().copied())
        .collect();
    for task in tasks {
        let both = several.iter().filter(|(_, rows)| {
            let has = |label| rows.iter().any(|row| row.labels.get(task) == Some(&label));
            has(true) && has(false)
        });
        let both: Vec<String> = both.map(|(path, _)| short(path)).collect();
        let detail = format!("paths with both labels of task `{task}`");
        notes.add(
            Defect::PathWithTwoLabels,
            repaired,
            both.len(),
            detail,
            both,
        );
    }
    let grown = merged.effective.total() - merged.file.total();
    let (f, e) = (merged.file, merged.effective);
    let detail = format!(
        "rows that the published code's merge on the path adds: train {} becomes {}, validation {} becomes {}, test {} becomes {}; its analysis then has {} test rows",
        f.train, e.train, f.validation, e.validation, f.test, e.test, merged.analysed
    );
    notes.add(
        Defect::RowsDoubledByMerge,
        repaired,
        grown as usize,
        detail,
        [],
    );
    if file.shape == FileShape::Mbrset {
        let detail = format!(
            "test rows that the published code loses for encoders by joining on the row's position: {} of {} stay, with another row's labels",
            merged.analysed, f.test
        );
        let lost = (f.test - merged.analysed) as usize;
        notes.add(Defect::JoinByPosition, repaired, lost, detail, []);
    }
}

/// What is odd about rows and photographs together.
fn note_matches(
    records: &Records,
    file: &PublishedFile,
    fits: &[(Fit, Fit)],
    targets: &[Option<usize>],
    track: Track,
    notes: &mut Notes,
) {
    let repaired = match track {
        Track::AsPublished => Action::Kept,
        Track::Corrected => Action::Repaired,
    };
    let name = |i: usize| name_of(&records.rows[i]);
    let elsewhere: Vec<(usize, usize)> = fits
        .iter()
        .filter_map(|fit| match fit {
            (Fit::One(a), Fit::One(b)) if a != b => Some((*a, *b)),
            _ => None,
        })
        .collect();
    notes.add(
        Defect::PathNamesOtherSplit,
        repaired,
        elsewhere.len(),
        "rows whose path names the photograph of that name in another split",
        elsewhere
            .iter()
            .map(|(a, b)| format!("{} for {}", name(*a), name(*b))),
    );
    let reached = |pick: fn(&(Fit, Fit)) -> &Fit| -> BTreeSet<usize> {
        let fits = fits.iter().filter_map(|fit| match pick(fit) {
            Fit::One(record) => Some(*record),
            _ => None,
        });
        fits.collect()
    };
    let (by_path, by_split) = (reached(|fit| &fit.0), reached(|fit| &fit.1));
    let never: Vec<usize> = by_split.difference(&by_path).copied().collect();
    notes.add(
        Defect::PhotographNeverUsed,
        match track {
            Track::AsPublished => Action::LeftOut,
            Track::Corrected => Action::Repaired,
        },
        never.len(),
        "photographs that a row means but no path names",
        never.iter().map(|&i| name(i)),
    );
    let unnamed = (0..records.rows.len()).filter(|i| !by_path.contains(i) && !by_split.contains(i));
    let unnamed: Vec<usize> = unnamed.collect();
    notes.add(
        Defect::PhotographNotInFile,
        Action::LeftOut,
        unnamed.len(),
        "photographs that the file does not name: the published selection leaves them out",
        unnamed.iter().map(|&i| name(i)),
    );
    let lost = file.rows.iter().zip(targets).filter(|(_, t)| t.is_none());
    let lost: Vec<&PublishedRow> = lost.map(|(row, _)| row).collect();
    notes.add(
        Defect::RowWithoutPhotograph,
        Action::LeftOut,
        lost.len(),
        "rows whose photograph is not among the records",
        lost.iter().map(|row| row.image.clone()),
    );
    let other = file.rows.iter().zip(targets).filter(|(row, target)| {
        let known = target.and_then(|i| records.rows[i].patient.as_ref());
        matches!((&row.patient, known), (Some(a), Some(b)) if a != b)
    });
    let other: Vec<&PublishedRow> = other.map(|(row, _)| row).collect();
    notes.add(
        Defect::PatientDiffers,
        Action::Kept,
        other.len(),
        "rows whose patient is not the record's; the record's counts",
        other.iter().map(|row| row.image.clone()),
    );
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

/// Where the file's labels, the published labels and the corrected ones part.
fn note_labels(
    records: &Records,
    file: &PublishedFile,
    targets: &[Option<usize>],
    splits: &[Option<Split>],
    notes: &mut Notes,
) {
    let mut in_file: BTreeMap<(usize, &str), bool> = BTreeMap::new();
    let mut differs: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for (row, target) in file.rows.iter().zip(targets) {
        let Some(i) = *target else { continue };
        for (&task, &label) in &row.labels {
            in_file.insert((i, task), label);
            if records.rows[i].published_labels.get(task) == Some(&!label) {
                differs.entry(task).or_default().insert(i);
            }
        }
    }
    for (task, found) in &differs {
        let detail = format!(
            "photographs whose label of task `{task}` in the file is not that of the label table"
        );
        let examples = found.iter().map(|&i| name_of(&records.rows[i]));
        notes.add(
            Defect::LabelDiffersFromTable,
            Action::Kept,
            found.len(),
            detail,
            examples,
        );
    }
    let tasks: BTreeSet<&str> = records
        .tasks
        .iter()
        .map(String::as_str)
        .chain(in_file.keys().map(|(_, task)| *task))
        .collect();
    for task in tasks {
        let (mut only, mut apart) = (Vec::new(), Vec::new());
        let mut positive = 0;
        for (i, record) in records.rows.iter().enumerate() {
            let published = record.published_labels.get(task).copied();
            let Some(label) = published.or_else(|| in_file.get(&(i, task)).copied()) else {
                continue;
            };
            match record.labels.get(task) {
                _ if splits[i].is_none() => {}
                None => {
                    only.push(i);
                    positive += usize::from(label);
                }
                Some(known) if *known != label => apart.push(i),
                Some(_) => {}
            }
        }
        let names = |found: &[usize]| -> Vec<String> {
            found.iter().map(|&i| name_of(&records.rows[i])).collect()
        };
        let detail = format!(
            "photographs labelled for task `{task}` as published ({positive} positive, {} negative) and unknown in the corrected track",
            only.len() - positive
        );
        notes.add(
            Defect::LabelOnlyAsPublished,
            Action::Kept,
            only.len(),
            detail,
            names(&only),
        );
        let detail = format!(
            "photographs whose published label of task `{task}` contradicts the corrected one"
        );
        notes.add(
            Defect::LabelDiffersFromCorrected,
            Action::Kept,
            apart.len(),
            detail,
            names(&apart),
        );
    }
}
