//! Each limit and each denial, with the message it gives.

use std::fmt::Write;
use std::time::{Duration, Instant};

use focus_datasets::{ErrorKind, Limits, Mapped};

use crate::support::{Data, component, map, map_with, message};

const HOSTILE: &str = "test/hostile.wasm";

fn data() -> Data {
    let data = Data::new();
    data.file("labels.csv", "image,label\na.png,0\nb.png,1\nc.png,\n");
    for name in ["a.png", "b.png", "c.png"] {
        data.file(&format!("images/{name}"), "");
    }
    data
}

fn run(misdeed: &str, limits: &Limits) -> Result<Mapped, focus_datasets::DatasetError> {
    map_with(HOSTILE, data().path(), &[("misdeed", misdeed)], limits)
}

/// Little fuel, so that loops end soon in a debug build too.
fn frugal() -> Limits {
    Limits {
        fuel_per_call: 20_000_000,
        ..Limits::default()
    }
}

#[test]
fn without_a_misdeed_it_maps() {
    let mapped = run("none", &Limits::default()).unwrap();
    assert_eq!(mapped.records.len(), 3);
    let held = run("hold-back", &Limits::default()).unwrap();
    assert_eq!(
        held.records.len(),
        3,
        "answers may come as late as `finish`"
    );
}

#[test]
fn every_misdeed_is_told_apart() {
    let first = "returned a bad sample for `labels.csv` line 2";
    let outcome = "returned a bad outcome for `labels.csv` line 2";
    let push = "`push` of `labels.csv` lines 2 to 4";
    for (misdeed, expected) in [
        (
            "loop-open",
            "used up its fuel in `open`: expected at most 20000000 units a call".into(),
        ),
        (
            "loop-push",
            format!("used up its fuel in {push}: expected at most 20000000 units a call"),
        ),
        (
            "loop-finish",
            "used up its fuel in `finish`: expected at most 20000000 units a call".into(),
        ),
        (
            "panic",
            format!("stopped in {push}: it panicked or reached unreachable code"),
        ),
        (
            "long-panic",
            format!("stopped in {push}: it panicked or reached unreachable code"),
        ),
        (
            "many-samples",
            format!("{outcome}: expected 1 to 16 samples, found 1000"),
        ),
        (
            "empty-samples",
            format!("{outcome}: expected 1 to 16 samples, found 0"),
        ),
        (
            "long-reason",
            format!("{outcome}: expected a reason of 1 to 4096 bytes, found one of 80000"),
        ),
        ("double-row", "answered `labels.csv` line 2 twice".into()),
        (
            "lose-row",
            "gave no answer for 1 of 3 rows; the first is `labels.csv` line 3".into(),
        ),
        (
            "foreign-row",
            "answered a row that it was never given: table 0, row 1000000".into(),
        ),
        (
            "foreign-table",
            "answered a row that it was never given: table 5, row 0".into(),
        ),
        (
            "parent-path",
            format!(
                "{first}: expected the name of an image below its folder, found `../../etc/passwd`"
            ),
        ),
        (
            "absolute-path",
            format!("{first}: expected the name of an image below its folder, found `/etc/passwd`"),
        ),
        (
            "control-text",
            format!(
                "{first}: expected the name of an image below its folder, found `a\\u{{1b}}[31m\\n.png`"
            ),
        ),
        (
            "unknown-folder",
            format!("{first}: expected one of 1 folders, found 7"),
        ),
        (
            "unknown-task",
            format!("{first}: expected a label of one of 3 declared tasks, found task 9"),
        ),
        (
            "double-task",
            format!("{first}: two labels of task `binary_dr`"),
        ),
        (
            "untracked-label",
            format!(
                "{first}: a label of task `referable_dr` in a track in which it is not offered"
            ),
        ),
        (
            "undeclared-field",
            format!("{first}: field `patient` is not declared"),
        ),
        (
            "bad-age",
            format!("{first}: expected an age of 0 to 150, found NaN"),
        ),
        (
            "bad-grade",
            format!("{first}: expected an ICDR grade of 0 to 4, found 9"),
        ),
        (
            "bad-vcdr",
            format!("{first}: expected a cup-to-disc ratio of 0 to 1, found 1.5"),
        ),
        (
            "bad-landmark",
            format!("{first}: expected a point within 100 x 100, found 500, 1"),
        ),
        (
            "bad-box",
            format!("{first}: expected a box with x1 < x2 and y1 < y2, found 9 9 3 3"),
        ),
        (
            "bad-mask",
            format!("{first}: expected the name of an image below its folder, found `../mask.png`"),
        ),
        (
            "mask-without-values",
            format!("{first}: mask `disc`: expected the pixel values that mark it, found none"),
        ),
        (
            "mask-of-two-minds",
            format!("{first}: mask `disc`: value 2 marks it and does not"),
        ),
        (
            "bad-contour",
            format!(
                "{first}: expected the name of an image below its folder, found `../../etc/passwd`"
            ),
        ),
        (
            "host-label",
            format!("{first}: a label of task `glaucoma_vcdr`, which the host labels"),
        ),
    ] {
        let error = run(misdeed, &frugal()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Mapper, "{misdeed}: {error}");
        assert_eq!(
            message(Err(error)),
            format!("Mapper `{HOSTILE}` 6.6.6 {expected}"),
            "{misdeed}"
        );
    }
}

