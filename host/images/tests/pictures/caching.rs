//! The pixel cache: hits equal misses, damage is made good, the key covers all that decides pixels.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use focus_images::{
    ContentHash, DecodeNotes, Geometry, Limits, PixelCache, PixelType, PrepareSpec, Prepared,
    PreparedImage, decode, prepare_file,
};

use crate::common::{data, path, squash};

fn run(cache: &PixelCache, name: &str, spec: &PrepareSpec) -> Prepared {
    prepare_file(path(name), spec, &Limits::default(), Some(cache)).expect("a sound picture")
}

#[test]
fn a_hit_equals_the_miss_and_the_run_without_a_cache() {
    let folder = tempfile::tempdir().unwrap();
    let cache = PixelCache::open(folder.path()).unwrap();
    for name in ["jpeg_orientation_6_large.jpg", "png_rgba.png"] {
        let without = prepare_file(path(name), &squash(20, 10), &Limits::default(), None).unwrap();
        let miss = run(&cache, name, &squash(20, 10));
        let hit = run(
            &PixelCache::open(folder.path()).unwrap(),
            name,
            &squash(20, 10),
        );
        assert_eq!(
            (without.from_cache, miss.from_cache, hit.from_cache),
            (false, false, true)
        );
        assert_eq!(miss, without);
        assert_eq!(
            Prepared {
                from_cache: false,
                ..hit
            },
            miss
        );
        assert_eq!(miss.content_hash, ContentHash::of(&data(name)));
    }
}

#[test]
fn the_key_covers_bytes_and_spec() {
    let folder = tempfile::tempdir().unwrap();
    let cache = PixelCache::open(folder.path()).unwrap();
    let spec = squash(16, 16);
    run(&cache, "jpeg_grey.jpg", &spec);
    for other in [
        squash(16, 17),
        PrepareSpec {
            geometry: Geometry::Fit,
            ..spec
        },
        PrepareSpec {
            geometry: Geometry::ShortestEdgeCrop { edge: 20 },
            ..spec
        },
        spec.with_pixels(PixelType::F32),
    ] {
        assert!(!run(&cache, "jpeg_grey.jpg", &other).from_cache);
    }
    assert!(!run(&cache, "jpeg_rgb.jpg", &spec).from_cache);
    assert!(run(&cache, "jpeg_grey.jpg", &spec).from_cache);
    // The same name with other bytes is another picture.
    let twin = folder.path().join("jpeg_grey.jpg");
    fs::copy(path("jpeg_rgb.jpg"), &twin).unwrap();
    let swapped = prepare_file(&twin, &spec, &Limits::default(), Some(&cache)).unwrap();
    assert!(swapped.from_cache);
    assert_eq!(swapped.pixels, run(&cache, "jpeg_rgb.jpg", &spec).pixels);
}

#[test]
fn floats_are_kept_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let cache = PixelCache::open(folder.path()).unwrap();
    let spec = squash(16, 16).with_pixels(PixelType::F32);
    let made = run(&cache, "jpeg_rgb.jpg", &spec);
    let kept = run(&cache, "jpeg_rgb.jpg", &spec);
    assert!(!made.from_cache && kept.from_cache);
    assert_eq!(made.pixels.len(), 16 * 16 * 12);
    assert_eq!(made.pixels, kept.pixels);
    let bytes = run(&cache, "jpeg_rgb.jpg", &squash(16, 16)).pixels;
    let entry = cache.get(&made.content_hash, &spec).unwrap().0;
    assert_eq!(entry.kind, PixelType::F32);
    // The same picture to half a level and the rounding between the two passes of bytes, and not rounded itself.
    let floats = entry.floats();
    let apart = |(float, byte): (&f32, &u8)| (float * 255.0 - f32::from(*byte)).abs();
    assert!(floats.iter().zip(&bytes).map(apart).fold(0.0, f32::max) <= 1.01);
    assert!(floats.iter().zip(&bytes).map(apart).any(|off| off > 0.1));
}

