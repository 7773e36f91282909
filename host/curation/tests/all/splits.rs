//! The published cells, reproduced from files of the published shape; and their defects, counted.

use crate::shapes::{self, Maker, Set};
use focus_curation::CurationError;
use focus_curation::splits::{
    Action, Defect, OwnSplit, Split, SplitCounts, SplitKind, SplitPlan, Track, Use, own, published,
    read_published, source,
};

fn plan(set: &Set, track: Track) -> SplitPlan {
    published(&set.records, &set.file, track, &OwnSplit::default()).expect("a plan")
}

fn counts(train: u64, validation: u64, test: u64) -> SplitCounts {
    SplitCounts {
        train,
        validation,
        test,
    }
}

/// File counts, and as-published counts by photograph, which are the same where no path repeats.
fn check_plain(set: &Set, expected: SplitCounts) -> SplitPlan {
    let published = plan(set, Track::AsPublished);
    for found in [
        published.account.file_counts,
        published.account.effective_counts,
        Some(published.account.counts),
    ] {
        assert_eq!(found, Some(expected));
    }
    assert_eq!(
        published.account.without_split,
        set.records.rows.len() as u64 - expected.total()
    );
    let corrected = plan(set, Track::Corrected);
    assert_eq!(corrected.account.counts.total(), expected.total());
    published
}

#[test]
fn idrid_is_counted_as_published_and_repaired() {
    let set = shapes::idrid();
    let found = plan(&set, Track::AsPublished);
    let account = &found.account;
    assert_eq!(account.file_counts, Some(counts(413, 0, 103)));
    assert_eq!(account.effective_counts, Some(counts(516, 0, 206)));
    assert_eq!(account.analysed_rows, Some(412));
    for defect in [
        Defect::PathInTwoSplits,
        Defect::PathNamesOtherSplit,
        Defect::PhotographNeverUsed,
        Defect::ImageIdRepeats,
    ] {
        assert_eq!(account.count(defect), 103, "{defect:?}");
    }
    assert_eq!(account.count(Defect::PathWithTwoLabels), 41);
    assert_eq!(account.count(Defect::LabelDiffersFromTable), 41);
    assert_eq!(account.count(Defect::RowsDoubledByMerge), 206);
    // Each photograph once: the 103 in two splits stand under test, the 103 never used nowhere.
    assert_eq!(
        (account.counts, account.without_split),
        (counts(310, 0, 103), 103)
    );
    let rows = |split| {
        found
            .uses
            .iter()
            .filter(|u| u.split == split)
            .map(|u| u.rows)
            .sum::<u64>()
    };
    assert_eq!((rows(Split::Train), rows(Split::Test)), (516, 206));
    // A perfect reader, scored against every row that the published analysis sees: the conflicting labels cost it.
    let analysed = found.uses.iter().map(|u| u.analysed).sum::<u64>();
    assert_eq!(analysed, 412);
    let truth = |u: &Use| set.records.rows[u.sample as usize].published_labels["referable_dr"];
    let agree = |want: bool| {
        let uses = found.uses.iter().filter(|u| u.split == Split::Test);
        let labels = |u: &Use| u.labels.as_ref().expect("the file's")["referable_dr"];
        let same = uses.filter(|u| (labels(u) == truth(u)) == want);
        same.map(|u| u.analysed).sum::<u64>()
    };
    assert_eq!((agree(true), agree(false)), (412 - 82, 82));

    let corrected = plan(&set, Track::Corrected);
    assert_eq!(corrected.account.counts, counts(413, 0, 103));
    assert_eq!(
        (
            corrected.account.without_split,
            corrected.account.count(Defect::LabelDiffersFromTable)
        ),
        (0, 0)
    );
    for (record, split) in set.records.rows.iter().zip(&corrected.splits) {
        assert_eq!(record.source_split.as_deref(), split.map(Split::as_str));
    }
    let note = corrected
        .account
        .notes
        .iter()
        .find(|n| n.defect == Defect::PathNamesOtherSplit)
        .expect("noted");
    assert_eq!((note.count, note.action), (103, Action::Repaired));
    assert!(
        !format!("{:?}", corrected.account).contains("lustre"),
        "no path of a machine"
    );
    assert_ne!(corrected.digest(&set.records), found.digest(&set.records));
}

