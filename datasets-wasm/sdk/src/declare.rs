//! Short forms for descriptors and samples.

use crate::{Column, ImageRef, Sample, TableSource};

/// A column that must be in the header.
pub fn required(name: &str) -> Column {
    Column {
        name: name.into(),
        aliases: Vec::new(),
        required: true,
    }
}

/// A column that reads as blank where the header lacks it.
pub fn optional(name: &str) -> Column {
    Column {
        required: false,
        ..required(name)
    }
}

/// The same column with other spellings met in the wild.
pub fn alias(column: Column, spellings: &[&str]) -> Column {
    Column {
        aliases: spellings.iter().map(|s| (*s).into()).collect(),
        ..column
    }
}

/// A comma-separated file at one of these paths.
pub fn files(paths: &[&str]) -> TableSource {
    TableSource::Csv(paths.iter().map(|p| (*p).into()).collect())
}

/// The spellings of `top/rest` met in mirrors of archives: as published, the top folder twice (an archive unpacked into
/// a folder of its own name), spaces as `%20` in either part or both.
pub fn mirrors(top: &str, rest: &str) -> Vec<String> {
    let escape = |text: &str| text.replace(' ', "%20");
    let (escaped_top, escaped_rest) = (escape(top), escape(rest));
    let tops = [
        top.to_owned(),
        format!("{top}/{top}"),
        format!("{escaped_top}/{top}"),
        escaped_top.clone(),
        format!("{escaped_top}/{escaped_top}"),
    ];
    let mut paths = Vec::new();
    for part in &tops {
        for tail in [rest, escaped_rest.as_str()] {
            let path = format!("{part}/{tail}");
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
    }
    paths
}

/// A sample of which nothing is known but its image.
pub fn sample(folder: u32, name: impl Into<String>) -> Sample {
    Sample {
        image: ImageRef {
            folder,
            name: name.into(),
        },
        split: None,
        patient: None,
        eye: None,
        view: None,
        labels: Vec::new(),
        grade: None,
        edema: None,
        age: None,
        sex: None,
        quality: None,
        vcdr: None,
        camera: None,
        findings: Vec::new(),
        landmarks: Vec::new(),
        boxes: Vec::new(),
        masks: Vec::new(),
    }
}
