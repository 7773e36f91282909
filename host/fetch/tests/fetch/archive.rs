//! Archives: unpacked whole, and refused whole.

use crate::support::{Bench, body, limits};
use focus_fetch::{FetchError, Limits, Unpacked, unpack_all, unpack_zip};
use std::{
    io::{Cursor, Write as _},
    sync::atomic::Ordering,
};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

fn stored() -> SimpleFileOptions {
    SimpleFileOptions::default().compression_method(CompressionMethod::Stored)
}

fn deflated() -> SimpleFileOptions {
    SimpleFileOptions::default().compression_method(CompressionMethod::Deflated)
}

fn pack(files: &[(&str, &[u8])], options: SimpleFileOptions) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        if name.ends_with('/') {
            zip.add_directory(*name, options).expect("adds");
        } else {
            zip.start_file(*name, options).expect("adds");
            zip.write_all(bytes).expect("writes");
        }
    }
    zip.finish().expect("ends").into_inner()
}

/// Replace a name by another of the same length, everywhere in the archive.
fn rename(mut archive: Vec<u8>, from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    for i in 0..archive.len() - from.len() {
        if archive[i..].starts_with(from.as_bytes()) {
            archive[i..i + to.len()].copy_from_slice(to.as_bytes());
        }
    }
    archive
}

fn unpack(bench: &Bench, archive: &[u8]) -> Result<Unpacked, FetchError> {
    std::fs::write(bench.path("a.zip"), archive).expect("writes");
    unpack_zip(&bench.context(), &bench.folder(), "a.zip")
}

#[test]
fn files_come_out_and_a_second_run_leaves_them() {
    let (one, two) = (body(100_000), vec![7; 300_000]);
    let files: &[(&str, &[u8])] = &[
        ("set/", b""),
        ("set/a b.jpg", &one),
        ("set/deep/m.bmp", &two),
        ("inner.ZIP", b"not looked at"),
    ];
    for options in [stored(), deflated()] {
        let bench = Bench::new();
        let first = unpack(&bench, &pack(files, options)).expect("unpacks");
        assert_eq!((first.written, first.present, first.bytes), (3, 0, 400_013));
        assert_eq!(first.nested, ["inner.ZIP"]);
        assert_eq!(bench.read("set/a b.jpg"), one);
        assert_eq!(bench.read("set/deep/m.bmp"), two);
        std::fs::remove_file(bench.path("set/deep/m.bmp")).expect("removes");
        let second = unpack(&bench, &pack(files, options)).expect("unpacks");
        assert_eq!((second.written, second.present), (1, 2));
        std::fs::write(bench.path("set/a b.jpg"), &body(100_001)[1..]).expect("writes");
        let error = unpack(&bench, &pack(files, options)).expect_err("differs");
        assert!(
            matches!(error, FetchError::ExistingDiffers { .. }),
            "{error}"
        );
    }
}

#[test]
fn an_archive_in_a_folder_is_unpacked_there() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("sub")).expect("makes");
    std::fs::write(bench.path("sub/a.zip"), pack(&[("x/y", b"z")], stored())).expect("writes");
    unpack_zip(&bench.context(), &bench.folder(), "sub/a.zip").expect("unpacks");
    assert_eq!(bench.read("sub/x/y"), b"z");
}

#[test]
fn archives_within_archives_are_unpacked_up_to_a_depth() {
    let bench = Bench::new();
    let mut archive = pack(&[("deep.txt", b"z")], stored());
    for _ in 0..3 {
        archive = pack(&[("in/inner.ZIP", &archive)], stored());
    }
    std::fs::write(bench.path("a.zip"), &archive).expect("writes");
    std::fs::write(bench.path("b.csv"), b"no archive").expect("writes");
    let all = || {
        unpack_all(
            &bench.context(),
            &bench.folder(),
            ["a.zip", "b.csv"].into_iter(),
        )
    };
    let first = all().expect("unpacks");
    assert_eq!(
        (first.written, first.present, first.nested.len()),
        (4, 0, 3)
    );
    assert_eq!(bench.read("in/in/in/deep.txt"), b"z");
    let again = all().expect("finds everything");
    assert_eq!((again.written, again.present), (0, 4));

    archive = pack(&[("inner.zip", &archive)], stored());
    std::fs::write(bench.path("c.zip"), archive).expect("writes");
    let error = unpack_all(&bench.context(), &bench.folder(), ["c.zip"].into_iter());
    let error = error.expect_err("too deep").to_string();
    assert!(error.contains("more than 4 other archives"), "{error}");
}

