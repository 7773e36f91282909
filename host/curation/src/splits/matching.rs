//! From a row's names to a record: by last path parts and by stem with split, never by guessing. Knows no counts.

use std::collections::HashMap;

use focus_store::{Record, Records};

use super::file::PublishedRow;
use super::{Split, name_of};

const EXTENSIONS: [&str; 10] = [
    "jpg", "jpeg", "png", "tif", "tiff", "bmp", "gif", "webp", "ppm", "pgm",
];

/// What a row fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fit {
    /// This record.
    One(usize),
    /// No record.
    None,
    /// These, and nothing tells them apart.
    Several(Vec<usize>),
}

/// `%20` and the like as bytes; what is no escape stays.
fn unescape(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let code = (bytes[i] == b'%')
            .then(|| text.get(i + 1..i + 3))
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(code.unwrap_or(bytes[i]));
        i += if code.is_some() { 3 } else { 1 };
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

/// A file name without its image extension and trailing dots, in lower case: `<uuid>..JPG` is `<uuid>`, `9001.1.jpg` is `9001.1`.
pub(super) fn stem(name: &str) -> String {
    let name = name.to_lowercase();
    let cut = match name.rsplit_once('.') {
        Some((stem, extension)) if EXTENSIONS.contains(&extension) => stem,
        _ => &name,
    };
    cut.trim_end_matches('.').to_owned()
}

/// Folders and stem of a path, last first, escapes undone, in lower case.
pub(super) fn parts(path: &str) -> Vec<String> {
    let path = unescape(path);
    let mut parts: Vec<String> = path
        .split(['/', '\\'])
        .filter(|part| !part.is_empty() && *part != ".")
        .map(str::to_lowercase)
        .collect();
    parts.reverse();
    if let Some(name) = parts.first_mut() {
        *name = stem(name);
    }
    parts
}

/// Records by stem.
pub(super) struct Index<'a> {
    records: &'a Records,
    parts: Vec<Vec<String>>,
    by_stem: HashMap<String, Vec<usize>>,
}

fn source_split(record: &Record) -> Option<Split> {
    record.source_split.as_deref().and_then(Split::from_record)
}

impl<'a> Index<'a> {
    pub(super) fn new(records: &'a Records) -> Self {
        let parts: Vec<Vec<String>> = records
            .rows
            .iter()
            .map(|record| parts(&name_of(record)))
            .collect();
        let mut by_stem: HashMap<String, Vec<usize>> = HashMap::new();
        for (i, parts) in parts.iter().enumerate() {
            if let Some(stem) = parts.first() {
                by_stem.entry(stem.clone()).or_default().push(i);
            }
        }
        Self {
            records,
            parts,
            by_stem,
        }
    }

    fn candidates(&self, row: &PublishedRow) -> (Vec<String>, &[usize]) {
        let wanted = parts(row.path.as_deref().unwrap_or(&row.image));
        let found = wanted.first().and_then(|stem| self.by_stem.get(stem));
        (wanted, found.map_or(&[], Vec::as_slice))
    }

    /// Last parts in common.
    fn common(&self, wanted: &[String], record: usize) -> usize {
        wanted
            .iter()
            .zip(&self.parts[record])
            .take_while(|(a, b)| a == b)
            .count()
    }

    /// Those of `among` with the most last parts in common.
    fn nearest(&self, wanted: &[String], among: &[usize]) -> Vec<usize> {
        let most = among.iter().map(|&i| self.common(wanted, i)).max();
        among
            .iter()
            .copied()
            .filter(|&i| Some(self.common(wanted, i)) == most)
            .collect()
    }

    fn of_split(&self, split: Split, among: &[usize]) -> Vec<usize> {
        among
            .iter()
            .copied()
            .filter(|&i| source_split(&self.records.rows[i]) == Some(split))
            .collect()
    }

    /// A lone record of the right name is refused where it is known to be of another split and lies in another folder than the row says: then the row's
    /// own photograph is not there.
    fn lone(&self, row: &PublishedRow, wanted: &[String], record: usize) -> Fit {
        let other = source_split(&self.records.rows[record]).is_some_and(|s| s != row.split);
        let path_disagrees = row.path.is_some() && self.common(wanted, record) < 2;
        if other && path_disagrees {
            Fit::None
        } else {
            Fit::One(record)
        }
    }

