//! Does what a mapper returned keep to the contract and to what the mapper declared? Pure; each rule has a sentence,
//! which becomes the error.

use std::collections::HashSet;

use crate::contract::wit;
use crate::descriptor::{Descriptor, Field, Table, TableSource};
use crate::layout::{valid_name, valid_pattern};
use crate::limits::Limits;
use crate::record::Track;
use crate::text;

/// Columns of a listing.
pub(crate) const LISTING: [&str; 5] = ["path", "folder", "name", "stem", "extension"];

fn ensure(holds: bool, rule: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(rule()) }
}

fn identifier(id: &str) -> bool {
    (1..=64).contains(&id.len())
        && id.starts_with(|c: char| c.is_ascii_lowercase())
        && id
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-'))
}

/// Checks a descriptor. The error is a sentence's end: "describes itself badly: ...".
pub(crate) fn descriptor(descriptor: &Descriptor, limits: &Limits) -> Result<(), String> {
    let id = &descriptor.id;
    ensure(identifier(id) && !id.contains('-'), || {
        format!(
            "expected an id of lower-case letters, digits and `_`, found `{}`",
            text::quote(id, 80)
        )
    })?;
    texts(descriptor, limits)?;
    ensure(!descriptor.version.is_empty(), || {
        "expected a version, found none".into()
    })?;
    let sizes = [
        ("tasks", descriptor.tasks.len()),
        ("options", descriptor.options.len()),
        ("tables", descriptor.tables.len()),
        ("folders", descriptor.folders.len()),
    ];
    for (what, size) in sizes {
        ensure(size <= limits.list_items, || {
            format!(
                "expected at most {} {what}, found {size}",
                limits.list_items
            )
        })?;
    }
    ids("task", descriptor.tasks.iter().map(|t| t.id.as_str()))?;
    ids("option", descriptor.options.iter().map(|o| o.name.as_str()))?;
    ids("table", descriptor.tables.iter().map(|t| t.id.as_str()))?;
    ids("folder", descriptor.folders.iter().map(|f| f.id.as_str()))?;
    for task in &descriptor.tasks {
        ensure(!task.tracks.is_empty(), || {
            format!("task `{}` is offered in no track", task.id)
        })?;
        if let Some(threshold) = task.vcdr_at_least {
            ensure(threshold > 0.0 && threshold <= 1.0, || {
                format!(
                    "task `{}`: expected a cup-to-disc ratio of over 0 to 1, found {threshold}",
                    task.id
                )
            })?;
        }
    }
    ensure(descriptor.tables.iter().any(|t| t.join.is_none()), || {
        "expected a table whose rows it maps, found none".into()
    })?;
    for table in &descriptor.tables {
        self::table(table, descriptor, limits)
            .map_err(|what| format!("table `{}`: {what}", table.id))?;
    }
    for folder in &descriptor.folders {
        patterns(&folder.paths).map_err(|what| format!("folder `{}`: {what}", folder.id))?;
        ensure(
            !folder.extensions.is_empty() && folder.extensions.iter().all(|e| !e.is_empty()),
            || {
                format!(
                    "folder `{}`: expected file extensions, found none or an empty one",
                    folder.id
                )
            },
        )?;
    }
    Ok(())
}

/// No text may be long or hold control characters: all of it is printed somewhere.
fn texts(d: &Descriptor, limits: &Limits) -> Result<(), String> {
    let mut all: Vec<&String> = vec![&d.title, &d.version, &d.licence, &d.route, &d.citation];
    all.extend(d.country.iter().chain(&d.device.camera));
    all.extend(d.tasks.iter().flat_map(|t| [&t.id, &t.rule]));
    all.extend(
        d.options
            .iter()
            .flat_map(|o| [&o.name, &o.title].into_iter().chain(&o.values)),
    );
    for table in &d.tables {
        all.extend(
            table
                .columns
                .iter()
                .flat_map(|c| std::iter::once(&c.name).chain(&c.aliases)),
        );
        all.extend(table.source.paths().unwrap_or_default());
        if let TableSource::Xlsx(sheet) = &table.source {
            all.extend(&sheet.name);
        }
    }
    all.extend(
        d.folders
            .iter()
            .flat_map(|f| f.paths.iter().chain(&f.extensions)),
    );
    ensure(all.len() <= 16 * limits.list_items, || {
        format!("it holds {} texts", all.len())
    })?;
    for text in all {
        ensure(text.len() <= limits.text_bytes, || {
            format!(
                "expected texts of at most {} bytes, found one of {}",
                limits.text_bytes,
                text.len()
            )
        })?;
        ensure(!text.chars().any(char::is_control), || {
            format!(
                "expected texts without control characters, found `{}`",
                text::quote(text, 80)
            )
        })?;
    }
    Ok(())
}

