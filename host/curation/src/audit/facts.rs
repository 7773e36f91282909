//! Findings from records alone: splits, patients, paths, labels, sizes, terms. Reads no files.

use std::collections::{BTreeMap, BTreeSet};

use focus_store::{Record, Records};

use super::finding::{FindingKind as K, Findings, Severity as S, split_word};
use super::{Access, Terms, Wanted};
use crate::splits::{Action, Defect, LabelCounts, Split, SplitAccount};

pub(super) fn split_of(record: &Record) -> Option<Split> {
    record.split.as_deref().and_then(Split::from_record)
}

/// How a record is named: dataset and path, else id.
pub(super) fn name(record: &Record) -> String {
    format!(
        "{}/{}",
        record.dataset,
        record.path.as_deref().unwrap_or(&record.id)
    )
}

/// Labels by task and split word.
pub(super) fn labels(records: &Records) -> BTreeMap<String, BTreeMap<String, LabelCounts>> {
    let mut tasks: BTreeMap<String, BTreeMap<String, LabelCounts>> = BTreeMap::new();
    for task in &records.tasks {
        let by_split = tasks.entry(task.clone()).or_default();
        for record in &records.rows {
            let count = by_split
                .entry(split_word(split_of(record)).to_owned())
                .or_default();
            *match record.labels.get(task) {
                Some(true) => &mut count.positive,
                Some(false) => &mut count.negative,
                None => &mut count.unknown,
            } += 1;
        }
    }
    tasks
}

/// Tasks for which some of these records are positive and some negative.
pub(super) fn two_labels<'a>(records: impl Iterator<Item = &'a Record> + Clone) -> Vec<String> {
    let tasks: BTreeSet<&String> = records.clone().flat_map(|r| r.labels.keys()).collect();
    let both = tasks.into_iter().filter(|task| {
        let has = |label| records.clone().any(|r| r.labels.get(*task) == Some(&label));
        has(true) && has(false)
    });
    both.cloned().collect()
}

/// Whether these records stand in more than one split.
pub(super) fn in_two_splits<'a>(records: impl Iterator<Item = &'a Record>) -> bool {
    records.filter_map(split_of).collect::<BTreeSet<_>>().len() > 1
}

pub(super) fn paths(records: &Records, out: &mut Findings) {
    let mut by_path: BTreeMap<(&str, &str), Vec<&Record>> = BTreeMap::new();
    for record in &records.rows {
        if let Some(path) = &record.path {
            by_path
                .entry((&record.dataset, path))
                .or_default()
                .push(record);
        }
    }
    let several = || by_path.values().filter(|rows| rows.len() > 1);
    let apart: Vec<&Vec<&Record>> = several()
        .filter(|rows| in_two_splits(rows.iter().copied()))
        .collect();
    out.add(
        K::PathInTwoSplits,
        S::Error,
        apart.len(),
        "paths of records in more than one split",
        apart.iter().map(|rows| name(rows[0])),
        "a photograph belongs in one split: correct the table or the split file",
    );
    let both: Vec<&Vec<&Record>> = several()
        .filter(|rows| !two_labels(rows.iter().copied()).is_empty())
        .collect();
    out.add(K::PathWithTwoLabels, S::Error, both.len(), "paths of records with both labels of a task", both.iter().map(|rows| name(rows[0])), "find out which label is the photograph's: names that restart in each split are the usual cause");
}

