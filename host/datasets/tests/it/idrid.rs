//! IDRiD in its true shape: our own rows, and the real folder where it is at hand.

use std::collections::{BTreeMap, BTreeSet};

use focus_datasets::{
    DatasetError, Encoding, ErrorKind, LandmarkKind, Limits, Mapped, MapperSource, Split, Track,
    Truth,
};

use crate::support::{Data, lines, map, message, project};

const GRADING: &str = "B. Disease Grading";
const LOCALIZATION: &str = "C. Localization";
const TRAIN: &str = "2. Groundtruths/a. IDRiD_Disease Grading_Training Labels.csv";
const TEST: &str = "2. Groundtruths/b. IDRiD_Disease Grading_Testing Labels.csv";
const TRAIN_DISC: &str =
    "2. Groundtruths/1. Optic Disc Center Location/a. IDRiD_OD_Center_Training Set_Markups.csv";
const TEST_DISC: &str =
    "2. Groundtruths/1. Optic Disc Center Location/b. IDRiD_OD_Center_Testing Set_Markups.csv";
const TRAIN_FOVEA: &str =
    "2. Groundtruths/2. Fovea Center Location/IDRiD_Fovea_Center_Training Set_Markups.csv";

/// Awkward on purpose: a header that ends in a blank, nine columns without a name, CRLF, a name and a last cell with
/// stray blanks, blank rows, a grade that passed through a table library, blanks where a grade or a risk should be.
const TRAIN_ROWS: &str = "Image name,Retinopathy grade,Risk of macular edema ,,,,,,,,,\r\n\
    IDRiD_001,3,2,,,,,,,,,\r\nIDRiD_002,0,0,,,,,,,,,\r\nIDRiD_003,1,1,,,,,,,,,\r\n\
    IDRiD_405 ,2.0,,,,,,,,,, \r\n,,,,,,,,,,,\r\n\r\n,,,,,,,,,,,\r\n";
const TEST_ROWS: &str = "Image name,Retinopathy grade,Risk of macular edema \r\n\
    IDRiD_001,4,0\r\nIDRiD_002,,0\r\nIDRiD_003,1,0\r\n";
const TRAIN_DISC_ROWS: &str = "Image No,X- Coordinate,Y - Coordinate,,,,,,,,\r\n\
    IDRiD_001,2858,1805,,,,,,,,\r\nIDRiD_405,943,1119.5,,,,,,,,\r\n,,,,,,,,,,\r\n,,,,,,,,,,\r\n";
const TRAIN_FOVEA_ROWS: &str = "Image No,X- Coordinate,Y - Coordinate,,,,,,,,\r\nIDRiD_001,1494,1970,,,,,,,,\r\n,,,,,,,,,,\r\n";

/// The dataset with its two top folders spelled as given and the rest spelled by `rest`.
fn folder(grading: &str, localization: &str, rest: impl Fn(&str) -> String) -> Data {
    let data = Data::new();
    for (top, path, text) in [
        (grading, TRAIN, TRAIN_ROWS),
        (grading, TEST, TEST_ROWS),
        (localization, TRAIN_DISC, TRAIN_DISC_ROWS),
        (localization, TRAIN_FOVEA, TRAIN_FOVEA_ROWS),
    ] {
        data.file(&format!("{top}/{}", rest(path)), text);
    }
    for name in [
        "IDRiD_001.jpg",
        "IDRiD_002.jpg",
        "IDRiD_003.JPG",
        "IDRiD_405.jpg",
        "IDRiD_406.jpg",
    ] {
        data.file(
            &format!(
                "{grading}/{}/{name}",
                rest("1. Original Images/a. Training Set")
            ),
            "",
        );
    }
    for name in [
        "IDRiD_001.jpg",
        "IDRiD_003.jpg",
        "._IDRiD_001.jpg",
        "Thumbs.db",
    ] {
        data.file(
            &format!(
                "{grading}/{}/{name}",
                rest("1. Original Images/b. Testing Set")
            ),
            "",
        );
    }
    data
}

fn plain() -> Data {
    folder(GRADING, LOCALIZATION, str::to_owned)
}

#[test]
fn awkward_rows_become_these_records() {
    let mapped = map("idrid.wasm", plain().path()).unwrap();
    insta::assert_snapshot!(lines(&mapped));
    assert_eq!(mapped.missing.len(), 1);
    assert_eq!(
        mapped.missing[0].image,
        "B. Disease Grading/1. Original Images/b. Testing Set/IDRiD_002"
    );
    assert_eq!(mapped.missing[0].line, 3);
    assert_eq!(
        mapped.unmatched,
        ["B. Disease Grading/1. Original Images/a. Training Set/IDRiD_406.jpg"]
    );
    assert_eq!(mapped.absent, ["table test-disc", "table test-fovea"]);
    let train = &mapped.tables[0];
    assert_eq!(
        (
            train.rows,
            train.blank_rows,
            train.encoding,
            train.separator
        ),
        (4, 2, Some(Encoding::Utf8), Some(','))
    );
    let disc = mapped
        .tables
        .iter()
        .find(|table| table.id == "train-disc")
        .unwrap();
    let join = disc.join.as_ref().unwrap();
    assert_eq!((join.matched, join.without_partner, join.unused), (2, 2, 0));
}

