//! Label files of every dataset at full size, made here from the counts that the specification of the datasets gives: each
//! mapper must give those counts back. Which row has which value is made up.

use std::collections::HashSet;
use std::fmt::Write;

use focus_datasets::{Limits, Mapped, Split, Track};

use crate::support::{Data, counts, map, map_with, workbook};
use crate::{brset, jsiec1000, mbrset, papila, rfmid};

/// The values of a column of `sizes` cells each, scattered over the rows in an order that repeats.
fn scatter(sizes: &[usize]) -> Vec<usize> {
    let total = sizes.iter().sum::<usize>();
    let mut values: Vec<usize> = Vec::with_capacity(total);
    for (value, size) in sizes.iter().enumerate() {
        values.extend(std::iter::repeat_n(value, *size));
    }
    let mut state = 1u64;
    for last in (1..total).rev() {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        values.swap(last, (state >> 33) as usize % (last + 1));
    }
    values
}

fn positives(mapped: &Mapped, task: &str, track: Track) -> usize {
    counts(mapped, task, track)[0]
}

fn splits(mapped: &Mapped) -> [usize; 3] {
    [Split::Train, Split::Validation, Split::Test].map(|split| {
        let of = |r: &&focus_datasets::Record| r.sample.split == Some(split);
        mapped.records.iter().filter(of).count()
    })
}

fn distinct(mapped: &Mapped) -> usize {
    let ids: HashSet<String> = mapped.records.iter().map(|r| r.sample.id()).collect();
    ids.len()
}

fn patients(mapped: &Mapped) -> usize {
    let keys: HashSet<&str> = mapped
        .records
        .iter()
        .filter_map(|r| r.patient.as_deref())
        .collect();
    keys.len()
}

#[test]
fn brset_16266_rows() {
    let grades = scatter(&[15183, 158, 451, 78, 396]);
    let cups = scatter(&[16266 - 3205, 3205]);
    let edema = scatter(&[16266 - 401, 401]);
    let data = Data::new();
    let mut table = brset::HEADER.to_owned();
    // The seven rows without a photograph and the 2,579 diabetics that have one.
    let gone = |number: usize| (4414..=4419).contains(&number) || number == 6900;
    let (mut diabetics, mut referable) = (0, 0);
    for row in 0..16266 {
        let number = row + 1;
        let diabetic = !gone(number) && diabetics < 2579;
        diabetics += usize::from(diabetic);
        referable += usize::from(!gone(number) && (grades[row] >= 2 || edema[row] == 1));
        let (sex, eye) = (row / 2 % 2 + 1, row % 2 + 1);
        let diabetes = if diabetic { "yes" } else { "No" };
        writeln!(
            table,
            "img{number:05},{},Canon CR,{}.0,,,,{sex},{eye},{diabetes},Brazil,1,1,1,0,{},1,1,1,1,0,{},0,0,0,0,0,0,0,0,0,{},0,Adequate",
            row.min(8523),
            30 + row % 60,
            grades[row],
            edema[row],
            cups[row],
        )
        .unwrap();
        if !gone(number) {
            data.file(&format!("fundus_photos/img{number:05}.jpg"), "");
        }
    }
    data.file("labels_brset.csv", table);
    let mapped = map("brset.wasm", data.path()).unwrap();
    assert_eq!(
        (
            mapped.records.len(),
            mapped.missing.len(),
            distinct(&mapped)
        ),
        (16259, 7, 16259)
    );
    // The labels of the missing seven are made up too: at most seven are lost.
    let near = |found: usize, whole: usize| {
        assert!((whole - 7..=whole).contains(&found), "{found} of {whole}");
    };
    near(
        positives(&mapped, "binary_dr", Track::Corrected),
        158 + 451 + 78 + 396,
    );
    near(positives(&mapped, "glaucoma", Track::Corrected), 3205);
    assert_eq!(
        positives(&mapped, "referable_dr", Track::Corrected),
        referable
    );
    let options = [("cohort", "published")];
    let mapped = map_with("brset.wasm", data.path(), &options, &Limits::default()).unwrap();
    assert_eq!(
        (mapped.records.len(), mapped.dropped.len()),
        (2579, 16266 - 2579)
    );
}