fn ids<'a>(what: &str, ids: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let mut seen = HashSet::new();
    for id in ids {
        ensure(identifier(id), || {
            format!(
                "expected {what} ids of lower-case letters, digits, `_` and `-`, found `{}`",
                text::quote(id, 80)
            )
        })?;
        ensure(seen.insert(id), || {
            format!("{what} `{id}` is declared twice")
        })?;
    }
    Ok(())
}

fn patterns(paths: &[String]) -> Result<(), String> {
    ensure(!paths.is_empty(), || "expected a path, found none".into())?;
    for path in paths {
        ensure(valid_pattern(path), || {
            format!(
                "expected paths below the data folder, found `{}`",
                text::quote(path, 120)
            )
        })?;
    }
    Ok(())
}

fn table(table: &Table, descriptor: &Descriptor, limits: &Limits) -> Result<(), String> {
    let columns = table.columns.len();
    ensure((1..=limits.columns).contains(&columns), || {
        format!("expected 1 to {} columns, found {columns}", limits.columns)
    })?;
    let mut seen = HashSet::new();
    for name in table
        .columns
        .iter()
        .flat_map(|c| std::iter::once(&c.name).chain(&c.aliases))
    {
        ensure(text::trim(name) == name && !name.is_empty(), || {
            format!("expected column names without blanks around them, found `{name}`")
        })?;
        ensure(seen.insert(name), || {
            format!("column `{name}` is declared twice")
        })?;
    }
    match &table.source {
        TableSource::Csv(paths) | TableSource::Json(paths) => patterns(paths)?,
        TableSource::Xlsx(sheet) => {
            patterns(&sheet.paths)?;
            ensure((1..=16).contains(&sheet.header_rows), || {
                format!(
                    "expected a header of 1 to 16 rows, found {}",
                    sheet.header_rows
                )
            })?;
        }
        TableSource::Listing(folder) => {
            ensure(descriptor.folders.iter().any(|f| f.id == *folder), || {
                format!("lists no folder of its, `{folder}`")
            })?;
            ensure(table.join.is_none(), || "a listing cannot be joined".into())?;
            let known = |name: &String| LISTING.contains(&name.as_str());
            ensure(table.columns.iter().all(|c| known(&c.name)), || {
                format!("a listing has the columns {}", text::list(&LISTING, 5))
            })?;
        }
    }
    let Some(join) = &table.join else {
        return Ok(());
    };
    let onto = descriptor
        .tables
        .iter()
        .find(|t| t.id == join.onto && t.join.is_none());
    let Some(onto) = onto else {
        return Err(format!(
            "joins no primary table, `{}`",
            text::quote(&join.onto, 80)
        ));
    };
    ensure(!join.keys.is_empty(), || "joins by no column".into())?;
    let has =
        |table: &Table, name: &String| table.columns.iter().any(|c| c.name == *name && c.required);
    for (here, there) in &join.keys {
        ensure(has(table, here), || {
            format!("key column `{here}` is no required column")
        })?;
        ensure(has(onto, there), || {
            format!(
                "key column `{there}` is no required column of `{}`",
                onto.id
            )
        })?;
    }
    Ok(())
}

