//! Files with addresses of their own, as a registry file lists them. Credentials from netrc only.

use crate::{
    address,
    address::Origin,
    checksum::Checksum,
    credential::{Keyring, Service},
    error::Result,
    job::FileJob,
    registry::{Dataset, WebFile},
};

pub(super) fn list(
    dataset: &Dataset,
    files: &[WebFile],
    keyring: &Keyring,
) -> Result<Vec<FileJob>> {
    files
        .iter()
        .map(|file| {
            let url = address::parse(&file.url)?;
            let origin = Origin::of(&url)?;
            // Over plain http a netrc entry is left unused rather than sent or refused.
            let login = if origin.is_private() {
                keyring.login(Service::Web, &origin)?
            } else {
                None
            };
            Ok(FileJob {
                name: file.name.clone(),
                url,
                size: file.size,
                checksums: file
                    .checksums
                    .iter()
                    .filter_map(|text| Checksum::parse(text))
                    .collect::<Result<_>>()?,
                login,
                advice: dataset.advice(),
            })
        })
        .collect()
}