#[test]
fn entries_that_climb_link_or_collide_are_refused_before_anything_is_written() {
    let good: (&str, &[u8]) = ("a-good-one", b"x");
    let with = |name: &str, bytes: &[u8]| pack(&[good, (name, bytes)], stored());
    let mut link = ZipWriter::new(Cursor::new(Vec::new()));
    link.start_file("first", stored()).expect("adds");
    link.add_symlink("link", "/etc/passwd", stored())
        .expect("adds");
    let link = link.finish().expect("ends").into_inner();
    for (archive, word) in [
        (
            rename(with("xx/yy/up", b"x"), "xx/yy/up", "../../up"),
            "Unsafe file name",
        ),
        (
            rename(with("xetc/cron", b"x"), "xetc/cron", "/etc/cron"),
            "Unsafe file name",
        ),
        (
            rename(with("xx-up", b"x"), "xx-up", "..\\up"),
            "Unsafe file name",
        ),
        (with("a-good-one/below", b"x"), "collide"),
        (
            rename(with("a-evil-one", b"x"), "a-evil-one", "a-good-one"),
            "one name",
        ),
        (link, "symbolic link"),
        (with("b.part", b"x"), "Unsafe file name"),
        (b"not a zip".to_vec(), "Could not unpack"),
        (with("b", b"x")[..60].to_vec(), "Could not unpack"),
    ] {
        let bench = Bench::new();
        let error = unpack(&bench, &archive).expect_err(word);
        assert!(error.to_string().contains(word), "{word}: {error}");
        assert!(error.hint().is_some());
        assert_eq!(bench.names(), ["a.zip"], "{word}");
    }
}

#[test]
fn damaged_bytes_do_not_get_a_name() {
    let bench = Bench::new();
    let archive = pack(&[("b", b"some plain text")], stored());
    let error = unpack(&bench, &rename(archive, "plain", "PLAIN")).expect_err("damaged");
    assert!(matches!(error, FetchError::Archive { .. }), "{error}");
    assert!(!bench.path("b").exists());
}

#[test]
fn bombs_are_refused_by_size_by_ratio_and_by_count() {
    let zeros = vec![0; 70 << 20];
    let bomb = pack(&[("zeros", &zeros)], deflated());
    let error = unpack(&Bench::new(), &bomb).expect_err("ratio");
    assert!(
        error.to_string().contains("unpacked bytes for its size"),
        "{error}"
    );
    let small = pack(&[("a", &[0; 2000]), ("b", b"x")], stored());
    let bench = Bench::with(Limits {
        archive_bytes: 2000,
        ..limits()
    });
    let error = unpack(&bench, &small).expect_err("size");
    assert!(
        error.to_string().contains("at most 2000, found 2001"),
        "{error}"
    );
    let bench = Bench::with(Limits {
        listed_files: 1,
        ..limits()
    });
    let error = unpack(&bench, &small).expect_err("count");
    assert!(error.to_string().contains("entries"), "{error}");
    let bench = Bench::new();
    bench.machine.free.store(3000, Ordering::Relaxed);
    let error = unpack(&bench, &small).expect_err("space");
    assert!(
        matches!(error, FetchError::NoSpace { needed: 3001, .. }),
        "{error}"
    );
}

#[test]
fn a_size_that_lies_is_noticed() {
    // The declared size made smaller, in the entry's own header and in the directory's.
    let mut archive = pack(&[("b", &[7; 5000])], deflated());
    for (mark, offset) in [(b"PK\x03\x04", 22), (b"PK\x01\x02", 24)] {
        let header = archive
            .windows(4)
            .position(|w| w == mark)
            .expect("a header");
        archive[header + offset..][..4].copy_from_slice(&100_u32.to_le_bytes());
    }
    let bench = Bench::new();
    unpack(&bench, &archive).expect_err("lies");
    assert!(!bench.path("b").exists());
}