pub(super) fn patients(records: &Records, out: &mut Findings) -> u64 {
    let mut splits: BTreeMap<(&str, &str), BTreeSet<Split>> = BTreeMap::new();
    for record in &records.rows {
        if let Some(patient) = &record.patient {
            splits
                .entry((&record.dataset, patient))
                .or_default()
                .extend(split_of(record));
        }
    }
    let straddling: Vec<String> = splits
        .iter()
        .filter(|(_, splits)| splits.len() > 1)
        .map(|((dataset, patient), splits)| {
            let words: Vec<&str> = splits.iter().map(|s| s.as_str()).collect();
            format!("{dataset} patient {patient}: {}", words.join(", "))
        })
        .collect();
    let detail = format!(
        "of {} patients have photographs in more than one split",
        splits.len()
    );
    out.add(
        K::PatientInTwoSplits,
        S::Error,
        straddling.len(),
        detail,
        straddling,
        "split by patient: the two eyes of a patient are alike, and the test then flatters",
    );
    let keyless: Vec<&Record> = records
        .rows
        .iter()
        .filter(|r| r.patient.is_none() && r.split.is_some())
        .collect();
    out.add(
        K::NoPatientKey,
        S::Note,
        keyless.len(),
        "photographs in a split without a patient key",
        keyless.iter().map(|r| name(r)),
        "intervals are then per image, and a patient in two splits cannot be excluded",
    );
    splits.len() as u64
}

/// Task, rule in words, and the label that grade and edema give.
type Rule<'a> = (&'a str, &'a str, &'a dyn Fn(&Record) -> Option<bool>);

/// Labels against the grade and edema that they derive from, by the rules of the benchmark's corrected track.
pub(super) fn conflicts(records: &Records, out: &mut Findings) {
    let with_edema: BTreeSet<&str> = records
        .rows
        .iter()
        .filter(|r| r.edema.is_some())
        .map(|r| r.dataset.as_str())
        .collect();
    let rules: [Rule<'_>; 2] = [
        ("binary_dr", "grade of at least 1", &|r| {
            r.grade.map(|grade| grade >= 1)
        }),
        ("referable_dr", "grade of at least 2 or edema", &|r| {
            let graded = r.grade.map(|grade| grade >= 2);
            match (graded, r.edema) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                (Some(false), None) if !with_edema.contains(r.dataset.as_str()) => Some(false),
                _ => None,
            }
        }),
    ];
    for (task, rule, expected) in rules {
        let wrong = records.rows.iter().filter(|r| {
            let label = r.labels.get(task).copied();
            matches!((label, expected(r)), (Some(a), Some(b)) if a != b)
        });
        let wrong: Vec<String> = wrong
            .map(|r| {
                let grade = r.grade.map_or("unknown".to_owned(), |g| g.to_string());
                let edema = r.edema.map_or("unknown", |e| if e { "yes" } else { "no" });
                format!(
                    "{}: label {}, grade {grade}, edema {edema}",
                    name(r),
                    u8::from(r.labels[task])
                )
            })
            .collect();
        let detail = format!("labels of task `{task}` that contradict its rule, {rule}");
        out.add(
            K::LabelConflict,
            S::Warning,
            wrong.len(),
            detail,
            wrong,
            "look at the columns that the mapper derives both from; leave out what stays unclear",
        );
    }
}

/// Classes that are absent or rare in train and test.
pub(super) fn classes(
    labels: &BTreeMap<String, BTreeMap<String, LabelCounts>>,
    floor: u64,
    out: &mut Findings,
) {
    for (task, by_split) in labels {
        let all = by_split
            .values()
            .map(|c| c.positive + c.negative)
            .sum::<u64>();
        if all == 0 {
            continue;
        }
        for (split, counts) in by_split {
            if split == "none" && by_split.len() > 1 {
                continue;
            }
            let known = counts.positive + counts.negative;
            for (class, n) in [("positive", counts.positive), ("negative", counts.negative)] {
                let detail = format!(
                    "{class} photographs of task `{task}` in {split}, of {known} with a known label; the floor is {floor}"
                );
                if n == 0 && known > 0 {
                    out.add(K::ClassAbsent, S::Error, known as usize, format!("labels of task `{task}` in {split}, none of them {class}"), [], "no ranking metric exists with one class: leave the task out of this dataset");
                } else if n > 0 && n < floor {
                    out.add(
                        K::FewOfClass,
                        S::Warning,
                        n as usize,
                        detail,
                        [],
                        "means over cells leave such a cell out in the corrected track",
                    );
                }
            }
        }
    }
}

