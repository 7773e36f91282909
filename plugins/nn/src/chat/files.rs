//! Small describing files: read with a limit on their size, or absent. Knows no meaning.

use super::ChatError;
use serde_json::Value;
use std::io::ErrorKind;
use std::path::Path;

/// Largest file read, in bytes: the Gemma vocabulary takes some 35 MB.
const MAX_FILE: u64 = 256 << 20;

/// A file's text; `None` where there is none of that name.
pub(super) fn read(folder: &Path, file: &str) -> Result<Option<String>, ChatError> {
    let path = folder.join(file);
    let fault = |reason: String| ChatError::File {
        file: file.to_owned(),
        reason,
    };
    match std::fs::metadata(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fault(error.to_string())),
        Ok(data) if data.len() > MAX_FILE => {
            return Err(fault(format!(
                "expected at most {MAX_FILE} bytes, found {}",
                data.len()
            )));
        }
        Ok(_) => {}
    }
    std::fs::read_to_string(path)
        .map(Some)
        .map_err(|error| fault(error.to_string()))
}

/// JSON, with the file's name on what is wrong with it.
pub(super) fn json(file: &str, text: &str) -> Result<Value, ChatError> {
    serde_json::from_str(text).map_err(|error| ChatError::File {
        file: file.to_owned(),
        reason: format!("it is not JSON: {error}"),
    })
}

/// `blake3:hex` of texts, one after the other, each after its length.
pub(super) fn digest(texts: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new();
    for text in texts {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    format!("blake3:{}", hasher.finalize().to_hex())
}
