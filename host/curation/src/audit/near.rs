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
    // Hashes beside their indices, so that a bucket is read in one go: a look into the fingerprints for each comparison would miss the cache each time.
    let mut order: Vec<(u64, u32)> = (0..prints.len())
        .filter(|&i| prints[i].shape.is_some())
        .map(|i| (prints[i].hash, i as u32))
        .collect();
    for (number, &(start, mask)) in bands.iter().enumerate() {
        let key = |hash: u64| hash >> start & mask;
        order.sort_unstable_by_key(|&(hash, i)| (key(hash), i));
        let buckets: Vec<&[(u64, u32)]> = order.chunk_by(|a, b| key(a.0) == key(b.0)).collect();
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
                let rest = if allowed { rest } else { &[] };
                let (hash, a) = bucket[row];
                let (earlier, kept) = (&bands[..number], &kept);
                let near = rest
                    .iter()
                    .filter(move |other| (hash ^ other.0).count_ones() <= search.max_distance);
                near.filter_map(move |&(other, b)| {
                    let apart = hash ^ other;
                    // A pair that shares an earlier band was met there.
                    if earlier
                        .iter()
                        .any(|(start, mask)| apart >> start & mask == 0)
                    {
                        return None;
                    }
                    let shape = |i: u32| prints[i as usize].shape.as_deref();
                    let alike = similarity(shape(a)?, shape(b)?);
                    if alike < search.min_similarity
                        || kept.fetch_add(1, Ordering::Relaxed) >= search.max_pairs
                    {
                        return None;
                    }
                    Some(Pair {
                        a: a.min(b) as usize,
                        b: a.max(b) as usize,
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