#[test]
fn mbrset_5164_rows() {
    let grades = scatter(&[3900, 300, 500, 200, 100, 164]);
    let data = Data::new();
    let mut table = mbrset::HEADER.to_owned() + "\n";
    for (row, grade) in grades.iter().enumerate() {
        let (patient, view) = (row / 4 + 1, row % 4 + 1);
        let (eye, grade) = (
            ["right", "left"][view / 3],
            if *grade == 5 {
                String::new()
            } else {
                format!("{grade}.0")
            },
        );
        let edema = if grade.is_empty() { "" } else { "no" };
        let clinic = ",".repeat(15);
        writeln!(
            table,
            "{patient},60.0,{}{clinic},{patient}.{view}.jpg,{eye},no,yes,{grade},{edema}",
            row / 4 % 2
        )
        .unwrap();
        if (patient, view) != (985, 1) {
            data.file(&format!("images/{patient}.{view}.jpg"), "");
        }
    }
    data.file("labels_mbrset.csv", table);
    let mapped = map("mbrset.wasm", data.path()).unwrap();
    assert_eq!(
        (
            mapped.records.len(),
            patients(&mapped),
            mapped.missing.len()
        ),
        (5163, 1291, 1)
    );
    assert_eq!(
        counts(&mapped, "glaucoma", Track::AsPublished),
        [0, 0, 5163]
    );
    let [positive, negative, unknown] = counts(&mapped, "binary_dr", Track::Corrected);
    assert!(
        positive + negative + unknown == 5163
            && (1099..=1100).contains(&positive)
            && unknown >= 163
    );
    let options = [("cohort", "published")];
    let mapped = map_with("mbrset.wasm", data.path(), &options, &Limits::default()).unwrap();
    assert_eq!(
        (
            mapped.records.len() + mapped.missing.len(),
            mapped.dropped.len()
        ),
        (2582, 2582)
    );
}

#[test]
fn papila_488_eyes() {
    let diagnosis = scatter(&[333, 87, 68]);
    let data = Data::new();
    for (eye, name, file) in [
        (0, "OD", "patient_data_od.xlsx"),
        (1, "OS", "patient_data_os.xlsx"),
    ] {
        let cells: Vec<Vec<String>> = (0..244)
            .map(|patient| {
                // Numbers have gaps.
                let id = format!("#{:03}", 2 + patient + patient / 5);
                data.file(&format!("FundusImages/RET{}{name}.jpg", &id[1..]), "");
                let rest = [40 + patient % 40, patient % 2, diagnosis[2 * patient + eye]];
                std::iter::once(id)
                    .chain(rest.map(|n| n.to_string()))
                    .collect()
            })
            .collect();
        let cells: Vec<Vec<&str>> = cells
            .iter()
            .map(|row| row.iter().map(String::as_str).collect())
            .collect();
        let mut rows: Vec<(u32, &[&str])> =
            vec![(1, papila::GROUPS), (2, papila::NAMES), (3, &["ID"])];
        rows.extend((4..).zip(cells.iter().map(Vec::as_slice)));
        data.file(
            &format!("ClinicalData/{file}"),
            workbook(&rows, papila::MERGED),
        );
    }
    let mapped = map("papila.wasm", data.path()).unwrap();
    assert_eq!((mapped.records.len(), patients(&mapped)), (488, 244));
    for track in [Track::AsPublished, Track::Corrected] {
        assert_eq!(counts(&mapped, "glaucoma", track), [155, 333, 0]);
    }
    let options = [("suspects", "unknown")];
    let mapped = map_with("papila.wasm", data.path(), &options, &Limits::default()).unwrap();
    assert_eq!(counts(&mapped, "glaucoma", Track::Corrected), [87, 333, 68]);
}

/// Rows in which `positive` of `rows` have each of the named findings.
fn findings(columns: &str, rows: usize, sizes: &[(&str, usize)]) -> String {
    let scattered: Vec<(&str, Vec<usize>)> = sizes
        .iter()
        .map(|(name, positive)| (*name, scatter(&[rows - positive, *positive])))
        .collect();
    let mut table = format!("{columns}\n");
    for row in 0..rows {
        let positive: Vec<&str> = scattered
            .iter()
            .filter(|(_, v)| v[row] == 1)
            .map(|(n, _)| *n)
            .collect();
        table += &rfmid::row(columns, &(row + 1).to_string(), &positive);
    }
    table
}