#[test]
fn a_blank_is_unknown_in_corrected_and_zero_in_as_published() {
    let data = plain();
    data.file(
        "B. Disease Grading/1. Original Images/b. Testing Set/IDRiD_002.jpg",
        "",
    );
    let mapped = map("idrid.wasm", data.path()).unwrap();
    let find = |split, name: &str| {
        mapped
            .records
            .iter()
            .find(|r| r.sample.split == Some(split) && r.sample.path.contains(name))
            .unwrap()
    };
    // Grade blank, no edema.
    let blank = find(Split::Test, "IDRiD_002");
    assert_eq!(blank.label("binary_dr", Track::Corrected), Truth::Unknown);
    assert_eq!(blank.label("binary_dr", Track::AsPublished), Truth::Unknown);
    assert_eq!(
        blank.label("referable_dr", Track::Corrected),
        Truth::Unknown
    );
    assert_eq!(
        blank.label("referable_dr", Track::AsPublished),
        Truth::Negative
    );
    // Grade 2, edema blank: positive either way.
    let moderate = find(Split::Train, "IDRiD_405");
    assert_eq!(
        moderate.label("referable_dr", Track::Corrected),
        Truth::Positive
    );
    // Grade 1 with edema.
    assert_eq!(
        find(Split::Train, "IDRiD_003").label("referable_dr", Track::Corrected),
        Truth::Positive
    );
    assert_eq!(
        find(Split::Test, "IDRiD_003").label("referable_dr", Track::Corrected),
        Truth::Negative
    );
    assert_eq!(
        blank.label("glaucoma", Track::Corrected),
        Truth::Unknown,
        "a task that is not offered"
    );
}

type Facts = (Option<Split>, Option<u8>, Option<u8>, usize);

fn without_paths(mapped: &Mapped) -> Vec<Facts> {
    let row = |r: &focus_datasets::Record| (r.sample.split, r.grade, r.edema, r.landmarks.len());
    mapped.records.iter().map(row).collect()
}

#[test]
fn mirrors_spell_folders_in_other_ways() {
    let expected = without_paths(&map("idrid.wasm", plain().path()).unwrap());
    let escape = |path: &str| path.replace(' ', "%20");
    for (grading, localization, rest) in [
        (
            "B. Disease Grading/B. Disease Grading",
            "C. Localization/C. Localization",
            false,
        ),
        ("B.%20Disease%20Grading", "C.%20Localization", true),
        (
            "B.%20Disease%20Grading/B. Disease Grading",
            "C.%20Localization/C. Localization",
            false,
        ),
        (
            "B.%20Disease%20Grading/B.%20Disease%20Grading",
            "C. Localization",
            true,
        ),
        ("B.%20Disease%20Grading", "C. Localization", false),
    ] {
        let data = folder(grading, localization, |path| {
            if rest { escape(path) } else { path.into() }
        });
        let mapped = map("idrid.wasm", data.path()).unwrap();
        assert_eq!(without_paths(&mapped), expected, "{grading}");
        assert!(mapped.records[0].sample.path.starts_with(grading));
    }
}

#[test]
fn no_localization_no_landmarks() {
    let mapped = map(
        "idrid.wasm",
        folder(GRADING, "elsewhere", str::to_owned).path(),
    )
    .unwrap();
    assert_eq!(mapped.records.len(), 6);
    assert!(
        mapped
            .records
            .iter()
            .all(|record| record.landmarks.is_empty())
    );
    assert_eq!(mapped.absent.len(), 4);
}