#[test]
fn an_image_belongs_to_one_row() {
    let error = run("same-image", &Limits::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`labels.csv` line 3 names `images/a.png`, which `labels.csv` line 2 has already"
    );
}

#[test]
fn refusals_are_capped_and_placed() {
    let error = message(run("long-failure", &Limits::default()));
    assert!(
        error.starts_with(
            "Mapper `test/hostile.wasm` 6.6.6 cannot read `labels.csv` line 2: expected rrr"
        ),
        "{error}"
    );
    assert!(error.chars().count() < 750, "{}", error.len());
    assert_eq!(
        message(run("failure-elsewhere", &Limits::default())),
        "Mapper `test/hostile.wasm` 6.6.6 cannot read `labels.csv`: expected a rule, found `something`",
        "a row that does not exist is not believed"
    );
    assert_eq!(
        message(run("refuse-open", &Limits::default())),
        "Mapper `test/hostile.wasm` 6.6.6 refuses its options: expected an option that suits me, found refuse-open"
    );
}

#[test]
fn memory_is_bounded_and_the_limiter_tells_it_from_a_panic() {
    for limit in [16 << 20, 64 << 20] {
        let error = message(run(
            "memory",
            &Limits {
                memory_bytes: limit,
                ..Limits::default()
            },
        ));
        let expected = "Mapper `test/hostile.wasm` 6.6.6 asked for too much memory in `push` of `labels.csv` lines 2 to 4: ";
        assert!(
            error.starts_with(expected) && error.ends_with(&format!("expected at most {limit}")),
            "{error}"
        );
    }
    let small = Limits {
        memory_bytes: 65536,
        ..Limits::default()
    };
    assert!(message(run("none", &small)).contains("asked for too much memory in instantiation"));
    let small = Limits {
        table_elements: 0,
        ..Limits::default()
    };
    assert!(message(run("none", &small)).contains("asked for too large a table in instantiation"));
    let small = Limits {
        instances: 0,
        ..Limits::default()
    };
    let error = message(run("none", &small));
    assert!(
        error.contains("stopped in instantiation: resource limit exceeded"),
        "{error}"
    );
}

#[test]
fn what_comes_back_is_bounded() {
    let tight = Limits {
        returned_bytes: 1 << 20,
        ..Limits::default()
    };
    for (misdeed, limits) in [("huge-list", Limits::default()), ("huge-string", tight)] {
        let expected = format!(
            "Mapper `{HOSTILE}` 6.6.6 returned too much from `push` of `labels.csv` lines 2 to 4: expected at most {} bytes",
            limits.returned_bytes
        );
        assert_eq!(message(run(misdeed, &limits)), expected);
    }
    let many = Limits {
        returned_bytes: 1 << 30,
        memory_bytes: 256 << 20,
        ..Limits::default()
    };
    let error = message(run("huge-list", &many));
    assert!(
        error.contains("field `findings` is not declared"),
        "{error}"
    );
}

