//! Preparing: the same pixels as one by one, nothing twice, nothing half.

use crate::pictures::{disc, jpeg, png};
use focus_curation::{CurationError, PrepareJob, PrepareOutcome, PrepareReport, prepare_all};
use focus_images::{
    ContentHash, Decode, Geometry, Limits, PixelCache, PrepareSpec, ResizeFilter, prepare_file,
};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

fn specs() -> Vec<PrepareSpec> {
    let squash = |side, filter| PrepareSpec::new(side, side, Geometry::Squash, filter);
    vec![
        squash(64, ResizeFilter::Bilinear),
        squash(96, ResizeFilter::Bicubic),
        PrepareSpec::new(
            80,
            80,
            Geometry::ShortestEdgeCrop { edge: 90 },
            ResizeFilter::Lanczos,
        ),
        PrepareSpec::new(70, 50, Geometry::Fit, ResizeFilter::Box),
        squash(48, ResizeFilter::Bilinear).with_steps("crop,pad,mask".parse().expect("steps")),
        squash(24, ResizeFilter::Bilinear).with_decode(Decode::Fast),
    ]
}

fn folder_of_pictures(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for seed in 0..6 {
        let file = folder.join(format!("{seed}.jpg"));
        let (w, h) = (320 + seed, 241);
        jpeg(&file, &disc(seed, w, h), w, h, 85);
        files.push(file);
    }
    let file = folder.join("6.png");
    png(&file, &disc(6, 200, 150), 200, 150);
    files.push(file);
    files
}

fn run(files: &[PathBuf], specs: &[PrepareSpec], cache: &PixelCache) -> PrepareReport {
    let job = PrepareJob {
        files,
        expected: &[],
        specs,
        cache,
        limits: Limits::default(),
        threads: 2,
    };
    prepare_all(&job, &|_| ControlFlow::Continue(())).expect("prepares")
}

#[test]
fn one_decoding_gives_the_pixels_and_notes_of_many() {
    let folder = tempfile::tempdir().expect("folder");
    let files = folder_of_pictures(folder.path());
    let cache = PixelCache::open(folder.path().join("cache")).expect("cache");
    let specs = specs();
    let report = run(&files, &specs, &cache);
    assert_eq!(
        (report.made, report.entries, report.failed.len()),
        (7, 42, 0)
    );
    let limits = Limits::default();
    for file in &files {
        for spec in &specs {
            let expected = prepare_file(file, spec, &limits, None).expect("prepares");
            let (image, mut notes) = cache
                .get(&expected.content_hash, spec)
                .expect("in the cache");
            assert!(
                image.pixels == expected.pixels,
                "{} {}",
                file.display(),
                spec.canonical()
            );
            notes.remarks.clone_from(&expected.notes.remarks);
            assert_eq!(notes, expected.notes);
        }
    }
    // Again: nothing to do. One size more: only that.
    assert_eq!(run(&files, &specs, &cache).present, 7);
    let mut more = specs.clone();
    more.push(PrepareSpec::new(
        33,
        33,
        Geometry::Squash,
        ResizeFilter::Box,
    ));
    let report = run(&files, &more, &cache);
    assert_eq!((report.made, report.entries), (7, 7));
    // A damaged entry is made again.
    let hash = ContentHash::of(&fs::read(&files[2]).expect("reads"));
    fs::write(cache.path_of(&hash, &specs[1]), b"damaged").expect("writes");
    let report = run(&files, &more, &cache);
    assert_eq!((report.made, report.entries, report.present), (1, 1, 6));
}

#[test]
fn bad_images_are_outcomes_and_leave_nothing() {
    let folder = tempfile::tempdir().expect("folder");
    let mut files = folder_of_pictures(folder.path());
    let cache = PixelCache::open(folder.path().join("cache")).expect("cache");
    let bytes = fs::read(&files[0]).expect("reads");
    let cut = folder.path().join("cut.jpg");
    fs::write(&cut, &bytes[..bytes.len() / 2]).expect("writes");
    files.extend([cut.clone(), folder.path().join("gone.jpg")]);
    let mut expected: Vec<Option<ContentHash>> = vec![None; files.len()];
    expected[0] = Some(ContentHash::of(&bytes));
    expected[1] = Some(ContentHash::of(b"another"));
    let specs = specs();
    let job = PrepareJob {
        files: &files,
        expected: &expected,
        specs: &specs,
        cache: &cache,
        limits: Limits::default(),
        threads: 1,
    };
    let report = prepare_all(&job, &|_| ControlFlow::Continue(())).expect("prepares");
    let failed: Vec<(&str, u64)> = report
        .failed
        .iter()
        .map(|(kind, n)| (kind.as_str(), *n))
        .collect();
    assert_eq!(
        (failed, report.made),
        (vec![("changed", 1), ("missing", 1), ("truncated", 1)], 6)
    );
    assert!(
        matches!(&report.outcomes[1], PrepareOutcome::Failed { kind, .. } if kind == "changed")
    );
    let hash = ContentHash::of(&fs::read(&cut).expect("reads"));
    assert!(
        specs
            .iter()
            .all(|spec| !cache.path_of(&hash, spec).exists())
    );
    let short = PrepareJob {
        expected: &expected[..2],
        ..job
    };
    assert!(matches!(
        prepare_all(&short, &|_| ControlFlow::Continue(())),
        Err(CurationError::Lengths { .. })
    ));
}

#[test]
fn stopped_work_goes_on_where_it_was() {
    let folder = tempfile::tempdir().expect("folder");
    let files = folder_of_pictures(folder.path());
    let cache = PixelCache::open(folder.path().join("cache")).expect("cache");
    let specs = specs();
    let job = PrepareJob {
        files: &files,
        expected: &[],
        specs: &specs,
        cache: &cache,
        limits: Limits::default(),
        threads: 1,
    };
    let most = AtomicU64::new(0);
    let report = prepare_all(&job, &|progress| {
        assert_eq!(progress.total, 7);
        most.fetch_max(progress.done, Ordering::Relaxed);
        if progress.done >= 3 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })
    .expect("stops");
    assert_eq!(
        (most.into_inner(), report.made, report.not_reached),
        (3, 3, 4)
    );
    let report = run(&files, &specs, &cache);
    assert_eq!((report.present, report.made), (3, 4));
}

#[test]
fn a_cache_that_cannot_be_written_is_an_error() {
    let folder = tempfile::tempdir().expect("folder");
    let files = folder_of_pictures(folder.path());
    let cache = PixelCache::open(folder.path().join("cache")).expect("cache");
    // A file where the entry's folder should be.
    let hash = ContentHash::of(&fs::read(&files[0]).expect("reads"));
    let specs = specs();
    let entry = cache.path_of(&hash, &specs[0]);
    fs::write(entry.parent().expect("a folder"), b"").expect("writes");
    let job = PrepareJob {
        files: &files[..1],
        expected: &[],
        specs: &specs,
        cache: &cache,
        limits: Limits::default(),
        threads: 1,
    };
    let error = prepare_all(&job, &|_| ControlFlow::Continue(())).expect_err("cannot write");
    assert!(matches!(
        error,
        CurationError::Io {
            action: "write",
            ..
        }
    ));
}
