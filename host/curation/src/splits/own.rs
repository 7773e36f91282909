//! A split of our own: seeded, whole patients, stratified on the labels of all tasks together. Knows no file.
//!
//! The rule. A group is all photographs of a patient, or one photograph where there is no patient key. A group has features, each with a count of its
//! photographs: all; each task with each of positive, negative and unknown; and its kind, which is the text of its label counts. Groups are placed one after
//! the other, those of the rarest kind first (photographs of the kind, then the kind's text), within a kind by the BLAKE3 hash of seed, dataset and group
//! key. With `count` the group's count of a feature, `held` what a split holds of it and `target` the split's share of what all splits hold with the group, it
//! goes to the split where the sum over its features of `(held + count - target)^2 - (held - target)^2` is least: the one that lacks it most. Ties go to train,
//! then validation, then test. Nothing depends on the order of the records.

use std::collections::BTreeMap;

use focus_store::{Record, Records};
use serde::{Deserialize, Serialize};

use super::account::{Action, Defect, Notes, SplitKind};
use super::{Split, SplitPlan, dataset_of, name_of, tally};
use crate::{CurationError, Result};

/// What to draw.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnSplit {
    /// Seed.
    pub seed: u64,
    /// Share of train, above 0.
    pub train: f64,
    /// Share of validation, 0 for none.
    #[serde(default)]
    pub validation: f64,
    /// Share of test, above 0.
    pub test: f64,
}

impl Default for OwnSplit {
    /// 60 to 40 as in the published benchmark, with its seed.
    fn default() -> Self {
        Self {
            seed: 13,
            train: 0.6,
            validation: 0.0,
            test: 0.4,
        }
    }
}

impl OwnSplit {
    fn share(&self, split: Split) -> f64 {
        match split {
            Split::Train => self.train,
            Split::Validation => self.validation,
            Split::Test => self.test,
        }
    }

    pub(super) fn shares(&self) -> [f64; 3] {
        Split::ALL.map(|split| self.share(split))
    }

    fn check(&self) -> Result<()> {
        let shares = self.shares();
        let sound = shares.iter().all(|share| (0.0..=1.0).contains(share))
            && self.train > 0.0
            && self.test > 0.0
            && (shares.iter().sum::<f64>() - 1.0).abs() < 1e-9;
        if sound {
            return Ok(());
        }
        Err(CurationError::Shares {
            train: self.train,
            validation: self.validation,
            test: self.test,
        })
    }
}

/// Photographs that stay together.
struct Group {
    members: Vec<usize>,
    /// Feature and its count, sorted by feature.
    features: Vec<(usize, u32)>,
    kind: String,
    order: [u8; 32],
}

fn state(record: &Record, task: &str) -> usize {
    match record.labels.get(task) {
        Some(false) => 0,
        Some(true) => 1,
        None => 2,
    }
}

