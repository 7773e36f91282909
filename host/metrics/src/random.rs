//! The random numbers of resampling: one independent stream for each (seed, resample), so that a resample is the same
//! whichever thread draws it. Owns the generator; no platform, no global state, no outside crate whose stream could
//! change with a version. Not for secrets.
//!
//! The generator is xoshiro256++ (Blackman and Vigna, 2019, <https://prng.di.unimi.it>), its 256 bits of state filled
//! by SplitMix64 (Steele, Lea and Flood, 2014) started at `mix(mix(seed) + resample)`. `mix` is a bijection of 64-bit
//! numbers, so two resamples of one seed never start alike.

const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64's output function.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A seed for something named, such as a test set, under a common seed: draws of different names are independent.
pub fn seed_for(seed: u64, name: &str) -> u64 {
    // FNV-1a over the bytes, then mixed with the seed.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    mix(mix(seed.wrapping_add(GOLDEN_GAMMA)) ^ hash)
}

/// The numbers of one resample.
#[derive(Debug, Clone)]
pub(crate) struct Stream {
    state: [u64; 4],
}

impl Stream {
    /// The stream of resample number `resample` under `seed`.
    pub(crate) fn new(seed: u64, resample: u64) -> Self {
        let mut counter = mix(mix(seed.wrapping_add(GOLDEN_GAMMA)).wrapping_add(resample));
        let state = std::array::from_fn(|_| {
            counter = counter.wrapping_add(GOLDEN_GAMMA);
            mix(counter)
        });
        Self { state }
    }

    fn next(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let output = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        output
    }

    /// A number in `0..bound`, each equally likely (multiply and shift, redrawing the few that would be unfair).
    /// `bound` is at least 1.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        loop {
            let product = u128::from(self.next()) * u128::from(bound);
            let low = product as u64;
            // 2^64 mod bound, computed only where `low` is small enough to matter.
            if low >= bound || low >= bound.wrapping_neg() % bound {
                return (product >> 64) as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generators_are_the_published_ones() {
        let mut counter = 1_234_567_u64;
        let outputs: Vec<u64> = (0..3)
            .map(|_| {
                counter = counter.wrapping_add(GOLDEN_GAMMA);
                mix(counter)
            })
            .collect();
        let published = [
            6457827717110365317,
            3203168211198807973,
            9817491932198370423,
        ];
        assert_eq!(outputs, published);
        let mut stream = Stream {
            state: [1, 2, 3, 4],
        };
        let published = [41943041, 58720359, 3588806011781223, 3591011842654386];
        assert_eq!([(); 4].map(|()| stream.next()), published);
    }

    #[test]
    fn streams_differ_and_repeat() {
        let first = |seed, resample| Stream::new(seed, resample).next();
        assert_eq!(first(13, 0), first(13, 0));
        let mut seen: Vec<u64> = (0..50)
            .flat_map(|seed| (0..50).map(move |resample| first(seed, resample)))
            .collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 2500);
    }

    #[test]
    fn names_have_seeds_of_their_own() {
        assert_eq!(seed_for(13, "brset"), seed_for(13, "brset"));
        assert_ne!(seed_for(13, "brset"), seed_for(13, "mbrset"));
        assert_ne!(seed_for(13, "brset"), seed_for(14, "brset"));
    }

    #[test]
    fn draws_are_in_range_and_even() {
        let mut stream = Stream::new(1, 2);
        assert_eq!(stream.below(1), 0);
        let mut counts = [0_i64; 7];
        for _ in 0..70_000 {
            counts[stream.below(7) as usize] += 1;
        }
        // Standard deviation is about 93.
        assert!(
            counts.iter().all(|count| (count - 10_000).abs() < 500),
            "{counts:?}"
        );
    }
}
