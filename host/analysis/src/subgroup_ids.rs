//! Names that cells and tables share: tasks in the paper's order, and the gaps that Fairness and Quality average.

/// The paper's tasks, in the order of its tables. Others (`glaucoma_vcdr`) follow, outside the Overall block.
pub const TASK_ORDER: [&str; 3] = ["binary_dr", "referable_dr", "glaucoma"];

/// Sorts tasks: the paper's first, then all others, which go by name.
pub(crate) fn task_place(task: &str) -> usize {
    let place = TASK_ORDER.iter().position(|known| *known == task);
    place.unwrap_or(TASK_ORDER.len())
}

/// Gaps that Fairness averages, for each attribute.
pub const FAIRNESS_GAPS: [&str; 3] = ["gap_equalized_odds", "gap_accuracy", "gap_auroc"];

/// Gaps that Quality averages.
pub const QUALITY_GAPS: [&str; 5] = [
    "gap_accuracy",
    "gap_auroc",
    "gap_auprc",
    "gap_f1",
    "gap_ece",
];
