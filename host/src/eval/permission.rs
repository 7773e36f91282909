//! What a plugin may do with photographs: one that may reach the network can send them away, which a data use agreement may forbid.

use super::dataset::Dataset;
use super::{Advised, EvalError};
use focus_datasets::Access;

/// Whether photographs of this dataset may reach a plugin with these network hosts only by a permission of its own.
pub fn needs_upload(network: &[String], dataset: &Dataset) -> bool {
    let bound = matches!(dataset.access, Access::Credentialed | Access::Request);
    bound && !network.is_empty()
}

/// Refuse, before any photograph is decoded, what was not permitted.
pub fn check_upload(
    network: &[String],
    dataset: &Dataset,
    allowed: &[String],
) -> Result<(), EvalError> {
    let id = &dataset.facts.id;
    if !needs_upload(network, dataset) || allowed.contains(id) {
        return Ok(());
    }
    let message = format!(
        "Dataset `{id}` is under a data use agreement, and the plugin may reach {}: its photographs could leave this machine",
        network.join(", ")
    );
    let hint = format!(
        "If the agreement allows that, say so: --allow-upload {id}. It is recorded in the run"
    );
    Err(EvalError::Request(Advised::new(message, hint)))
}
