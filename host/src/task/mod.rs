//! The benchmark's tasks: which question, and where its label stands in a record. One file a task, gathered in a slice.
//!
//! Codings of a dataset's own columns live in its mapper, never here.

mod binary_dr;
mod glaucoma;
mod glaucoma_vcdr;
mod referable_dr;

pub use focus_analysis::Track;

use linkme::distributed_slice;

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
    fn the_tasks_of_the_paper_come_first_and_each_once() {
        let ids: Vec<_> = all().iter().map(|task| task.id).collect();
        assert_eq!(
            ids,
            ["binary_dr", "referable_dr", "glaucoma", "glaucoma_vcdr"]
        );
    }
}
