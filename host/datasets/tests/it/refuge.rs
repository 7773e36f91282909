//! REFUGE in its two layouts: index files of the Kaggle copy, workbooks of the challenge.

use focus_datasets::{Encoding, LandmarkKind};

use crate::support::{Data, briefs, map, message, samples, workbook};

const TRAIN: &str = "{\"0\": {\"ImgName\": \"g0001.jpg\", \"Fovea_X\": 1057.94, \"Fovea_Y\": 1051.9, \"Size_X\": 2124, \"Size_Y\": 2056, \"Label\": 1},\n \"1\": {\"ImgName\": \"n0001.jpg\", \"Fovea_X\": 1115.2, \"Fovea_Y\": 1002.15, \"Size_X\": 2124, \"Size_Y\": 2056, \"Label\": 0}}";
const VAL: &str =
    "[{\"ImgName\": \"V0001.jpg\", \"Size_X\": 1634, \"Size_Y\": 1634, \"Label\": 0}]";
const TEST: &str = "{\"0\": {\"ImgName\": \"T0001.jpg\", \"Size_X\": 1634, \"Size_Y\": 1634}}";

fn kaggle() -> Data {
    let data = Data::new();
    data.file("train/index.json", TRAIN)
        .file("val/index.json", VAL)
        .file("test/index.json", TEST);
    for name in [
        "train/Images/g0001.jpg",
        "train/Images/n0001.jpg",
        "val/Images/V0001.jpg",
        "test/Images/T0001.jpg",
    ] {
        data.file(name, "");
        data.file(&name.replace("Images", "Masks").replace("jpg", "png"), "");
    }
    data
}

fn challenge() -> Data {
    let data = Data::new();
    let train: &[(u32, &[&str])] = &[
        (1, &["ID", "ImgName", "Fovea_X", "Fovea_Y"]),
        (2, &["1", "g0001.jpg", "1057.94", "1051.9"]),
        (3, &["2", "n0001.jpg", "1115.2", "1002.15"]),
    ];
    let val: &[(u32, &[&str])] = &[
        (1, &["ImgName", "Glaucoma Label", "Fovea_X", "Fovea_Y"]),
        (2, &["V0001.jpg", "0", "890.5", "811"]),
    ];
    let test: &[(u32, &[&str])] = &[
        (
            1,
            &["ID", "ImgName", "Label(Glaucoma=1)", "Fovea_X", "Fovea_Y"],
        ),
        (2, &["1", "T0001.jpg", "1", "790.2", "805.7"]),
    ];
    data.file("REFUGE1-train/Fovea_location.xlsx", workbook(train, &[]))
        .file("REFUGE1-val/Fovea_locations.xlsx", workbook(val, &[]))
        .file(
            "REFUGE1-test/Glaucoma_label_and_Fovea_location.xlsx",
            workbook(test, &[]),
        );
    for name in [
        "REFUGE1-train/Training400/Glaucoma/g0001.jpg",
        "REFUGE1-train/Training400/Non-Glaucoma/n0001.jpg",
        "REFUGE1-val/REFUGE-Validation400/V0001.jpg",
        "REFUGE1-test/Test400/T0001.jpg",
        "REFUGE1-train/Disc_Cup_Masks/Glaucoma/g0001.bmp",
        "REFUGE1-train/Disc_Cup_Masks/Non-Glaucoma/n0001.bmp",
        "REFUGE1-val/Disc_Cup_Masks/V0001.bmp",
    ] {
        data.file(name, "");
    }
    data
}

#[test]
fn index_files() {
    let mapped = map("refuge.wasm", kaggle().path()).unwrap();
    assert_eq!(
        briefs(&mapped),
        [
            "g0001.jpg train glaucoma:++",
            "n0001.jpg train glaucoma:--",
            "V0001.jpg validation glaucoma:--",
            "T0001.jpg test glaucoma:??",
        ]
    );
    let first = &mapped.records[0];
    let fovea = first.landmark(LandmarkKind::Fovea).unwrap();
    assert_eq!(
        (fovea.x, fovea.y, fovea.frame.width),
        (1057.94, 1051.9, 2124)
    );
    assert!(mapped.records[2].landmarks.is_empty());
    assert_eq!(first.camera.as_deref(), Some("Zeiss Visucam 500"));
    assert_eq!(mapped.records[3].camera.as_deref(), Some("Canon CR-2"));
    assert_eq!(
        (
            first.masks[0].what.as_str(),
            first.masks[0].values.as_slice()
        ),
        ("disc", [1, 2].as_slice())
    );
    assert_eq!(
        (
            first.masks[1].path.as_str(),
            first.masks[1].values.as_slice()
        ),
        ("train/Masks/g0001.png", [2].as_slice())
    );
    assert_eq!(mapped.tables[0].encoding, Some(Encoding::Utf8));
    assert_eq!((mapped.records[1].line, mapped.unusable.len()), (2, 0));
}

