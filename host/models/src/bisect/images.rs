//! From a failed encode call to the images that fail. Knows no generators.
//!
//! Every call keeps the batch plan: an image stays in its row. An image is blamed only after it has failed **alone, in a
//! repeated call**: what fails once and then passes was not the image's doing. Embeddings that are not finite name their rows
//! themselves, so those rows are repeated alone without a search.
//!
//! It ends: a batch of n images costs at most 3n + 3 calls. When images of both halves fail (or nothing has ever worked), a
//! black batch is tried: if that fails twice, the plugin is broken and no image is. A plugin that refuses the black image as an
//! image (`FailureKind::Image`: no retina in it, say) is alive and well.

use crate::{ModelError, PreparedImage};
use focus_wire::{FailureKind, WireError};

/// What became of a row.
pub(crate) type RowResult = Result<Vec<f32>, WireError>;
/// What became of a call: rows in the order asked for (failed ones are those not finite), or why there are none.
pub(crate) type Called = Result<Vec<RowResult>, WireError>;

/// A way to call the model. The outer error means that the model cannot go on at all.
pub(crate) trait Caller {
    /// One call with these images at these rows, in order of row; none of the caller's other images is in it. No rows: a black batch.
    fn call(&mut self, rows: &[(usize, &PreparedImage)]) -> Result<Called, ModelError>;
    /// A call has worked before.
    fn proven(&self) -> bool;
    /// The plugin's file name.
    fn plugin(&self) -> &str;
}

/// Settle the outcome of the first call over all of `images` (image i in row i): one result for each.
pub(crate) fn settle(
    caller: &mut dyn Caller,
    images: &[PreparedImage],
    outcome: Called,
) -> Result<Vec<RowResult>, ModelError> {
    let mut search = Search {
        caller,
        images,
        results: vec![None; images.len()],
        black_works: false,
    };
    let rows: Vec<usize> = (0..images.len()).collect();
    match outcome {
        Ok(results) => search.accept(&rows, results)?,
        Err(error) => {
            if !search.caller.proven() {
                search.try_black()?;
            }
            match rows.as_slice() {
                [] => {}
                // The first call was this image alone already: repeat it once.
                [row] => {
                    if let Some(error) = search.attempt(&[*row])? {
                        search.try_black()?;
                        search.results[*row] = Some(Err(error));
                    }
                }
                rows => search.split(rows, error)?,
            }
        }
    }
    Ok(search
        .results
        .into_iter()
        .map(|result| result.expect("every row is settled by accept or blame"))
        .collect())
}

struct Search<'a> {
    caller: &'a mut dyn Caller,
    images: &'a [PreparedImage],
    results: Vec<Option<RowResult>>,
    black_works: bool,
}

