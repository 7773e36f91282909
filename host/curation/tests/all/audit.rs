//! The audit over folders of pictures.

use crate::pictures::{disc, jpeg, png};
use crate::shapes;
use focus_curation::audit::{
    Access, AuditInput, AuditOptions, AuditReport, FindingKind as K, Prompt, Severity, Terms,
    Wanted, audit, markdown, prompt_findings, text,
};
use focus_curation::splits::{OwnSplit, Track, published};
use focus_store::{Record, Records};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn run(records: &Records, files: &[PathBuf]) -> AuditReport {
    let input = AuditInput {
        records,
        files,
        accounts: &[],
        wanted: &[],
        terms: &[],
    };
    let options = AuditOptions {
        threads: 2,
        ..AuditOptions::default()
    };
    audit(&input, &options, &|_| ()).expect("audits")
}

fn record(i: usize, path: &str, split: &str, label: bool) -> Record {
    Record {
        dataset: "made".into(),
        id: format!("{i:08x}"),
        path: Some(path.into()),
        split: (!split.is_empty()).then(|| split.to_owned()),
        labels: BTreeMap::from([("glaucoma".to_owned(), label)]),
        ..Record::default()
    }
}

fn records(rows: Vec<Record>) -> Records {
    Records {
        tasks: ["glaucoma".to_owned()].into(),
        rows,
    }
}

