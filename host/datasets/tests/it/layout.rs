//! Runs on folders that are almost right.

use focus_datasets::{ErrorKind, Limits};

use crate::support::{Data, map, map_with, message};

const HOSTILE: &str = "test/hostile.wasm";

#[test]
fn no_image_at_all_is_an_error_with_an_example() {
    let data = Data::new();
    data.file("labels.csv", "image,label\na.png,0\nb.png,1\n")
        .file("images/readme.txt", "");
    let error = map(HOSTILE, data.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data);
    assert!(error.hint().is_some());
    assert_eq!(
        error.to_string(),
        "None of the 2 rows of Hostile gave a record: 0 dropped, 2 without an image (the first: `images/a.png`)"
    );
}

#[test]
fn a_header_alone_is_no_dataset() {
    let data = Data::new();
    data.file("labels.csv", "image,label\n\n")
        .file("images/a.png", "");
    assert!(message(map(HOSTILE, data.path())).starts_with("None of the 0 rows"));
    data.file("labels.csv", "");
    assert_eq!(
        message(map(HOSTILE, data.path())),
        "`labels.csv` is empty, expected a header"
    );
}

#[test]
fn too_many_files_are_not_listed() {
    let data = Data::new();
    data.file("labels.csv", "image,label\na.png,0\n")
        .file("images/a.png", "")
        .file("images/b.png", "");
    let limits = Limits {
        images: 1,
        ..Limits::default()
    };
    assert_eq!(
        message(map_with(HOSTILE, data.path(), &[], &limits)),
        "`images` holds too many files: over 1"
    );
}

#[test]
fn a_failing_sink_ends_the_run() {
    let data = Data::new();
    data.file("labels.csv", "image,label\na.png,0\n")
        .file("images/a.png", "");
    let mapper = crate::support::mapper(HOSTILE);
    let limits = Limits::default();
    let job = focus_datasets::Job {
        mapper: &mapper,
        data: data.path(),
        options: &[],
        limits: &limits,
        cache: None,
    };
    let error = focus_datasets::map_stream(&job, &mut |_| Err("disk full".into())).unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (ErrorKind::Sink, "The consumer of records failed: disk full")
    );
}

#[cfg(unix)]
#[test]
fn a_table_that_is_a_link_out_is_refused() {
    let outside = Data::new();
    outside.file("labels.csv", "image,label\na.png,0\n");
    let data = Data::new();
    data.file("images/a.png", "");
    std::os::unix::fs::symlink(
        outside.path().join("labels.csv"),
        data.path().join("labels.csv"),
    )
    .unwrap();
    assert_eq!(
        message(map(HOSTILE, data.path())),
        "`labels.csv` leads out of the data folder"
    );
}