fn groups(records: &Records, among: &[usize], seed: u64) -> Vec<Group> {
    let mut members: BTreeMap<(bool, &str), Vec<usize>> = BTreeMap::new();
    for &i in among {
        let record = &records.rows[i];
        let key = match &record.patient {
            Some(patient) => (true, patient.as_str()),
            None => (false, record.id.as_str()),
        };
        members.entry(key).or_default().push(i);
    }
    let grouped = members.into_iter().map(|((is_patient, key), members)| {
        let mut features = vec![(0, members.len() as u32)];
        let mut kind = String::new();
        for (t, task) in records.tasks.iter().enumerate() {
            let mut counts = [0; 3];
            for &i in &members {
                counts[state(&records.rows[i], task)] += 1;
            }
            kind.push_str(&format!("{}-{}-{};", counts[0], counts[1], counts[2]));
            let known = counts.iter().enumerate().filter(|(_, count)| **count > 0);
            features.extend(known.map(|(s, count)| (1 + 3 * t + s, *count)));
        }
        let dataset = &records.rows[members[0]].dataset;
        let mut hasher = blake3::Hasher::new_derive_key("focus-host 2026-11 own split");
        hasher
            .update(&seed.to_le_bytes())
            .update(&[u8::from(is_patient)]);
        for text in [dataset.as_str(), key] {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        Group {
            members,
            features,
            kind,
            order: *hasher.finalize().as_bytes(),
        }
    });
    grouped.collect()
}

/// Draws splits for the records `among`; the others get none. The shares are checked before.
pub(super) fn draw(
    records: &Records,
    among: &[usize],
    options: &OwnSplit,
) -> Result<Vec<Option<Split>>> {
    options.check()?;
    let mut groups = groups(records, among, options.seed);
    let mut kinds: BTreeMap<String, (usize, u32)> = BTreeMap::new();
    let plain = 1 + 3 * records.tasks.len();
    for group in &groups {
        let next = plain + kinds.len();
        let kind = kinds.entry(group.kind.clone()).or_insert((next, 0));
        kind.1 += group.members.len() as u32;
    }
    for group in &mut groups {
        let kind = kinds[&group.kind].0;
        group.features.push((kind, group.members.len() as u32));
    }
    groups.sort_by(|a, b| {
        let rarity = |group: &Group| kinds[&group.kind].1;
        (rarity(a), &a.kind, a.order).cmp(&(rarity(b), &b.kind, b.order))
    });
    let wanted = Split::ALL.map(|split| (split, options.share(split)));
    let mut held = vec![[0u32; 3]; plain + kinds.len()];
    let mut splits = vec![None; records.rows.len()];
    for group in &groups {
        let mut best: Option<(f64, usize)> = None;
        for (s, (_, share)) in wanted.iter().enumerate() {
            if *share == 0.0 {
                continue;
            }
            let cost: f64 = group
                .features
                .iter()
                .map(|&(feature, count)| {
                    let placed = held[feature].iter().sum::<u32>() + count;
                    let (count, target) = (f64::from(count), share * f64::from(placed));
                    count * (2.0 * (f64::from(held[feature][s]) - target) + count)
                })
                .sum();
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, s));
            }
        }
        let (_, s) = best.expect("train and test have shares above 0");
        for &(feature, count) in &group.features {
            held[feature][s] += count;
        }
        for &member in &group.members {
            splits[member] = Some(wanted[s].0);
        }
    }
    Ok(splits)
}

/// Rule of an own split in words.
pub(super) fn rule(options: &OwnSplit) -> String {
    format!(
        "Drawn with seed {}: whole patients, stratified on the labels of all tasks, shares {} train, {} validation, {} test",
        options.seed, options.train, options.validation, options.test
    )
}

