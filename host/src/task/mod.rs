//! The benchmark's tasks: which question, and where its label stands in a record. One file a task, gathered in a slice.
//!
//! Codings of a dataset's own columns live in its mapper, never here.

mod binary_dr;
mod glaucoma;
mod referable_dr;

use linkme::distributed_slice;

/// The two readings of the benchmark (focus-benchmark.md).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Track {
    /// What a statistician would sign.
    Corrected,
    /// What the paper and its published code compute.
    AsPublished,
}

impl Track {
    /// Both, in the order reports show them.
    pub const ALL: [Self; 2] = [Self::Corrected, Self::AsPublished];

    /// Stable name in stores and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Corrected => "corrected",
            Self::AsPublished => "as_published",
        }
    }
}

/// One task of the benchmark.
#[derive(Debug)]
pub struct Task {
    /// Stable id: `binary_dr`.
    pub id: &'static str,
    /// For people.
    pub title: &'static str,
    /// When an image is positive, in words.
    pub positive: &'static str,
    /// Place in listings.
    pub order: u32,
}

/// Every task of this build; a task is added by adding a file.
#[distributed_slice]
pub static TASKS: [Task];

/// All tasks in listing order.
pub fn all() -> Vec<&'static Task> {
    let mut tasks: Vec<_> = TASKS.iter().collect();
    tasks.sort_by_key(|task| (task.order, task.id));
    tasks
}

/// The task of that id.
pub fn by_id(id: &str) -> Option<&'static Task> {
    TASKS.iter().find(|task| task.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_tasks_of_the_paper_are_registered_once() {
        let ids: Vec<_> = all().iter().map(|task| task.id).collect();
        assert_eq!(ids, ["binary_dr", "referable_dr", "glaucoma"]);
    }
}