#[test]
fn a_wrong_code_names_file_line_column_and_rule() {
    for (row, column, rule, found) in [
        (
            "IDRiD_002,5,0",
            "Retinopathy grade",
            "a whole number from 0 to 4",
            "5",
        ),
        (
            "IDRiD_002,R2,0",
            "Retinopathy grade",
            "a whole number from 0 to 4",
            "R2",
        ),
        (
            "IDRiD_002,1.5,0",
            "Retinopathy grade",
            "a whole number from 0 to 4",
            "1.5",
        ),
        (
            "IDRiD_002,-1,0",
            "Retinopathy grade",
            "a whole number from 0 to 4",
            "-1",
        ),
        (
            "IDRiD_002,+1,0",
            "Retinopathy grade",
            "a whole number from 0 to 4",
            "+1",
        ),
        (
            "IDRiD_002,1,3",
            "Risk of macular edema",
            "a whole number from 0 to 2",
            "3",
        ),
        (
            ",1,1",
            "Image name",
            "the name of a photograph, such as `IDRiD_001`",
            "a blank",
        ),
    ] {
        let data = plain();
        let rows =
            format!("Image name,Retinopathy grade,Risk of macular edema\nIDRiD_001,4,0\n{row}\n");
        data.file(&format!("{GRADING}/{TEST}"), rows);
        let error = map("idrid.wasm", data.path()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(error.hint().unwrap().contains("nothing is guessed"));
        assert_eq!(
            message(Err(error)),
            format!(
                "Mapper `idrid.wasm` 0.1.0 cannot read `{GRADING}/{TEST}` line 3, column `{column}`: expected {rule}, \
                 found `{found}`"
            )
        );
    }
}

#[test]
fn another_header_is_refused_with_the_columns_seen() {
    let data = plain();
    data.file(
        &format!("{GRADING}/{TEST}"),
        "id,Retinopathy grade,DME\nIDRiD_001,4,0\n",
    );
    assert_eq!(
        message(map("idrid.wasm", data.path())),
        format!(
            "`{GRADING}/{TEST}` line 1 lacks `Image name`, `Risk of macular edema`, expected among the columns; found \
             `id`, `Retinopathy grade`, `DME`"
        )
    );
    data.file(
        &format!("{GRADING}/{TEST}"),
        "Image name,Retinopathy grade,Risk of macular edema,Age\nIDRiD_001,4,0,3\n",
    );
    let error = map("idrid.wasm", data.path()).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("has columns that the mapper does not know: `Age`"),
        "{error}"
    );
}

#[test]
fn joins_lose_and_double_nothing_silently() {
    let disc = format!("{LOCALIZATION}/{TRAIN_DISC}");
    let header = "Image No,X- Coordinate,Y - Coordinate\n";
    for (rows, expected) in [
        (
            "IDRiD_001,1,1\nIDRiD_002,2,2\nIDRiD_001,3,3\nIDRiD_001,3,3\n",
            "2 rows of it share their key with another, which would double rows; the first is at line 4",
        ),
        (
            "IDRiD_001,1,1\nIDRiD_777,2,2\n",
            "would lose 1 of its 2 rows, which no row of `",
        ),
        (",1,1\n", "has no value in the key column `Image No`"),
        (
            "IDRiD_001,1,\n",
            "column `train-disc.Y - Coordinate`: expected a coordinate, since the other one is there",
        ),
        (
            "IDRiD_001,1,9000\n",
            "expected a number from 0 to 2848, found `9000`",
        ),
        (
            "IDRiD_001,1,1e2\n",
            "expected a number from 0 to 2848, found `1e2`",
        ),
    ] {
        let data = plain();
        data.file(&disc, format!("{header}{rows}"));
        let error = message(map("idrid.wasm", data.path()));
        assert!(error.contains(expected), "{error}");
    }
    let data = plain();
    let twice = "Image name,Retinopathy grade,Risk of macular edema\nIDRiD_001,4,0\nIDRiD_405,1,0\nIDRiD_001,1,0\n";
    data.file(&format!("{GRADING}/{TRAIN}"), twice);
    let error = message(map("idrid.wasm", data.path()));
    assert!(
        error.contains("which `B. Disease Grading/2. Groundtruths/a."),
        "{error}"
    );
    assert!(
        error.contains(" line 4 names `") && error.contains(" line 2 has already"),
        "{error}"
    );
    data.remove(&format!(
        "{GRADING}/1. Original Images/a. Training Set/IDRiD_001.jpg"
    ));
    let error = message(map("idrid.wasm", data.path()));
    assert!(
        error.contains("would give 1 rows of"),
        "the join tells where no image does: {error}"
    );
}

#[test]
fn the_wrong_folder_is_told_from_the_right_one() {
    let data = plain();
    let error = map("idrid.wasm", &data.path().join(GRADING)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data);
    assert!(error.to_string().contains(
        "looked for `B. Disease Grading/1. Original Images/a. Training Set` (9 other spellings)"
    ));
    assert!(
        error
            .to_string()
            .ends_with("found `1. Original Images/`, `2. Groundtruths/`"),
        "{error}"
    );
    assert!(
        error.hint().unwrap().ends_with("B. Disease Grading/..`"),
        "{:?}",
        error.hint()
    );
    let outer = Data::new();
    std::fs::rename(data.path().join(GRADING), {
        std::fs::create_dir(outer.path().join("idrid")).unwrap();
        outer.path().join("idrid").join(GRADING)
    })
    .unwrap();
    let error = map("idrid.wasm", outer.path()).unwrap_err();
    assert!(
        error.hint().unwrap().ends_with("/idrid`"),
        "{:?}",
        error.hint()
    );
    let error = map("idrid.wasm", &outer.path().join("nowhere")).unwrap_err();
    assert!(matches!(error, DatasetError::NoFolder { .. }));
}

