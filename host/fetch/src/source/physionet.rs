//! PhysioNet: `files/PROJECT/VERSION/SHA256SUMS.txt` names every file; the files lie beside it.

use super::{Ways, listing};
use crate::{
    address,
    checksum::{Algorithm, Checksum},
    error::{Result, quoted},
    job::FileJob,
};
use url::Url;

const SUMS: &str = "SHA256SUMS.txt";

pub(super) fn list(ways: &Ways<'_>, project: &str, version: &str) -> Result<Vec<FileJob>> {
    let folder = address::join(&ways.base, ["files", project, version])?;
    let url = address::join(&folder, [SUMS])?;
    let bytes = ways.text(&url)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| listing(&url, None, "must be UTF-8"))?;
    let sums = parse(&url, text)?;
    sums.into_iter()
        .map(|(checksum, name)| {
            let url = address::join(&folder, name.split('/'))?;
            Ok(FileJob {
                checksums: vec![checksum],
                ..ways.job(name, url)
            })
        })
        .collect()
}

/// Lines of `sha256sum`: digits, a blank, a blank or `*`, a name.
fn parse(url: &Url, text: &str) -> Result<Vec<(Checksum, String)>> {
    let mut sums = Vec::new();
    for (number, line) in text.lines().enumerate().map(|(i, l)| (i + 1, l)) {
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.is_empty() {
            continue;
        }
        let wrong = || {
            let what = format!("expected `CHECKSUM  NAME`, found `{}`", quoted(line));
            listing(url, Some(number), what)
        };
        let (hex, name) = line.split_once(' ').ok_or_else(wrong)?;
        let name = name.strip_prefix([' ', '*']).unwrap_or(name);
        let name = name.strip_prefix("./").unwrap_or(name);
        let checksum = Checksum::new(Algorithm::Sha256, hex).map_err(|_| wrong())?;
        if name.is_empty() {
            return Err(wrong());
        }
        // It cannot hold its own checksum.
        if name != SUMS {
            sums.push((checksum, name.to_owned()));
        }
    }
    if sums.is_empty() {
        return Err(listing(url, None, "no file is named"));
    }
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_in_the_shapes_met() {
        let url = address::parse("https://a.org/SHA256SUMS.txt").expect("address");
        let sum = "ab".repeat(32);
        let text = format!("{sum} a.csv\r\n{sum}  ./b/c d.jpg\n\n{sum} *e\n{sum} {SUMS}\n");
        let names: Vec<_> = parse(&url, &text)
            .expect("reads")
            .into_iter()
            .map(|(_, n)| n)
            .collect();
        assert_eq!(names, ["a.csv", "b/c d.jpg", "e"]);
        for (bad, line) in [
            (format!("{sum} a\n{sum}"), "entry 2"),
            ("<html>".into(), "entry 1"),
            (format!("{} a", "ab".repeat(16)), "entry 1"),
            (format!("{sum} "), "entry 1"),
            (String::new(), "no file is named"),
        ] {
            let error = parse(&url, &bad).expect_err(&bad).to_string();
            assert!(error.contains(line), "{error}");
        }
    }
}
