//! mBRSET in its true shape: our own rows, with the public header and with the authors' own.

use focus_datasets::Limits;

use crate::support::{Data, briefs, map, map_with, message};

pub const HEADER: &str = "patient,age,sex,dm_time,insulin,insulin_time,oraltreatment_dm,systemic_hypertension,insurance,\
    educational_level,alcohol_consumption,smoking,obesity,vascular_disease,acute_myocardial_infarction,nephropathy,\
    neuropathy,diabetic_foot,file,laterality,final_artifacts,final_quality,final_icdr,final_edema";
const CLINIC: &str = "15.0,1.0,5.0,1.0,1.0,1.0,3.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0";

/// patient, age, sex, file, laterality, quality, grade, edema, cup.
const ROWS: [[&str; 9]; 6] = [
    [
        "1", "63.0", "0", "1.1.jpg", "right", "yes", "2.0", "no", "yes",
    ],
    ["1", "63.0", "0", "1.2.jpg", "right", "yes", "0.0", "", ""],
    ["1", "63.0", "0", "1.3.jpg", "left", "no", "", "", "no"],
    [
        "2", "90+", "1", "2.1.jpg", "right", "yes", "0.0", "no", "no",
    ],
    ["2.0", "", "1", "2.4.jpg", "left", "", "1", "yes", "no"],
    [
        "985",
        "58.0",
        "1",
        "985.1.jpg",
        "right",
        "yes",
        "0.0",
        "no",
        "no",
    ],
];

fn table(cups: bool) -> String {
    let mut text = HEADER.to_owned() + if cups { ",increased_cdr\n" } else { "\n" };
    for [
        patient,
        age,
        sex,
        file,
        laterality,
        quality,
        grade,
        edema,
        cup,
    ] in ROWS
    {
        text += &format!(
            "{patient},{age},{sex},{CLINIC},{file},{laterality},no,{quality},{grade},{edema}"
        );
        text += &if cups {
            format!(",{cup}\n")
        } else {
            "\n".into()
        };
    }
    text
}

fn data(file: &str, text: &str) -> Data {
    let data = Data::new();
    data.file(file, text);
    for name in ["1.1", "1.2", "1.3", "2.1", "2.4"] {
        data.file(&format!("images/{name}.jpg"), "");
    }
    data
}

#[test]
fn the_authors_copy_has_a_cup_reading() {
    let mapped = map("mbrset.wasm", data("labels.csv", &table(true)).path()).unwrap();
    assert_eq!(
        briefs(&mapped),
        [
            "1.1.jpg p1 right macula 63 female good grade2 edema0 binary_dr:++ referable_dr:++ glaucoma:++",
            // A blank is no as published, unknown in truth.
            "1.2.jpg p1 right disc 63 female good grade0 binary_dr:-- referable_dr:-? glaucoma:-?",
            // Without a grade, no task as published; the cup was read all the same.
            "1.3.jpg p1 left macula 63 female poor binary_dr:?? referable_dr:?? glaucoma:?-",
            "2.1.jpg p2 right macula 90+ male good grade0 edema0 binary_dr:-- referable_dr:-- glaucoma:--",
            "2.4.jpg p2 left disc male grade1 edema1 binary_dr:++ referable_dr:++ glaucoma:--",
        ]
    );
    assert_eq!(mapped.missing.len(), 1);
    assert_eq!(mapped.missing[0].image, "images/985.1.jpg");
}

#[test]
fn the_public_copy_has_none_and_glaucoma_is_unknown() {
    let mapped = map(
        "mbrset.wasm",
        data("labels_mbrset.csv", &table(false)).path(),
    )
    .unwrap();
    assert_eq!(mapped.records.len(), 5);
    for line in briefs(&mapped) {
        assert!(!line.contains("glaucoma"), "{line}");
    }
}

#[test]
fn the_published_cohort_is_the_macula_views() {
    let data = data("labels.csv", &table(true));
    let options = [("cohort", "published")];
    let mapped = map_with("mbrset.wasm", data.path(), &options, &Limits::default()).unwrap();
    assert_eq!(mapped.records.len(), 3);
    assert_eq!(mapped.dropped.len(), 2);
    assert_eq!(
        mapped.dropped[0].reason,
        "a disc view, .2 or .4 (cohort = published)"
    );
}

#[test]
fn unknown_codes_headers_and_names_are_refused() {
    let text = table(false);
    for (from, to, expected) in [
        (
            "63.0,0,",
            "63.0,F,",
            "column `sex`: expected one of `0`, `1`, found `F`",
        ),
        (
            "right,no,yes",
            "OD,no,yes",
            "column `laterality`: expected one of `right`, `left`",
        ),
        (
            ",yes,2.0,",
            ",adequate,2.0,",
            "column `final_quality`: expected `yes` or `no`",
        ),
        (
            ",2.0,no",
            ",2.5,no",
            "column `final_icdr`: expected a whole number from 0 to 4",
        ),
        (
            "1.1.jpg",
            "1.5.jpg",
            "column `file`: expected the patient's number, a view from 1 to 4",
        ),
        (
            "1.1.jpg",
            "2.1.jpg",
            "column `file`: expected the patient's number",
        ),
        (
            "1.1.jpg",
            "",
            "column `file`: expected the name of a photograph",
        ),
        (
            "final_icdr",
            "icdr",
            "lacks `final_icdr`, expected among the columns; found `patient`",
        ),
        (
            "final_edema\n",
            "final_edema,x\n",
            "has columns that the mapper does not know: `x`",
        ),
    ] {
        let spoilt = text.replacen(from, to, 1);
        assert_ne!(spoilt, text);
        let error = message(map(
            "mbrset.wasm",
            data("labels_mbrset.csv", &spoilt).path(),
        ));
        assert!(error.contains(expected), "{error}");
    }
}
