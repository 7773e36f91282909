//! Devices by the names that the contract gives them. Knows no model.

use crate::Device;
use focus_plugin_sdk::Error;

/// `cpu`, or `cuda:N` (`cuda` is the first).
///
/// # Errors
/// A name of another form, and a device that is not there or that this build has no code for.
pub fn device(name: &str) -> Result<Device, Error> {
    match name.split_once(':').unwrap_or((name, "0")) {
        ("cpu", _) => Ok(Device::Cpu),
        ("cuda", number) => {
            let number = number
                .parse()
                .map_err(|_| Error::invalid_request(format!("Device `{name}` has no number")))?;
            Device::new_cuda(number).map_err(Error::device)
        }
        _ => Err(Error::unsupported(format!("Unsupported device `{name}`"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_or_refused() {
        assert!(device("cpu").is_ok_and(|device| device.is_cpu()));
        for name in ["cuda:x", "cuda:", "metal:0", ""] {
            assert!(device(name).is_err(), "{name}");
        }
    }
}
