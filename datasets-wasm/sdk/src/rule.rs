//! When a task is positive, from grade and edema. Both tracks of the benchmark, side by side.
//!
//! Source: FOCUS (arXiv 2609.33158), section on tasks; the published code fills a missing value of the referable rule
//! with 0, which `corrected` does not.

use crate::{Label, Truth};

/// A known state.
pub fn truth(value: bool) -> Truth {
    if value {
        Truth::Positive
    } else {
        Truth::Negative
    }
}

/// The same answer in both tracks.
pub fn label(task: u32, state: Option<bool>) -> Label {
    let state = state.map_or(Truth::Unknown, truth);
    Label {
        task,
        as_published: state,
        corrected: state,
    }
}

/// A label that the published code takes as negative where it is missing. Corrected: unknown.
pub fn label_or_no(task: u32, state: Option<bool>) -> Label {
    Label {
        as_published: truth(state.unwrap_or(false)),
        ..label(task, state)
    }
}

/// Any diabetic retinopathy: ICDR grade 1 or more.
pub fn any_dr(task: u32, grade: Option<u32>) -> Label {
    label(task, grade.map(|g| g >= 1))
}

/// Referable diabetic retinopathy: grade 2 or more, or macular edema. Corrected: positive if either is, negative only if
/// both are known negative, else unknown. As published: what is missing counts as 0.
pub fn referable_dr(task: u32, grade: Option<u32>, edema: Option<bool>) -> Label {
    let severe = grade.map(|g| g >= 2);
    let corrected = match (severe, edema) {
        (Some(true), _) | (_, Some(true)) => Truth::Positive,
        (Some(false), Some(false)) => Truth::Negative,
        _ => Truth::Unknown,
    };
    Label {
        task,
        as_published: truth(severe.unwrap_or(false) || edema.unwrap_or(false)),
        corrected,
    }
}

/// Referable diabetic retinopathy of a dataset without any column for edema: the grade alone.
pub fn referable_dr_by_grade(task: u32, grade: Option<u32>) -> Label {
    let severe = grade.map(|g| g >= 2);
    Label {
        task,
        as_published: truth(severe.unwrap_or(false)),
        corrected: severe.map_or(Truth::Unknown, truth),
    }
}

/// A label of a task that only the published track offers.
pub fn as_published_only(task: u32, state: bool) -> Label {
    Label {
        task,
        as_published: truth(state),
        corrected: Truth::Unknown,
    }
}
