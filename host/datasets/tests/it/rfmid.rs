//! RFMiD and RFMiD 2.0 in their true shape: ids that restart in each split, a byte order mark, cp1252 with non-breaking
//! spaces.

use focus_datasets::{Encoding, Split, Track, Truth};

use crate::support::{Data, briefs, counts, map, message, project, samples};

pub const COLUMNS: &str = "ID,Disease_Risk,DR,ARMD,MH,DN,MYA,BRVO,TSLN,ERM,LS,MS,CSR,ODC,CRVO,TV,AH,ODP,ODE,ST,AION,PT,RT,\
    RS,CRS,EDN,RPEC,MHL,RP,CWS,CB,ODPM,PRH,MNF,HR,CRAO,TD,CME,PTCR,CF,VH,MCA,VS,BRAO,PLQ,HPED,CL";
pub const COLUMNS_2: &str = "ID,WNL,AH,AION,ARMD,BRVO,CB,CF,CL,CME,CNV,CRAO,CRS,CRVO,CSR,CWS,CSC,DN,DR,EDN,ERM,GRT,HPED,HR,\
    LS,MCA,ME,MH,MHL,MS,MYA,ODC,ODE,ODP,ON,OPDM,PRH,RD,RHL,RTR,RP,RPEC,RS,RT,SOFE,ST,TD,TSLN,TV,VS,HTN,IIH";

/// A row in which the named findings are 1.
pub fn row(columns: &str, id: &str, positive: &[&str]) -> String {
    let cell = |name: &str| if positive.contains(&name) { "1" } else { "0" };
    let cells: Vec<&str> = columns.split(',').skip(1).map(cell).collect();
    format!("{id},{}\n", cells.join(","))
}

fn table(columns: &str, rows: &[(&str, &[&str])]) -> String {
    let rows = rows.iter().map(|(id, positive)| row(columns, id, positive));
    format!("{columns}\n{}", rows.collect::<String>())
}

fn first() -> Data {
    let train = table(
        COLUMNS,
        &[
            ("1", &["Disease_Risk", "DR"]),
            ("2", &["Disease_Risk", "CME"]),
            ("3.0", &[]),
        ],
    );
    let rest = table(
        COLUMNS,
        &[("1", &[]), ("2", &["Disease_Risk", "DR", "CME"])],
    );
    let data = Data::new();
    data.file(
        "Training_Set/Training_Set/RFMiD_Training_Labels.csv",
        [b"\xef\xbb\xbf", train.as_bytes()].concat(),
    )
    .file(
        "Evaluation_Set/Evaluation_Set/RFMiD_Validation_Labels.csv",
        &rest,
    )
    .file("Test_Set/Test_Set/RFMiD_Testing_Labels.csv", &rest);
    for path in [
        "Training_Set/Training_Set/Training",
        "Evaluation_Set/Evaluation_Set/Validation",
        "Test_Set/Test_Set/Test",
    ] {
        for number in 1..=3 {
            data.file(&format!("{path}/{number}.png"), "");
        }
    }
    data
}

#[test]
fn ids_restart_in_each_split_and_referable_is_published_only() {
    let mapped = map("rfmid.wasm", first().path()).unwrap();
    assert_eq!(
        briefs(&mapped),
        [
            "1.png train binary_dr:++ referable_dr:-?",
            "2.png train binary_dr:-- referable_dr:+?",
            "3.png train binary_dr:-- referable_dr:-?",
            "1.png validation binary_dr:-- referable_dr:-?",
            "2.png validation binary_dr:++ referable_dr:+?",
            "1.png test binary_dr:-- referable_dr:-?",
            "2.png test binary_dr:++ referable_dr:+?",
        ]
    );
    assert_eq!(mapped.tables[0].encoding, Some(Encoding::Utf8Bom));
    let task = mapped.descriptor.task("referable_dr").unwrap();
    assert_eq!(task.tracks, [Track::AsPublished]);
    assert_eq!(mapped.records[0].findings.len(), 46);
    let ids: std::collections::HashSet<String> =
        mapped.records.iter().map(|r| r.sample.id()).collect();
    assert_eq!(ids.len(), 7);
}