#[test]
fn papila_straddles_as_published_and_is_split_by_patient_corrected() {
    let set = shapes::papila();
    let found = check_plain(&set, counts(293, 0, 195));
    assert_eq!(found.account.count(Defect::PatientInTwoSplits), 121);
    assert_eq!(
        (found.account.patients, found.account.straddling_patients),
        (244, 121)
    );
    let glaucoma = &found.account.published_labels["glaucoma"];
    assert_eq!(glaucoma.values().map(|c| c.positive).sum::<u64>(), 155);
    let suspects = found
        .account
        .notes
        .iter()
        .find(|n| n.defect == Defect::LabelOnlyAsPublished)
        .expect("suspects");
    assert!(suspects.count == 68 && suspects.detail.contains("68 positive, 0 negative"));

    let corrected = plan(&set, Track::Corrected);
    assert_eq!(
        (
            corrected.account.kind,
            corrected.account.straddling_patients
        ),
        (SplitKind::Published, 0)
    );
    assert_eq!(corrected.account.seed, Some(OwnSplit::default().seed));
    assert_eq!(corrected.account.counts.total(), 488);
    assert!(
        corrected.account.counts.train.abs_diff(293) <= 2,
        "{:?}",
        corrected.account.counts
    );
    let train = corrected.account.labels["glaucoma"][&Split::Train];
    assert!(train.positive.abs_diff(52) <= 2, "0.6 of 87: {train:?}");
}

#[test]
fn brset_and_mbrset_keep_their_filters_and_patients() {
    let set = shapes::brset();
    let found = check_plain(&set, counts(1417, 394, 768));
    assert_eq!(
        (found.account.patients, found.account.straddling_patients),
        (1346, 0)
    );
    assert_eq!(found.account.count(Defect::PhotographNotInFile), 50);
    assert_eq!(plan(&set, Track::Corrected).splits, found.splits);

    let set = shapes::mbrset();
    let found = check_plain(&set, counts(1424, 386, 772));
    assert_eq!(found.account.analysed_rows, Some(248));
    let analysed = found.uses.iter().map(|u| u.analysed).sum::<u64>();
    let rows = found.uses.iter().filter(|u| u.split == Split::Test);
    assert_eq!((analysed, rows.map(|u| u.rows).sum::<u64>()), (248, 772));
    assert_eq!(found.account.count(Defect::JoinByPosition), 524);
    assert_eq!(found.account.count(Defect::PhotographNotInFile), 2582);
}

#[test]
fn ids_that_restart_are_told_apart() {
    for (dataset, sizes, extension) in [
        ("rfmid", [1920, 640, 640], "png"),
        ("rfmid_2", [507, 177, 170], "jpg"),
    ] {
        let set = shapes::rfmid(dataset, sizes, extension);
        let [train, validation, test] = sizes.map(|n| n as u64);
        let found = check_plain(&set, counts(train, validation, test));
        assert_eq!(found.account.count(Defect::PathNamesOtherSplit), 0);
        let only = found
            .account
            .notes
            .iter()
            .find(|n| n.defect == Defect::LabelOnlyAsPublished)
            .expect("referable");
        assert!(
            only.detail.contains("`referable_dr`") && only.detail.contains("6 positive"),
            "{}",
            only.detail
        );
        for (record, split) in set.records.rows.iter().zip(&found.splits) {
            assert_eq!(record.source_split.as_deref(), split.map(Split::as_str));
        }
    }
}

