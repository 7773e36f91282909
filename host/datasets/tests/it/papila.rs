//! PAPILA in its true shape: two workbooks with a header of three rows and merged cells, outlines in text files.

use focus_datasets::{Limits, Structure, Truth};

use crate::support::{Data, briefs, map, map_with, message, samples, workbook};

pub const GROUPS: &[&str] = &[
    "",
    "Age",
    "Gender",
    "Diagnosis",
    "Refractive_Defect",
    "",
    "",
    "Phakic/Pseudophakic",
    "IOP",
    "",
    "Pachymetry",
    "Axial_Length",
    "VF_MD",
];
pub const NAMES: &[&str] = &[
    "",
    "",
    "",
    "",
    "dioptre_1",
    "dioptre_2",
    "astigmatism",
    "",
    "Pneumatic",
    "Perkins",
    "",
    "",
    "",
];
/// Age to Diagnosis and the like span the two rows of names.
pub const MERGED: &[&str] = &["E1:G1", "I1:J1", "B1:B2", "C1:C2", "D1:D2"];

fn book(rows: &[&[&str]]) -> Vec<u8> {
    let mut all = vec![(1, GROUPS), (2, NAMES), (3, &["ID"] as &[&str])];
    all.extend((4..).zip(rows.iter().copied()));
    workbook(&all, MERGED)
}

fn outline(top: u32, bottom: u32) -> String {
    format!("1290.0 {top}.000000\r\n1400.0 900.5\r\n1290.0 {bottom}.000000\r\n1100.0 900.0\r\n")
}

fn data() -> Data {
    let data = Data::new();
    let top = "PapilaDB-PAPILA-17f8fa77";
    let right: &[&[&str]] = &[
        &[
            "#002", "47", "0", "2", "0.75", "-1.75", "90", "0", "21", "", "586", "23.64", "-0.07",
        ],
        &["#004", "58", "1", "1", "", "", "", "0", "", "19", "501"],
        &["#009", "", "1", "0"],
    ];
    let left: &[&[&str]] = &[
        &["#002", "47", "0", "1"],
        &["#004", "58", "1", "0"],
        &["#333", "55", "0", ""],
    ];
    data.file(
        &format!("{top}/ClinicalData/patient_data_od.xlsx"),
        book(right),
    )
    .file(
        &format!("{top}/ClinicalData/patient_data_os.xlsx"),
        book(left),
    );
    for name in ["002OD", "002OS", "004OD", "004OS", "009OD"] {
        data.file(&format!("{top}/FundusImages/RET{name}.jpg"), "");
    }
    for (name, text) in [
        ("RET002OD_disc_exp1", outline(800, 1000)),
        ("RET002OD_cup_exp1", outline(840, 980)),
        ("RET002OD_cup_exp1 2", outline(800, 1000)),
        ("RET002OD_disc_exp2", outline(800, 1000)),
        ("RET002OD_cup_exp2", outline(850, 950)),
        ("RET002OS_disc_exp1", outline(800, 1000)),
        ("RET002OS_cup_exp1", outline(850, 949)),
        ("RET004OD_disc_exp1", outline(800, 1000)),
        ("RET004OD_cup_exp1", "1 2\n".into()),
    ] {
        data.file(
            &format!("{top}/ExpertsSegmentations/Contours/{name}.txt"),
            text,
        );
    }
    data
}

