//! Workbooks and JSON as they are met and as they should not be, through the mappers that read them.

use focus_datasets::{ErrorKind, Limits};
use proptest::prelude::*;

use crate::support::{Data, archive, map, map_with, message, sheet, workbook};

const OD: &str = "ClinicalData/patient_data_od.xlsx";
type Rows<'a> = &'a [(u32, &'a [&'a str])];

fn papila(right: &[u8]) -> Data {
    let left: Rows = &[(3, &["ID", "Age", "Gender", "Diagnosis"])];
    let data = Data::new();
    data.file(OD, right)
        .file("ClinicalData/patient_data_os.xlsx", workbook(left, &[]));
    for number in 2..5 {
        data.file(&format!("FundusImages/RET00{number}OD.jpg"), "");
    }
    data
}

#[test]
fn names_come_from_the_lowest_filled_cell_of_the_header() {
    let layouts: [(Rows, &[&str]); 4] = [
        // Merged downwards, so that the lower cells are covered.
        (
            &[
                (1, &["ID", "Age", "Gender", "Diagnosis"]),
                (4, &["2", "50", "1", "1"]),
            ],
            &["A1:A3", "B1:B3"],
        ),
        // Groups above, names below, in whichever row.
        (
            &[
                (1, &["", "Person", "", "Eye"]),
                (2, &["", "Age", "Gender", "Diagnosis"]),
                (3, &["ID"]),
                (4, &["#002", "50", "1", "1"]),
            ],
            &["B1:C1"],
        ),
        // Blanks around names and values, a blank row, columns without a name, numbers as text.
        (
            &[
                (3, &[" ID\u{a0}", "Age ", "Gender", "Diagnosis", "", " "]),
                (5, &["", " "]),
                (6, &["\u{a0}#002 ", " 50", "1", "1", "", ""]),
            ],
            &[],
        ),
        // Another order.
        (
            &[
                (2, &["Diagnosis", "Gender", "Age", "ID"]),
                (4, &["1", "1", "50", "#002"]),
            ],
            &[],
        ),
    ];
    for (rows, merged) in layouts {
        let mapped = map("papila.wasm", papila(&workbook(rows, merged)).path()).unwrap();
        let record = &mapped.records[0];
        assert_eq!(
            (record.age.unwrap().years, record.patient.as_deref()),
            (50.0, Some("002"))
        );
        assert_eq!(record.line, rows.last().unwrap().0);
    }
    let sideways: Rows = &[
        (1, &["ID", "Age", ""]),
        (3, &["", "", "Diagnosis"]),
        (4, &["#002", "1", "1"]),
    ];
    let error = message(map(
        "papila.wasm",
        papila(&workbook(sideways, &["B1:C2"])).path(),
    ));
    assert!(
        error
            .contains("lacks `Gender`, expected among the columns; found `ID`, `Age`, `Diagnosis`"),
        "{error}"
    );
    let twice: Rows = &[(1, &["ID", "Age", ""]), (4, &["#002", "1", "1"])];
    let error = message(map(
        "papila.wasm",
        papila(&workbook(twice, &["B1:C1"])).path(),
    ));
    assert!(
        error.contains("line 3 has the column `Age` twice, at 2 and 3"),
        "{error}"
    );
}

#[test]
fn what_is_no_workbook_is_told() {
    let good: Rows = &[
        (3, &["ID", "Age", "Gender", "Diagnosis"]),
        (4, &["#002", "50", "1", "1"]),
    ];
    let whole = workbook(good, &[]);
    for (bytes, expected) in [
        (
            b"ID,Age\n1,2\n".to_vec(),
            "is no XLSX workbook that can be read",
        ),
        (Vec::new(), "is no XLSX workbook that can be read"),
        (
            whole[..whole.len() / 2].to_vec(),
            "is no XLSX workbook that can be read",
        ),
        (
            workbook(&[(4, &["#002"])], &[]),
            "is empty, expected a header",
        ),
        (
            workbook(
                &[
                    (3, &["ID", "Age", "Gender", "Diagnosis"]),
                    (4, &["2", "5", "1", "1", "6"]),
                ],
                &[],
            ),
            "line 4 has 5 cells, expected 4 as in the header",
        ),
    ] {
        let error = map("papila.wasm", papila(&bytes).path()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data);
        let error = error.to_string();
        assert!(
            error.starts_with(&format!("`{OD}`")) && error.contains(expected),
            "{error}"
        );
    }
}

