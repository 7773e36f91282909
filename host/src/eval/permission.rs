//! What a plugin may do with photographs: one that may reach the network can send them away, which a data use agreement may forbid.

use super::dataset::Dataset;
use super::{Advised, EvalError};
use focus_datasets::Access;

/// Whether photographs of this dataset may reach a plugin that can reach these hosts only by a permission of its own.
pub fn needs_upload(reach: &[String], dataset: &Dataset) -> bool {
    let bound = matches!(dataset.access, Access::Credentialed | Access::Request);
    bound && !reach.is_empty()
}

/// Refuse, before any photograph is decoded, what was not permitted.
pub fn check_upload(
    reach: &[String],
    dataset: &Dataset,
    allowed: &[String],
) -> Result<(), EvalError> {
    let id = &dataset.facts.id;
    if !needs_upload(reach, dataset) || allowed.contains(id) {
        return Ok(());
    }
    let message = format!(
        "Dataset `{id}` is under a data use agreement, and the plugin may reach {}: its photographs could leave this machine",
        reach.join(", ")
    );
    let hint = format!(
        "If the agreement allows that, say so: --allow-upload {id}. It is recorded in the run"
    );
    Err(EvalError::Request(Advised::new(message, hint)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::dataset::tests::of_access;

    #[test]
    fn photographs_under_an_agreement_leave_only_by_permission() {
        let hosts = ["api.example.org".to_owned()];
        for access in [Access::Credentialed, Access::Request] {
            let dataset = of_access(access);
            let error = check_upload(&hosts, &dataset, &[]).expect_err("refused");
            assert!(error.to_string().contains("api.example.org"), "{error}");
            assert!(
                error
                    .hint()
                    .is_some_and(|hint| hint.contains("--allow-upload drawn"))
            );
            assert!(check_upload(&hosts, &dataset, &["other".into()]).is_err());
            assert!(check_upload(&hosts, &dataset, &["drawn".into()]).is_ok());
            assert!(
                check_upload(&[], &dataset, &[]).is_ok(),
                "nothing can leave"
            );
        }
        for access in [Access::Open, Access::Registration] {
            assert!(check_upload(&hosts, &of_access(access), &[]).is_ok());
        }
    }
}
