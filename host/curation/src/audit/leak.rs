//! Names that tell the label: tokens of file names, folders, ids, and picture sizes, against every task. Knows no mechanism by which a model could see them.
//!
//! A feature (a file name holds the token `g`, a path holds the folder `3.DR2`, a picture has 2124 x 2056 pixels) and a task make a two by two table over
//! the records with a known label. It leaks where the correlation phi of the table has `|phi| >= 0.3` and `n phi^2 >= 24`, which is a chi-square that
//! chance reaches in about one of a million tables. Tokens are runs of letters, lower case; the first of a name counts as a prefix of its own. Digits are not
//! tokens: they are numbering.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use focus_store::{Record, Records};

use super::finding::{FindingKind as K, Findings, Severity as S};

/// Least correlation.
pub(super) const MIN_PHI: f64 = 0.3;
/// Least chi-square.
pub(super) const MIN_CHI_SQUARE: f64 = 24.0;
/// Letters of a token that are looked at.
const TOKEN: usize = 24;

fn tokens(text: &str) -> Vec<String> {
    let runs = text
        .split(|c: char| !c.is_alphabetic())
        .filter(|run| !run.is_empty());
    runs.map(|run| run.chars().take(TOKEN).collect::<String>().to_lowercase())
        .collect()
}

fn features(record: &Record, size: Option<(u32, u32)>) -> BTreeSet<(K, String)> {
    let mut found = BTreeSet::new();
    if let Some(path) = &record.path {
        let parts: Vec<&str> = path
            .split(['/', '\\'])
            .filter(|part| !part.is_empty())
            .collect();
        if let Some((file, folders)) = parts.split_last() {
            for folder in folders {
                found.insert((K::FolderLeaksLabel, format!("folder `{folder}`")));
            }
            let (stem, extension) = file.rsplit_once('.').unwrap_or((file, ""));
            if !extension.is_empty() {
                found.insert((K::NameLeaksLabel, format!("extension `{extension}`")));
            }
            let tokens = tokens(stem);
            if let Some(first) = tokens
                .first()
                .filter(|_| stem.starts_with(char::is_alphabetic))
            {
                found.insert((K::NameLeaksLabel, format!("prefix `{first}`")));
            }
            found.extend(
                tokens
                    .into_iter()
                    .map(|t| (K::NameLeaksLabel, format!("token `{t}`"))),
            );
        }
    }
    found.extend(
        tokens(&record.id)
            .into_iter()
            .map(|t| (K::IdLeaksLabel, format!("token `{t}`"))),
    );
    if let Some((width, height)) = size {
        found.insert((K::SizeGoesWithLabel, format!("size {width} x {height}")));
    }
    found
}

/// Correlation, feature, and how many negatives and positives have it.
type Leak<'a> = (f64, &'a str, [u64; 2]);

/// Negatives and positives that have a feature.
type Having = HashMap<(K, String), [u64; 2]>;

fn phi(having: [u64; 2], all: [u64; 2]) -> f64 {
    let [n0, n1] = having.map(|n| n as f64);
    let [all0, all1] = all.map(|n| n as f64);
    let (with, total) = (n0 + n1, all0 + all1);
    let without = total - with;
    let below = all0 * all1 * with * without;
    if below == 0.0 {
        return 0.0;
    }
    (n1 * (all0 - n0) - n0 * (all1 - n1)) / below.sqrt()
}

pub(super) fn leaks(records: &Records, sizes: &[Option<(u32, u32)>], out: &mut Findings) {
    let mut by_dataset: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (i, record) in records.rows.iter().enumerate() {
        by_dataset.entry(&record.dataset).or_default().push(i);
    }
    for (dataset, rows) in by_dataset {
        let mut all: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
        let mut having: BTreeMap<&str, Having> = BTreeMap::new();
        for &i in &rows {
            let record = &records.rows[i];
            if record.labels.is_empty() {
                continue;
            }
            let features = features(record, sizes[i]);
            for (task, label) in &record.labels {
                all.entry(task).or_default()[usize::from(*label)] += 1;
                let having = having.entry(task).or_default();
                for feature in &features {
                    having.entry(feature.clone()).or_default()[usize::from(*label)] += 1;
                }
            }
        }
        for (task, counts) in &all {
            report(dataset, task, *counts, &having[task], out);
        }
    }
}

