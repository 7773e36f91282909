//! JSIEC1000 in its true shape: folders are labels, names have two dots, a second copy lies one level down.

use crate::support::{Data, briefs, map, message};

/// All folders with their sizes.
pub const CLASSES: [(&str, usize); 39] = [
    ("0.0.Normal", 38),
    ("0.1.Tessellated fundus", 13),
    ("0.2.Large optic cup", 50),
    ("0.3.DR1", 18),
    ("1.0.DR2", 49),
    ("1.1.DR3", 39),
    ("10.0.Possible glaucoma", 13),
    ("10.1.Optic atrophy", 12),
    ("11.Severe hypertensive retinopathy", 15),
    ("12.Disc swelling and elevation", 13),
    ("13.Dragged Disc", 10),
    ("14.Congenital disc abnormality", 10),
    ("15.0.Retinitis pigmentosa", 22),
    ("15.1.Bietti crystalline dystrophy", 8),
    ("16.Peripheral retinal degeneration and break", 14),
    ("17.Myelinated nerve fiber", 11),
    ("18.Vitreous particles", 14),
    ("19.Fundus neoplasm", 8),
    ("2.0.BRVO", 44),
    ("2.1.CRVO", 22),
    ("20.Massive hard exudates", 13),
    ("21.Yellow-white spots-flecks", 29),
    ("22.Cotton-wool spots", 10),
    ("23.Vessel tortuosity", 14),
    ("24.Chorioretinal atrophy-coloboma", 15),
    ("25.Preretinal hemorrhage", 10),
    ("26.Fibrosis", 10),
    ("27.Laser Spots", 20),
    ("28.Silicon oil in eye", 19),
    ("29.0.Blur fundus without PDR", 114),
    ("29.1.Blur fundus with suspected PDR", 45),
    ("3.RAO", 16),
    ("4.Rhegmatogenous RD", 57),
    ("5.0.CSCR", 14),
    ("5.1.VKH disease", 14),
    ("6.Maculopathy", 74),
    ("7.ERM", 26),
    ("8.MH", 23),
    ("9.Pathological myopia", 54),
];

const FILES: [&str; 9] = [
    "0.0.Normal/a-1..JPG",
    "0.3.DR1/b-2..JPG",
    "1.0.DR2/c-3..TIF",
    "10.0.Possible glaucoma/d-4..JPG",
    "20.Massive hard exudates/e-5.jpg",
    "29.0.Blur fundus without PDR/f-6..JPG",
    "29.1.Blur fundus with suspected PDR/g-7..JPG",
    "6.Maculopathy/h-8..JPG",
    "27.Laser Spots/a-1..JPG",
];

const EXPECTED: [&str; 9] = [
    "a-1..JPG binary_dr:-- referable_dr:--",
    "b-2..JPG binary_dr:++ referable_dr:--",
    "c-3..TIF binary_dr:++ referable_dr:++",
    "d-4..JPG binary_dr:-- referable_dr:--",
    "e-5.jpg binary_dr:-? referable_dr:-?",
    "a-1..JPG binary_dr:-? referable_dr:-?",
    "f-6..JPG poor binary_dr:-? referable_dr:-?",
    "g-7..JPG poor binary_dr:++ referable_dr:++",
    "h-8..JPG binary_dr:-- referable_dr:--",
];

fn data(tops: &[&str]) -> Data {
    let data = Data::new();
    for top in tops {
        for file in FILES {
            data.file(&format!("{top}/{file}"), "");
        }
    }
    data
}

#[test]
fn the_folder_is_the_label() {
    let mapped = map("jsiec1000.wasm", data(&["1000images"]).path()).unwrap();
    assert_eq!(briefs(&mapped), EXPECTED);
    assert_eq!(mapped.records[3].findings[0].name, "10.0.Possible glaucoma");
    assert!(
        mapped.descriptor.task("glaucoma").is_none(),
        "it has no negatives"
    );
    assert!(!mapped.records[0].sample.id().contains("Normal"));
}

#[test]
fn a_second_copy_is_dropped_and_a_lone_inner_one_is_not() {
    let mapped = map(
        "jsiec1000.wasm",
        data(&["1000images", "1000images/1000images"]).path(),
    )
    .unwrap();
    assert_eq!(briefs(&mapped), EXPECTED);
    assert_eq!(mapped.dropped.len(), 9);
    assert_eq!(
        mapped.dropped[0].reason,
        "in a second copy of the folders, one level down"
    );
    let mapped = map("jsiec1000.wasm", data(&["1000images/1000images"]).path()).unwrap();
    assert_eq!(briefs(&mapped), EXPECTED);
    let mapped = map("jsiec1000.wasm", data(&["archive/1000images"]).path()).unwrap();
    assert_eq!(briefs(&mapped), EXPECTED);
    let inside = data(&["1000images"]);
    let error = map("jsiec1000.wasm", &inside.path().join("1000images")).unwrap_err();
    assert!(error.hint().unwrap().ends_with("/..`"), "{error}");
}

#[test]
fn an_unknown_folder_is_refused() {
    for (file, expected) in [
        (
            "30.New disease/x.jpg",
            "column `path`: expected a photograph in one of the 39 folders, such as `0.0.Normal`, found `30.New disease/x.jpg`",
        ),
        ("x.jpg", "found `x.jpg`"),
        (
            "extra/0.0.Normal/x.jpg",
            "expected a photograph right in its class's folder",
        ),
    ] {
        let data = data(&["1000images"]);
        data.file(&format!("1000images/{file}"), "");
        let error = message(map("jsiec1000.wasm", data.path()));
        assert!(error.contains(expected), "{error}");
    }
}