/// Checks a sample. The error is a sentence's end.
pub(crate) fn sample(
    sample: &wit::Sample,
    descriptor: &Descriptor,
    limits: &Limits,
) -> Result<(), String> {
    image(&sample.image, descriptor)?;
    labels(&sample.labels, descriptor)?;
    let declared = |present: bool, field: Field| {
        ensure(!present || descriptor.gives(field), || {
            format!("field `{field:?}` is not declared").to_lowercase()
        })
    };
    declared(sample.patient.is_some(), Field::Patient)?;
    declared(sample.eye.is_some(), Field::Eye)?;
    declared(sample.view.is_some(), Field::View)?;
    declared(sample.grade.is_some(), Field::Grade)?;
    declared(sample.edema.is_some(), Field::Edema)?;
    declared(sample.age.is_some(), Field::Age)?;
    declared(sample.sex.is_some(), Field::Sex)?;
    declared(sample.quality.is_some(), Field::Quality)?;
    declared(sample.vcdr.is_some(), Field::Vcdr)?;
    declared(sample.camera.is_some(), Field::Device)?;
    declared(!sample.findings.is_empty(), Field::Findings)?;
    declared(!sample.landmarks.is_empty(), Field::Landmarks)?;
    declared(!sample.boxes.is_empty(), Field::Boxes)?;
    declared(!sample.masks.is_empty(), Field::Masks)?;
    declared(!sample.contours.is_empty(), Field::Contours)?;
    if let Some(grade) = sample.grade {
        ensure(grade <= 4, || {
            format!("expected an ICDR grade of 0 to 4, found {grade}")
        })?;
    }
    if let Some(edema) = sample.edema {
        ensure(edema <= 10, || {
            format!("expected an edema level of 0 to 10, found {edema}")
        })?;
    }
    if let Some(age) = sample.age {
        ensure((0.0..=150.0).contains(&age.years), || {
            format!("expected an age of 0 to 150, found {}", age.years)
        })?;
    }
    if let Some(vcdr) = sample.vcdr {
        ensure((0.0..=1.0).contains(&vcdr), || {
            format!("expected a cup-to-disc ratio of 0 to 1, found {vcdr}")
        })?;
    }
    for name in sample.patient.iter().chain(&sample.camera) {
        short(name, limits)?;
    }
    let lists = [
        sample.findings.len(),
        sample.landmarks.len(),
        sample.boxes.len(),
        sample.masks.len(),
    ];
    for size in lists {
        ensure(size <= limits.list_items, || {
            format!("expected at most {} items, found {size}", limits.list_items)
        })?;
    }
    geometry(sample, limits)?;
    for finding in &sample.findings {
        short(&finding.name, limits)?;
    }
    for mask in &sample.masks {
        short(&mask.what, limits)?;
        image(&mask.image, descriptor)?;
        ensure(!mask.values.is_empty(), || {
            format!(
                "mask `{}`: expected the pixel values that mark it, found none",
                mask.what
            )
        })?;
        if let Some(value) = mask.values.iter().find(|v| mask.others.contains(v)) {
            return Err(format!(
                "mask `{}`: value {value} marks it and does not",
                mask.what
            ));
        }
    }
    let found = sample.contours.len();
    ensure(found <= limits.contours, || {
        format!(
            "expected at most {} contours, found {found}",
            limits.contours
        )
    })?;
    for (index, contour) in sample.contours.iter().enumerate() {
        let same = |other: &wit::Contour| {
            other.structure == contour.structure && other.annotator == contour.annotator
        };
        ensure(!sample.contours[..index].iter().any(same), || {
            let structure = crate::record::Structure::from(contour.structure);
            let annotator = text::quote(&contour.annotator, 40);
            format!("two outlines of the {structure} by `{annotator}`")
        })?;
        short(&contour.annotator, limits)?;
        image(&contour.file, descriptor)?;
    }
    Ok(())
}

fn short(text: &str, limits: &Limits) -> Result<(), String> {
    ensure(
        !text.is_empty() && text.len() <= limits.text_bytes && !text.chars().any(char::is_control),
        || {
            let limit = limits.text_bytes;
            format!(
                "expected a text of 1 to {limit} bytes without control characters, found `{}`",
                text::quote(text, 40)
            )
        },
    )
}

fn image(image: &wit::ImageRef, descriptor: &Descriptor) -> Result<(), String> {
    let folders = descriptor.folders.len();
    ensure((image.folder as usize) < folders, || {
        format!("expected one of {folders} folders, found {}", image.folder)
    })?;
    ensure(valid_name(&image.name), || {
        format!(
            "expected the name of an image below its folder, found `{}`",
            text::quote(&image.name, 120)
        )
    })
}

fn labels(labels: &[wit::Label], descriptor: &Descriptor) -> Result<(), String> {
    let tasks = descriptor.tasks.len();
    for (index, label) in labels.iter().enumerate() {
        let Some(task) = descriptor.tasks.get(label.task as usize) else {
            return Err(format!(
                "expected a label of one of {tasks} declared tasks, found task {}",
                label.task
            ));
        };
        ensure(task.vcdr_at_least.is_none(), || {
            format!("a label of task `{}`, which the host labels", task.id)
        })?;
        ensure(labels[..index].iter().all(|l| l.task != label.task), || {
            format!("two labels of task `{}`", task.id)
        })?;
        for (track, state) in [
            (Track::AsPublished, label.as_published),
            (Track::Corrected, label.corrected),
        ] {
            ensure(
                matches!(state, wit::Truth::Unknown) || task.tracks.contains(&track),
                || {
                    format!(
                        "a label of task `{}` in a track in which it is not offered",
                        task.id
                    )
                },
            )?;
        }
    }
    Ok(())
}

