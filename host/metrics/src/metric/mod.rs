//! One file per metric, each registering itself in [`crate::METRICS`]. Siblings never import each other, except that a
//! corrected metric may use the bins of the plain one.

mod accuracy;
mod auprc;
mod auroc;
mod brier;
mod brier_skill;
mod calibration_intercept;
mod calibration_slope;
pub(crate) mod ece;
mod ece_debiased;
mod f1;
mod false_positive_rate;
mod mean_score;
mod positive_rate;
mod precision;
mod recall;
mod specificity;
mod true_positive_rate;