#[test]
fn rfmid_3200_photographs() {
    let data = Data::new();
    for (top, table, folder, rows, dr, cme) in [
        (
            "Training_Set",
            "RFMiD_Training_Labels.csv",
            "Training",
            1920,
            376,
            4,
        ),
        (
            "Evaluation_Set",
            "RFMiD_Validation_Labels.csv",
            "Validation",
            640,
            132,
            1,
        ),
        ("Test_Set", "RFMiD_Testing_Labels.csv", "Test", 640, 124, 2),
    ] {
        let text = findings(rfmid::COLUMNS, rows, &[("DR", dr), ("CME", cme)]);
        data.file(&format!("{top}/{top}/{table}"), text);
        for number in 1..=rows {
            data.file(&format!("{top}/{top}/{folder}/{number}.png"), "");
        }
    }
    let mapped = map("rfmid.wasm", data.path()).unwrap();
    assert_eq!(
        (splits(&mapped), distinct(&mapped)),
        ([1920, 640, 640], 3200)
    );
    assert_eq!(
        positives(&mapped, "binary_dr", Track::Corrected),
        376 + 132 + 124
    );
    assert_eq!(positives(&mapped, "referable_dr", Track::AsPublished), 7);
    assert_eq!(
        counts(&mapped, "referable_dr", Track::Corrected),
        [0, 0, 3200]
    );
}

#[test]
fn rfmid_2_860_rows_of_which_854_have_a_photograph() {
    let data = Data::new();
    let mut upper = 0;
    for (top, table, rows, there, dr, me) in [
        (
            "Training_set",
            "RFMiD_2_Training_labels.csv",
            509,
            507,
            42,
            1,
        ),
        (
            "Validation_set",
            "RFMiD_2_Validation_labels.csv",
            177,
            177,
            14,
            1,
        ),
        ("Test_set", "RFMiD_2_Testing_labels.csv", 174, 170, 14, 2),
    ] {
        // The rows without a photograph have none of the findings that are counted.
        let mut text = findings(rfmid::COLUMNS_2, there, &[("DR", dr), ("ME", me)]);
        for row in there..rows {
            text += &rfmid::row(rfmid::COLUMNS_2, &(row + 1).to_string(), &[]);
        }
        data.file(&format!("{top}/{table}"), text);
        for number in 1..=there {
            let extension = if upper < 94 { "JPG" } else { "jpg" };
            upper += 1;
            data.file(&format!("{top}/{number}.{extension}"), "");
        }
    }
    let mapped = map("rfmid_2.wasm", data.path()).unwrap();
    assert_eq!(
        (splits(&mapped), mapped.missing.len()),
        ([507, 177, 170], 6)
    );
    assert_eq!(
        positives(&mapped, "binary_dr", Track::Corrected),
        42 + 14 + 14
    );
    assert_eq!(positives(&mapped, "referable_dr", Track::AsPublished), 4);
}

#[test]
fn idrid_516_distinct_photographs() {
    let data = Data::new();
    let top = "B. Disease Grading";
    for (table, folder, rows) in [
        (
            "a. IDRiD_Disease Grading_Training Labels.csv",
            "a. Training Set",
            413,
        ),
        (
            "b. IDRiD_Disease Grading_Testing Labels.csv",
            "b. Testing Set",
            103,
        ),
    ] {
        let mut text = String::from("Image name,Retinopathy grade,Risk of macular edema ,,\r\n");
        for number in 1..=rows {
            write!(
                text,
                "IDRiD_{number:03},{},{},,\r\n",
                number % 5,
                number % 3
            )
            .unwrap();
            data.file(
                &format!("{top}/1. Original Images/{folder}/IDRiD_{number:03}.jpg"),
                "",
            );
        }
        data.file(&format!("{top}/2. Groundtruths/{table}"), text);
    }
    let mapped = map("idrid.wasm", data.path()).unwrap();
    let names: HashSet<&str> = mapped
        .records
        .iter()
        .map(|r| r.sample.path.rsplit('/').next().unwrap())
        .collect();
    assert_eq!(
        (splits(&mapped), distinct(&mapped), names.len()),
        ([413, 0, 103], 516, 413)
    );
}