#[test]
fn a_damaged_entry_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let cache = PixelCache::open(folder.path()).unwrap();
    let spec = squash(9, 7);
    let name = "jpeg_444_64x48.jpg";
    let sound = run(&cache, name, &spec);
    let entry = cache.path_of(&sound.content_hash, &spec);
    let bytes = fs::read(&entry).unwrap();
    let mut damaged: Vec<Vec<u8>> = vec![
        Vec::new(),
        bytes[..10].to_vec(),
        bytes[..bytes.len() - 1].to_vec(),
        [&bytes[..], b"x"].concat(),
        vec![0xFF; bytes.len()],
    ];
    // One flipped bit in each part: magic, sizes, hashes, check, notes, pixels.
    for at in [0, 8, 12, 16, 19, 20, 60, 90, 120, bytes.len() - 1] {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x40;
        damaged.push(flipped);
    }
    for (index, content) in damaged.iter().enumerate() {
        fs::write(&entry, content).unwrap();
        let again = run(&cache, name, &spec);
        assert_eq!(again, sound, "damage {index}");
        assert_eq!(fs::read(&entry).unwrap(), bytes, "damage {index}");
    }
    // An entry moved to another's place is not that other.
    let other = run(&cache, "jpeg_grey.jpg", &spec);
    fs::copy(cache.path_of(&other.content_hash, &spec), &entry).unwrap();
    assert_eq!(run(&cache, name, &spec), sound);
}

#[test]
fn entries_are_private_and_leave_no_parts() {
    let folder = tempfile::tempdir().unwrap();
    let cache = PixelCache::open(folder.path()).unwrap();
    let made = run(&cache, "png_grey.png", &squash(5, 5));
    let entry = cache.path_of(&made.content_hash, &squash(5, 5));
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&entry), 0o600);
    assert_eq!(mode(entry.parent().unwrap()), 0o700);
    assert_eq!(mode(entry.parent().unwrap().parent().unwrap()), 0o700);
    let names: Vec<_> = fs::read_dir(entry.parent().unwrap())
        .unwrap()
        .map(|item| item.unwrap().path())
        .collect();
    assert_eq!(names, [entry]);
}

#[test]
fn a_folder_that_cannot_be_used_is_an_error_and_a_failed_write_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, b"").unwrap();
    let error = PixelCache::open(&file).unwrap_err();
    assert_eq!((error.kind(), error.is_about_the_image()), ("cache", false));
    let cache = PixelCache::open(folder.path().join("gone")).unwrap();
    fs::remove_dir_all(folder.path().join("gone")).unwrap();
    fs::write(folder.path().join("gone"), b"in the way").unwrap();
    assert!(!run(&cache, "png_grey.png", &squash(5, 5)).from_cache);
}

#[test]
fn an_entry_made_under_wider_limits_does_not_pass_narrower_ones() {
    let folder = tempfile::tempdir().unwrap();
    let cache = PixelCache::open(folder.path()).unwrap();
    run(&cache, "jpeg_444_64x48.jpg", &squash(5, 5));
    let narrow = Limits {
        max_pixels: 64 * 48 - 1,
        ..Limits::default()
    };
    let error = prepare_file(
        path("jpeg_444_64x48.jpg"),
        &squash(5, 5),
        &narrow,
        Some(&cache),
    )
    .unwrap_err();
    assert_eq!(error.kind(), "too_large");
}

#[test]
fn threads_share_a_cache() {
    let folder = tempfile::tempdir().unwrap();
    let cache = PixelCache::open(folder.path()).unwrap();
    let expected = prepare_file(
        path("jpeg_420_67x41.jpg"),
        &squash(30, 30),
        &Limits::default(),
        None,
    )
    .unwrap()
    .pixels;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    assert_eq!(
                        run(&cache, "jpeg_420_67x41.jpg", &squash(30, 30)).pixels,
                        expected
                    );
                }
            });
        }
    });
}

