//! `glaucoma`: Glaucomatous optic neuropathy (focus-benchmark.md, section 1).

use super::{TASKS, Task};
use linkme::distributed_slice;

#[expect(unsafe_code, reason = "linkme places the element in a linker section")]
#[distributed_slice(TASKS)]
static TASK: Task = Task {
    id: "glaucoma",
    title: "Glaucomatous optic neuropathy",
    positive: "the dataset's specialist label",
    order: 3,
};