#[test]
fn real_folder() {
    let data = project().join("../shared/data/idrid");
    if !data.is_dir() {
        eprintln!("skipped: no `../shared/data/idrid` beside the project");
        return;
    }
    let source: MapperSource = "idrid".parse().unwrap();
    let mapped = focus_datasets::map_dataset(&source, &data, &Limits::default(), None).unwrap();
    let counts: serde_json::Value =
        serde_json::from_str(include_str!("../data/idrid_counts.json")).unwrap();

    assert_eq!(mapped.records.len(), 516);
    let ids: BTreeSet<String> = mapped
        .records
        .iter()
        .map(|record| record.sample.id())
        .collect();
    assert_eq!(ids.len(), 516);
    let mut names: BTreeMap<&str, u32> = BTreeMap::new();
    for record in &mapped.records {
        *names
            .entry(record.sample.path.rsplit('/').next().unwrap())
            .or_default() += 1;
    }
    assert_eq!(names.values().filter(|count| **count == 2).count(), 103);
    assert!(mapped.missing.is_empty() && mapped.unmatched.is_empty() && mapped.dropped.is_empty());

    for (split, name) in [(Split::Train, "train"), (Split::Test, "test")] {
        let expected = &counts[name];
        let records: Vec<_> = mapped
            .records
            .iter()
            .filter(|record| record.sample.split == Some(split))
            .collect();
        assert_eq!(records.len() as u64, expected["rows"].as_u64().unwrap());
        for task in ["binary_dr", "referable_dr"] {
            for track in [Track::AsPublished, Track::Corrected] {
                let positive = records
                    .iter()
                    .filter(|r| r.label(task, track) == Truth::Positive)
                    .count();
                assert_eq!(
                    positive as u64,
                    expected[task].as_u64().unwrap(),
                    "{name} {task} {track:?}"
                );
                assert!(
                    records
                        .iter()
                        .all(|r| r.label(task, track) != Truth::Unknown)
                );
            }
        }
        for (kind, what) in [(LandmarkKind::Disc, "disc"), (LandmarkKind::Fovea, "fovea")] {
            let points: Vec<_> = records
                .iter()
                .filter_map(|record| record.landmark(kind))
                .collect();
            assert_eq!(
                points.len() as u64,
                expected[what]["rows"].as_u64().unwrap(),
                "{name} {what}"
            );
            assert_eq!(
                points.iter().map(|p| p.x).sum::<f64>(),
                expected[what]["x"].as_f64().unwrap()
            );
            assert_eq!(
                points.iter().map(|p| p.y).sum::<f64>(),
                expected[what]["y"].as_f64().unwrap()
            );
        }
        let grades: Vec<u64> = (0..5)
            .map(|g| records.iter().filter(|r| r.grade == Some(g)).count() as u64)
            .collect();
        assert_eq!(serde_json::to_value(grades).unwrap(), expected["grades"]);
    }
}

#[test]
fn samples_of_the_awkward_files_map_too() {
    let samples = project().join("../shared/samples/idrid");
    if !samples.is_dir() {
        eprintln!("skipped: no `../shared/samples/idrid` beside the project");
        return;
    }
    let data = Data::new();
    for path in [
        format!("{GRADING}/{TRAIN}"),
        format!("{GRADING}/{TEST}"),
        format!("{LOCALIZATION}/{TRAIN_DISC}"),
        format!("{LOCALIZATION}/{TRAIN_FOVEA}"),
    ] {
        data.file(&path, std::fs::read(samples.join(&path)).unwrap());
    }
    for name in ["IDRiD_001", "IDRiD_002", "IDRiD_003", "IDRiD_405"] {
        data.file(
            &format!("{GRADING}/1. Original Images/a. Training Set/{name}.jpg"),
            "",
        );
        data.file(
            &format!("{GRADING}/1. Original Images/b. Testing Set/{name}.jpg"),
            "",
        );
    }
    let mapped = map("idrid.wasm", data.path()).unwrap();
    assert_eq!(mapped.records.len(), 7);
    assert_eq!(
        mapped
            .records
            .iter()
            .filter(|r| r.landmark(LandmarkKind::Fovea).is_some())
            .count(),
        2
    );
    assert!(
        !data
            .path()
            .join(format!("{LOCALIZATION}/{TEST_DISC}"))
            .exists()
    );
}