/// Bytes of everything under the cache's folder.
fn held(folder: &std::path::Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(found) if found.is_dir() => held(&entry.path()),
            Ok(found) => found.len(),
            Err(_) => 0,
        })
        .sum()
}

/// Pictures of one size of entry, named by number.
fn entry(number: u32) -> (ContentHash, PreparedImage) {
    let image = PreparedImage {
        kind: PixelType::U8,
        width: 16,
        height: 16,
        pixels: vec![number as u8; 16 * 16 * 3],
    };
    (ContentHash::of(&number.to_le_bytes()), image)
}

fn notes() -> DecodeNotes {
    decode(&data("jpeg_grey.jpg"), &Limits::default())
        .expect("a sound picture")
        .1
}

#[test]
fn the_least_recently_used_entries_make_room() {
    let folder = tempfile::tempdir().unwrap();
    let spec = squash(16, 16);
    let one = {
        let cache = PixelCache::open(folder.path()).unwrap();
        let (hash, image) = entry(0);
        cache.put(&hash, &spec, &image, &notes()).unwrap();
        fs::metadata(cache.path_of(&hash, &spec)).unwrap().len()
    };
    let limit = 20 * one;
    let cache = PixelCache::open_limited(folder.path(), limit).unwrap();
    for number in 1..20 {
        let (hash, image) = entry(number);
        cache.put(&hash, &spec, &image, &notes()).unwrap();
    }
    let there = |number| cache.path_of(&entry(number).0, &spec).exists();
    assert!((0..20).all(there), "twenty fit");
    // The oldest is used, then one more than fits is added: the next oldest go, down to nine tenths.
    let (hash, image) = entry(0);
    assert_eq!(cache.get(&hash, &spec).unwrap().0, image);
    let (hash, image) = entry(20);
    cache.put(&hash, &spec, &image, &notes()).unwrap();
    let kept: Vec<u32> = (0..=20).filter(|&number| there(number)).collect();
    assert_eq!(kept, [&[0][..], &(4..=20).collect::<Vec<_>>()].concat());
    assert_eq!(held(folder.path()), 18 * one);
    // Another process, or one that comes later, keeps the same order.
    let later = PixelCache::open_limited(folder.path(), limit).unwrap();
    for number in 21..24 {
        let (hash, image) = entry(number);
        later.put(&hash, &spec, &image, &notes()).unwrap();
    }
    assert!(there(0) && !there(4) && there(23));
}

#[test]
fn what_does_not_fit_at_all_is_not_kept_and_removes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let spec = squash(16, 16);
    let open = PixelCache::open(folder.path()).unwrap();
    run(&open, "jpeg_grey.jpg", &spec);
    for limit in [0, 100] {
        let cache = PixelCache::open_limited(folder.path(), limit).unwrap();
        run(&cache, "png_rgba.png", &spec);
        assert!(!run(&cache, "png_rgba.png", &spec).from_cache);
        assert!(
            run(&cache, "jpeg_grey.jpg", &spec).from_cache,
            "what was there is used"
        );
    }
}

#[test]
fn files_being_written_stay_and_those_left_behind_go() {
    let folder = tempfile::tempdir().unwrap();
    let spec = squash(16, 16);
    let cache = PixelCache::open_limited(folder.path(), 8000).unwrap();
    let (hash, image) = entry(0);
    cache.put(&hash, &spec, &image, &notes()).unwrap();
    let inner = cache.path_of(&hash, &spec).parent().unwrap().to_path_buf();
    let (young, old) = (inner.join(".part-1-1"), inner.join(".part-1-2"));
    for path in [&young, &old] {
        fs::write(path, vec![0; 500]).unwrap();
    }
    let hours = std::time::Duration::from_hours(2);
    let past = std::time::SystemTime::now() - hours;
    fs::File::options()
        .write(true)
        .open(&old)
        .unwrap()
        .set_modified(past)
        .unwrap();
    for number in 1..30 {
        let (hash, image) = entry(number);
        cache.put(&hash, &spec, &image, &notes()).unwrap();
    }
    assert!(young.exists() && !old.exists());
    assert!(held(folder.path()) <= 8000);
}