/// A split of all records: whole patients, stratified, the same for any order of the records.
pub fn own(records: &Records, options: &OwnSplit) -> Result<SplitPlan> {
    dataset_of(records)?;
    let all: Vec<usize> = (0..records.rows.len()).collect();
    let splits = draw(records, &all, options)?;
    let mut account = tally::account(records, &splits, SplitKind::Own, rule(options))?;
    account.seed = Some(options.seed);
    account.shares = Some(options.shares());
    let mut notes = Notes::default();
    let keyless = records.rows.iter().filter(|r| r.patient.is_none());
    notes.add(
        Defect::NoPatientKey,
        Action::Kept,
        account.without_patient as usize,
        "photographs without a patient key, each drawn by itself",
        keyless.map(name_of),
    );
    account.notes = notes.sorted();
    Ok(SplitPlan {
        splits,
        uses: Vec::new(),
        account,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeSet, HashMap};

    fn cohort() -> impl Strategy<Value = Records> {
        let image = (0u8..3, 0u8..3);
        let patient = (
            prop::collection::vec(image, 1..5),
            prop::bool::weighted(0.8),
        );
        prop::collection::vec(patient, 20..120).prop_map(|patients| {
            let mut rows = Vec::new();
            for (p, (images, has_key)) in patients.into_iter().enumerate() {
                for (a, b) in images {
                    let known =
                        |task: &str, state| (state < 2).then(|| (task.to_owned(), state == 1));
                    rows.push(Record {
                        dataset: "d".into(),
                        id: rows.len().to_string(),
                        patient: has_key.then(|| p.to_string()),
                        labels: [known("a", a), known("b", b)]
                            .into_iter()
                            .flatten()
                            .collect(),
                        ..Record::default()
                    });
                }
            }
            Records {
                tasks: ["a", "b"].map(str::to_owned).into(),
                rows,
            }
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn whole_patients_shares_and_labels_hold_for_any_order(records in cohort(), seed in 0u64..1000, validation in prop::bool::ANY, turn in 0usize..100) {
            let options = if validation { OwnSplit { seed, train: 0.5, validation: 0.1, test: 0.4 } } else { OwnSplit { seed, ..OwnSplit::default() } };
            let plan = own(&records, &options).unwrap();
            prop_assert_eq!(plan.account.straddling_patients, 0);
            prop_assert!(plan.splits.iter().all(Option::is_some));
            // A group has at most four photographs; no count is off by more than two groups.
            let n = records.rows.len() as f64;
            for split in Split::ALL {
                let off = plan.account.counts.of(split) as f64 - options.share(split) * n;
                prop_assert!(off.abs() <= 8.0, "{split} off by {off} of {n}");
            }
            for (task, by_split) in &plan.account.labels {
                let total: u64 = by_split.values().map(|c| c.positive).sum();
                for split in [Split::Train, Split::Test] {
                    let off = by_split.get(&split).map_or(0, |c| c.positive) as f64 - options.share(split) * total as f64;
                    prop_assert!(off.abs() <= 8.0, "{task} {split} off by {off} of {total}");
                }
            }
            // Another order: the same split by id, the same digest.
            let mut other = records.clone();
            let turn = turn % other.rows.len();
            other.rows.rotate_left(turn);
            other.rows.reverse();
            let again = own(&other, &options).unwrap();
            let by_id = |records: &Records, plan: &SplitPlan| -> HashMap<String, Option<Split>> {
                records.rows.iter().map(|r| r.id.clone()).zip(plan.splits.clone()).collect()
            };
            prop_assert_eq!(by_id(&records, &plan), by_id(&other, &again));
            prop_assert_eq!(plan.digest(&records), again.digest(&other));
        }
    }

    fn plain(n: usize) -> Records {
        let rows = (0..n).map(|i| Record {
            dataset: "d".into(),
            id: i.to_string(),
            ..Record::default()
        });
        Records {
            tasks: BTreeSet::new(),
            rows: rows.collect(),
        }
    }

    #[test]
    fn another_seed_is_another_split_of_the_same_sizes() {
        let records = plain(500);
        let draw = |seed| {
            own(
                &records,
                &OwnSplit {
                    seed,
                    ..OwnSplit::default()
                },
            )
            .expect("draws")
        };
        let (a, b) = (draw(1), draw(2));
        assert_eq!(a, draw(1));
        assert_ne!(a.splits, b.splits);
        assert_eq!((a.account.counts.train, a.account.counts.test), (300, 200));
        assert_eq!(a.account.counts, b.account.counts);
        assert_ne!(a.digest(&records), b.digest(&records));
    }

    #[test]
    fn impossible_shares_and_mixed_datasets_are_refused() {
        let records = plain(3);
        for (train, validation, test) in [
            (0.6, 0.0, 0.3),
            (0.0, 0.0, 1.0),
            (1.0, 0.0, 0.0),
            (f64::NAN, 0.0, 0.4),
            (1.2, -0.6, 0.4),
        ] {
            let error = own(
                &records,
                &OwnSplit {
                    seed: 0,
                    train,
                    validation,
                    test,
                },
            )
            .expect_err("refused");
            assert!(matches!(error, CurationError::Shares { .. }) && error.hint().is_some());
        }
        let mut mixed = plain(2);
        mixed.rows[1].dataset = "e".into();
        let error = own(&mixed, &OwnSplit::default()).expect_err("two");
        assert_eq!(
            error.to_string(),
            "A split is made for one dataset: expected 1, found `d`, `e`"
        );
        assert!(own(&plain(0), &OwnSplit::default()).is_err());
    }
}
