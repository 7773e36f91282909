//! Which image an id in a result file means: records given beforehand (a mapper's, or a metadata table's) and the ways
//! in which an id may name one. It must not know labels or cells.

use crate::error::shorten;
use focus_store::{DatasetIdentity, Record};
use std::{
    collections::{BTreeSet, HashMap},
    path::Path,
};

/// What is known of the images beforehand.
#[derive(Debug, Clone, Copy, Default)]
pub enum Roster<'a> {
    /// Nothing: labels are the files' own, and there are no subgroups.
    #[default]
    Nothing,
    /// A metadata table, CSV (`docs/exchange.md`).
    Metadata(&'a Path),
    /// Records that a mapper made of the data folder.
    Records {
        /// The records, of any number of datasets.
        records: &'a [Record],
        /// Tasks for which they have labels, known or not.
        tasks: &'a BTreeSet<String>,
        /// The datasets as they were mapped.
        identities: &'a [DatasetIdentity],
    },
}

/// What an id may mean.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    None,
    One(usize),
    Many(Vec<usize>),
}

/// Records by the names they go by.
pub(crate) struct Index<'a> {
    records: &'a [Record],
    exact: HashMap<(&'a str, &'a str), Vec<usize>>,
    last: HashMap<(&'a str, &'a str), Vec<usize>>,
    stem: HashMap<(&'a str, &'a str), Vec<usize>>,
}

const EXTENSIONS: [&str; 7] = ["jpg", "jpeg", "png", "tif", "tiff", "bmp", "gif"];

/// The last part of a path of either kind.
pub(crate) fn last_part(text: &str) -> &str {
    text.rsplit(['/', '\\']).next().unwrap_or(text)
}

fn stem(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((stem, end)) if EXTENSIONS.iter().any(|e| end.eq_ignore_ascii_case(e)) => stem,
        _ => name,
    }
}

impl<'a> Index<'a> {
    pub fn new(records: &'a [Record]) -> Self {
        let mut index = Self {
            records,
            exact: HashMap::new(),
            last: HashMap::new(),
            stem: HashMap::new(),
        };
        for (i, record) in records.iter().enumerate() {
            let dataset = record.dataset.as_str();
            let mut add = |name: &'a str| {
                let last = last_part(name);
                for (map, key) in [
                    (&mut index.exact, name),
                    (&mut index.last, last),
                    // "1..JPG" has the stem "1.", which some tables shorten further; no more is guessed than that.
                    (&mut index.stem, stem(last)),
                ] {
                    let places = map.entry((dataset, key)).or_default();
                    if places.last() != Some(&i) {
                        places.push(i);
                    }
                }
            };
            add(&record.id);
            if let Some(path) = &record.path {
                add(path);
            }
        }
        index
    }

    /// What `text` means in `dataset`. Of several images, the one whose path `text` ends with, or the one of the test
    /// split, is meant.
    pub fn find(&self, dataset: &str, text: &str) -> Found {
        let last = last_part(text);
        let Some(places) = [
            self.exact.get(&(dataset, text)),
            self.last.get(&(dataset, last)),
            self.stem.get(&(dataset, last)),
            self.stem.get(&(dataset, stem(last))),
        ]
        .into_iter()
        .flatten()
        .next() else {
            return Found::None;
        };
        if let [one] = places.as_slice() {
            return Found::One(*one);
        }
        let only = |keep: &dyn Fn(&Record) -> bool| {
            let mut kept = places.iter().copied().filter(|i| keep(&self.records[*i]));
            kept.next().filter(|_| kept.next().is_none())
        };
        let by_path = |r: &Record| {
            r.path.as_deref().is_some_and(|path| {
                text.strip_suffix(path)
                    .is_some_and(|head| head.is_empty() || head.ends_with('/'))
            })
        };
        only(&by_path)
            .or_else(|| only(&|r| r.split.as_deref() == Some("test")))
            .map_or_else(|| Found::Many(places.clone()), Found::One)
    }

    /// How messages name record `i`.
    pub fn name(&self, i: usize) -> String {
        let record = &self.records[i];
        let name = record.path.as_deref().unwrap_or(&record.id);
        let split = record.split.as_deref().unwrap_or("no split");
        format!("`{}` ({split})", shorten(name, 120))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: &str, path: &str, split: &str) -> Record {
        Record {
            dataset: "idrid".into(),
            id: id.into(),
            path: Some(path.into()),
            split: Some(split.into()),
            ..Record::default()
        }
    }

    #[test]
    fn ids_paths_names_and_stems_are_found() {
        let records = [
            record("aa", "x/train/IDRiD_001.jpg", "train"),
            record("bb", "x/test/IDRiD_001.jpg", "test"),
            record("cc", "x/train/IDRiD_404.jpg", "train"),
            record("dd", "x/985.1.jpg", "test"),
            record("ee", "x/train/twin.jpg", "train"),
            record("ff", "y/train/twin.jpg", "train"),
        ];
        let index = Index::new(&records);
        let find = |text: &str| index.find("idrid", text);
        assert_eq!(find("aa"), Found::One(0));
        assert_eq!(find("IDRiD_001"), Found::One(1), "the test split is meant");
        assert_eq!(
            find("/lustre/raw/x/train/IDRiD_001.jpg"),
            Found::One(0),
            "the path says which"
        );
        assert_eq!(find("C:\\raw\\IDRiD_404.JPG"), Found::One(2));
        assert_eq!(find("985.1"), Found::One(3));
        assert_eq!(find("985"), Found::None, "a row number names no image");
        assert_eq!(find("twin"), Found::Many(vec![4, 5]));
        assert_eq!(find("z/y/train/twin.jpg"), Found::One(5));
        assert_eq!(index.find("brset", "aa"), Found::None);
        assert_eq!(index.name(4), "`x/train/twin.jpg` (train)");
    }
}