fn geometry(sample: &wit::Sample, limits: &Limits) -> Result<(), String> {
    let frame = |frame: &wit::Frame| {
        let side = 1..=1_000_000;
        ensure(
            side.contains(&frame.width) && side.contains(&frame.height),
            || {
                format!(
                    "expected a frame of 1 to 1,000,000 pixels a side, found {} x {}",
                    frame.width, frame.height
                )
            },
        )
    };
    let inside = |x: f64, y: f64, frame: &wit::Frame| {
        let (width, height) = (f64::from(frame.width), f64::from(frame.height));
        ensure(
            (0.0..=width).contains(&x) && (0.0..=height).contains(&y),
            || format!("expected a point within {width} x {height}, found {x}, {y}"),
        )
    };
    for landmark in &sample.landmarks {
        frame(&landmark.frame)?;
        inside(landmark.x, landmark.y, &landmark.frame)?;
    }
    for one in &sample.boxes {
        short(&one.what, limits)?;
        frame(&one.frame)?;
        inside(one.x1, one.y1, &one.frame)?;
        inside(one.x2, one.y2, &one.frame)?;
        ensure(one.x1 < one.x2 && one.y1 < one.y2, || {
            format!(
                "expected a box with x1 < x2 and y1 < y2, found {} {} {} {}",
                one.x1, one.y1, one.x2, one.y2
            )
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptor::{Access, Column, Device, DeviceKind, Sheet, Task};

    fn good() -> Descriptor {
        Descriptor {
            id: "x".into(),
            title: "X".into(),
            version: "1".into(),
            licence: "none".into(),
            access: Access::Open,
            route: "nowhere".into(),
            citation: "none".into(),
            country: None,
            device: Device {
                kind: DeviceKind::Unknown,
                camera: None,
            },
            synthetic: false,
            tasks: vec![Task {
                id: "glaucoma_vcdr".into(),
                tracks: vec![Track::Corrected],
                rule: "ratio".into(),
                vcdr_at_least: Some(0.6),
            }],
            fields: vec![Field::Vcdr],
            options: Vec::new(),
            tables: vec![Table {
                id: "t".into(),
                source: TableSource::Xlsx(Sheet {
                    paths: vec!["t.xlsx".into()],
                    name: None,
                    header_rows: 1,
                }),
                required: true,
                closed: true,
                columns: vec![Column {
                    name: "a".into(),
                    aliases: Vec::new(),
                    required: true,
                }],
                join: None,
            }],
            folders: Vec::new(),
        }
    }

    fn fault(change: impl FnOnce(&mut Descriptor)) -> String {
        let mut descriptor = good();
        change(&mut descriptor);
        super::descriptor(&descriptor, &Limits::default()).unwrap_err()
    }

    #[test]
    fn sheets_and_thresholds_of_a_descriptor() {
        super::descriptor(&good(), &Limits::default()).unwrap();
        let sheet = |paths: &[&str], header_rows| {
            let paths = paths.iter().map(|p| (*p).into()).collect();
            let name = None;
            move |d: &mut Descriptor| {
                d.tables[0].source = TableSource::Xlsx(Sheet {
                    paths,
                    name,
                    header_rows,
                });
            }
        };
        assert_eq!(
            fault(sheet(&["t.xlsx"], 0)),
            "table `t`: expected a header of 1 to 16 rows, found 0"
        );
        assert!(fault(sheet(&["t.xlsx"], 17)).contains("found 17"));
        assert!(fault(sheet(&["../t.xlsx"], 1)).contains("expected paths below the data folder"));
        assert!(
            fault(|d| d.tables[0].source = TableSource::Json(Vec::new()))
                .contains("expected a path")
        );
        for threshold in [0.0, 1.1, f64::NAN] {
            assert!(
                fault(|d| d.tasks[0].vcdr_at_least = Some(threshold))
                    .contains("expected a cup-to-disc ratio of over 0 to 1")
            );
        }
    }

    #[test]
    fn contours_of_a_sample_are_few_and_distinct() {
        let mut descriptor = good();
        descriptor.fields.push(Field::Contours);
        descriptor.folders.push(crate::descriptor::Folder {
            id: "f".into(),
            paths: vec!["f".into()],
            required: false,
            recursive: false,
            extensions: vec!["txt".into()],
            key: crate::descriptor::ImageKey::Stem,
        });
        let image = || wit::ImageRef {
            folder: 0,
            name: "a".into(),
        };
        let with = |annotators: &[String]| {
            let contour = |annotator: &String| wit::Contour {
                structure: wit::Structure::Cup,
                annotator: annotator.clone(),
                file: image(),
            };
            let sample = wit::Sample {
                image: image(),
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
                contours: annotators.iter().map(contour).collect(),
            };
            super::sample(&sample, &descriptor, &Limits::default())
        };
        let many = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>();
        with(&many(64)).unwrap();
        assert_eq!(
            with(&many(65)).unwrap_err(),
            "expected at most 64 contours, found 65"
        );
        let twice = ["me".to_owned(), "me".to_owned()];
        assert_eq!(with(&twice).unwrap_err(), "two outlines of the cup by `me`");
    }
}
