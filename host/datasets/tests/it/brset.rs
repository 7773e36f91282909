//! BRSET in its true shape: our own rows.

use focus_datasets::{ErrorKind, Limits, Truth};

use crate::support::{Data, briefs, map, map_with, message, samples};

pub const HEADER: &str = "image_id,patient_id,camera,patient_age,comorbidities,diabetes_time_y,insuline,patient_sex,\
    exam_eye,diabetes,nationality,optic_disc,vessels,macula,DR_SDRG,DR_ICDR,focus,Illuminaton,image_field,artifacts,\
    diabetic_retinopathy,macular_edema,scar,nevus,amd,vascular_occlusion,hypertensive_retinopathy,drusens,hemorrhage,\
    retinal_detachment,myopic_fundus,increased_cup_disc,other,quality\n";

/// Awkward on purpose: `1.0` for 1, `bv` and `0` in columns that are not read, free text in a duration, a letter O and a
/// decimal comma in ages, a plus, blanks.
const ROWS: &str = "\
    img1,7,Canon CR,48.0,\"diabetes1, hypertension\",12,yes,1,1,yes,Brazil,1,1,1,0,0,1,1,1,1,0,0,0,0,0,0,0,0,0,0,0,0,0,Adequate\n\
    img2,7,Canon CR,48.0,,12,yes,1.0,2.0,yes,Brazil,2,1,2,2,2.0,1,1,1,1,1,1,0,0,0,0,0,0,1,0,0,1,0,Adequate\n\
    img3,8,NIKON NF5050,,,,,2,1,No,Brazil,bv,1,1,0,0,0,2,1,1,0,1,0,0,0,0,0,1,0,0,0,0,0,Inadequate\n\
    img4,9,Canon CR,6O,,Não,no,2,2,yes,Brazil,1,1,1,4,4,1,1,1,2,0,0,1,0,0,0,0,0,0,0,0,0,0,Adequate\n\
    img5,10,Canon CR,\"63,5\",,,,,,,Brazil,1,1,1,,,1,1,1,1,,,0,0,0,0,0,0,0,0,0,,0,\n\
    img6,11,Canon CR,90+,,,,1,1,No,Brazil,1,1,1,1,1,1,1,1,1,1,,0,0,0,0,0,0,0,0,0,0,0,Adequate\n\
    img04415,12,Canon CR,61.0,,,,1,1,No,Brazil,1,1,1,0,0,1,1,1,1,0,0,0,0,0,0,0,0,0,0,0,0,0,Adequate\n";

fn data(file: &str, text: &str) -> Data {
    let data = Data::new();
    data.file(file, text);
    for number in 1..=6 {
        data.file(&format!("fundus_photos/img{number}.jpg"), "");
    }
    data
}

const EXPECTED: [&str; 6] = [
    "img1.jpg p7 right 48 male good grade0 edema0 binary_dr:-- referable_dr:-- glaucoma:--",
    "img2.jpg p7 left 48 male good grade2 edema1 binary_dr:++ referable_dr:++ glaucoma:++",
    "img3.jpg p8 right female poor grade0 edema1 binary_dr:-- referable_dr:++ glaucoma:--",
    "img4.jpg p9 left 60 female good grade4 edema0 binary_dr:++ referable_dr:++ glaucoma:--",
    "img5.jpg p10 63.5 binary_dr:?? referable_dr:-? glaucoma:??",
    "img6.jpg p11 right 90+ male good grade1 binary_dr:++ referable_dr:-? glaucoma:--",
];

#[test]
fn both_versions_give_the_same_records() {
    let text = format!("{HEADER}{ROWS}");
    for (file, text) in [
        ("labels_brset.csv", text.clone()),
        ("labels.csv", text.replace("Illuminaton", "iluminaton")),
    ] {
        let mapped = map("brset.wasm", data(file, &text).path()).unwrap();
        assert_eq!(briefs(&mapped), EXPECTED, "{file}");
        assert_eq!(mapped.missing.len(), 1);
        assert_eq!(mapped.missing[0].image, "fundus_photos/img04415");
        let fourth = &mapped.records[3];
        assert_eq!(fourth.camera.as_deref(), Some("Canon CR"));
        let dr = &fourth.findings[0];
        assert_eq!(
            (dr.name.as_str(), dr.state),
            ("diabetic_retinopathy", Truth::Negative),
            "it contradicts the grade, which decides"
        );
        assert_eq!(fourth.findings.len(), 13);
    }
}

