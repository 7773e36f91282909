//! The drawn dataset's table, as the generator writes it.

use focus_datasets::{Limits, MapperSource};

use crate::support::{Data, lines, map, message};

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
            "a.png,train,1,right,1,F,good,0,2,0,,,,,,",
            "column `edema`: expected one of `0`, `1`",
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
