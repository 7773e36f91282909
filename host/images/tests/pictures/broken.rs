//! Broken, hostile and absent files: each a typed error, never a panic, never part of a picture.

use focus_images::{
    ImageError, Limits, PixelCache, Workspace, decode, decode_file, prepare_file, read_file,
};
use proptest::prelude::*;

use crate::common::{data, expected, path, squash};

/// Every file that is read, except those meant to fail.
fn sound() -> Vec<String> {
    expected()
        .decoded
        .into_iter()
        .filter(|row| row.error.is_none())
        .map(|row| row.file)
        .collect()
}

#[test]
fn a_file_cut_anywhere_is_never_a_picture() {
    for name in [
        "jpeg_420_67x41.jpg",
        "jpeg_progressive.jpg",
        "jpeg_restart.jpg",
        "jpeg_orientation_6.jpg",
        "png_rgba.png",
        "png_interlaced.png",
        "png_palette.png",
    ] {
        let whole = data(name);
        decode(&whole, &Limits::default()).unwrap();
        for length in 1..whole.len() {
            let error = decode(&whole[..length], &Limits::default()).expect_err(name);
            assert_eq!(
                error.kind(),
                "truncated",
                "{name} cut to {length} of {}: {error}",
                whole.len()
            );
        }
    }
}

#[test]
fn a_truncated_file_does_not_spoil_the_next() {
    let mut workspace = Workspace::new();
    let whole = data("jpeg_420_67x41.jpg");
    let first = workspace.decode(&whole, &Limits::default()).unwrap();
    for _ in 0..3 {
        assert!(matches!(
            workspace.decode(&whole[..whole.len() / 2], &Limits::default()),
            Err(ImageError::Truncated { .. })
        ));
        assert_eq!(workspace.decode(&whole, &Limits::default()).unwrap(), first);
    }
}

#[test]
fn sizes_are_checked_before_pixels() {
    let limits = Limits {
        max_pixels: 2746,
        ..Limits::default()
    };
    for name in ["jpeg_420_67x41.jpg", "jpeg_progressive.jpg"] {
        assert_eq!(
            decode(&data(name), &limits).unwrap_err(),
            ImageError::TooLarge {
                width: 67,
                height: 41,
                limit: 2746
            }
        );
    }
    let limits = Limits {
        max_pixels: 692,
        ..Limits::default()
    };
    assert_eq!(
        decode(&data("png_rgb.png"), &limits).unwrap_err(),
        ImageError::TooLarge {
            width: 33,
            height: 21,
            limit: 692
        }
    );
    // A header that promises 65,500 x 65,500 pixels (the most that the library takes) is refused before anything is allocated for them.
    let mut bomb = data("jpeg_444_64x48.jpg");
    let frame = bomb
        .windows(2)
        .position(|pair| pair == b"\xFF\xC0")
        .unwrap();
    bomb[frame + 5..frame + 9].copy_from_slice(&[0xFF, 0xDC, 0xFF, 0xDC]);
    assert_eq!(
        decode(&bomb, &Limits::default()).unwrap_err().kind(),
        "too_large"
    );
}

#[test]
fn scans_are_limited() {
    let limits = Limits {
        max_jpeg_scans: 2,
        ..Limits::default()
    };
    assert!(decode(&data("jpeg_progressive.jpg"), &limits).is_err());
    assert!(decode(&data("jpeg_420_67x41.jpg"), &limits).is_ok());
}

#[test]
fn trailing_bytes_are_allowed_and_bytes_before_a_marker_are_not() {
    let mut padded = data("jpeg_420_67x41.jpg");
    padded.extend_from_slice(b"a second picture, as some cameras append");
    let whole = decode(&data("jpeg_420_67x41.jpg"), &Limits::default()).unwrap();
    assert_eq!(decode(&padded, &Limits::default()).unwrap(), whole);
    let mut odd = data("jpeg_420_67x41.jpg");
    let frame = odd.windows(2).position(|pair| pair == b"\xFF\xC0").unwrap();
    odd.splice(frame..frame, *b"junk");
    let error = decode(&odd, &Limits::default()).unwrap_err();
    assert_eq!(error.kind(), "corrupt", "{error}");
}

