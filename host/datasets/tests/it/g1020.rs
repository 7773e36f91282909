//! G1020 in its true shape: gaps in the numbers, masks that name disc and cup by value.

use focus_datasets::Track;

use crate::support::{Data, briefs, map, message};

fn data(table: &str) -> Data {
    let data = Data::new();
    data.file("G1020/G1020.csv", table);
    for name in ["image_0.jpg", "image_1.jpg", "image_3.JPG"] {
        data.file(&format!("G1020/Images/{name}"), "");
    }
    data.file("G1020/Masks/image_0.png", "")
        .file("G1020/Masks/image_3.png", "");
    data
}

#[test]
fn masks_are_named_with_their_values() {
    let data = data("imageID,binaryLabels\nimage_0.jpg,0\nimage_1.jpg,0\nimage_3.JPG,1\n");
    let mapped = map("g1020.wasm", data.path()).unwrap();
    assert_eq!(
        briefs(&mapped),
        [
            "image_0.jpg glaucoma:--",
            "image_1.jpg glaucoma:--",
            "image_3.JPG glaucoma:++"
        ]
    );
    let masks = mapped.records[2].masks.iter().map(|mask| {
        let path = mask.path.rsplit('/').next().unwrap();
        format!("{} {path} {:?} {:?}", mask.what, mask.values, mask.others)
    });
    assert_eq!(
        masks.collect::<Vec<_>>(),
        ["disc image_3.png [1, 2] [0]", "cup image_3.png [2] [0, 1]",]
    );
    assert_eq!(
        mapped.unusable.len(),
        1,
        "a picture that two structures share is lacking once"
    );
    assert_eq!(mapped.unusable[0].file, "G1020/Masks/image_1");
    assert!(mapped.missing.is_empty() && mapped.unmatched.is_empty());
    let task = mapped.descriptor.task("glaucoma_vcdr").unwrap();
    assert_eq!(
        (task.vcdr_at_least, task.tracks.as_slice()),
        (Some(0.6), [Track::Corrected].as_slice())
    );
    // What a caller that measures masks does.
    let mut record = mapped.records[0].clone();
    record.set_vcdr(0.61, &mapped.descriptor);
    record.set_vcdr(0.59, &mapped.descriptor);
    assert_eq!(
        crate::support::brief(&record),
        "image_0.jpg vcdr0.590 glaucoma:-- glaucoma_vcdr:?-"
    );
}

#[test]
fn without_masks_that_is_said_once() {
    let data = Data::new();
    data.file(
        "G1020.csv",
        "imageID,binaryLabels\nimage_0.jpg,0\nimage_1.jpg,1\n",
    )
    .file("Images/image_0.jpg", "")
    .file("Images/image_1.jpg", "");
    let mapped = map("g1020.wasm", data.path()).unwrap();
    assert_eq!(mapped.absent, ["folder masks"]);
    assert!(mapped.unusable.is_empty());
}

#[test]
fn another_header_or_code_is_refused() {
    for (table, expected) in [
        (
            "image,label\nimage_0.jpg,0\n",
            "lacks `imageID`, `binaryLabels`, expected among the columns; found `image`, `label`",
        ),
        (
            "imageID,binaryLabels,age\nimage_0.jpg,0,4\n",
            "has columns that the mapper does not know: `age`",
        ),
        (
            "imageID,binaryLabels\nimage_0.jpg,2\n",
            "column `binaryLabels`: expected one of `0`, `1`, found `2`",
        ),
    ] {
        let error = message(map("g1020.wasm", data(table).path()));
        assert!(error.contains(expected), "{error}");
    }
}