pub(super) fn resolution(
    records: &Records,
    sizes: &[Option<(u32, u32)>],
    wanted: &[Wanted],
    out: &mut Findings,
) {
    for want in wanted {
        let small: Vec<String> = records
            .rows
            .iter()
            .zip(sizes)
            .filter_map(|(r, size)| {
                let (width, height) = (*size)?;
                (width < want.width || height < want.height)
                    .then(|| format!("{}: {width} x {height}", name(r)))
            })
            .collect();
        let detail = format!(
            "photographs smaller than the {} x {} that `{}` takes",
            want.width, want.height, want.model
        );
        out.add(K::LowResolution, S::Warning, small.len(), detail, small, "they are enlarged, which adds no detail: compare models at this size with care, or fetch the originals");
    }
}

pub(super) fn terms(records: &Records, terms: &[Terms], out: &mut Findings) {
    let datasets: BTreeSet<&str> = records.rows.iter().map(|r| r.dataset.as_str()).collect();
    for dataset in datasets {
        let known = terms.iter().find(|t| t.dataset == dataset);
        let Some((terms, licence)) =
            known.and_then(|t| Some((t, t.licence.as_deref().filter(|l| !l.trim().is_empty())?)))
        else {
            out.add(
                K::LicenceUnknown,
                S::Warning,
                1,
                format!("dataset without a known licence: `{dataset}`"),
                [],
                "ask the source before results or copies leave this machine",
            );
            continue;
        };
        let (access, advice) = match terms.access {
            Access::Open => ("open", "cite the source"),
            Access::Registration => (
                "after registration",
                "each user fetches a copy of their own",
            ),
            Access::Credentialed => (
                "credentialed",
                "do not pass the data on, and send no image to a service outside",
            ),
            Access::Form => ("by request to its owners", "do not pass the data on"),
        };
        out.add(
            K::Terms,
            S::Note,
            1,
            format!(
                "dataset `{dataset}`: licence {licence}; access {access}; {}",
                terms.route
            ),
            [],
            advice,
        );
    }
}

/// What a plan's account says, as findings. Defects that the plan repairs are notes.
pub(super) fn account(account: &SplitAccount, out: &mut Findings) {
    for note in &account.notes {
        let severity = match note.defect {
            _ if note.action == Action::Repaired => S::Note,
            Defect::PathNamesOtherSplit
            | Defect::PathInTwoSplits
            | Defect::PathWithTwoLabels
            | Defect::RowsDoubledByMerge
            | Defect::JoinByPosition
            | Defect::PatientInTwoSplits => S::Error,
            Defect::PhotographNeverUsed
            | Defect::RowWithoutPhotograph
            | Defect::LabelDiffersFromTable
            | Defect::LabelOnlyAsPublished
            | Defect::LabelDiffersFromCorrected
            | Defect::OneClassOnly
            | Defect::PatientDiffers
            | Defect::DatasetNameDiffers => S::Warning,
            Defect::NoPatientKey
            | Defect::ImageIdRepeats
            | Defect::IdDiffersFromPath
            | Defect::ForeignAbsolutePaths
            | Defect::PhotographNotInFile
            | Defect::RepeatedRow => S::Note,
        };
        let advice = match note.action {
            Action::Repaired => "put right in this plan",
            Action::Kept => {
                "kept as published, and counted: use the corrected track for conclusions"
            }
            Action::LeftOut => "left out of every split",
        };
        let word = serde_json::to_value(note.defect).expect("a word is JSON");
        let track = account.track.map_or("", |track| match track {
            crate::splits::Track::AsPublished => ", as published",
            crate::splits::Track::Corrected => ", corrected",
        });
        let detail = format!(
            "{} ({}{track})",
            note.detail,
            word.as_str().unwrap_or_default()
        );
        out.add(
            K::SplitDefect,
            severity,
            note.count as usize,
            detail,
            note.examples.clone(),
            advice,
        );
    }
}