#[test]
fn workbooks() {
    let mapped = map("refuge.wasm", challenge().path()).unwrap();
    assert_eq!(
        briefs(&mapped),
        [
            "g0001.jpg train glaucoma:++",
            "n0001.jpg train glaucoma:--",
            "V0001.jpg validation glaucoma:--",
            "T0001.jpg test glaucoma:++",
        ]
    );
    let first = &mapped.records[0];
    assert_eq!(
        first.sample.path,
        "REFUGE1-train/Training400/Glaucoma/g0001.jpg"
    );
    assert_eq!(
        (
            first.masks[0].values.as_slice(),
            first.masks[1].values.as_slice()
        ),
        ([128, 0].as_slice(), [0].as_slice())
    );
    assert_eq!(first.landmarks[0].x, 1057.94);
}

#[test]
fn half_a_copy_two_copies_and_contradictions_are_refused() {
    let data = kaggle();
    data.remove("val/index.json");
    let error = message(map("refuge.wasm", data.path()));
    assert!(
        error.contains(
            "expected rows of the training and the validation split, found `training rows alone`"
        ),
        "{error}"
    );
    let data = challenge();
    for (file, text) in [
        ("train/index.json", TRAIN),
        ("train/Images/g0001.jpg", ""),
        ("train/Images/n0001.jpg", ""),
    ] {
        data.file(file, text);
    }
    let error = message(map("refuge.wasm", data.path()));
    assert!(
        error.contains("expected one layout, Kaggle's or the challenge's, found `both`"),
        "{error}"
    );
    for (from, to, expected) in [
        (
            "\"Label\": 1}",
            "\"Label\": 0}",
            "column `Label`: expected the label that the photograph's first letter says, found `0`",
        ),
        (
            "\"Label\": 1}",
            "\"Label\": \"RG\"}",
            "column `Label`: expected one of `0`, `1`, found `RG`",
        ),
        (
            "\"Label\": 1}",
            "\"Label\": [1]}",
            "line 1 holds an object or an array in `Label`, expected a value",
        ),
        (
            "\"Label\": 1}",
            "\"Label\": 1, \"Age\": 3}",
            "has columns that the mapper does not know: `Age`",
        ),
        (
            "ImgName",
            "Name",
            "has columns that the mapper does not know: `Name`",
        ),
        (
            "1057.94",
            "9057.94",
            "column `Fovea_X`: expected a number from 0 to 2124",
        ),
    ] {
        let data = kaggle();
        data.file("train/index.json", TRAIN.replacen(from, to, 1));
        let error = message(map("refuge.wasm", data.path()));
        assert!(error.contains(expected), "{error}");
    }
    let error = message(map("refuge.wasm", Data::new().path()));
    assert!(
        error.contains("looked for `train/index.json` (4 other spellings)")
            && error.contains("REFUGE1-train"),
        "{error}"
    );
}

#[test]
fn the_samples_of_the_specification() {
    let Some(samples) = samples("refuge") else {
        return;
    };
    let data = kaggle();
    for split in ["train", "val", "test"] {
        let path = format!("{split}/index.json");
        data.file(
            &path,
            std::fs::read(samples.join("kaggle").join(&path)).unwrap(),
        );
    }
    assert_eq!(map("refuge.wasm", data.path()).unwrap().records.len(), 4);
    let data = challenge();
    for path in [
        "REFUGE1-train/Fovea_location.xlsx",
        "REFUGE1-val/Fovea_locations.xlsx",
        "REFUGE1-test/Glaucoma_label_and_Fovea_location.xlsx",
    ] {
        data.file(
            path,
            std::fs::read(samples.join("official").join(path)).unwrap(),
        );
    }
    let mapped = map("refuge.wasm", data.path()).unwrap();
    assert_eq!((mapped.records.len(), mapped.missing.len()), (4, 1));
}
