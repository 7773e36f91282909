//! From a failed generate call to the groups that fail. Knows no embeddings.
//!
//! A group is blamed only after it has failed **alone, in a repeated call**: what fails once and then passes was not its doing. There is
//! no batch shape to keep, and no call without any group to try: a plugin that never works uses its restarts up. A batch of n groups
//! costs at most 2n + 1 calls.

use crate::{AskedGroup, GroupAnswer, ModelError};
use focus_plugin_abi::v1::message::Timings;
use focus_wire::WireError;

/// A way to ask the model. The outer error means that the model cannot go on at all.
pub(crate) trait GroupCaller {
    /// One call with these groups.
    fn ask(
        &mut self,
        groups: &[AskedGroup],
    ) -> Result<Result<Vec<GroupAnswer>, WireError>, ModelError>;
}

/// Settle the outcome of the first call over all of `groups`: one answer for each.
pub(crate) fn settle_groups(
    caller: &mut dyn GroupCaller,
    groups: &[AskedGroup],
    outcome: Result<Vec<GroupAnswer>, WireError>,
) -> Result<Vec<GroupAnswer>, ModelError> {
    let mut answers = Vec::with_capacity(groups.len());
    match (outcome, groups) {
        (Ok(all), _) => answers = all,
        (Err(_), []) => {}
        (Err(_), [_]) => attempt(caller, groups, &mut answers)?,
        (Err(_), _) => split(caller, groups, &mut answers)?,
    }
    Ok(answers)
}

/// `groups`, at least two, have failed together.
fn split(
    caller: &mut dyn GroupCaller,
    groups: &[AskedGroup],
    answers: &mut Vec<GroupAnswer>,
) -> Result<(), ModelError> {
    let (left, right) = groups.split_at(groups.len() / 2);
    attempt(caller, left, answers)?;
    attempt(caller, right, answers)
}

/// Ask again; a group that fails alone is blamed.
fn attempt(
    caller: &mut dyn GroupCaller,
    groups: &[AskedGroup],
    answers: &mut Vec<GroupAnswer>,
) -> Result<(), ModelError> {
    match (caller.ask(groups)?, groups) {
        (Ok(more), _) => answers.extend(more),
        (Err(error), [group]) => answers.push(GroupAnswer {
            sample: group.sample,
            result: Err(error),
            timings: Timings::default(),
        }),
        (Err(_), _) => split(caller, groups, answers)?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::wire_error;
    use focus_wire::FailureKind;
    use proptest::prelude::*;

    /// Fails whenever one of `bad` is in the call; the first `flukes` calls fail too.
    struct Fake {
        bad: Vec<usize>,
        flukes: usize,
        calls: usize,
    }

    impl GroupCaller for Fake {
        fn ask(
            &mut self,
            groups: &[AskedGroup],
        ) -> Result<Result<Vec<GroupAnswer>, WireError>, ModelError> {
            self.calls += 1;
            if self.calls <= self.flukes || groups.iter().any(|g| self.bad.contains(&g.sample)) {
                return Ok(Err(wire_error(FailureKind::Crash, "died".into())));
            }
            let answer = |group: &AskedGroup| GroupAnswer {
                sample: group.sample,
                result: Ok(Vec::new()),
                timings: Timings::default(),
            };
            Ok(Ok(groups.iter().map(answer).collect()))
        }
    }

    fn run(count: usize, bad: &[usize], flukes: usize) -> (Vec<usize>, Vec<usize>, usize) {
        let groups: Vec<_> = (0..count)
            .map(|sample| AskedGroup {
                sample,
                pictures: Vec::new(),
                prompts: Vec::new(),
            })
            .collect();
        let mut fake = Fake {
            bad: bad.to_vec(),
            flukes,
            calls: 0,
        };
        let first = fake.ask(&groups).expect("goes on");
        let answers = settle_groups(&mut fake, &groups, first).expect("goes on");
        let samples = answers.iter().map(|answer| answer.sample).collect();
        let failed = answers
            .iter()
            .filter(|answer| answer.result.is_err())
            .map(|answer| answer.sample);
        (samples, failed.collect(), fake.calls)
    }

    proptest! {
        #[test]
        fn exactly_the_bad_groups_fail(count in 0usize..20, bad in prop::collection::btree_set(0usize..20, 0..20)) {
            let bad: Vec<usize> = bad.into_iter().filter(|sample| *sample < count).collect();
            let (samples, failed, calls) = run(count, &bad, 0);
            prop_assert_eq!(samples, (0..count).collect::<Vec<_>>());
            prop_assert_eq!(failed, bad);
            prop_assert!(calls <= 2 * count + 1);
        }
    }

    #[test]
    fn a_fluke_blames_nobody() {
        for count in [1, 2, 7] {
            assert_eq!(run(count, &[], 1).1, [0; 0]);
        }
        assert_eq!(run(1, &[0], 0).2, 2, "a single group is asked twice");
    }
}
