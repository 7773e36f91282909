//! The defects of a published file, counted: in the file itself, between rows and photographs, between labels. Places nothing.

use std::collections::{BTreeMap, BTreeSet};

use focus_store::Records;

use super::account::{Action, Defect, Notes, Track};
use super::file::{FileShape, PublishedFile, PublishedRow};
use super::matching::{Fit, parts, stem};
use super::published::Merged;
use super::{Split, name_of};

/// What is odd about the file itself.
pub(super) fn note_file(
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
pub(super) fn note_matches(
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

/// Where the file's labels, the published labels and the corrected ones part.
pub(super) fn note_labels(
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