#[test]
fn workbooks_are_bounded() {
    let text = "x".repeat(20_000);
    let rows: Rows = &[
        (3, &["ID", "Age", "Gender", "Diagnosis", "Note"]),
        (4, &["#002", "50", "1", "1", &text]),
        (5, &["#003", "50", "1", "1"]),
    ];
    let with = |change: fn(&mut Limits)| {
        let mut limits = Limits::default();
        change(&mut limits);
        message(map_with(
            "papila.wasm",
            papila(&workbook(rows, &[])).path(),
            &[],
            &limits,
        ))
    };
    // The archive is small, what it unpacks to is not.
    let error = with(|l| l.document_bytes = 10_000);
    assert_eq!(error, format!("`{OD}` unpacks to more than 10000 bytes"));
    assert!(
        with(|l| l.document_bytes = 100).contains("is too large: 101 bytes, expected at most 100")
    );
    assert!(with(|l| l.rows = 1).contains("has over 1 rows"));
    assert!(with(|l| l.columns = 4).contains("has over 4 columns"));
    let error = with(|l| l.cell_bytes = 100);
    assert!(
        error.contains("line 4 holds a cell of 20000 bytes in column 5, expected at most 100"),
        "{error}"
    );
}

#[test]
fn shared_strings_are_read_and_their_number_is_not_believed() {
    let cell = |place: &str, index: u32| format!(r#"<c r="{place}" t="s"><v>{index}</v></c>"#);
    let number = |place: &str, value: u32| format!(r#"<c r="{place}"><v>{value}</v></c>"#);
    let xml = |first: u32| {
        let header: String = (0..4)
            .map(|column| {
                cell(
                    &format!("{}3", char::from(b'A' + column)),
                    first + u32::from(column),
                )
            })
            .collect();
        let row = [("B4", 50), ("C4", 1), ("D4", 1)].map(|(place, value)| number(place, value));
        format!(
            r#"<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><dimension ref="A1:XFD1048576"/><sheetData><row r="3">{header}</row><row r="4">{}{}</row></sheetData></worksheet>"#,
            cell("A4", 4),
            row.concat()
        )
    };
    let strings = |attributes: &str| {
        let items: String = ["ID", "Age", "Gender", "Diagnosis", "#002"]
            .iter()
            .map(|text| format!("<si><t>{text}</t></si>"))
            .collect();
        format!(
            r#"<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"{attributes}>{items}</sst>"#
        )
    };
    let run = |xml: String, strings: &str| {
        map("papila.wasm", papila(&archive(xml, Some(strings))).path())
    };
    assert_eq!(
        run(xml(0), &strings(r#" count="5" uniqueCount="5""#))
            .unwrap()
            .records
            .len(),
        1
    );
    for claim in ["100000000000", "18446744073709551616"] {
        let error = message(run(xml(0), &strings(&format!(" uniqueCount = '{claim}'"))));
        assert!(
            error.contains("is no XLSX workbook that can be read: it claims 1"),
            "{error}"
        );
    }
    // Strings that are not there.
    let error = message(run(xml(1_000_000), &strings("")));
    assert!(error.starts_with(&format!("`{OD}`")), "{error}");
}

fn refuge(train: &[u8]) -> Data {
    let data = Data::new();
    data.file("train/index.json", train).file(
        "val/index.json",
        r#"[{"ImgName":"V1.jpg","Size_X":9,"Size_Y":9,"Label":0}]"#,
    );
    for name in [
        "train/Images/g1.jpg",
        "train/Images/n1.jpg",
        "val/Images/V1.jpg",
    ] {
        data.file(name, "");
    }
    data
}

#[test]
fn json_keeps_the_text_of_numbers_and_the_lines_of_objects() {
    let bytes = "\u{feff}{\n\"0\": {\"ImgName\": \" g1\\u002ejpg \", \"Size_X\": 9.0,\n \"Size_Y\": 9, \"Label\": 1.0, \"Fovea_X\": null},\n\n\
                 \"0\": {\"Label\": \"0\", \"ImgName\": \"n1.jpg\", \"Size_X\": \"9\", \"Size_Y\": 9}}";
    let mapped = map("refuge.wasm", refuge(bytes.as_bytes()).path()).unwrap();
    let lines: Vec<u32> = mapped.records.iter().map(|record| record.line).collect();
    assert_eq!(lines, [2, 5, 1]);
    assert_eq!(mapped.tables[0].rows, 2);
}

#[test]
fn what_is_no_table_of_objects_is_told() {
    for (text, expected) in [
        (
            "",
            "line 1 is not the JSON expected, an array or an object of objects: EOF",
        ),
        ("[]", "is empty, expected a header"),
        ("3", "is not the JSON expected"),
        (
            "[3]",
            "is not the JSON expected, an array or an object of objects: invalid type: integer `3`, expected an object",
        ),
        ("[{\"ImgName\": NaN}]", "is not the JSON expected"),
        (
            "[{\"ImgName\": \"g1.jpg\"},\n]",
            "line 2 is not the JSON expected",
        ),
        ("[{\"ImgName\": \"g1.jpg\"}] 1", "is not the JSON expected"),
        (
            "[{\"ImgName\": \"g1.jpg\"}]",
            "line 1 lacks `Size_X`, `Size_Y`, `Label`, expected among the columns; found `ImgName`",
        ),
        (
            "[\n{\"ImgName\": 1, \"ImgName\": 2}]",
            "line 2 has the member `ImgName` twice in one object",
        ),
        (
            "[{\"ImgName\": {\"a\": 1}}]",
            "holds an object or an array in `ImgName`",
        ),
    ] {
        let error = message(map("refuge.wasm", refuge(text.as_bytes()).path()));
        assert!(
            error.starts_with("`train/index.json`") && error.contains(expected),
            "{error}"
        );
    }
    let error = message(map(
        "refuge.wasm",
        refuge(b"[{\"ImgName\": \"\xff\"}]").path(),
    ));
    assert_eq!(error, "`train/index.json` is not valid UTF-8 at byte 14");
    // However deep, what nobody asked for is passed over.
    let deep = format!(
        "[{{\"x\": {}{}}}]",
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    let error = message(map("refuge.wasm", refuge(deep.as_bytes()).path()));
    assert!(error.contains("line 1 lacks `ImgName`"), "{error}");
    let limits = Limits {
        document_bytes: 20,
        ..Limits::default()
    };
    let data = refuge(b"[{\"ImgName\": \"g1.jpg\"}]");
    let error = message(map_with("refuge.wasm", data.path(), &[], &limits));
    assert_eq!(
        error,
        "`train/index.json` is too large: 21 bytes, expected at most 20"
    );
}

/// One change to a text: cut a piece out, or put another in its place.
fn spoil(text: &str, at: usize, length: usize, instead: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let at = at % chars.len();
    let end = (at + length).min(chars.len());
    let (head, tail): (String, String) =
        (chars[..at].iter().collect(), chars[end..].iter().collect());
    format!("{head}{instead}{tail}")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_sheet_makes_it_panic(
        changes in prop::collection::vec(
            (any::<usize>(), 0..6usize, prop::sample::select(vec!["", "<", ">", "\"", "9", "A1048576", "XFD1", "-1", "&#0;", "s"])),
            1..4,
        ),
    ) {
        let rows: Rows = &[
            (1, &["ID", "Person", ""]),
            (3, &["", "Age", "Gender", "Diagnosis"]),
            (4, &["#002", "50", "1", "1"]),
        ];
        let mut xml = sheet(rows, &["B1:C1", "A1:A3"]);
        for (at, length, instead) in changes {
            xml = spoil(&xml, at, length, instead);
        }
        if let Err(error) = map("papila.wasm", papila(&archive(xml, None)).path()) {
            prop_assert!(matches!(error.kind(), ErrorKind::Data | ErrorKind::Refused), "{error}");
        }
    }

    #[test]
    fn no_json_makes_it_panic(
        changes in prop::collection::vec(
            (any::<usize>(), 0..6usize, prop::sample::select(vec!["", "{", "}", "[", "\"", ":", ",", "1e999", "\\u", "\n", "null"])),
            1..4,
        ),
    ) {
        let mut text = r#"{"0": {"ImgName": "g1.jpg", "Size_X": 9, "Size_Y": 9, "Label": 1},
            "1": {"ImgName": "n1.jpg", "Size_X": 9, "Size_Y": 9, "Label": 0, "Fovea_X": 3.5, "Fovea_Y": 4}}"#.to_owned();
        for (at, length, instead) in changes {
            text = spoil(&text, at, length, instead);
        }
        if let Err(error) = map("refuge.wasm", refuge(text.as_bytes()).path()) {
            prop_assert!(matches!(error.kind(), ErrorKind::Data | ErrorKind::Refused), "{error}");
        }
    }
}
