//! Messidor-2 in its true shape: two versions of one table, names in another case than the files, a list of pairs.

use crate::support::{Data, briefs, map, message};

const KRAUSE: &str = "image_id,adjudicated_dr_grade,adjudicated_dme,adjudicated_gradable\n";
const KAGGLE: &str = "id_code,diagnosis,adjudicated_dme,adjudicated_gradable\n";
const ROWS: &str =
    "20990101_1_0100_PP.png,0,0,1\n20990101_2_0100_PP.png,2.0,1.0,1\nIM1.jpg,1,1,1\nIM2.jpg,,,0\n";
const PAIRS: &str = "left;right \n20990101_1_0100_PP.png;20990101_2_0100_PP.png\nIM2.JPG;IM1.JPG\n";

fn data(table: &str) -> Data {
    let data = Data::new();
    data.file("messidor_data.csv", table);
    for name in [
        "20990101_1_0100_PP.png",
        "20990101_2_0100_PP.png",
        "IM1.JPG",
        "IM2.JPG",
    ] {
        data.file(&format!("IMAGES/{name}"), "");
    }
    data
}

#[test]
fn both_versions_of_the_table_with_and_without_pairs() {
    let with = data(&format!("{KRAUSE}{ROWS}"));
    with.file("messidor-2.csv", PAIRS);
    let mapped = map("messidor_2.wasm", with.path()).unwrap();
    assert_eq!(
        briefs(&mapped),
        [
            "20990101_1_0100_PP.png p20990101_1_0100_PP left good grade0 edema0 binary_dr:-- referable_dr:--",
            "20990101_2_0100_PP.png p20990101_1_0100_PP right good grade2 edema1 binary_dr:++ referable_dr:++",
            "IM1.JPG pIM2 right good grade1 edema1 binary_dr:++ referable_dr:++",
            "IM2.JPG pIM2 left poor binary_dr:?? referable_dr:??",
        ]
    );
    assert_eq!(mapped.used_rows, 2);
    assert_eq!(mapped.tables[0].separator, Some(';'));
    let without = map("messidor_2.wasm", data(&format!("{KAGGLE}{ROWS}")).path()).unwrap();
    assert_eq!(without.absent, ["table pairs"]);
    assert_eq!(
        briefs(&without)[2],
        "IM1.JPG good grade1 edema1 binary_dr:++ referable_dr:++",
        "no pairs, no patient"
    );
}

#[test]
fn what_cannot_be_read_is_refused() {
    for (table, expected) in [
        (
            "id_code,diagnosis\nIM1.jpg,1\n",
            "lacks `adjudicated_dme`, `adjudicated_gradable`, expected among the columns",
        ),
        (
            "id_code,image_id,diagnosis,adjudicated_dme,adjudicated_gradable\nIM1.jpg,IM1.jpg,1,0,1\n",
            "in two ways at once",
        ),
        (
            &format!("{KAGGLE}IM1.jpg,5,0,1\n"),
            "column `adjudicated_dr_grade`: expected a whole number from 0 to 4",
        ),
        (
            &format!("{KAGGLE}IM1.jpg,1,2,1\n"),
            "column `adjudicated_dme`: expected one of `0`, `1`, found `2`",
        ),
        (
            &format!("{KAGGLE}IM1.jpg,1,0,1\nim1.JPG,1,0,1\n"),
            "line 3 names `IMAGES/IM1.JPG`, which",
        ),
    ] {
        let error = message(map("messidor_2.wasm", data(table).path()));
        assert!(error.contains(expected), "{error}");
    }
    let data = data(&format!("{KRAUSE}{ROWS}"));
    data.file("messidor-2.csv", "left;right\na.png;b.png\nB.png;c.png\n");
    let error = message(map("messidor_2.wasm", data.path()));
    assert!(
        error.contains(
            "`messidor-2.csv` line 3, column `left`: expected a photograph that is in no other pair"
        ),
        "{error}"
    );
}
