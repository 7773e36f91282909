//! The template of a third-party mapper (`examples/mapper`): options, dropped rows, a join of many rows to one,
//! sub-folders, ids that stay text.

use focus_datasets::{Age, Eye, Limits, Sex};

use crate::support::{Data, map, map_with, message};

fn data() -> Data {
    let data = Data::new();
    data.file(
        "grades.csv",
        "file;person;dr;dme\nright/1.jpg;007;0;0\nleft/1.jpg;007;3;\nright/2.jpg;7;;\n",
    )
    .file(
        "persons.csv",
        "person\tyears\tgender\n007\t50\t2\n8\t20\t1\n",
    );
    for name in ["right/1.jpg", "left/1.jpg", "right/2.jpg"] {
        data.file(&format!("photographs/{name}"), "");
    }
    data
}

#[test]
fn several_rows_share_a_person() {
    let mapped = map("test/my_mapper.wasm", data().path()).unwrap();
    assert_eq!(mapped.records.len(), 2);
    for record in &mapped.records {
        assert_eq!(record.patient.as_deref(), Some("007"), "leading zeros stay");
        assert_eq!(
            (record.age, record.sex),
            (
                Some(Age {
                    years: 50.0,
                    at_least: false
                }),
                Some(Sex::Female)
            )
        );
    }
    assert_eq!(mapped.records[1].eye, Some(Eye::Left));
    let persons = mapped
        .tables
        .iter()
        .find(|table| table.id == "persons")
        .unwrap();
    let join = persons.join.as_ref().unwrap();
    assert_eq!(
        (
            join.matched,
            join.without_partner,
            join.unused,
            persons.separator
        ),
        (2, 1, 1, Some('\t'))
    );
    assert_eq!(mapped.dropped.len(), 1);
    assert_eq!(
        (mapped.dropped[0].line, mapped.dropped[0].reason.as_str()),
        (4, "no grade")
    );
    assert_eq!(mapped.unmatched, ["photographs/right/2.jpg"]);
}

#[test]
fn options_are_checked_and_recorded() {
    let data = data();
    let with = |options: &[(&str, &str)]| {
        map_with(
            "test/my_mapper.wasm",
            data.path(),
            options,
            &Limits::default(),
        )
    };
    let kept = with(&[("ungraded", "keep")]).unwrap();
    assert_eq!(kept.records.len(), 3);
    assert_eq!(kept.options, [("ungraded".to_owned(), "keep".to_owned())]);
    assert_eq!(with(&[]).unwrap().options[0].1, "drop");
    assert_eq!(
        message(with(&[("ungraded", "maybe")])),
        "Mapper `test/my_mapper.wasm` 0.1.0 does not allow `maybe` for option `ungraded`, expected one of `drop`, `keep`"
    );
    assert_eq!(
        message(with(&[("graded", "keep")])),
        "Mapper `test/my_mapper.wasm` 0.1.0 has no option `graded`, expected one of `ungraded`"
    );
}
