//! `binary_dr`: Any diabetic retinopathy (focus-benchmark.md, section 1).

use super::{TASKS, Task};
use linkme::distributed_slice;

#[expect(unsafe_code, reason = "linkme places the element in a linker section")]
#[distributed_slice(TASKS)]
static TASK: Task = Task {
    id: "binary_dr",
    title: "Any diabetic retinopathy",
    positive: "ICDR grade of at least 1",
    order: 1,
};