#[test]
fn both_eyes_of_a_patient_with_the_ratio_from_the_outlines() {
    let data = data();
    let mapped = map("papila.wasm", data.path()).unwrap();
    assert_eq!(
        briefs(&mapped),
        [
            "RET002OD.jpg p002 right 47 male vcdr0.600 glaucoma:++ glaucoma_vcdr:?+",
            "RET004OD.jpg p004 right 58 female glaucoma:++",
            "RET009OD.jpg p009 right female glaucoma:--",
            "RET002OS.jpg p002 left 47 male vcdr0.495 glaucoma:++ glaucoma_vcdr:?-",
            "RET004OS.jpg p004 left 58 female glaucoma:--",
        ]
    );
    let first = &mapped.records[0];
    assert_eq!(first.contours.len(), 4);
    assert_eq!(first.contours[1].structure, Structure::Cup);
    assert_eq!(first.contours[1].annotator, "exp1");
    assert!(first.contours[1].path.ends_with("RET002OD_cup_exp1.txt"));
    let suspect = first
        .findings
        .iter()
        .find(|f| f.name == "glaucoma_suspect")
        .unwrap();
    assert_eq!(suspect.state, Truth::Positive);
    assert_eq!(mapped.missing.len(), 1, "#333 has no photograph");
    let reason = |part: &str| {
        mapped
            .unusable
            .iter()
            .filter(|u| u.file.contains(part))
            .count()
    };
    assert_eq!(reason("RET009OD"), 4);
    assert_eq!(
        mapped
            .unusable
            .iter()
            .find(|u| u.reason != "is not there")
            .unwrap()
            .reason,
        "expected an outline of three points or more that has a height, found 1 points"
    );
    assert_eq!(
        mapped.unmatched,
        ["PapilaDB-PAPILA-17f8fa77/ExpertsSegmentations/Contours/RET002OD_cup_exp1 2.txt"]
    );
    let table = &mapped.tables[0];
    assert_eq!(
        (table.rows, table.encoding, table.separator),
        (3, None, None)
    );
    assert_eq!(
        table.ignored_columns,
        [
            "dioptre_1",
            "dioptre_2",
            "astigmatism",
            "Phakic/Pseudophakic",
            "Pneumatic",
            "Perkins",
            "Pachymetry",
            "Axial_Length",
            "VF_MD"
        ]
    );
}

#[test]
fn without_suspects_in_the_corrected_track() {
    let data = data();
    let options = [("suspects", "unknown")];
    let mapped = map_with("papila.wasm", data.path(), &options, &Limits::default()).unwrap();
    assert!(briefs(&mapped)[0].contains("glaucoma:+?"));
    assert!(briefs(&mapped)[1].contains("glaucoma:++"));
}

#[test]
fn ids_are_matched_never_rows() {
    let data = data();
    let path = "PapilaDB-PAPILA-17f8fa77/ClinicalData/patient_data_od.xlsx";
    for (rows, expected) in [
        // A row of a circulating copy, whose cells are in other columns.
        (
            &[&["#291", "33", "0", "55"] as &[&str]] as &[&[&str]],
            "column `Diagnosis`: expected one of `0`, `1`, `2`, found `55`",
        ),
        (
            &[&["total", "47", "0", "0"]],
            "line 4, column `ID`: expected a patient's number, such as `#002`, found `total`",
        ),
        (
            &[&["#002", "47", "0", "3"]],
            "column `Diagnosis`: expected one of `0`, `1`, `2`, found `3`",
        ),
        (
            &[&["#002", "47", "#REF!", "3"]],
            "line 4 holds an error in column 3, expected a value, found `#REF!`",
        ),
        (
            &[&["#002", "47", "0", "1"], &["2", "47", "0", "0"]],
            "line 5 names `",
        ),
    ] {
        data.file(path, book(rows));
        let error = message(map("papila.wasm", data.path()));
        assert!(error.contains(expected), "{error}");
    }
    let flat: &[(u32, &[&str])] = &[
        (1, &["ID", "Age", "Sex", "Dx"]),
        (4, &["#002", "47", "0", "1"]),
    ];
    data.file(path, workbook(flat, &[]));
    let error = message(map("papila.wasm", data.path()));
    assert!(
        error.contains("lacks `Gender`, `Diagnosis`, expected among the columns; found `ID`, `Age`, `Sex`, `Dx`"),
        "{error}"
    );
}

#[test]
fn the_samples_of_the_specification() {
    let Some(samples) = samples("papila") else {
        return;
    };
    let data = Data::new();
    for file in ["patient_data_od.xlsx", "patient_data_os.xlsx"] {
        let bytes = std::fs::read(samples.join("ClinicalData").join(file)).unwrap();
        data.file(&format!("ClinicalData/{file}"), bytes);
    }
    let contours = "ExpertsSegmentations/Contours";
    for entry in std::fs::read_dir(samples.join(contours)).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        data.file(
            &format!("{contours}/{name}"),
            std::fs::read(entry.path()).unwrap(),
        );
    }
    for name in [
        "002OD", "002OS", "004OD", "004OS", "009OD", "009OS", "293OD", "293OS",
    ] {
        data.file(&format!("FundusImages/RET{name}.jpg"), "");
    }
    let mapped = map("papila.wasm", data.path()).unwrap();
    assert_eq!(mapped.records.len(), 8);
    let vcdr = mapped.records[0].vcdr.unwrap();
    // 242 of 396 pixels, twice.
    assert!((vcdr - 242.0 / 396.0).abs() < 1e-6, "{vcdr}");
}