#[test]
fn the_plain_sets_have_their_published_sizes() {
    // Messidor-2: the file says .jpg where the folder says .JPG, and another folder.
    let messidor = shapes::plain("messidor_2", "binary_dr", (1046, 698), |n| {
        if n < 690 {
            (
                format!("IMAGES/IM{n:06}.jpg"),
                format!("pictures/IM{n:06}.JPG"),
            )
        } else {
            (
                format!("IMAGES/2005_{n}_PP.png"),
                format!("pictures/2005_{n}_PP.png"),
            )
        }
    });
    check_plain(&messidor, counts(1046, 0, 698));
    let g1020 = shapes::plain("g1020", "glaucoma", (612, 408), |n| {
        (
            format!("G1020/Images/image_{}.jpg", 3 * n),
            format!("Images/image_{}.jpg", 3 * n),
        )
    });
    check_plain(&g1020, counts(612, 0, 408));
    let jsiec = shapes::plain("jsiec1000", "binary_dr", (600, 400), |n| {
        (
            format!("1000images/{}.{}.x/{n:08}-aaaa..JPG", n % 30, n % 2),
            format!("1000images/{}.{}.x/{n:08}-aaaa..JPG", n % 30, n % 2),
        )
    });
    check_plain(&jsiec, counts(600, 0, 400));

    let mut refuge = Maker::seven("refuge");
    for (folder, source, split, prefix) in [
        ("train", "train", "train", "n"),
        ("val", "validation", "test", "V"),
        ("test", "test", "", "T"),
    ] {
        for n in 1..=400 {
            let path = format!("{folder}/Images/{prefix}{n:04}.jpg");
            let record = refuge.record(path.clone());
            record.source_split = Some(source.into());
            shapes::label(record, "glaucoma", n <= 40);
            if !split.is_empty() {
                refuge.row(
                    &format!("{prefix}{n:04}"),
                    split,
                    &format!("REFUGE/{path}"),
                    [None, None, Some(n <= 40)],
                );
            }
        }
    }
    let refuge = refuge.done(&["glaucoma"]);
    let found = check_plain(&refuge, counts(400, 0, 400));
    assert_eq!(
        found.account.published_labels["glaucoma"][&Split::Test].positive,
        40
    );
    assert_eq!(found.account.count(Defect::PhotographNotInFile), 400);
}

#[test]
fn messidor_with_its_pairs_file_is_split_by_pair() {
    let mut set = shapes::plain("messidor_2", "binary_dr", (1046, 698), |n| {
        (format!("I/{n}.png"), format!("I/{n}.png"))
    });
    let n = set.records.rows.len();
    for (i, record) in set.records.rows.iter_mut().enumerate() {
        // Left and right from the two ends of the list, so that pairs straddle.
        record.patient = Some(i.min(n - 1 - i).to_string());
    }
    assert_eq!(
        plan(&set, Track::AsPublished).account.straddling_patients,
        698
    );
    let corrected = plan(&set, Track::Corrected);
    assert_eq!(
        (
            corrected.account.straddling_patients,
            corrected.account.patients
        ),
        (0, 872)
    );
    assert!(
        corrected.account.counts.train.abs_diff(1046) <= 2,
        "{:?}",
        corrected.account.counts
    );
}

#[test]
fn one_class_alone_is_noted() {
    let mut set = shapes::plain("jsiec1000", "glaucoma", (30, 20), |n| {
        (format!("c/{n}.jpg"), format!("c/{n}.jpg"))
    });
    for record in &mut set.records.rows {
        for labels in [&mut record.labels, &mut record.published_labels] {
            labels.retain(|_, label| *label);
        }
    }
    let found = plan(&set, Track::Corrected);
    assert_eq!(found.account.count(Defect::OneClassOnly), 17);
}

