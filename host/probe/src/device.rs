//! Turns the text `cpu`, `cuda` or `cuda:N` into a candle device. It must not know of command lines.

use candle_core::Device;

use crate::ProbeError;

/// The device named by `text`: `cpu`, `cuda` (the first) or `cuda:N`.
///
/// A CUDA name in a build without the `cuda` feature is `ProbeError::NoCuda`, never a silent fall back to the CPU.
pub fn parse_device(text: &str) -> Result<Device, ProbeError> {
    if text == "cpu" {
        return Ok(Device::Cpu);
    }
    let unknown = || ProbeError::DeviceName {
        found: text.to_owned(),
    };
    let rest = text.strip_prefix("cuda").ok_or_else(unknown)?;
    let ordinal = match rest.strip_prefix(':') {
        None if rest.is_empty() => 0,
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            digits.parse::<usize>().map_err(|_| unknown())?
        }
        _ => return Err(unknown()),
    };
    if !cfg!(feature = "cuda") {
        return Err(ProbeError::NoCuda {
            found: text.to_owned(),
        });
    }
    Ok(Device::new_cuda(ordinal)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_is_a_device() {
        assert!(parse_device("cpu").unwrap().is_cpu());
    }

    #[test]
    fn other_words_are_not() {
        for text in [
            "",
            "gpu",
            "CPU",
            "cuda:",
            "cuda:x",
            "cuda:+1",
            "cuda:-1",
            "cuda0",
            "cuda:1:2",
            "cuda:99999999999999999999999",
            " cpu",
        ] {
            assert!(
                matches!(parse_device(text), Err(ProbeError::DeviceName { found }) if found == text),
                "{text}"
            );
        }
    }

    #[cfg(not(feature = "cuda"))]
    #[test]
    fn cuda_without_the_feature_says_so() {
        for text in ["cuda", "cuda:1"] {
            assert!(
                matches!(parse_device(text), Err(ProbeError::NoCuda { found }) if found == text)
            );
        }
    }
}
