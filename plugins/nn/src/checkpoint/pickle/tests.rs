//! Pickles made by hand: hostile ones, the older form, every way a tensor can be wrong.

use crate::checkpoint::{Checkpoint, Layout};
use crate::{DType, Device, LoadError};
use std::io::Write as _;
use std::path::PathBuf;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

/// A zip of stored entries, as `torch.save` writes it.
fn archive(pickle: &[u8], storages: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let stored =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    zip.start_file("archive/data.pkl", stored).unwrap();
    zip.write_all(pickle).unwrap();
    for (key, bytes) in storages {
        zip.start_file(format!("archive/data/{key}"), stored)
            .unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.push(b'X');
    out.extend((text.len() as u32).to_le_bytes());
    out.extend(text.as_bytes());
}

fn global(out: &mut Vec<u8>, name: &str) {
    let (module, name) = name.rsplit_once('.').unwrap();
    out.extend(format!("c{module}\n{name}\n").as_bytes());
}

fn number(out: &mut Vec<u8>, value: i32) {
    out.push(b'J');
    out.extend(value.to_le_bytes());
}

/// `_rebuild_tensor_v2(storage, offset, shape, strides, False, OrderedDict())`
fn tensor(
    out: &mut Vec<u8>,
    storage: (&str, &str, i32),
    offset: i32,
    shape: &[i32],
    strides: &[i32],
) {
    let (class, key, count) = storage;
    global(out, "torch._utils._rebuild_tensor_v2");
    out.extend(b"((");
    text(out, "storage");
    global(out, class);
    text(out, key);
    text(out, "cpu");
    number(out, count);
    out.extend(b"tQ");
    number(out, offset);
    for sizes in [shape, strides] {
        out.push(b'(');
        for &side in sizes {
            number(out, side);
        }
        out.push(b't');
    }
    out.push(0x89);
    global(out, "collections.OrderedDict");
    out.extend(b")RtR");
}

fn dict(entries: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut out = vec![0x80, 2, b'}', b'('];
    for (name, value) in entries {
        text(&mut out, name);
        out.extend(value);
    }
    out.extend(b"u.");
    out
}

fn made(storage: (&str, &str, i32), offset: i32, shape: &[i32], strides: &[i32]) -> Vec<u8> {
    let mut out = Vec::new();
    tensor(&mut out, storage, offset, shape, strides);
    out
}

const FLOATS: &str = "torch.FloatStorage";

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn open(bytes: &[u8]) -> Result<Checkpoint, LoadError> {
    let folder = Folder::new();
    Checkpoint::open_file(&folder.file("x.pth", bytes), &Layout::default())
}

fn values(checkpoint: &Checkpoint, name: &str) -> Vec<f32> {
    let raw = checkpoint.get(name).expect("there");
    let tensor = raw.to_tensor(&Device::Cpu, DType::F32).unwrap();
    tensor.flatten_all().unwrap().to_vec1().unwrap()
}

#[test]
fn strides_offsets_and_shared_storages() {
    let data = floats(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    let pickle = dict(&[
        ("plain", made((FLOATS, "0", 6), 0, &[2, 3], &[3, 1])),
        ("turned", made((FLOATS, "0", 6), 0, &[3, 2], &[1, 3])),
        ("tail", made((FLOATS, "0", 6), 4, &[2], &[1])),
        ("spread", made((FLOATS, "0", 6), 5, &[3], &[0])),
        ("scalar", made((FLOATS, "0", 6), 2, &[], &[])),
        ("empty", made((FLOATS, "0", 6), 6, &[0, 4], &[4, 1])),
    ]);
    let checkpoint = open(&archive(&pickle, &[("0", &data)])).unwrap();
    assert_eq!(values(&checkpoint, "plain"), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(
        values(&checkpoint, "turned"),
        [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]
    );
    assert_eq!(values(&checkpoint, "tail"), [4.0, 5.0]);
    assert_eq!(values(&checkpoint, "spread"), [5.0; 3]);
    assert_eq!(values(&checkpoint, "scalar"), [2.0]);
    assert!(values(&checkpoint, "empty").is_empty());
}

#[test]
fn every_float_type_is_read() {
    let half: Vec<u8> = [1.5_f32, -2.0]
        .iter()
        .flat_map(|&v| half::f16::from_f32(v).to_le_bytes())
        .collect();
    let brain: Vec<u8> = [1.5_f32, -2.0]
        .iter()
        .flat_map(|&v| half::bf16::from_f32(v).to_le_bytes())
        .collect();
    let double: Vec<u8> = [1.5_f64, -2.0]
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    let long: Vec<u8> = [7_i64, -2].iter().flat_map(|v| v.to_le_bytes()).collect();
    let pickle = dict(&[
        ("half", made(("torch.HalfStorage", "0", 2), 0, &[2], &[1])),
        (
            "brain",
            made(("torch.BFloat16Storage", "1", 2), 0, &[2], &[1]),
        ),
        (
            "double",
            made(("torch.DoubleStorage", "2", 2), 0, &[2], &[1]),
        ),
        ("long", made(("torch.LongStorage", "3", 2), 0, &[2], &[1])),
    ]);
    let storages: [(&str, &[u8]); 4] = [("0", &half), ("1", &brain), ("2", &double), ("3", &long)];
    let checkpoint = open(&archive(&pickle, &storages)).unwrap();
    for name in ["half", "brain", "double"] {
        assert_eq!(values(&checkpoint, name), [1.5, -2.0], "{name}");
    }
    assert_eq!(values(&checkpoint, "long"), [7.0, -2.0]);
}

#[test]
fn tensors_that_reach_beyond_their_storage_are_refused() {
    let data = floats(&[0.0; 4]);
    for (case, wanted) in [
        (
            made((FLOATS, "0", 4), 0, &[5], &[1]),
            "needs 20 bytes, found 16",
        ),
        (
            made((FLOATS, "0", 4), 3, &[2], &[1]),
            "needs 8 bytes, found 4",
        ),
        (
            made((FLOATS, "0", 4), 5, &[1], &[1]),
            "begins beyond its storage",
        ),
        (made((FLOATS, "0", 4), 0, &[2, 2], &[i32::MAX, 1]), "needs"),
        (
            made((FLOATS, "0", 9), 0, &[1], &[1]),
            "cut short: expected 9 values, found 16 bytes",
        ),
        (
            made((FLOATS, "7", 4), 0, &[1], &[1]),
            "storage `7` is not in the file",
        ),
        (made((FLOATS, "0", 4), 0, &[1, 1], &[1]), "differ in length"),
        (
            made((FLOATS, "0", 4), 0, &[i32::MAX; 16], &[0; 16]),
            "overflows",
        ),
    ] {
        let error = open(&archive(&dict(&[("bad", case)]), &[("0", &data)])).unwrap_err();
        assert!(
            error.to_string().contains("`bad`") && error.to_string().contains(wanted),
            "{error}"
        );
    }
    for (case, wanted) in [
        (made((FLOATS, "0", -1), 0, &[1], &[1]), "length is no count"),
        (made((FLOATS, "0", 4), -1, &[1], &[1]), "offset is no count"),
        (made((FLOATS, "0", 4), 0, &[-1], &[1]), "side is no count"),
        (
            made((FLOATS, "0", 4), 0, &[1; 17], &[1; 17]),
            "more than 16 axes",
        ),
        (
            made(("torch.ComplexFloatStorage", "0", 4), 0, &[1], &[1]),
            "`torch.ComplexFloatStorage` are not supported",
        ),
    ] {
        let error = open(&archive(&dict(&[("bad", case)]), &[("0", &data)])).unwrap_err();
        assert!(error.to_string().contains(wanted), "{error}");
    }
}

#[test]
fn what_asks_for_code_is_refused_and_what_is_harmless_is_inert() {
    for name in [
        "os.system",
        "posix.system",
        "builtins.eval",
        "__builtin__.exec",
        "subprocess.Popen",
        "os.path.join",
        "builtins.getattr",
    ] {
        let mut out = vec![0x80, 2];
        global(&mut out, name);
        out.push(b'(');
        text(&mut out, "touch /tmp/gone");
        out.extend(b"tR.");
        let error = open(&archive(&out, &[])).unwrap_err();
        assert!(
            matches!(error, LoadError::Refused { .. })
                && error.to_string().contains(&format!("`{name}`")),
            "{error}"
        );
        assert!(error.hint().unwrap().contains("hostile"));
    }
    // By way of STACK_GLOBAL, and put together from the memo.
    let mut out = vec![0x80, 4];
    text(&mut out, "posix");
    text(&mut out, "system");
    out.extend([0x93, b'.']);
    assert!(
        open(&archive(&out, &[]))
            .unwrap_err()
            .to_string()
            .contains("`posix.system`")
    );

    let mut namespace = Vec::new();
    global(&mut namespace, "argparse.Namespace");
    namespace.extend(b")\x81}");
    text(&mut namespace, "lr");
    number(&mut namespace, 3);
    namespace.extend(b"sb");
    let mut unknown = Vec::new();
    global(&mut unknown, "some.project.Thing");
    unknown.push(b'(');
    text(&mut unknown, "argument");
    unknown.extend(b"tR");
    let inner = dict(&[("w", made((FLOATS, "0", 1), 0, &[1], &[1]))]);
    let pickle = dict(&[
        ("args", namespace),
        ("thing", unknown),
        ("model", inner[2..inner.len() - 1].to_vec()),
    ]);
    let checkpoint = open(&archive(&pickle, &[("0", &floats(&[4.0]))])).unwrap();
    assert_eq!(values(&checkpoint, "w"), [4.0]);
    assert_eq!(checkpoint.len(), 1);
}

#[test]
fn limits_hold() {
    let cases: [(Vec<u8>, &str); 9] = [
        (vec![b'('; 5000], "marks are open"),
        (
            [vec![b'N'], vec![b'2'; 4_100_000]].concat(),
            "values are on the stack",
        ),
        (vec![b'N'; 8_100_000], "values are on the stack"),
        ([b"N0".repeat(8_100_000)].concat(), "builds more than"),
        (
            vec![b'X', 0xff, 0xff, 0xff, 0x7f, b'a'],
            "ends in the middle",
        ),
        (
            vec![0x8d, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            "ends in the middle",
        ),
        (vec![0x80, 9], "expected protocol 5"),
        (vec![b'0'], "empty stack"),
        (vec![b'h', 3], "memo entry is missing"),
    ];
    for (pickle, wanted) in cases {
        let error = open(&archive(&pickle, &[])).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
    let mut long = vec![b'c'];
    long.extend(vec![b'a'; 400]);
    long.extend(b"\nb\n.");
    assert!(
        open(&archive(&long, &[]))
            .unwrap_err()
            .to_string()
            .contains("more than 256 bytes")
    );
    // A dictionary that holds itself is no danger: nothing walks into values.
    let mut cyclic = vec![0x80, 2, b'}', b'q', 0];
    text(&mut cyclic, "model");
    cyclic.extend(b"h\0s.");
    assert!(matches!(
        open(&archive(&cyclic, &[])).unwrap_err(),
        LoadError::NoStateDict { .. }
    ));
}

#[test]
fn nested_keys_and_prefixes() {
    let inner = |key: &str| {
        let inner = dict(&[(key, made((FLOATS, "0", 1), 0, &[1], &[1]))]);
        inner[2..inner.len() - 1].to_vec()
    };
    let data = floats(&[4.0]);
    for key in Layout::NESTED {
        let bytes = archive(&dict(&[(key, inner("module.backbone.w"))]), &[("0", &data)]);
        let folder = Folder::new();
        let path = folder.file("c.pt", &bytes);
        let checkpoint =
            Checkpoint::open_file(&path, &Layout::stripping(&Layout::WRAPPERS)).unwrap();
        assert_eq!(checkpoint.names().collect::<Vec<_>>(), ["w"], "{key}");
    }
    let both = dict(&[("student", inner("a")), ("teacher", inner("b"))]);
    let folder = Folder::new();
    let path = folder.file("c.pt", &archive(&both, &[("0", &data)]));
    let names = |layout: Layout| {
        Checkpoint::open_file(&path, &layout)
            .map(|c| c.names().map(str::to_owned).collect::<Vec<_>>())
    };
    assert_eq!(names(Layout::default()).unwrap(), ["b"]);
    assert_eq!(names(Layout::default().under("student")).unwrap(), ["a"]);
    let error = names(Layout::default().under("model"))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("under `model`") && error.contains("found `student`, `teacher`"),
        "{error}"
    );
    let twice = dict(&[
        ("module.w", inner("x")),
        ("model", {
            let two = dict(&[
                ("module.w", made((FLOATS, "0", 1), 0, &[1], &[1])),
                ("w", made((FLOATS, "0", 1), 0, &[1], &[1])),
            ]);
            two[2..two.len() - 1].to_vec()
        }),
    ]);
    let path = folder.file("d.pt", &archive(&twice, &[("0", &data)]));
    let error = Checkpoint::open_file(&path, &Layout::stripping(&["module."])).unwrap_err();
    assert!(
        error.to_string().contains("Two tensors are called `w`"),
        "{error}"
    );
}

#[test]
fn the_older_form_is_read() {
    let mut out = vec![
        0x80, 2, 0x8a, 10, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, b'.',
    ];
    out.extend([0x80, 2, b'M', 0xe9, 0x03, b'.']);
    let mut system = vec![0x80, 2, b'}'];
    text(&mut system, "little_endian");
    system.extend([0x88, b's', b'.']);
    out.extend(&system);
    let mut value = Vec::new();
    global(&mut value, "torch._utils._rebuild_tensor_v2");
    value.extend(b"((");
    text(&mut value, "storage");
    global(&mut value, FLOATS);
    text(&mut value, "94");
    text(&mut value, "cpu");
    number(&mut value, 2);
    value.extend(b"NtQ");
    number(&mut value, 0);
    value.push(b'(');
    number(&mut value, 2);
    value.extend(b"t(");
    number(&mut value, 1);
    value.push(b't');
    value.push(0x89);
    global(&mut value, "collections.OrderedDict");
    value.extend(b")RtR");
    out.extend(dict(&[("w", value)]));
    let mut keys = vec![0x80, 2, b']', b'('];
    text(&mut keys, "94");
    keys.extend(b"e.");
    out.extend(&keys);
    let cut = out.len() + 12;
    out.extend(2_u64.to_le_bytes());
    out.extend(floats(&[3.0, -1.0]));
    assert_eq!(values(&open(&out).unwrap(), "w"), [3.0, -1.0]);
    let error = open(&out[..cut]).unwrap_err().to_string();
    assert!(error.contains("middle of storage `94`"), "{error}");
    assert!(open(&out[15..]).unwrap_err().to_string().contains("x.pth"));
}

#[test]
fn other_files_are_named_for_what_they_are() {
    for (bytes, wanted) in [
        (
            b"<!DOCTYPE html><title>Log in</title>".to_vec(),
            "neither safetensors nor",
        ),
        (Vec::new(), "neither safetensors nor"),
        (
            archive(b"N.", &[("0", b"")])[..60].to_vec(),
            "archive is damaged",
        ),
        ([vec![b'x'; 257], b"ustar\0".to_vec()].concat(), "tar file"),
    ] {
        let error = open(&bytes).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

proptest::proptest! {
    #[test]
    fn noise_never_panics(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
        let _ = open(&archive(&bytes, &[]));
        let _ = open(&[&[0x80, 2], bytes.as_slice()].concat());
    }

    #[test]
    fn a_damaged_pickle_never_panics(at in 0_usize..400, value: u8) {
        let mut pickle = dict(&[
            ("a", made((FLOATS, "0", 4), 0, &[2, 2], &[2, 1])),
            ("b", made((FLOATS, "0", 4), 1, &[3], &[1])),
        ]);
        let at = at % pickle.len();
        pickle[at] = value;
        if let Ok(checkpoint) = open(&archive(&pickle, &[("0", &floats(&[0.0; 4]))])) {
            let names: Vec<_> = checkpoint.names().map(str::to_owned).collect();
            for name in names {
                let raw = checkpoint.get(&name).unwrap();
                if raw.shape().iter().product::<usize>() < 1000 {
                    let _ = raw.to_tensor(&Device::Cpu, DType::F32);
                }
            }
        }
    }
}
