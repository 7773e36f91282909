//! Short forms for descriptors and samples.

use crate::{Column, Finding, ImageRef, Sample, Sheet, TableSource, Task, Tracks, Truth};

/// The benchmark's threshold of the vertical cup-to-disc ratio.
pub const GLAUCOMA_VCDR: f64 = 0.6;

/// A task that the mapper labels in both tracks.
pub fn task(id: &str, rule: &str) -> Task {
    Task {
        id: id.into(),
        tracks: Tracks::AS_PUBLISHED | Tracks::CORRECTED,
        rule: rule.into(),
        vcdr_at_least: None,
    }
}

/// The task `glaucoma_vcdr`, which the host labels from contours or masks. The published code never computes it, so it
/// is offered in the corrected track alone.
pub fn glaucoma_vcdr() -> Task {
    Task {
        id: "glaucoma_vcdr".into(),
        tracks: Tracks::CORRECTED,
        rule: format!("Vertical cup-to-disc ratio >= {GLAUCOMA_VCDR}"),
        vcdr_at_least: Some(GLAUCOMA_VCDR),
    }
}

/// A finding that the source marks present, absent or not at all.
pub fn finding(name: &str, state: Option<bool>) -> Finding {
    Finding {
        name: name.into(),
        state: match state {
            Some(true) => Truth::Positive,
            Some(false) => Truth::Negative,
            None => Truth::Unknown,
        },
    }
}

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

/// The first sheet of a workbook at one of these paths.
pub fn sheet(paths: &[&str], header_rows: u32) -> TableSource {
    TableSource::Xlsx(Sheet {
        paths: paths.iter().map(|p| (*p).into()).collect(),
        name: None,
        header_rows,
    })
}

/// A path below each of these folders, in turn; an empty one is the data folder itself.
pub fn below(folders: &[&str], path: &str) -> Vec<String> {
    let join = |folder: &&str| match (*folder, path) {
        ("", path) => path.to_owned(),
        (folder, path) => format!("{folder}/{path}"),
    };
    folders.iter().map(join).collect()
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
        contours: Vec::new(),
    }
}