#[test]
fn the_published_cohort_is_a_counted_step() {
    let data = data("labels_brset.csv", &format!("{HEADER}{ROWS}"));
    let cohort = |value| {
        map_with(
            "brset.wasm",
            data.path(),
            &[("cohort", value)],
            &Limits::default(),
        )
    };
    let mapped = cohort("published").unwrap();
    assert_eq!(mapped.records.len(), 3);
    assert_eq!(mapped.dropped.len(), 4, "`No` and blank");
    assert_eq!(
        mapped.dropped[0].reason,
        "diabetes is not yes (cohort = published)"
    );
    assert_eq!(cohort("all").unwrap().records.len(), 6);
    assert_eq!(map("brset.wasm", data.path()).unwrap().options[0].1, "all");
}

#[test]
fn a_later_version_is_refused_with_the_columns_seen() {
    let later = HEADER
        .replace("insuline", "insulin_use")
        .replace("Illuminaton", "illumination")
        .replace("drusens", "drusen");
    let data = data("labels_brset.csv", &format!("{later}{ROWS}"));
    let error = map("brset.wasm", data.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data);
    let text = error.to_string();
    assert!(
        text.starts_with(
            "`labels_brset.csv` line 1 lacks `insuline`, `Illuminaton`, `drusens`, expected among the columns; found \
             `image_id`, `patient_id`"
        ),
        "{text}"
    );
    assert!(
        text.contains("`insulin_use`") && error.hint().is_some(),
        "{text}"
    );
    let more = HEADER.replace("quality\n", "quality,new\n");
    let error = message(map(
        "brset.wasm",
        self::data("labels_brset.csv", &format!("{more}{ROWS}")).path(),
    ));
    assert!(
        error.contains("has columns that the mapper does not know: `new`"),
        "{error}"
    );
}

#[test]
fn unknown_codes_are_refused() {
    let good = ROWS.lines().next().unwrap();
    for (from, to, expected) in [
        (
            ",yes,1,1,yes,",
            ",yes,0,1,yes,",
            "column `patient_sex`: expected one of `1`, `2`, found `0`",
        ),
        (
            ",yes,1,1,yes,",
            ",yes,1,R,yes,",
            "column `exam_eye`: expected one of `1`, `2`, found `R`",
        ),
        (
            "48.0",
            "forty",
            "column `patient_age`: expected an age from 0 to 120",
        ),
        ("48.0", "NaN", "column `patient_age`"),
        ("48.0", "480", "column `patient_age`"),
        (
            "Adequate",
            "adequate",
            "column `quality`: expected one of `Adequate`, `Inadequate`",
        ),
        (
            ",1,1,1,0,0,1,",
            ",1,1,1,0,5,1,",
            "column `DR_ICDR`: expected a whole number from 0 to 4, found `5`",
        ),
        (
            ",yes,Brazil",
            ",maybe,Brazil",
            "column `diabetes`: expected `yes` or `no`, found `maybe`",
        ),
        (
            "img1,",
            ",",
            "column `image_id`: expected the name of a photograph",
        ),
    ] {
        let row = good.replacen(from, to, 1);
        assert_ne!(row, good);
        let error = message(map(
            "brset.wasm",
            data("labels_brset.csv", &format!("{HEADER}{row}\n")).path(),
        ));
        assert!(
            error.contains(expected) && error.contains("line 2"),
            "{error}"
        );
    }
}

#[test]
fn archives_are_found_as_unpacked() {
    let text = format!("{HEADER}{ROWS}");
    for top in [
        "a-brazilian-multilabel-ophthalmological-dataset-brset-1.0.1",
        "physionet.org/files/brazilian-ophthalmological/1.0.1",
    ] {
        let data = Data::new();
        data.file(&format!("{top}/labels_brset.csv"), &text)
            .file(&format!("{top}/fundus_photos/img1.jpg"), "");
        assert_eq!(
            map("brset.wasm", data.path()).unwrap().records.len(),
            1,
            "{top}"
        );
    }
    let error = message(map("brset.wasm", Data::new().path()));
    assert!(error.contains("looked for `fundus_photos`"), "{error}");
}

#[test]
fn the_samples_of_the_specification() {
    let Some(samples) = samples("brset") else {
        return;
    };
    for (file, text) in [
        ("labels_brset.csv", "labels_brset.csv"),
        ("labels.csv", "labels.csv"),
    ] {
        let data = Data::new();
        data.file(file, std::fs::read(samples.join(text)).unwrap());
        for number in 90001..=90004 {
            data.file(&format!("fundus_photos/img{number}.jpg"), "");
        }
        assert!(map("brset.wasm", data.path()).unwrap().records.len() >= 2);
    }
    let data = Data::new();
    data.file("fundus_photos/img90001.jpg", "").file(
        "labels_brset.csv",
        std::fs::read(samples.join("labels_brset_v1.0.2_UNVERIFIED_names.csv")).unwrap(),
    );
    assert!(message(map("brset.wasm", data.path())).contains("lacks `insuline`"));
}