#[test]
fn the_clock_stops_what_fuel_does_not() {
    let limits = Limits {
        fuel_per_call: u64::MAX / 2,
        time_per_call: Duration::from_millis(300),
        ..Limits::default()
    };
    let start = Instant::now();
    let error = message(run("loop-push", &limits));
    assert!(
        error.contains(
            "ran out of time in `push` of `labels.csv` lines 2 to 4: expected at most 300ms"
        ),
        "{error}"
    );
    assert!(start.elapsed() < Duration::from_secs(30));
}

#[test]
fn misdeeds_before_any_option() {
    let data = data();
    let with = |file: &str| message(map_with(file, data.path(), &[], &frugal()));
    assert_eq!(
        with("test/hostile_describe_loop.wasm"),
        "Mapper `test/hostile_describe_loop.wasm` used up its fuel in `describe`: expected at most 20000000 units a call"
    );
    let error = with("test/hostile_describe_huge.wasm");
    assert!(
        error.contains(
            "describes itself badly: expected texts of at most 4096 bytes, found one of 10000000"
        ),
        "{error}"
    );
    assert_eq!(
        with("test/hostile_describe_odd.wasm"),
        "Mapper `test/hostile_describe_odd.wasm` describes itself badly: expected an id of lower-case letters, digits and \
         `_`, found `../odd`"
    );
    assert_eq!(
        with("test/hostile_clock.wasm"),
        "Mapper `test/hostile_clock.wasm` wants imports, expected none: `hostile:clock/clock`"
    );
}

#[test]
fn what_is_no_mapper() {
    let files = Data::new();
    let whole = std::fs::read(component("idrid.wasm")).unwrap();
    files
        .file("text.wasm", "not wasm")
        .file("empty.wasm", "")
        .file("core.wasm", b"\0asm\x01\0\0\0")
        .file("bare.wasm", b"\0asm\x0d\0\x01\0")
        .file("half.wasm", &whole[..whole.len() / 2]);
    let data = data();
    let error = |name: &str, limits: &Limits| {
        let mapper = focus_datasets::MapperSource::Path(files.path().join(name));
        focus_datasets::map_dataset(&mapper, data.path(), limits, None).unwrap_err()
    };
    for name in ["text.wasm", "empty.wasm", "core.wasm", "half.wasm"] {
        let error = error(name, &Limits::default());
        assert!(
            error
                .to_string()
                .contains(&format!("{name}` is no WASM component: ")),
            "{error}"
        );
        assert!(error.to_string().len() < 600 && error.hint().is_some());
    }
    let bare = error("bare.wasm", &Limits::default()).to_string();
    assert!(
        bare.contains("does not export the mapper contract `focus:mapper@0.2.0`"),
        "{bare}"
    );
    let large = error(
        "half.wasm",
        &Limits {
            module_bytes: 1000,
            ..Limits::default()
        },
    )
    .to_string();
    assert!(
        large.ends_with(&format!(
            "is too large: {} bytes, expected at most 1000",
            whole.len() / 2
        )),
        "{large}"
    );
    assert_eq!(
        error("nowhere.wasm", &Limits::default()).kind(),
        ErrorKind::Io
    );
}

#[test]
fn an_honest_mapper_keeps_within_a_hundredth_of_the_default_fuel() {
    let limits = Limits {
        fuel_per_call: Limits::default().fuel_per_call / 100,
        ..Limits::default()
    };
    let mut rows = String::from("image,label\n");
    let data = Data::new();
    for row in 0..1024 {
        writeln!(rows, "{row}.png,{}", row % 2).unwrap();
        data.file(&format!("images/{row}.png"), "");
    }
    data.file("labels.csv", rows);
    assert_eq!(
        map_with(HOSTILE, data.path(), &[], &limits)
            .unwrap()
            .records
            .len(),
        1024
    );
    assert_eq!(map(HOSTILE, data.path()).unwrap().tables[0].rows, 1024);
}