#[test]
fn writers_that_share_a_full_folder_stay_near_the_limit_and_read_what_they_wrote() {
    let folder = tempfile::tempdir().unwrap();
    let spec = squash(16, 16);
    let limit = 60_000_u64;
    let notes = notes();
    // A cache opened anew for each thread counts for itself, as a process does.
    std::thread::scope(|scope| {
        for writer in 0..4_u32 {
            let (notes, folder) = (&notes, folder.path());
            scope.spawn(move || {
                let cache = PixelCache::open_limited(folder, limit).unwrap();
                for step in 0..150 {
                    // Half of the numbers are written by all.
                    let number = if step % 2 == 0 {
                        step
                    } else {
                        1000 * writer + step
                    };
                    let (hash, image) = entry(number);
                    match cache.get(&hash, &spec) {
                        Some((found, _)) => assert_eq!(found, image),
                        None => cache.put(&hash, &spec, &image, notes).unwrap(),
                    }
                }
            });
        }
    });
    // Each writer may have added a sixteenth and one entry since it last looked.
    let most = limit + 4 * (limit / 16 + 1300);
    assert!(held(folder.path()) <= most, "{}", held(folder.path()));
    assert!(held(folder.path()) > limit / 2);
    let parts = fs::read_dir(folder.path().join("pixels")).unwrap();
    let parts = parts.flatten().filter(|entry| entry.path().is_dir());
    for inner in parts {
        for file in fs::read_dir(inner.path()).unwrap() {
            let name = file.unwrap().file_name();
            assert!(!name.to_string_lossy().starts_with(".part"), "{name:?}");
        }
    }
}

/// Where the processes that the test below starts find their cache.
const CACHE: &str = "FOCUS_TEST_PIXEL_CACHE";
const LIMIT: u64 = 60_000;

/// Puts and gets until the process is killed or has done `steps`.
fn work(folder: &std::path::Path, first: u32, steps: u32) {
    let spec = squash(16, 16);
    let notes = notes();
    let cache = PixelCache::open_limited(folder, LIMIT).expect("a folder of its own");
    for step in 0..steps {
        let (hash, image) = entry((first + step * 7) % 211);
        match cache.get(&hash, &spec) {
            Some((found, _)) => assert_eq!(found, image),
            None => cache
                .put(&hash, &spec, &image, &notes)
                .expect("room on the disk"),
        }
    }
}

#[test]
fn processes_share_a_full_folder_and_a_killed_one_does_no_harm() {
    if let Some(folder) = std::env::var_os(CACHE) {
        return work(folder.as_ref(), std::process::id() % 211, u32::MAX);
    }
    let folder = tempfile::tempdir().unwrap();
    let this = "caching::processes_share_a_full_folder_and_a_killed_one_does_no_harm";
    let start = || {
        std::process::Command::new(std::env::current_exe().unwrap())
            .args([this, "--exact", "--nocapture"])
            .env(CACHE, folder.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut others = [start(), start()];
    // They are at work once the folder is full.
    let begun = std::time::Instant::now();
    while held(folder.path()) < LIMIT / 2 {
        assert!(
            begun.elapsed().as_secs() < 60,
            "the other processes write nothing"
        );
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    work(folder.path(), 5, 300);
    for other in &mut others {
        assert!(other.try_wait().unwrap().is_none(), "still at work");
        other.kill().unwrap();
        other.wait().unwrap();
    }
    // The lock of a killed process is free, what it left unfinished is no entry, and the limit holds.
    work(folder.path(), 9, 300);
    assert!(held(folder.path()) <= LIMIT + 3 * (LIMIT / 16 + 1300));
}
