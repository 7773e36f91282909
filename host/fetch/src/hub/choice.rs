//! Which files of a model repository are wanted. Knows names only.

use super::Listed;
use crate::error::{FetchError, Result};

/// Endings of files for other programs than those that run models here.
const OTHERS: [&str; 10] = [
    ".h5",
    ".msgpack",
    ".ot",
    ".onnx",
    ".onnx_data",
    ".tflite",
    ".gguf",
    ".mlmodel",
    ".md",
    ".gitattributes",
];
/// Endings of the form of weights before safetensors.
const PICKLES: [&str; 4] = [".bin", ".pt", ".pth", ".ckpt"];

/// Names of the files that a model is usually loaded from: all but those of other frameworks and, where there are safetensors, pickles.
pub fn usual<'a>(names: &[&'a str]) -> Vec<&'a str> {
    let ends = |name: &str, endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    let safe = names.iter().any(|name| name.ends_with(".safetensors"));
    let is_usual = |name: &str| {
        let pickle = ends(name, &PICKLES) || name.ends_with(".bin.index.json");
        !(ends(name, &OTHERS) || (safe && pickle))
    };
    names
        .iter()
        .copied()
        .filter(|name| is_usual(name))
        .collect()
}

/// The files of those names, or the usual ones.
pub(super) fn choose(
    repository: &str,
    files: Vec<Listed>,
    wanted: &[String],
) -> Result<Vec<Listed>> {
    let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
    if let Some(name) = wanted.iter().find(|name| !names.contains(&name.as_str())) {
        return Err(FetchError::NoSuchFile {
            name: name.clone(),
            repository: repository.into(),
        });
    }
    let chosen: Vec<String> = if wanted.is_empty() {
        usual(&names).into_iter().map(str::to_owned).collect()
    } else {
        wanted.to_vec()
    };
    Ok(files
        .into_iter()
        .filter(|file| chosen.contains(&file.name))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn safetensors_stand_in_for_pickles() {
        let names = [
            ".gitattributes",
            "README.md",
            "config.json",
            "model.safetensors",
            "pytorch_model.bin",
            "pytorch_model.bin.index.json",
            "tf_model.h5",
            "onnx/model.onnx",
        ];
        assert_eq!(usual(&names), ["config.json", "model.safetensors"]);
        assert_eq!(
            usual(&["config.json", "weights.pth", "flax_model.msgpack"]),
            ["config.json", "weights.pth"]
        );
    }
}
