//! The key of a model's embeddings: a hash of everything that changes them. What belongs in it is the caller's to say.

use crate::hash::{BadHash, ContentHash};
use std::{collections::BTreeMap, fmt};

/// BLAKE3 of the canonical JSON of the parts: an object of text values, keys sorted, no white space. The same in Python:
/// `blake3(json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode())`.
///
/// Parts to give: plugin digest, model id, weights digest, adapter digest, preprocessing card, dtype, device kind, CPU
/// features, batch shape, resampler version: whatever, when changed, may change one bit of one embedding. The image is
/// not a part: it is the key inside the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelKey {
    hash: ContentHash,
    json: Option<String>,
}

impl ModelKey {
    /// Key of named parts. Order does not matter; a part left out and a part left empty give different keys.
    pub fn from_parts(parts: &BTreeMap<&str, String>) -> Self {
        let json = serde_json::to_string(parts).expect("a map of text is JSON");
        Self {
            hash: ContentHash::of(json.as_bytes()),
            json: Some(json),
        }
    }

    /// Key from its 64 hexadecimal digits, for reading only: the parts are not known.
    pub fn from_hex(text: &str) -> Result<Self, BadHash> {
        Ok(Self {
            hash: text.parse()?,
            json: None,
        })
    }

    /// The parts as canonical JSON, where known.
    pub fn json(&self) -> Option<&str> {
        self.json.as_deref()
    }
}

impl fmt::Display for ModelKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.hash.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_the_hash_of_canonical_json() {
        let parts = BTreeMap::from([
            ("model", "vit \"L\"\n".to_owned()),
            ("dtype", "é".to_owned()),
        ]);
        let key = ModelKey::from_parts(&parts);
        let text = "{\"dtype\":\"é\",\"model\":\"vit \\\"L\\\"\\n\"}";
        assert_eq!(key.json(), Some(text));
        assert_eq!(
            key.to_string(),
            ContentHash::of(text.as_bytes()).to_string()
        );
        assert_eq!(
            ModelKey::from_hex(&key.to_string())
                .expect("parses")
                .to_string(),
            key.to_string()
        );
    }

    #[test]
    fn missing_and_empty_parts_differ() {
        let empty = ModelKey::from_parts(&BTreeMap::from([("a", String::new())]));
        assert_ne!(empty, ModelKey::from_parts(&BTreeMap::new()));
    }
}
