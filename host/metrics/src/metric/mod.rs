//! One file per metric, each registering itself in [`crate::METRICS`]. Siblings never import each other.

mod accuracy;
mod auprc;
mod auroc;
mod brier;
mod brier_skill;
pub(crate) mod ece;
mod f1;
mod precision;
mod recall;
