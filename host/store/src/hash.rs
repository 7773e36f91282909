//! The content hash of an image: BLAKE3, 32 bytes, written as 64 lower-case hexadecimal digits. It hashes nothing itself
//! but byte slices.

use std::{fmt, str::FromStr};

/// BLAKE3 hash of an image file's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentHash(pub [u8; 32]);

/// Text that is no content hash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Not a content hash: expected 64 lower-case hexadecimal digits, found `{0}`")]
pub struct BadHash(pub String);

impl ContentHash {
    /// Hash of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl From<[u8; 32]> for ContentHash {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl From<blake3::Hash> for ContentHash {
    fn from(hash: blake3::Hash) -> Self {
        Self(*hash.as_bytes())
    }
}

impl FromStr for ContentHash {
    type Err = BadHash;

    // One spelling only: two spellings of one hash would be two keys.
    fn from_str(text: &str) -> Result<Self, BadHash> {
        let bad = || BadHash(crate::error::shorten(text, 80));
        let digit = |c: u8| match c {
            b'0'..=b'9' => Some(c - b'0'),
            b'a'..=b'f' => Some(c - b'a' + 10),
            _ => None,
        };
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return Err(bad());
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let (Some(high), Some(low)) = (digit(pair[0]), digit(pair[1])) else {
                return Err(bad());
            };
            *byte = high << 4 | low;
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_is_blake3s_and_reads_back() {
        let hash = ContentHash::of(b"abc");
        assert_eq!(
            hash.to_string(),
            "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85"
        );
        assert_eq!(hash.to_string().parse(), Ok(hash));
    }

    #[test]
    fn other_spellings_are_refused() {
        let good = ContentHash::of(b"abc").to_string();
        for bad in [
            good.to_uppercase(),
            good[1..].to_owned(),
            format!("{good}0"),
            good.replace('6', "g"),
            String::new(),
        ] {
            assert!(bad.parse::<ContentHash>().is_err(), "{bad}");
        }
    }
}
