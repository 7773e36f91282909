//! The drawn dataset's table, as the generator writes it now and as its first version did.

use focus_datasets::{Limits, MapperSource};

use crate::support::{Data, lines, map, map_with, message};

const HEADER: &str = "image,split,patient,eye,age,sex,quality,icdr_grade,edema,gon,disc_x,disc_y,fovea_x,fovea_y,width,height\n";

fn data(rows: &str) -> Data {
    let data = Data::new();
    data.file("labels.csv", format!("{HEADER}{rows}"));
    for name in ["a.png", "b.png", "c.jpg"] {
        data.file(&format!("images/{name}"), "");
    }
    data
}

#[test]
fn rows_become_these_records() {
    let data = data(
        "a.png,train,007,right,61.5,F,good,0,0,0,300.5,200,180,210,512,512\n\
         b.png,train,007,left,61.5,M,poor,2,1,1,,,,,,\n\
         c.jpg,test,,,,,,,,,,,,,,\n",
    );
    let mapped = map("synthetic.wasm", data.path()).unwrap();
    insta::assert_snapshot!(lines(&mapped));
    assert!(mapped.descriptor.synthetic);
    let embedded: MapperSource = "synthetic".parse().unwrap();
    let again =
        focus_datasets::map_dataset(&embedded, data.path(), &Limits::default(), None).unwrap();
    assert_eq!(again.records, mapped.records);
    let json = serde_json::to_string(&mapped).unwrap();
    let mut back: focus_datasets::Mapped = serde_json::from_str(&json).unwrap();
    back.summary.root.clone_from(&mapped.summary.root);
    assert_eq!(back, mapped);
    assert!(
        !json.contains(data.path().to_str().unwrap()),
        "a place of this machine has no place in a run folder"
    );
}

#[test]
fn codes_are_read_strictly() {
    for (row, expected) in [
        (
            "a.png,Train,1,right,1,F,good,0,0,0,,,,,,",
            "column `split`: expected one of `train`, `validation`, `test`",
        ),
        (
            "a.png,train,1,OD,1,F,good,0,0,0,,,,,,",
            "column `eye`: expected one of `right`, `left`, found `OD`",
        ),
        (
            "a.png,train,1,right,NaN,F,good,0,0,0,,,,,,",
            "column `age`: expected a number from 0 to 150, found `NaN`",
        ),
        (
            "a.png,train,1,right,1,female,good,0,0,0,,,,,,",
            "column `sex`: expected one of `F`, `M`",
        ),
        (
            "a.png,train,1,right,1,F,good,0,3,0,,,,,,",
            "column `edema`: expected one of `0`, `1`, `2`",
        ),
        (
            "../a.png,train,1,right,1,F,good,0,1,0,,,,,,",
            "found `../a.png`",
        ),
        (
            "a.png,train,1,right,1,F,good,0,1,0,600,10,,,512,512",
            "expected a point within 512 x 512, found 600, 10",
        ),
    ] {
        let error = message(map("synthetic.wasm", data(&format!("{row}\n")).path()));
        assert!(
            error.contains(expected) && error.contains("`labels.csv` line 2"),
            "{error}"
        );
    }
}

const NEW_HEADER: &str = "image,split,patient,eye,age,sex,population,camera,quality,icdr_grade,edema,gon,\
    true_icdr_grade,true_edema,true_gon,vcdr,rim_notch,myopic_crescent,drusen,venous_beading,\
    disc_x,disc_y,fovea_x,fovea_y,width,height,boxes,masks\n";

fn new_data(boxes: &str, masks: &str) -> Data {
    let data = Data::new();
    let row = format!(
        "images/a.png,validation,P000003,left,70,F,dark,clinic-1,good,1,0,0,3,2,1,0.6250,1,0,1,0,\
         96.50,150.25,210.00,160.75,320,320,{boxes},{masks}\n"
    );
    data.file("labels.csv", format!("{NEW_HEADER}{row}"));
    data.file("images/a.png", "");
    data.file("masks/optic_cup/a.png", "");
    data.file("masks/hard_exudate/a.png", "");
    data
}

#[test]
fn boxes_masks_camera_and_both_sets_of_labels_are_read() {
    let data = new_data(
        "hard_exudate 10 20 14 25;speck 0 0 1 320",
        "optic_cup;hard_exudate",
    );
    let mapped = map("synthetic.wasm", data.path()).unwrap();
    insta::assert_snapshot!(lines(&mapped));
    assert!(mapped.summary.missing.is_empty() && mapped.summary.unmatched.is_empty());
    let limits = Limits::default();
    let options = [("labels", "true")];
    let truth = map_with("synthetic.wasm", data.path(), &options, &limits).unwrap();
    let (recorded, truth) = (&mapped.records[0], &truth.records[0]);
    assert_eq!((recorded.grade, recorded.edema), (Some(1), Some(0)));
    assert_eq!((truth.grade, truth.edema), (Some(3), Some(2)));
    // Only labels differ: the true state of each task is told either way.
    assert_eq!(recorded.findings, truth.findings);
    for label in &truth.labels {
        let name = format!("true_{}", label.task);
        let finding = recorded.findings.iter().find(|f| f.name == name).unwrap();
        assert_eq!(label.corrected, finding.state);
    }
}

#[test]
fn boxes_and_masks_are_read_strictly() {
    for (boxes, masks, expected) in [
        ("speck 1 2 3", "", "column `boxes`: expected boxes as"),
        ("speck 1 2 3 4 5", "", "column `boxes`: expected boxes as"),
        ("speck 1 2 3 x", "", "column `boxes`: expected boxes as"),
        ("speck 1 2 3 4;", "", "column `boxes`: expected boxes as"),
        ("speck 1 2 3 321", "", "within 320 x 320"),
        ("", "optic_cup;", "column `masks`: expected kinds of masks"),
        ("", "../images", "column `masks`: expected kinds of masks"),
    ] {
        let error = message(map("synthetic.wasm", new_data(boxes, masks).path()));
        assert!(error.contains(expected), "{boxes} {masks}: {error}");
    }
    // A mask that is named but not there is counted, not an error.
    let mapped = map("synthetic.wasm", new_data("", "vein").path()).unwrap();
    assert!(mapped.summary.missing.is_empty());
    assert_eq!(mapped.summary.unusable.len(), 1);
    assert!(mapped.records[0].masks.is_empty());
}

#[test]
fn a_folder_of_the_first_version_has_no_true_labels() {
    let data = data("a.png,train,1,right,1,F,good,0,1,0,,,,,,\n");
    let options = [("labels", "true")];
    let limits = Limits::default();
    let error = message(map_with("synthetic.wasm", data.path(), &options, &limits));
    assert!(
        error.contains("column `true_icdr_grade`: expected the true grade"),
        "{error}"
    );
}