#[test]
fn copies_are_found_whatever_they_are_stored_as() {
    let folder = tempfile::tempdir().expect("folder");
    let at = |name: &str| folder.path().join(name);
    let (w, h) = (400, 300);
    for seed in 0..20 {
        jpeg(&at(&format!("{seed}.jpg")), &disc(seed, w, h), w, h, 92);
    }
    jpeg(&at("worse.jpg"), &disc(3, w, h), w, h, 30);
    png(&at("smaller.png"), &disc(4, 180, 150), 180, 150);
    fs::copy(at("5.jpg"), at("same.jpg")).expect("copies");
    let mut rows: Vec<Record> = (0..20)
        .map(|i| record(i, &format!("{i}.jpg"), "train", i % 2 == 0))
        .collect();
    rows.push(record(20, "worse.jpg", "test", false));
    rows.push(record(21, "smaller.png", "test", false));
    rows.push(record(22, "same.jpg", "train", false));
    let files: Vec<PathBuf> = rows
        .iter()
        .map(|r| at(r.path.as_deref().expect("path")))
        .collect();
    let records = records(rows);
    let report = run(&records, &files);

    let near = report.of(K::NearDuplicateAcrossSplits);
    assert_eq!((near.len(), near[0].count), (1, 2), "{report:?}");
    assert!(near[0].examples[0].starts_with("made/3.jpg ~ made/worse.jpg"));
    assert!(near[0].examples[1].starts_with("made/4.jpg ~ made/smaller.png"));
    assert!(
        report.of(K::NearDuplicate).is_empty(),
        "other pictures are not taken for copies"
    );
    assert_eq!(
        report.of(K::SameFile)[0].examples,
        ["made/5.jpg = made/same.jpg"]
    );
    assert!(report.of(K::SameFileAcrossSplits).is_empty());
    // 4.jpg is positive, its copy negative.
    assert_eq!(report.of(K::DuplicateWithTwoLabels)[0].count, 1);
    assert_eq!((report.images_read, report.fails(false)), (23, true));

    // The same report for another order of the records, but for the order of examples.
    let mut turned = records.clone();
    turned.rows.reverse();
    let files: Vec<PathBuf> = files.into_iter().rev().collect();
    let again = run(&turned, &files);
    let counts = |r: &AuditReport| {
        r.findings
            .iter()
            .map(|f| (f.kind, f.count, f.detail.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(counts(&again), counts(&report));
}

#[test]
fn broken_files_are_counted_by_kind_and_the_rest_goes_on() {
    let folder = tempfile::tempdir().expect("folder");
    let at = |name: &str| folder.path().join(name);
    let (w, h) = (200, 150);
    jpeg(&at("good.jpg"), &disc(1, w, h), w, h, 90);
    let whole = fs::read(at("good.jpg")).expect("reads");
    fs::write(at("cut.jpg"), &whole[..whole.len() / 2]).expect("writes");
    fs::write(at("empty.jpg"), b"").expect("writes");
    fs::write(at("page.jpg"), b"<!doctype html><html>").expect("writes");
    png(&at("black.png"), &vec![0; 3 * 40 * 30], 40, 30);
    let names = [
        "good.jpg",
        "cut.jpg",
        "empty.jpg",
        "page.jpg",
        "black.png",
        "gone.jpg",
    ];
    let rows = names
        .iter()
        .enumerate()
        .map(|(i, name)| record(i, name, "", i % 2 == 0))
        .collect();
    let files: Vec<PathBuf> = names.iter().map(|name| at(name)).collect();
    let report = run(&records(rows), &files);
    let kinds = [
        ("empty", 1),
        ("missing", 1),
        ("truncated", 1),
        ("unknown_format", 1),
    ];
    assert_eq!(
        report.images_failed,
        kinds.map(|(kind, n)| (kind.to_owned(), n)).into()
    );
    assert_eq!(report.of(K::ImageMissing)[0].examples, ["made/gone.jpg"]);
    assert_eq!(report.of(K::Featureless)[0].examples, ["made/black.png"]);
    assert_eq!(report.of(K::ImageUnreadable).len(), 3);
    assert!(report.fails(false));
}

#[test]
fn straddling_patients_of_a_made_up_papila_are_found() {
    let set = shapes::papila();
    let plan = published(
        &set.records,
        &set.file,
        Track::AsPublished,
        &OwnSplit::default(),
    )
    .expect("a plan");
    let mut records = set.records.clone();
    plan.apply(&mut records).expect("applies");
    let files = vec![PathBuf::from("/nowhere/x.jpg"); records.rows.len()];
    let terms = [Terms {
        dataset: "papila".into(),
        licence: Some("GPL-3.0-or-later".into()),
        access: Access::Open,
        route: "figshare 14798004".into(),
    }];
    let accounts = [plan.account];
    let input = AuditInput {
        records: &records,
        files: &files,
        accounts: &accounts,
        wanted: &[],
        terms: &terms,
    };
    let report = audit(
        &input,
        &AuditOptions {
            threads: 1,
            ..AuditOptions::default()
        },
        &|_| (),
    )
    .expect("audits");
    let found = report.of(K::PatientInTwoSplits);
    assert_eq!(
        (found[0].count, found[0].severity, report.patients),
        (121, Severity::Error, 244)
    );
    assert_eq!(found[0].examples[0], "papila patient 1: train, test");
    assert_eq!(report.of(K::ImageMissing)[0].count, 488);
    assert!(
        report
            .of(K::SplitDefect)
            .iter()
            .any(|f| f.count == 121 && f.severity == Severity::Error)
    );
    assert!(report.of(K::Terms)[0].detail.contains("GPL-3.0"));
    assert!(report.of(K::LicenceUnknown).is_empty());
}

#[test]
fn labels_sizes_and_terms_are_judged_from_records_alone() {
    let folder = tempfile::tempdir().expect("folder");
    let mut rows = Vec::new();
    for i in 0..60usize {
        let positive = i % 3 == 0;
        let mut row = record(
            i,
            &format!("{i}.png"),
            if i < 40 { "train" } else { "test" },
            positive,
        );
        let side = if positive { 64 } else { 48 };
        png(
            &folder.path().join(format!("{i}.png")),
            &disc(i as u32 + 100, side, side),
            side,
            side,
        );
        row.grade = Some(if i == 7 { 3 } else { 0 });
        row.labels.insert("binary_dr".into(), i == 8);
        rows.push(row);
    }
    let files: Vec<PathBuf> = (0..60)
        .map(|i| folder.path().join(format!("{i}.png")))
        .collect();
    let records = Records {
        tasks: ["binary_dr", "glaucoma"].map(str::to_owned).into(),
        rows,
    };
    let wanted = [
        Wanted {
            model: "m".into(),
            width: 56,
            height: 56,
        },
        Wanted {
            model: "small".into(),
            width: 32,
            height: 32,
        },
    ];
    let input = AuditInput {
        records: &records,
        files: &files,
        accounts: &[],
        wanted: &wanted,
        terms: &[],
    };
    let report = audit(
        &input,
        &AuditOptions {
            threads: 1,
            ..AuditOptions::default()
        },
        &|_| (),
    )
    .expect("audits");
    let conflicts = report.of(K::LabelConflict);
    assert_eq!((conflicts.len(), conflicts[0].count), (1, 2));
    assert_eq!(
        conflicts[0].examples[0],
        "made/7.png: label 0, grade 3, edema unknown"
    );
    assert_eq!(
        report
            .of(K::LowResolution)
            .iter()
            .map(|f| f.count)
            .collect::<Vec<_>>(),
        [40]
    );
    assert_eq!(report.of(K::SizeGoesWithLabel)[0].count, 2);
    // One positive of binary_dr in train, none in test; seven positives of glaucoma in test.
    assert_eq!(report.of(K::ClassAbsent).len(), 1);
    assert_eq!(
        report
            .of(K::FewOfClass)
            .iter()
            .map(|f| f.count)
            .collect::<Vec<_>>(),
        [1, 6]
    );
    assert_eq!(report.of(K::LicenceUnknown).len(), 1);

    let (plain, marked) = (text(&report), markdown(&report));
    assert!(
        plain.contains(
            "error[class_absent]: 20 labels of task `binary_dr` in test, none of them positive"
        ),
        "{plain}"
    );
    assert!(plain.ends_with("Notes never fail.\n"));
    assert!(
        marked.contains("| binary\\_dr | test | 0 | 20 | 0 |"),
        "{marked}"
    );
    let mut more = report.clone();
    let prompts = [Prompt {
        name: "glaucoma".into(),
        sample: Some(3),
        text: "cup_disc: 0.8. Glaucoma?".into(),
    }];
    more.add(prompt_findings(&prompts, &|_| {
        vec![("cup_disc".into(), "0.8".into())]
    }));
    assert_eq!(more.findings.len(), report.findings.len() + 1);
    assert!(
        more.findings.is_sorted_by_key(|f| f.severity)
            && more.of(K::PromptHoldsLabel)[0].count == 1
    );

    let json = serde_json::to_string(&report).expect("JSON");
    assert_eq!(
        serde_json::from_str::<AuditReport>(&json).expect("reads"),
        report
    );
    assert!(json.contains("\"exit_policy\":\"The exit code is 6"));
}

#[test]
fn a_hostile_name_stays_one_cell_of_one_line() {
    let row = record(0, "a|b\u{1b}[31m<script>\n.jpg", "", true);
    let report = run(&records(vec![row]), &[PathBuf::from("/nowhere")]);
    for out in [text(&report), markdown(&report)] {
        assert!(!out.contains('\u{1b}') && !out.contains("<script>\n"));
    }
    assert!(markdown(&report).contains("a\\|b"));
    assert!(!markdown(&report).contains("<script>"));
}

#[test]
fn files_and_records_go_together() {
    let input = AuditInput {
        records: &records(vec![record(0, "a", "", true)]),
        files: &[],
        accounts: &[],
        wanted: &[],
        terms: &[],
    };
    let error = audit(&input, &AuditOptions::default(), &|_| ()).expect_err("lengths");
    assert_eq!(
        error.to_string(),
        "Expected one file for each of 1 records, found 0"
    );
}

/// The photographs of the shared data with a split file built like the published one.
#[test]
#[expect(clippy::print_stderr, reason = "a test that cannot run says why")]
fn idrid_has_its_103_collisions_and_its_repeated_files() {
    let root = Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/data/idrid"
    ));
    let set = shapes::idrid();
    let files: Vec<PathBuf> = set
        .records
        .rows
        .iter()
        .map(|r| root.join(r.path.as_deref().expect("path")))
        .collect();
    if !files[0].exists() {
        eprintln!("no photographs at {}", root.display());
        return;
    }
    let plan = published(
        &set.records,
        &set.file,
        Track::AsPublished,
        &OwnSplit::default(),
    )
    .expect("a plan");
    let mut records = set.records.clone();
    focus_curation::splits::source(&records)
        .expect("a split")
        .apply(&mut records)
        .expect("applies");
    let accounts = [plan.account];
    let input = AuditInput {
        records: &records,
        files: &files,
        accounts: &accounts,
        wanted: &[],
        terms: &[],
    };
    let report = audit(
        &input,
        &AuditOptions {
            threads: 2,
            ..AuditOptions::default()
        },
        &|_| (),
    )
    .expect("audits");
    assert_eq!((report.images_read, report.images_failed.len()), (516, 0));
    let collisions = report
        .findings
        .iter()
        .find(|f| f.kind == K::SplitDefect && f.detail.contains("path_in_two_splits"));
    assert!(collisions.is_some_and(|f| f.count == 103 && f.severity == Severity::Error));
    // This copy holds five training photographs twice and one of training again under test, byte for byte; no other two look alike.
    let count = |kind| report.of(kind).iter().map(|f| f.count).sum::<u64>();
    let found = [
        K::SameFileAcrossSplits,
        K::SameFile,
        K::NearDuplicateAcrossSplits,
        K::NearDuplicate,
    ]
    .map(count);
    assert_eq!(found, [1, 5, 0, 0], "{}", text(&report));
}