#[test]
fn errors_name_what_does_not_fit() {
    let set = shapes::idrid();
    let other = shapes::brset();
    let error = published(
        &other.records,
        &set.file,
        Track::Corrected,
        &OwnSplit::default(),
    )
    .expect_err("another dataset");
    assert!(
        matches!(error, CurationError::NoRowMatches { rows: 516, .. }) && error.hint().is_some()
    );

    let mut twice = shapes::plain("g1020", "glaucoma", (3, 2), |n| {
        (format!("I/{n}.jpg"), format!("I/{n}.jpg"))
    });
    let mut copy = twice.records.rows[1].clone();
    (copy.id, copy.path) = ("copy".into(), Some("nested/I/1.png".into()));
    twice.records.rows.push(copy);
    let error = published(
        &twice.records,
        &twice.file,
        Track::AsPublished,
        &OwnSplit::default(),
    )
    .expect_err("ambiguous");
    assert!(error.to_string().ends_with("has 1 rows that each fit several photographs, first line 3: `1.jpg` fits `I/1.jpg`, `nested/I/1.png`"), "{error}");

    let mut both = Maker::seven("g1020");
    both.record("I/1.jpg".into());
    both.row("1", "train", "I/1.jpg", [None; 3]);
    both.row("1", "test", "I/1.jpg", [None; 3]);
    let both = both.done(&["glaucoma"]);
    let error = published(
        &both.records,
        &both.file,
        Track::Corrected,
        &OwnSplit::default(),
    )
    .expect_err("two splits");
    assert!(matches!(
        error,
        CurationError::ImageInTwoSplits { images: 1, .. }
    ));
    assert_eq!(plan(&both, Track::AsPublished).splits, [Some(Split::Test)]);

    let mut apart = Maker::seven("g1020");
    apart.record("I/1.jpg".into());
    for label in [true, false] {
        apart.row("1", "train", "I/1.jpg", [None, None, Some(label)]);
    }
    let apart = apart.done(&["glaucoma"]);
    let error = published(
        &apart.records,
        &apart.file,
        Track::Corrected,
        &OwnSplit::default(),
    )
    .expect_err("two labels");
    assert!(error.to_string().contains("line 3: rows of one photograph must agree on its labels, found both labels of task `glaucoma` for `1`"), "{error}");
    assert_eq!(
        plan(&apart, Track::AsPublished)
            .account
            .count(Defect::RepeatedRow),
        1
    );
}

#[test]
fn the_sources_split_is_taken_as_it_is() {
    let set = shapes::rfmid("rfmid", [30, 10, 10], "png");
    let found = source(&set.records).expect("a split");
    assert_eq!(
        (found.account.counts, found.account.kind),
        (counts(30, 10, 10), SplitKind::Source)
    );
    assert_eq!(found.account.count(Defect::NoPatientKey), 50);
    assert!(matches!(
        source(&shapes::papila().records),
        Err(CurationError::NoSourceSplit { .. })
    ));
    let mut odd = set.records.clone();
    odd.rows[3].source_split = Some("dev".into());
    assert!(
        source(&odd)
            .expect_err("dev")
            .to_string()
            .ends_with("found `dev`")
    );
}

#[test]
fn a_plan_writes_splits_and_serialises() {
    let set = shapes::papila();
    let found = own(&set.records, &OwnSplit::default()).expect("draws");
    let mut records = set.records.clone();
    found.apply(&mut records).expect("same records");
    assert!(records.rows.iter().all(|r| r.split.is_some()));
    let json = serde_json::to_string(&found.account).expect("JSON");
    assert_eq!(
        serde_json::from_str::<focus_curation::splits::SplitAccount>(&json).expect("reads"),
        found.account
    );
    records.rows.pop();
    assert!(matches!(
        found.apply(&mut records),
        Err(CurationError::Lengths { .. })
    ));
}

#[test]
#[expect(clippy::print_stderr, reason = "a test that cannot run says why")]
fn the_sample_files_are_read() {
    let folder = std::path::Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/samples/focus_splits"
    ));
    if !folder.exists() {
        eprintln!("no sample files at {}", folder.display());
        return;
    }
    for (name, rows) in [
        ("BRSET.csv", 3),
        ("mBRSET.csv", 3),
        ("g1020.csv", 2),
        ("idrid.csv", 2),
    ] {
        let file = read_published(&folder.join(name)).expect(name);
        assert_eq!(file.rows.len(), rows, "{name}");
    }
    let error = read_published(&folder.join("none.csv")).expect_err("no file");
    assert!(matches!(error, CurationError::Io { action: "read", .. }));
}