    /// The photograph that the row's path names: what the published code opens.
    pub(super) fn by_path(&self, row: &PublishedRow) -> Fit {
        let (wanted, found) = self.candidates(row);
        match found {
            [] => return Fit::None,
            [one] => return self.lone(row, &wanted, *one),
            _ => {}
        }
        let nearest = self.nearest(&wanted, found);
        decide(nearest, |tied| self.of_split(row.split, tied))
    }

    /// The photograph of that name in the row's split: what the row means.
    pub(super) fn by_split(&self, row: &PublishedRow) -> Fit {
        let (wanted, found) = self.candidates(row);
        match found {
            [] => return Fit::None,
            [one] => return self.lone(row, &wanted, *one),
            _ => {}
        }
        let mut of_split = self.of_split(row.split, found);
        if of_split.is_empty() {
            of_split = found.to_vec();
        }
        decide(of_split, |tied| self.nearest(&wanted, tied))
    }
}

fn decide(first: Vec<usize>, second: impl Fn(&[usize]) -> Vec<usize>) -> Fit {
    if let [one] = first[..] {
        return Fit::One(one);
    }
    match second(&first)[..] {
        [one] => Fit::One(one),
        _ => Fit::Several(first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn records(paths: &[(&str, Option<&str>)]) -> Records {
        let rows = paths.iter().enumerate().map(|(i, (path, split))| Record {
            dataset: "d".into(),
            id: i.to_string(),
            path: Some((*path).into()),
            source_split: split.map(str::to_owned),
            ..Record::default()
        });
        Records {
            tasks: std::collections::BTreeSet::new(),
            rows: rows.collect(),
        }
    }

    fn row(image: &str, path: Option<&str>, split: Split) -> PublishedRow {
        PublishedRow {
            line: 2,
            split,
            patient: None,
            image: image.into(),
            path: path.map(str::to_owned),
            labels: BTreeMap::new(),
        }
    }

    #[test]
    fn names_are_compared_without_case_escapes_and_image_extensions() {
        assert_eq!(stem("A-1..JPG"), "a-1");
        assert_eq!(stem("9001.1.jpg"), "9001.1");
        assert_eq!(stem("9001.1"), "9001.1");
        assert_eq!(
            parts("/lustre/B.%20Disease%20Grading/x\\IM1.JPG"),
            ["im1", "x", "b. disease grading", "lustre"]
        );
        assert_eq!(unescape("100%"), "100%");
        assert_eq!(unescape("%zz%é"), "%zz%é");
    }

    #[test]
    fn a_colliding_stem_is_told_apart_by_path_or_by_split() {
        let records = records(&[
            ("a. Training Set/I_001.jpg", Some("train")),
            ("b. Testing Set/I_001.jpg", Some("test")),
        ]);
        let index = Index::new(&records);
        let odd = row("I_001", Some("/l/b. Testing Set/I_001.jpg"), Split::Train);
        assert_eq!(index.by_path(&odd), Fit::One(1));
        assert_eq!(index.by_split(&odd), Fit::One(0));
        let bare = row("I_001", None, Split::Test);
        assert_eq!(index.by_path(&bare), Fit::One(1));
        assert_eq!(index.by_split(&bare), Fit::One(1));
        assert_eq!(index.by_split(&row("I_002", None, Split::Test)), Fit::None);
    }

    #[test]
    fn nothing_is_guessed() {
        let twice = records(&[("x/1.png", None), ("y/1.png", None)]);
        let index = Index::new(&twice);
        assert_eq!(
            index.by_split(&row("1", None, Split::Train)),
            Fit::Several(vec![0, 1])
        );
        assert_eq!(
            index.by_path(&row("1", Some("/l/z/1.png"), Split::Train)),
            Fit::Several(vec![0, 1])
        );
        // Half a dataset: the row's own photograph is not there.
        let half = records(&[("a. Training Set/1.jpg", Some("train"))]);
        let index = Index::new(&half);
        let lost = row("1", Some("/l/b. Testing Set/1.jpg"), Split::Test);
        assert_eq!(index.by_split(&lost), Fit::None);
        // The benchmark's `test` of REFUGE is the source's validation split: the folder decides.
        let refuge = records(&[("val/Images/V0001.jpg", Some("validation"))]);
        let kept = row("V0001", Some("/l/val/Images/V0001.jpg"), Split::Test);
        assert_eq!(Index::new(&refuge).by_split(&kept), Fit::One(0));
    }

    proptest::proptest! {
        #[test]
        fn any_path_comes_apart(path in "(?s).{0,40}") {
            let parts = parts(&path);
            proptest::prop_assert!(parts.iter().skip(1).all(|part| !part.is_empty()));
        }
    }
}
