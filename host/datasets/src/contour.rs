//! Outlines of disc and cup in text files, and the vertical cup-to-disc ratio from them. Pure numbers: no pixels.
//!
//! A file holds `x y` a line, in pixels. The ratio is the height of the cup over the height of the disc, for each
//! annotator who drew both, then the mean over annotators.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::limits::Limits;
use crate::record::{Contour, Structure};

/// Height of an outline: the largest `y` less the smallest. The error says what is wrong with the file.
fn height(path: &Path, limits: &Limits) -> Result<f64, String> {
    let limit = limits.contour_bytes;
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(limit + 1).read_to_string(&mut text));
    read.map_err(|error| error.to_string())?;
    if text.len() as u64 > limit {
        return Err(format!("is too large, expected at most {limit} bytes"));
    }
    let (mut low, mut high, mut points) = (f64::INFINITY, f64::NEG_INFINITY, 0);
    let body = text.trim_start_matches('\u{feff}');
    for (number, line) in (1..).zip(body.lines()) {
        let mut parts = line.split_whitespace().map(str::parse::<f64>);
        match (parts.next(), parts.next(), parts.next()) {
            (None, ..) => {}
            (Some(Ok(x)), Some(Ok(y)), None) if x.is_finite() && y.is_finite() => {
                (low, high) = (low.min(y), high.max(y));
                points += 1;
            }
            _ => return Err(format!("line {number}: expected two numbers, `x y`")),
        }
    }
    if points < 3 || high <= low {
        return Err(format!(
            "expected an outline of three points or more that has a height, found {points} points"
        ));
    }
    Ok(high - low)
}

/// The ratio from a sample's contours, and what is wrong with those that cannot be used (path, reason).
pub(crate) fn ratio(
    contours: &[Contour],
    root: &Path,
    limits: &Limits,
) -> (Option<f64>, Vec<(String, String)>) {
    let mut faults = Vec::new();
    let mut heights: Vec<(&Contour, f64)> = Vec::new();
    for contour in contours {
        match height(&root.join(&contour.path), limits) {
            Ok(height) => heights.push((contour, height)),
            Err(reason) => faults.push((contour.path.clone(), reason)),
        }
    }
    let mut ratios = Vec::new();
    for (cup, cup_height) in &heights {
        let disc = heights
            .iter()
            .find(|(disc, _)| disc.structure == Structure::Disc && disc.annotator == cup.annotator);
        match disc {
            Some((_, disc_height)) if cup.structure == Structure::Cup => {
                let ratio = cup_height / disc_height;
                if ratio <= 1.0 {
                    ratios.push(ratio);
                } else {
                    let reason = format!("its cup is {ratio:.2} times as high as its disc");
                    faults.push((cup.path.clone(), reason));
                }
            }
            _ => {}
        }
    }
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    ((!ratios.is_empty()).then_some(mean), faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contour(structure: Structure, annotator: &str, path: &str) -> Contour {
        Contour {
            structure,
            annotator: annotator.into(),
            path: path.into(),
        }
    }

    fn run(files: &[(&str, &str)], contours: &[Contour]) -> (Option<f64>, Vec<(String, String)>) {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        ratio(contours, dir.path(), &Limits::default())
    }

    fn pair(annotator: &str) -> [Contour; 2] {
        [
            contour(Structure::Disc, annotator, &format!("d{annotator}")),
            contour(Structure::Cup, annotator, &format!("c{annotator}")),
        ]
    }

    #[test]
    fn the_mean_of_annotators_who_drew_both() {
        let disc = "0 100\n50 300.0\r\n\n100 200\n";
        let contours = [pair("1"), pair("2"), pair("3")].concat();
        let files = [
            ("d1", disc),
            ("c1", "\u{feff}40 150\n60 250\n50 200\n"),
            ("d2", disc),
            ("c2", "40 1.5e2\n60 290\n50 200\n"),
            ("d3", disc),
        ];
        let (ratio, faults) = run(&files, &contours);
        assert!((ratio.unwrap() - 0.6).abs() < 1e-12);
        assert_eq!(faults.len(), 1);
        assert_eq!(faults[0].0, "c3");
    }

    #[test]
    fn what_is_no_outline_is_told() {
        for (cup, reason) in [
            ("", "found 0 points"),
            ("1 2\n3 4\n", "found 2 points"),
            ("1 2\n3 2\n4 2\n", "that has a height"),
            ("1 2\n3\n", "line 2: expected two numbers"),
            ("1 2 3\n", "line 1: expected two numbers"),
            ("1 nan\n", "line 1: expected two numbers"),
            ("1,2\n", "line 1: expected two numbers"),
            (
                "0 0\n1 9\n2 3\n",
                "its cup is 3.00 times as high as its disc",
            ),
        ] {
            let (ratio, faults) = run(&[("d1", "0 0\n1 3\n2 1\n"), ("c1", cup)], &pair("1"));
            assert_eq!(ratio, None, "{cup:?}");
            assert!(faults[0].1.contains(reason), "{cup:?}: {}", faults[0].1);
        }
        let limits = Limits {
            contour_bytes: 4,
            ..Limits::default()
        };
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("d1"), "0 0\n1 3\n2 1\n").unwrap();
        let (_, faults) = ratio(&pair("1")[..1], dir.path(), &limits);
        assert_eq!(faults[0].1, "is too large, expected at most 4 bytes");
    }

    #[test]
    fn the_cup_of_one_is_not_measured_against_the_disc_of_another() {
        let contours = [
            contour(Structure::Disc, "1", "d"),
            contour(Structure::Cup, "2", "c"),
        ];
        let files = [("d", "0 0\n1 3\n2 1\n"), ("c", "0 0\n1 1\n2 1\n")];
        assert_eq!(run(&files, &contours), (None, Vec::new()));
    }
}
