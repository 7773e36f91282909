//! All pairs of fingerprints that are alike, without comparing all pairs. Knows no files and no records.
//!
//! Two hashes that differ in at most `t` bits agree in one of `t + 1` bands (pigeonhole), so only those that share a band are compared: exact, and far from
//! quadratic. What shares a band and differs in at most `t` bits is confirmed by its shape.

use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use super::fingerprint::{Fingerprint, similarity};

/// When two pictures are alike, and how much may be spent on finding out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Search {
    /// Bits of the hash that may differ, at most 31.
    pub(super) max_distance: u32,
    /// Least similarity of the shapes.
    pub(super) min_similarity: f32,
    /// Comparisons of hashes, in all.
    pub(super) max_comparisons: u64,
    /// Pairs that are kept.
    pub(super) max_pairs: u64,
}

/// Two alike, by index, the smaller first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pair {
    pub(super) a: usize,
    pub(super) b: usize,
    pub(super) distance: u32,
    pub(super) similarity: f32,
}

/// Bits `[start, end)` of each band, as evenly as may be.
fn bands(count: u32) -> Vec<(u32, u64)> {
    (0..count)
        .map(|k| {
            let (start, end) = (64 * k / count, 64 * (k + 1) / count);
            let mask = if end - start == 64 {
                u64::MAX
            } else {
                (1 << (end - start)) - 1
            };
            (start, mask)
        })
        .collect()
}

/// Alike pairs, sorted, and whether the search saw all that it should.
pub(super) fn search(prints: &[&Fingerprint], search: &Search) -> (Vec<Pair>, bool) {
    let bands = bands(search.max_distance.min(31) + 1);
    let (spent, kept) = (AtomicU64::new(0), AtomicU64::new(0));
    let mut pairs = Vec::new();
    let mut order: Vec<usize> = (0..prints.len())
        .filter(|&i| prints[i].shape.is_some())
        .collect();
    for (number, &(start, mask)) in bands.iter().enumerate() {
        let key = |i: usize| prints[i].hash >> start & mask;
        order.sort_unstable_by_key(|&i| (key(i), i));
        let buckets: Vec<&[usize]> = order.chunk_by(|&a, &b| key(a) == key(b)).collect();
        // By row of a bucket, so that one large bucket is shared among the threads.
        let rows = buckets.par_iter().flat_map(|bucket| {
            (0..bucket.len())
                .into_par_iter()
                .map(move |row| (*bucket, row))
        });
        let found: Vec<Pair> = rows
            .flat_map_iter(|(bucket, row)| {
                let rest = &bucket[row + 1..];
                let before = spent.fetch_add(rest.len() as u64, Ordering::Relaxed);
                let allowed = before + rest.len() as u64 <= search.max_comparisons;
                let a = bucket[row];
                let rest = if allowed { rest } else { &[] };
                let earlier = &bands[..number];
                let kept = &kept;
                rest.iter().filter_map(move |&b| {
                    let apart = prints[a].hash ^ prints[b].hash;
                    // A pair that shares an earlier band was met there.
                    let met = earlier
                        .iter()
                        .any(|(start, mask)| apart >> start & mask == 0);
                    if met || apart.count_ones() > search.max_distance {
                        return None;
                    }
                    let shape = |i: usize| prints[i].shape.as_deref();
                    let alike = similarity(shape(a)?, shape(b)?);
                    if alike < search.min_similarity
                        || kept.fetch_add(1, Ordering::Relaxed) >= search.max_pairs
                    {
                        return None;
                    }
                    Some(Pair {
                        a: a.min(b),
                        b: a.max(b),
                        distance: apart.count_ones(),
                        similarity: alike,
                    })
                })
            })
            .collect();
        pairs.extend(found);
    }
    pairs.sort_unstable_by_key(|pair| (pair.a, pair.b));
    let complete =
        spent.into_inner() <= search.max_comparisons && kept.into_inner() <= search.max_pairs;
    (pairs, complete)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::fingerprint::SHAPE;
    use proptest::prelude::*;

    const ALL: Search = Search {
        max_distance: 6,
        min_similarity: 0.9,
        max_comparisons: u64::MAX,
        max_pairs: u64::MAX,
    };

    fn print(hash: u64, axis: usize) -> Fingerprint {
        let mut shape = Box::new([0.0; SHAPE]);
        shape[axis] = 1.0;
        Fingerprint {
            hash,
            shape: Some(shape),
        }
    }

    proptest! {
        #[test]
        fn the_same_pairs_as_comparing_all(seeds in prop::collection::vec((0u64..4, prop::collection::vec(0u32..64, 0..5), 0usize..2), 0..60), max_distance in 0u32..10) {
            let prints: Vec<Fingerprint> = seeds.iter().map(|(seed, flips, axis)| {
                let base = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                print(flips.iter().fold(base, |hash, bit| hash ^ 1 << bit), *axis)
            }).collect();
            let (found, complete) = search(&prints.iter().collect::<Vec<_>>(), &Search { max_distance, ..ALL });
            let mut expected = Vec::new();
            for a in 0..prints.len() {
                for b in a + 1..prints.len() {
                    if (prints[a].hash ^ prints[b].hash).count_ones() <= max_distance && prints[a].shape == prints[b].shape {
                        expected.push((a, b));
                    }
                }
            }
            prop_assert!(complete);
            prop_assert_eq!(found.iter().map(|p| (p.a, p.b)).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn limits_are_kept_and_said() {
        let made: Vec<Fingerprint> = (0..100).map(|_| print(7, 0)).collect();
        let prints: Vec<&Fingerprint> = made.iter().collect();
        let (pairs, complete) = search(
            &prints,
            &Search {
                max_pairs: 10,
                ..ALL
            },
        );
        assert_eq!((pairs.len(), complete), (10, false));
        let (pairs, complete) = search(
            &prints,
            &Search {
                max_comparisons: 50,
                ..ALL
            },
        );
        assert!(pairs.len() <= 50 && !complete);
        let (pairs, complete) = search(&prints, &ALL);
        assert_eq!((pairs.len(), complete), (4950, true));
        let flat = Fingerprint {
            hash: 7,
            shape: None,
        };
        assert_eq!(search(&[&flat, &flat], &ALL), (Vec::new(), true));
    }
}