#[test]
fn messidor_2_1744_graded_of_1748() {
    let grades = scatter(&[1017, 270, 347, 75, 35]);
    // Of 151 with edema, eight have a grade below 2.
    let (mut below, mut above) = (8, 143);
    let mut rows = String::new();
    let data = Data::new();
    for (row, grade) in grades.iter().enumerate() {
        let left = if *grade < 2 { &mut below } else { &mut above };
        let edema = u32::from(*left > 0);
        *left -= edema;
        let name = if row < 1058 {
            format!("20990101_{row}_0100_PP.png")
        } else {
            format!("IM{row:06}.jpg")
        };
        writeln!(rows, "{name},{grade},{edema},1").unwrap();
        data.file(&format!("IMAGES/{}", name.replace(".jpg", ".JPG")), "");
    }
    data.file(
        "messidor_data.csv",
        format!("id_code,diagnosis,adjudicated_dme,adjudicated_gradable\n{rows}"),
    );
    let check = |mapped: &Mapped, unknown: usize| {
        for track in [Track::AsPublished, Track::Corrected] {
            assert_eq!(counts(mapped, "binary_dr", track), [727, 1017, unknown]);
            assert_eq!(counts(mapped, "referable_dr", track), [465, 1279, unknown]);
        }
    };
    check(&map("messidor_2.wasm", data.path()).unwrap(), 0);
    for number in 1..=4 {
        writeln!(rows, "IM9{number}.jpg,,,0").unwrap();
        data.file(&format!("IMAGES/IM9{number}.JPG"), "");
    }
    let header = "image_id,adjudicated_dr_grade,adjudicated_dme,adjudicated_gradable\n";
    data.file("messidor_data.csv", format!("{header}{rows}"));
    check(&map("messidor_2.wasm", data.path()).unwrap(), 4);
}

#[test]
fn refuge_400_in_each_split() {
    let data = Data::new();
    for (split, side) in [("train", 2124), ("val", 1634), ("test", 1634)] {
        let objects: Vec<String> = (0..400)
            .map(|row| {
                let positive = row < 40;
                let letter = match (split, positive) {
                    ("train", true) => "g",
                    ("train", false) => "n",
                    ("val", _) => "V",
                    _ => "T",
                };
                let name = format!("{letter}{row:04}.jpg");
                data.file(&format!("{split}/Images/{name}"), "");
                let label = if split == "test" { String::new() } else { format!(", \"Label\": {}", u8::from(positive)) };
                format!("\"{row}\": {{\"ImgName\": \"{name}\", \"Size_X\": {side}, \"Size_Y\": {side}{label}}}")
            })
            .collect();
        data.file(
            &format!("{split}/index.json"),
            format!("{{{}}}", objects.join(", ")),
        );
    }
    let mapped = map("refuge.wasm", data.path()).unwrap();
    assert_eq!(splits(&mapped), [400, 400, 400]);
    assert_eq!(
        counts(&mapped, "glaucoma", Track::Corrected),
        [80, 720, 400]
    );
}

#[test]
fn g1020_1020_photographs() {
    let data = Data::new();
    let mut table = String::from("imageID,binaryLabels\n");
    for (row, label) in scatter(&[724, 296]).iter().enumerate() {
        // Numbers have gaps.
        let name = format!("image_{}.jpg", row * 3 + row % 2);
        writeln!(table, "{name},{label}").unwrap();
        data.file(&format!("G1020/Images/{name}"), "");
    }
    data.file("G1020/G1020.csv", table);
    let mapped = map("g1020.wasm", data.path()).unwrap();
    assert_eq!(counts(&mapped, "glaucoma", Track::Corrected), [296, 724, 0]);
}

#[test]
fn jsiec1000_in_39_folders() {
    let data = Data::new();
    let mut number = 0;
    for (class, size) in jsiec1000::CLASSES {
        for _ in 0..size {
            let extension =
                ["JPG", "jpg", "TIF"][usize::from(number < 27) + usize::from(number < 3)];
            data.file(
                &format!("1000images/{class}/{number:08}-0000..{extension}"),
                "",
            );
            number += 1;
        }
    }
    let mapped = map("jsiec1000.wasm", data.path()).unwrap();
    assert_eq!((mapped.records.len(), distinct(&mapped)), (1000, 1000));
    assert_eq!(
        counts(&mapped, "binary_dr", Track::AsPublished),
        [151, 849, 0]
    );
    assert_eq!(
        counts(&mapped, "referable_dr", Track::AsPublished),
        [133, 867, 0]
    );
    // 29.0, hard exudates, cotton-wool spots, preretinal haemorrhage, laser spots.
    let unclear = 114 + 13 + 10 + 10 + 20;
    assert_eq!(
        counts(&mapped, "binary_dr", Track::Corrected),
        [151, 849 - unclear, unclear]
    );
    assert_eq!(
        counts(&mapped, "referable_dr", Track::Corrected),
        [133, 867 - unclear, unclear]
    );
}
