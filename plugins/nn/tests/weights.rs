//! Every tensor accounted for; single files, shards and pickles alike.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use focus_nn::{Checkpoint, DType, Device, Layout, Linear, LoadError, weights};
use safetensors::tensor::{Dtype, TensorView};
use std::path::Path;

type Tensors<'a> = &'a [(&'a str, Dtype, Vec<usize>, Vec<u8>)];

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn write(folder: &Path, file: &str, tensors: Tensors<'_>) {
    let views = tensors.iter().map(|(name, kind, shape, data)| {
        (*name, TensorView::new(*kind, shape.clone(), data).unwrap())
    });
    std::fs::write(
        folder.join(file),
        safetensors::serialize(views, None).unwrap(),
    )
    .unwrap();
}

fn complete() -> Vec<(&'static str, Dtype, Vec<usize>, Vec<u8>)> {
    vec![
        ("a.weight", Dtype::F32, vec![1, 2], floats(&[1.0, 2.0])),
        ("a.bias", Dtype::F32, vec![1], floats(&[3.0])),
    ]
}

fn load(folder: &Path, ignored: &[&str]) -> Result<Linear, LoadError> {
    let checkpoint = Checkpoint::open_folder(folder, &[], &Layout::default())?;
    weights::load(checkpoint, &Device::Cpu, DType::F32, ignored, |w| {
        Linear::load(&w.at("a"), 2, 1, true)
    })
}

fn message(result: Result<Linear, LoadError>) -> String {
    result.map(|_| ()).unwrap_err().to_string()
}

#[test]
fn what_is_missing_left_over_or_misshapen_is_named_all_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "model.safetensors", &complete());
    assert!(load(folder, &[]).is_ok());
    write(
        folder,
        "model.safetensors",
        &[
            ("a.weight", Dtype::F32, vec![2, 1], floats(&[1.0, 2.0])),
            ("a.beta", Dtype::F32, vec![1], floats(&[3.0])),
        ],
    );
    assert_eq!(
        message(load(folder, &[])),
        "Weights do not fit the architecture: missing 1 of 2: `a.bias`; unexpected 1: `a.beta`; shape of `a.weight`: expected [1, 2], found [2, 1]"
    );
    let mut more = complete();
    more.push(("head.x", Dtype::F32, vec![1], floats(&[0.0])));
    more.push(("odd", Dtype::I64, vec![1], vec![0; 8]));
    write(folder, "model.safetensors", &more);
    assert!(message(load(folder, &[])).contains("unexpected 2: `head.x`, `odd`"));
    assert!(message(load(folder, &["head.*"])).contains("unexpected 1: `odd`"));
    assert!(load(folder, &["head.*", "odd"]).is_ok());
    let mut whole = complete();
    whole[1] = ("a.bias", Dtype::I64, vec![1], vec![0; 8]);
    write(folder, "model.safetensors", &whole);
    assert!(message(load(folder, &[])).contains("values of `a.bias`: expected floats, found I64"));
    write(folder, "model.safetensors", &[]);
    let error = load(folder, &[]).map(|_| ()).unwrap_err();
    assert!(error.hint().unwrap().contains("More than half"), "{error}");
}

