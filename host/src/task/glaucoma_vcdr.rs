//! `glaucoma_vcdr`: a vertical cup-to-disc ratio of 0.6 or more (focus-benchmark.md, section 1): a task of its own beside the
//! benchmark's, where a source has masks or contours.

use super::{TASKS, Task};
use linkme::distributed_slice;

#[expect(unsafe_code, reason = "linkme places the element in a linker section")]
#[distributed_slice(TASKS)]
static TASK: Task = Task {
    id: "glaucoma_vcdr",
    title: "Vertical cup-to-disc ratio of 0.6 or more",
    positive: "the ratio measured in the source's masks or contours",
    order: 4,
};