#[test]
fn a_split_that_is_not_there_and_another_header_are_told() {
    let data = first();
    data.remove("Test_Set/Test_Set/RFMiD_Testing_Labels.csv");
    let error = message(map("rfmid.wasm", data.path()));
    assert!(
        error.contains("looked for `Test_Set/RFMiD_Testing_Labels.csv`"),
        "{error}"
    );
    let data = first();
    let path = "Test_Set/Test_Set/RFMiD_Testing_Labels.csv";
    data.file(path, table(&COLUMNS.replace(",CL", ",XX"), &[("1", &[])]));
    let error = message(map("rfmid.wasm", data.path()));
    assert!(
        error.contains("lacks `CL`, expected among the columns; found `ID`"),
        "{error}"
    );
    for (row, expected) in [
        (
            row(COLUMNS, "x", &[]),
            "column `ID`: expected a whole number",
        ),
        (
            row(COLUMNS, "1", &[]).replace(",0\n", ",2\n"),
            "column `CL`: expected one of `0`, `1`, found `2`",
        ),
    ] {
        data.file(path, format!("{COLUMNS}\n{row}"));
        let error = message(map("rfmid.wasm", data.path()));
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn the_second_release_is_in_cp1252() {
    let columns = COLUMNS_2
        .replace(",DR,", ",\u{a0}DR,")
        .replace("WNL", "WNL\u{a0}");
    let train = table(
        COLUMNS_2,
        &[("1", &["WNL"]), ("2", &["DR"]), ("3", &["ME"])],
    )
    .replace(COLUMNS_2, &columns)
    .replacen("3,0,", "3,\u{a0}0,", 1);
    let latin: Vec<u8> = train.chars().map(|c| c as u8).collect();
    let rest = table(&COLUMNS_2.replace("OPDM", "ODPM"), &[("1", &["DR", "ME"])]);
    let data = Data::new();
    data.file("Training_set/RFMiD_2_Training_labels.csv", latin)
        .file("Validation_set/RFMiD_2_Validation_labels.csv", &rest)
        .file("Test_set/RFMiD_2_Testing_labels.csv", &rest);
    for name in [
        "Training_set/1.jpg",
        "Training_set/2.JPG",
        "Validation_set/1.JPG",
        "Test_set/1.jpg",
    ] {
        data.file(name, "");
    }
    let mapped = map("rfmid_2.wasm", data.path()).unwrap();
    assert_eq!(
        briefs(&mapped),
        [
            "1.jpg train binary_dr:-- referable_dr:-?",
            "2.JPG train binary_dr:++ referable_dr:-?",
            "1.JPG validation binary_dr:++ referable_dr:+?",
            "1.jpg test binary_dr:++ referable_dr:+?",
        ]
    );
    assert_eq!(mapped.missing.len(), 1);
    assert_eq!(mapped.tables[0].encoding, Some(Encoding::Windows1252));
    let normal = &mapped.records[0].findings[0];
    assert_eq!(
        (normal.name.as_str(), normal.state),
        ("WNL", Truth::Positive)
    );
    // Nested archives.
    for split in ["Training_set", "Validation_set", "Test_set"] {
        let inner = data.path().join(format!("{split}/{split}"));
        std::fs::create_dir(&inner).unwrap();
        for entry in std::fs::read_dir(data.path().join(split)).unwrap() {
            let entry = entry.unwrap();
            if entry.path().is_file() {
                std::fs::rename(entry.path(), inner.join(entry.file_name())).unwrap();
            }
        }
    }
    assert_eq!(
        briefs(&map("rfmid_2.wasm", data.path()).unwrap()),
        briefs(&mapped)
    );
}

#[test]
fn the_real_training_table() {
    let table = project().join("../shared/data/rfmid-mini/RFMiD_Training_Labels.csv");
    if !table.is_file() {
        eprintln!("skipped: no `{}`", table.display());
        return;
    }
    let data = first();
    data.file(
        "Training_Set/Training_Set/RFMiD_Training_Labels.csv",
        std::fs::read(&table).unwrap(),
    );
    for number in 1..=1920 {
        data.file(
            &format!("Training_Set/Training_Set/Training/{number}.png"),
            "",
        );
    }
    let mut mapped = map("rfmid.wasm", data.path()).unwrap();
    mapped
        .records
        .retain(|r| r.sample.split == Some(Split::Train));
    assert_eq!(mapped.records.len(), 1920);
    assert_eq!(
        counts(&mapped, "binary_dr", Track::Corrected),
        [376, 1544, 0]
    );
    assert_eq!(
        counts(&mapped, "referable_dr", Track::AsPublished),
        [4, 1916, 0]
    );
    assert_eq!(
        counts(&mapped, "referable_dr", Track::Corrected),
        [0, 0, 1920]
    );
}

#[test]
fn the_samples_of_the_specification() {
    let Some(samples) = samples("rfmid2") else {
        return;
    };
    let data = Data::new();
    for (split, file) in [
        ("Training", "Training"),
        ("Validation", "Validation"),
        ("Test", "Testing"),
    ] {
        let path = format!("{split}_set/RFMiD_2_{file}_labels.csv");
        data.file(&path, std::fs::read(samples.join(&path)).unwrap());
        for number in 1..=4 {
            data.file(&format!("{split}_set/{number}.jpg"), "");
        }
    }
    assert_eq!(map("rfmid_2.wasm", data.path()).unwrap().records.len(), 8);
}