impl Search<'_> {
    /// `rows` have failed together; if there is one only, it has failed alone in a repeated call.
    fn split(&mut self, rows: &[usize], error: WireError) -> Result<(), ModelError> {
        if let [row] = rows {
            self.results[*row] = Some(Err(error));
            return Ok(());
        }
        let (left, right) = rows.split_at(rows.len() / 2);
        let failed = [self.attempt(left)?, self.attempt(right)?];
        if failed.iter().all(Option::is_some) {
            self.try_black()?;
        }
        for (rows, error) in [left, right].into_iter().zip(failed) {
            if let Some(error) = error {
                self.split(rows, error)?;
            }
        }
        Ok(())
    }

    /// Call with these rows; `Some`: the call failed.
    fn attempt(&mut self, rows: &[usize]) -> Result<Option<WireError>, ModelError> {
        match self.call(rows)? {
            Ok(results) => self.accept(rows, results).map(|()| None),
            Err(error) => Ok(Some(error)),
        }
    }

    /// Take the results of a call that worked; rows that are not finite get one more call, alone.
    fn accept(&mut self, rows: &[usize], results: Vec<RowResult>) -> Result<(), ModelError> {
        for (row, result) in rows.iter().zip(results) {
            let result = match result {
                Ok(values) => Ok(values),
                Err(_) => match self.call(&[*row])? {
                    Ok(mut alone) => alone
                        .pop()
                        .expect("a call returns as many rows as it was given"),
                    Err(error) => Err(error),
                },
            };
            self.results[*row] = Some(result);
        }
        Ok(())
    }

    fn try_black(&mut self) -> Result<(), ModelError> {
        // Twice, so that one stray crash does not end a run.
        for last in [false, true] {
            if self.black_works {
                break;
            }
            match self.call(&[])? {
                Err(error) if error.kind != FailureKind::Image => {
                    if last {
                        let plugin = self.caller.plugin().to_owned();
                        return Err(ModelError::FailsOnBlack { plugin, error });
                    }
                }
                _ => self.black_works = true,
            }
        }
        Ok(())
    }

    fn call(&mut self, rows: &[usize]) -> Result<Called, ModelError> {
        let images: Vec<_> = rows.iter().map(|row| (*row, &self.images[*row])).collect();
        self.caller.call(&images)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::wire_error;
    use proptest::prelude::*;

    /// Fails whenever one of `bad` is in the call; the first `flukes` calls fail too.
    struct Fake {
        bad: Vec<usize>,
        nan: Vec<usize>,
        flukes: usize,
        black: bool,
        proven: bool,
        calls: Vec<Vec<usize>>,
    }

    impl Fake {
        fn new(bad: &[usize], nan: &[usize]) -> Self {
            Self {
                bad: bad.to_vec(),
                nan: nan.to_vec(),
                flukes: 0,
                black: true,
                proven: true,
                calls: Vec::new(),
            }
        }

        fn run(&mut self, images: usize) -> Result<Vec<RowResult>, ModelError> {
            let images: Vec<_> = (0..images)
                .map(|sample| PreparedImage {
                    sample,
                    pixels: Vec::new().into(),
                })
                .collect();
            let rows: Vec<_> = images.iter().enumerate().collect();
            let first = self.call(&rows)?;
            settle(self, &images, first)
        }
    }

    impl Caller for Fake {
        fn call(&mut self, rows: &[(usize, &PreparedImage)]) -> Result<Called, ModelError> {
            self.calls.push(rows.iter().map(|(row, _)| *row).collect());
            let fluke = self.calls.len() <= self.flukes;
            if fluke
                || (!self.black && rows.is_empty())
                || rows.iter().any(|(row, _)| self.bad.contains(row))
            {
                return Ok(Err(wire_error(FailureKind::Crash, "died".into())));
            }
            Ok(Ok(rows
                .iter()
                .map(|(row, _)| {
                    if self.nan.contains(row) {
                        Err(wire_error(FailureKind::BadReply, "nan".into()))
                    } else {
                        Ok(vec![*row as f32])
                    }
                })
                .collect()))
        }
        fn proven(&self) -> bool {
            self.proven
        }
        fn plugin(&self) -> &'static str {
            "libfake.so"
        }
    }

    fn failed(results: &[RowResult]) -> Vec<usize> {
        (0..results.len())
            .filter(|row| results[*row].is_err())
            .collect()
    }

    proptest! {
        #[test]
        fn exactly_the_bad_images_fail(n in 1usize..40, bad in prop::collection::btree_set(0usize..40, 0..10), nan in prop::collection::btree_set(0usize..40, 0..10)) {
            let bad: Vec<usize> = bad.into_iter().filter(|row| *row < n).collect();
            let nan: Vec<usize> = nan.into_iter().filter(|row| *row < n).collect();
            let mut fake = Fake::new(&bad, &nan);
            let results = fake.run(n).expect("black works");
            let mut expected: Vec<usize> = bad.iter().chain(&nan).copied().collect();
            expected.sort_unstable();
            expected.dedup();
            prop_assert_eq!(failed(&results), expected);
            for (row, result) in results.iter().enumerate() {
                if let Ok(values) = result {
                    prop_assert_eq!(values, &vec![row as f32]);
                }
            }
            prop_assert!(fake.calls.len() <= 3 * n + 3, "{} calls for {}", fake.calls.len(), n);
        }
    }

    #[test]
    fn one_bad_image_costs_a_logarithm_of_calls() {
        let mut fake = Fake::new(&[5], &[]);
        assert_eq!(failed(&fake.run(32).expect("goes on")), [5]);
        assert_eq!(fake.calls.len(), 1 + 2 * 5);
    }

    #[test]
    fn a_fluke_blames_nobody() {
        for images in [1, 2, 7] {
            let mut fake = Fake {
                flukes: 1,
                ..Fake::new(&[], &[])
            };
            assert_eq!(failed(&fake.run(images).expect("goes on")), [0; 0]);
        }
    }

    #[test]
    fn a_plugin_that_fails_without_images_is_broken() {
        let all: Vec<usize> = (0..8).collect();
        let mut fake = Fake {
            black: false,
            ..Fake::new(&all, &[])
        };
        assert!(matches!(fake.run(8), Err(ModelError::FailsOnBlack { .. })));
        assert_eq!(fake.calls.len(), 5, "found after the first halves");
        let mut unproven = Fake {
            black: false,
            proven: false,
            ..Fake::new(&all, &[])
        };
        assert!(matches!(
            unproven.run(8),
            Err(ModelError::FailsOnBlack { .. })
        ));
        assert_eq!(unproven.calls.len(), 3, "found at once");
        let mut single = Fake {
            black: false,
            ..Fake::new(&[0], &[])
        };
        assert!(matches!(
            single.run(1),
            Err(ModelError::FailsOnBlack { .. })
        ));
        let mut images = Fake::new(&all, &[]);
        assert_eq!(failed(&images.run(8).expect("black works")), all);
    }

    #[test]
    fn refusing_black_as_an_image_is_no_defect() {
        struct Picky(Fake);
        impl Caller for Picky {
            fn call(&mut self, rows: &[(usize, &PreparedImage)]) -> Result<Called, ModelError> {
                if rows.is_empty() {
                    return Ok(Err(wire_error(FailureKind::Image, "no retina".into())));
                }
                self.0.call(rows)
            }
            fn proven(&self) -> bool {
                false
            }
            fn plugin(&self) -> &'static str {
                "libpicky.so"
            }
        }
        let images = [PreparedImage {
            sample: 0,
            pixels: Vec::new().into(),
        }];
        let first = Err(wire_error(FailureKind::Crash, "died".into()));
        let results = settle(&mut Picky(Fake::new(&[0], &[])), &images, first).expect("goes on");
        assert_eq!(failed(&results), [0]);
    }

    #[test]
    fn rows_that_are_not_finite_are_repeated_alone() {
        let mut fake = Fake::new(&[], &[3, 6]);
        assert_eq!(failed(&fake.run(8).expect("goes on")), [3, 6]);
        assert_eq!(fake.calls[1..], [vec![3], vec![6]]);
    }
}
