//! Checksums as sources give them, computed while bytes stream by.

use crate::error::{FetchError, Result};
use md5::Md5;
use sha2::{Digest, Sha256};
use std::fmt;

/// How a checksum is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// MD5: catches accidents, not malice.
    Md5,
    /// SHA-256.
    Sha256,
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Md5 => "md5",
            Self::Sha256 => "sha256",
        })
    }
}

/// A checksum of known form. Displayed and parsed as `sha256:<hex>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Checksum {
    algorithm: Algorithm,
    hex: String,
}

impl Checksum {
    /// From hexadecimal digits of either case: 32 for MD5, 64 for SHA-256.
    pub fn new(algorithm: Algorithm, hex: &str) -> Result<Self> {
        let digits = match algorithm {
            Algorithm::Md5 => 32,
            Algorithm::Sha256 => 64,
        };
        if hex.len() != digits || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(FetchError::BadChecksum {
                algorithm,
                digits,
                found: hex.chars().take(80).collect(),
            });
        }
        Ok(Self {
            algorithm,
            hex: hex.to_ascii_lowercase(),
        })
    }

    /// `md5:<hex>` or `sha256:<hex>`; `None` for other algorithms.
    pub fn parse(text: &str) -> Option<Result<Self>> {
        let (name, hex) = text.split_once(':')?;
        let algorithm = match name {
            "md5" => Algorithm::Md5,
            "sha256" => Algorithm::Sha256,
            _ => return None,
        };
        Some(Self::new(algorithm, hex))
    }

    /// How it is computed.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Lower-case hexadecimal digits.
    pub fn hex(&self) -> &str {
        &self.hex
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.algorithm, self.hex)
    }
}

/// Computes what the expected checksums ask for, and nothing else.
#[derive(Clone, Default)]
pub(crate) struct Hasher {
    md5: Option<Md5>,
    sha256: Option<Sha256>,
}

impl Hasher {
    pub(crate) fn new(wanted: &[Checksum]) -> Self {
        let wants = |a| wanted.iter().any(|c| c.algorithm == a);
        Self {
            md5: wants(Algorithm::Md5).then(Md5::new),
            sha256: wants(Algorithm::Sha256).then(Sha256::new),
        }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        if let Some(h) = &mut self.md5 {
            h.update(bytes);
        }
        if let Some(h) = &mut self.sha256 {
            h.update(bytes);
        }
    }

    /// The first checksum that does not fit, with what was found.
    pub(crate) fn mismatch(self, wanted: &[Checksum]) -> Option<(Checksum, String)> {
        let md5 = self.md5.map(|h| format!("{:x}", h.finalize()));
        let sha256 = self.sha256.map(|h| format!("{:x}", h.finalize()));
        wanted.iter().find_map(|c| {
            let found = match c.algorithm {
                Algorithm::Md5 => md5.as_ref(),
                Algorithm::Sha256 => sha256.as_ref(),
            }
            .expect("the hasher was made for these checksums");
            (*found != c.hex).then(|| (c.clone(), found.clone()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // RFC 1321 appendix A.5 and FIPS 180-2 appendix B.1, both for `abc`.
    const MD5: &str = "md5:900150983cd24fb0d6963f7d28e17f72";
    const SHA: &str = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn published_values_fit_and_others_do_not() {
        let wanted: Vec<_> = [MD5, SHA]
            .iter()
            .map(|t| Checksum::parse(t).expect("known").expect("valid"))
            .collect();
        let mut hasher = Hasher::new(&wanted);
        hasher.update(b"a");
        hasher.update(b"bc");
        assert_eq!(hasher.clone().mismatch(&wanted), None);
        hasher.update(b"d");
        assert_eq!(hasher.mismatch(&wanted).expect("differs").0, wanted[0]);
        assert_eq!(wanted[1].to_string(), SHA);
    }

    #[test]
    fn malformed_checksums_are_refused() {
        for bad in ["md5:", "md5:90015", "sha256:zz", &format!("{MD5}0")] {
            assert!(Checksum::parse(bad).expect("known").is_err(), "{bad}");
        }
        assert!(Checksum::parse("crc32:00000000").is_none());
    }
}