fn report(dataset: &str, task: &str, all: [u64; 2], having: &Having, out: &mut Findings) {
    let total = (all[0] + all[1]) as f64;
    let mut by_kind: BTreeMap<K, Vec<Leak<'_>>> = BTreeMap::new();
    for ((kind, feature), counts) in having {
        let phi = phi(*counts, all);
        if phi.abs() >= MIN_PHI && total * phi * phi >= MIN_CHI_SQUARE {
            by_kind
                .entry(*kind)
                .or_default()
                .push((phi, feature, *counts));
        }
    }
    for (kind, mut found) in by_kind {
        found.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()).then(a.1.cmp(b.1)));
        let examples = found.iter().map(|(phi, feature, [n0, n1])| {
            format!(
                "{feature}: {n1} of {} positive, {n0} of {} negative, phi {phi:.2}",
                all[1], all[0]
            )
        });
        let (what, severity, advice) = match kind {
            K::FolderLeaksLabel => (
                "folders",
                S::Warning,
                "models get pixels and an opaque id, never a path: keep it so, in prompts too",
            ),
            K::IdLeaksLabel => (
                "tokens of image ids",
                S::Error,
                "ids may reach reports and services: the mapper must make them opaque",
            ),
            K::SizeGoesWithLabel => (
                "picture sizes",
                S::Warning,
                "classes come from different cameras or crops, which a model can learn instead of the disease",
            ),
            _ => (
                "parts of file names",
                S::Warning,
                "models get pixels and an opaque id, never a file name: keep it so, in prompts too",
            ),
        };
        let detail = format!("{what} that go with the label of task `{task}` in `{dataset}`");
        out.add(kind, severity, found.len(), detail, examples, advice);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(names: impl Fn(usize, bool) -> String) -> Vec<super::super::Finding> {
        let rows = (0..200usize).map(|i| {
            let label = i % 3 == 0;
            Record {
                dataset: "d".into(),
                id: format!("{:032x}", (i as u128) * 0x9e37_79b9_7f4a_7c15_9e37_79b9),
                path: Some(names(i, label)),
                labels: BTreeMap::from([("glaucoma".into(), label)]),
                ..Record::default()
            }
        });
        let records = Records {
            tasks: ["glaucoma".to_owned()].into(),
            rows: rows.collect(),
        };
        let mut out = Findings::default();
        leaks(&records, &vec![None; 200], &mut out);
        out.sorted()
    }

    #[test]
    fn the_known_naming_habits_are_found() {
        let acrima =
            found(|i, g| format!("Images/Im{i:03}{}_ACRIMA.jpg", if g { "_g" } else { "" }));
        assert_eq!(acrima.len(), 1, "{acrima:?}");
        assert_eq!(acrima[0].kind, K::NameLeaksLabel);
        assert_eq!(
            acrima[0].examples,
            ["token `g`: 67 of 67 positive, 0 of 133 negative, phi 1.00"]
        );
        let refuge = found(|i, g| format!("train/Images/{}{i:04}.jpg", if g { "g" } else { "n" }));
        assert!(
            refuge[0].examples[0].starts_with("prefix `g`: 67 of 67 positive"),
            "{refuge:?}"
        );
        let jsiec = found(|i, g| {
            format!(
                "1000images/{}/{i}.jpg",
                if g {
                    "10.0.Possible glaucoma"
                } else {
                    "0.0.Normal"
                }
            )
        });
        assert_eq!(jsiec[0].kind, K::FolderLeaksLabel);
        assert_eq!(jsiec[0].count, 2);
    }

    #[test]
    fn names_that_say_nothing_are_left_alone() {
        assert_eq!(found(|i, _| format!("a/IDRiD_{i:03}.jpg")), []);
        // Two folders without a link to the label.
        assert_eq!(
            found(|i, _| format!("{}/x.jpg", if i % 2 == 0 { "train" } else { "test" })),
            []
        );
    }

    #[test]
    fn phi_is_the_correlation_of_the_table() {
        assert_eq!(phi([0, 10], [10, 10]), 1.0);
        assert_eq!(phi([10, 0], [10, 10]), -1.0);
        assert_eq!(phi([5, 5], [10, 10]), 0.0);
        assert_eq!(phi([10, 10], [10, 10]), 0.0);
    }
}
