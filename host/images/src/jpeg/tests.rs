//! The two layouts against each other, on the committed pictures and on damaged ones.

use super::*;
use focus_resize::{Backend, Filter, Resizer, Scaling};

fn fixtures() -> Vec<(String, Vec<u8>)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jpg"))
        .collect();
    files.sort();
    let name = |path: &std::path::Path| path.file_stem().unwrap().display().to_string();
    files
        .iter()
        .map(|path| (name(path), std::fs::read(path).unwrap()))
        .collect()
}

/// Decoded pixels with what is known of them.
type Decoded = (Vec<u8>, DecodeNotes, Layout);

fn decoded(bytes: &[u8], planes_will_do: bool) -> Result<Decoded, ImageError> {
    let mut pixels = Vec::new();
    let limits = Limits::default();
    let detail = if planes_will_do {
        Detail::Planes
    } else {
        Detail::Full
    };
    let room = (&mut Vec::new(), &mut pixels);
    let made = decode(&mut None, bytes, &limits, room, detail)?;
    Ok((pixels, made.notes, made.layout))
}

#[test]
fn planes_make_the_pixels_that_the_library_makes() {
    let mut seen = [0; 3];
    for (name, bytes) in fixtures() {
        if name == "jpeg_cmyk" {
            continue;
        }
        let (rgb, notes, layout) = decoded(&bytes, false).unwrap();
        assert_eq!(layout, Layout::Rgb);
        let (pixels, same_notes, layout) = decoded(&bytes, true).unwrap();
        assert_eq!(notes, same_notes, "{name}");
        let Layout::Planes(chroma) = layout else {
            assert!(pixels == rgb, "{name}");
            continue;
        };
        seen[chroma as usize] += 1;
        let size = (notes.stored_width, notes.stored_height);
        let planes = planes(&pixels, size, chroma);
        for backend in Backend::ALL.into_iter().filter(|kind| kind.is_available()) {
            let mut resizer = Resizer::with_backend(backend).unwrap();
            for to in [size, (20, 9), (size.0, 3), (300, 70)] {
                let scaling = Scaling::new(size, to, Filter::Bicubic);
                let mut expected = vec![0; (to.0 * to.1 * 3) as usize];
                let mut found = expected.clone();
                resizer.resize(&scaling, 3, &rgb, &mut expected).unwrap();
                resizer.resize_ycc(&scaling, &planes, &mut found).unwrap();
                assert!(found == expected, "{name} to {to:?} with {backend:?}");
            }
        }
    }
    assert!(seen.iter().all(|&count| count >= 4), "{seen:?}");
}

#[test]
fn what_is_unusual_is_decoded_to_rgb() {
    for (name, bytes) in fixtures() {
        let unusual = [
            "grey",
            "rgb",
            "orientation_2",
            "orientation_6",
            "_1x1",
            "_4x6",
        ];
        if unusual.iter().any(|part| name.contains(part)) && !name.contains("444") {
            assert_eq!(decoded(&bytes, true).unwrap().2, Layout::Rgb, "{name}");
        }
    }
}

#[test]
fn damaged_files_fail_alike_in_both_layouts() {
    let mut failed = 0;
    for (name, bytes) in fixtures() {
        if !name.contains("67x41") && !name.contains("progressive") {
            continue;
        }
        for cut in (2..bytes.len()).step_by(37) {
            let mut damaged = bytes.clone();
            damaged[cut] ^= 0x5A;
            for (what, damaged) in [("cut", &bytes[..cut]), ("changed", &damaged[..])] {
                let (rgb, planes) = (decoded(damaged, false), decoded(damaged, true));
                match (rgb, planes) {
                    (Ok(_), Ok(_)) => {}
                    (Err(rgb), Err(planes)) => {
                        failed += 1;
                        assert_eq!(rgb.kind(), planes.kind(), "{name} {what} at {cut}");
                    }
                    (rgb, planes) => {
                        let (rgb, planes) = (rgb.err(), planes.err());
                        panic!("{name} {what} at {cut}: {rgb:?}, {planes:?}");
                    }
                }
            }
        }
    }
    assert!(failed > 100, "{failed}");
}
