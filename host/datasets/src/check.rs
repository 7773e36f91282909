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
        sample.contours.len(),
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
    }
    for contour in &sample.contours {
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