#[test]
fn shards_are_put_together_and_checked() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let all = complete();
    write(folder, "m-1.safetensors", &all[..1]);
    write(folder, "m-2.safetensors", &all[1..]);
    let index = |map: &str| {
        std::fs::write(
            folder.join("model.safetensors.index.json"),
            format!(r#"{{"metadata": {{}}, "weight_map": {{{map}}}}}"#),
        )
        .unwrap();
    };
    index(r#""a.weight": "m-1.safetensors", "a.bias": "m-2.safetensors""#);
    let linear = load(folder, &[]).unwrap();
    assert_eq!(linear.weight().to_vec2::<f32>().unwrap(), [[1.0, 2.0]]);
    index(r#""a.weight": "m-1.safetensors", "a.bias": "m-1.safetensors""#);
    assert!(message(load(folder, &[])).contains("`a.bias`"));
    index(r#""a.weight": "m-1.safetensors""#);
    assert!(message(load(folder, &[])).contains("missing 1 of 2: `a.bias`"));
    index(r#""a.weight": "m-2.safetensors", "a.bias": "m-2.safetensors""#);
    assert!(message(load(folder, &[])).contains("missing 1 of 2: `a.weight`"));
    index(r#""a.weight": "m-2.safetensors""#);
    assert!(message(load(folder, &[])).contains("`a.bias` is not listed for this shard"));
    for path in ["../m-1.safetensors", "/etc/passwd", "x/m-1.safetensors", ""] {
        index(&format!(r#""a.weight": "{path}""#));
        assert!(
            message(load(folder, &[])).contains("not a plain file name"),
            "{path}"
        );
    }
    index("oops");
    assert!(message(load(folder, &[])).contains("index cannot be read"));
}

#[test]
fn folders_without_or_with_several_checkpoints() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    assert!(message(load(folder, &[])).contains("No weights in"));
    write(folder, "one.safetensors", &complete());
    assert!(load(folder, &[]).is_ok());
    write(folder, "two.safetensors", &complete());
    assert!(message(load(folder, &[])).contains("`one.safetensors`, `two.safetensors`"));
    assert!(Checkpoint::open_folder(folder, &["two.safetensors"], &Layout::default()).is_ok());
    std::fs::create_dir(folder.join("dir.safetensors")).unwrap();
    let error = Checkpoint::open_file(&folder.join("dir.safetensors"), &Layout::default());
    assert!(error.unwrap_err().to_string().contains("Cannot read"));
}

#[test]
fn a_damaged_safetensors_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "model.safetensors", &complete());
    let path = folder.join("model.safetensors");
    let whole = std::fs::read(&path).unwrap();
    for cut in 9..whole.len() {
        std::fs::write(&path, &whole[..cut]).unwrap();
        assert!(load(folder, &[]).is_err(), "{cut}");
    }
    let mut long = whole.clone();
    long.push(0);
    std::fs::write(&path, &long).unwrap();
    assert!(load(folder, &[]).is_err());
}

#[test]
fn types_are_converted() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let half: Vec<u8> = [1.0_f32, 2.0]
        .iter()
        .flat_map(|&v| half::f16::from_f32(v).to_le_bytes())
        .collect();
    write(
        folder,
        "model.safetensors",
        &[
            ("a.weight", Dtype::F16, vec![1, 2], half),
            (
                "a.bias",
                Dtype::F64,
                vec![1],
                3.0_f64.to_le_bytes().to_vec(),
            ),
        ],
    );
    let linear = load(folder, &[]).unwrap();
    assert_eq!(linear.weight().to_vec2::<f32>().unwrap(), [[1.0, 2.0]]);
    assert_eq!(linear.bias().unwrap().to_vec1::<f32>().unwrap(), [3.0]);
}

#[test]
fn sizes_beyond_reason_are_refused_before_memory_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "model.safetensors", &complete());
    let refused = |build: &dyn Fn(&weights::Weights) -> Result<(), LoadError>| {
        let checkpoint = Checkpoint::open_folder(folder, &[], &Layout::default()).unwrap();
        let error = weights::load(checkpoint, &Device::Cpu, DType::F32, &[], |w| build(w));
        error.unwrap_err().to_string()
    };
    let zeros = weights::Init::Zeros;
    for shape in [[1 << 32, 1 << 32], [1 << 40, 1], [(1 << 31) + 1, 1]] {
        let text = refused(&|w| w.get("b", &shape, zeros).map(|_| ()));
        assert!(text.contains("missing 1 of 1: `b`"), "{text}");
        let text = refused(&|w| w.get("a.weight", &shape, zeros).map(|_| ()));
        assert!(text.contains("shape of `a.weight`"), "{text}");
    }
    // Layers without end: some are looked for, and the rest is not.
    let text = refused(&|w| {
        for layer in 0..usize::MAX {
            w.get(&format!("layers.{layer}"), &[2], zeros)?;
        }
        Ok(())
    });
    assert!(text.contains("missing 65 of 65: `layers.0`"), "{text}");
    // Many that are each within the bound.
    let side = 1 << 30;
    let text = refused(&|w| {
        w.get_as("x", &[side, 1], zeros, DType::U8)?;
        w.get_as("y", &[side, 1], zeros, DType::U8)?;
        w.get_as("z", &[1], zeros, DType::U8)?;
        unreachable!("the third is one value too much")
    });
    assert!(text.contains("missing 3 of 3: `x`, `y`, `z`"), "{text}");
}