#[test]
fn paths_that_are_no_pictures_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("empty.jpg"), b"").unwrap();
    std::fs::write(at("page.png"), b"<!DOCTYPE html><html>404").unwrap();
    std::fs::write(at("big.jpg"), data("jpeg_420_67x41.jpg")).unwrap();
    std::fs::create_dir(at("folder.jpg")).unwrap();
    std::os::unix::fs::symlink(at("nowhere"), at("dangling.jpg")).unwrap();
    std::os::unix::net::UnixListener::bind(at("socket.jpg"))
        .map(drop)
        .unwrap();
    let limits = Limits::default();
    for (name, kind) in [
        ("absent.jpg", "missing"),
        ("dangling.jpg", "missing"),
        ("big.jpg/inside.jpg", "missing"),
        ("empty.jpg", "empty"),
        ("page.png", "unknown_format"),
        ("folder.jpg", "is_a_directory"),
        ("socket.jpg", "unreadable"),
    ] {
        let error = prepare_file(at(name), &squash(8, 8), &limits, None).unwrap_err();
        assert_eq!(
            (error.kind(), error.is_about_the_image()),
            (kind, true),
            "{name}: {error}"
        );
        assert!(error.hint().is_some());
        assert_eq!(decode_file(at(name), &limits).unwrap_err(), error);
    }
    let small = Limits {
        max_file_bytes: 100,
        ..limits
    };
    assert!(matches!(
        read_file(at("big.jpg"), &small),
        Err(ImageError::FileTooLarge { limit: 100, .. })
    ));
    assert!(read_file(at("big.jpg"), &limits).is_ok());
}

#[test]
fn the_extension_is_not_asked() {
    let folder = tempfile::tempdir().unwrap();
    let path_as = folder.path().join("really_a_png.jpg");
    std::fs::copy(path("png_rgb.png"), &path_as).unwrap();
    let renamed = decode_file(&path_as, &Limits::default()).unwrap();
    let honest = decode_file(path("png_rgb.png"), &Limits::default()).unwrap();
    assert_eq!(renamed.image, honest.image);
    assert!(honest.notes.remarks.is_empty());
    let remark = "the name ends in `.jpg`, and the content is PNG";
    assert_eq!(renamed.notes.remarks, [remark]);
    // Named in the notes of the prepared picture too, and never in the cache.
    let cache = PixelCache::open(folder.path()).unwrap();
    for (path, remarks) in [(&path_as, 1), (&path("png_rgb.png"), 0), (&path_as, 1)] {
        let prepared = prepare_file(path, &squash(8, 8), &Limits::default(), Some(&cache)).unwrap();
        assert_eq!(prepared.notes.remarks.len(), remarks);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// Random damage: whatever happens is a result. A picture that still decodes has the size that its header states.
    #[test]
    fn damaged_bytes_never_panic(pick in any::<prop::sample::Index>(), damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8), cut in prop::option::of(any::<prop::sample::Index>())) {
        let names = sound();
        let mut bytes = data(&names[pick.index(names.len())]);
        for (at, value) in &damage {
            let at = at.index(bytes.len());
            bytes[at] = *value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        // Small, so that damaged sizes do not cost seconds.
        let limits = Limits { max_pixels: 1_000_000, ..Limits::default() };
        match decode(&bytes, &limits) {
            Ok((image, notes)) => {
                prop_assert_eq!(image.pixels.len(), image.width as usize * image.height as usize * 3);
                prop_assert_eq!(u64::from(notes.stored_width) * u64::from(notes.stored_height), u64::from(image.width) * u64::from(image.height));
            }
            Err(error) => prop_assert!(error.is_about_the_image(), "{}", error),
        }
    }

    #[test]
    fn noise_behind_a_signature_never_panics(png in any::<bool>(), noise in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut bytes = if png { b"\x89PNG\r\n\x1A\n".to_vec() } else { b"\xFF\xD8\xFF".to_vec() };
        bytes.extend(noise);
        prop_assert!(decode(&bytes, &Limits::default()).is_err());
    }
}
