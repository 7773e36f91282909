//! A small seeded generator with the same stream on every platform. Knows nothing of what is drawn with it.
//!
//! The state is a 64-bit counter advanced by the golden-ratio constant and mixed by the SplitMix64 finaliser (Steele,
//! Lea, Flood, OOPSLA 2014). Streams are named: `Random::stream(seed, &[tag, index])` mixes each part in turn, so that a
//! new kind of draw never shifts an old one. Not for cryptography.

/// One named stream.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

/// The SplitMix64 finaliser: a bijection on 64 bits that spreads every input bit.
pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Random {
    /// The stream named by a seed and a path of numbers.
    pub fn stream(seed: u64, path: &[u64]) -> Self {
        let state = path
            .iter()
            .fold(mix(seed ^ 0x5851_F42D_4C95_7F2D), |state, &part| {
                mix(state
                    .wrapping_add(0x9E37_79B9_7F4A_7C15)
                    .wrapping_add(part.wrapping_mul(0xD134_2543_DE82_EF95)))
            });
        Self { state }
    }

    /// 64 uniform bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.state)
    }

    /// Uniform in [0, 1), a multiple of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// Uniform in [low, high).
    pub fn range(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Uniform integer in [low, high], both ends included.
    pub fn count(&mut self, low: u32, high: u32) -> u32 {
        let span = u128::from(high - low) + 1;
        low + ((u128::from(self.bits()) * span) >> 64) as u32
    }

    /// True with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// Near-normal, mean 0, variance 1, within [-6, 6]: the sum of twelve uniforms (Irwin-Hall), which needs no logarithm.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }

    /// Noise of one pixel in two draws, each value of mean 0 and variance 1: one for all channels, bell-shaped within
    /// [-3.5, 3.5] (the sum of four 16-bit uniforms), and one for each channel, uniform.
    pub fn pixel(&mut self) -> (f32, [f32; 3]) {
        let bits = self.bits();
        let sum =
            (bits & 0xFFFF) + ((bits >> 16) & 0xFFFF) + ((bits >> 32) & 0xFFFF) + (bits >> 48);
        let common = (sum as f32 * (1.0 / 65_535.0) - 2.0) * 1.732_050_8;
        let bits = self.bits();
        let uniform = |k: u32| {
            let part = (bits >> (21 * k)) & 0x1F_FFFF;
            (part as f32 * (2.0 / 2_097_151.0) - 1.0) * 1.732_050_8
        };
        (common, [uniform(0), uniform(1), uniform(2)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_values_are_pinned() {
        // SplitMix64 from state 0, as published with the algorithm.
        let mut random = Random { state: 0 };
        assert_eq!(random.bits(), 0xE220_A839_7B1D_CDAF);
        assert_eq!(random.bits(), 0x6E78_9E6A_A1B9_65F4);
    }

    #[test]
    fn draws_keep_their_ranges_and_moments() {
        let mut random = Random::stream(7, &[1]);
        let n = 20_000;
        let normals: Vec<f64> = (0..n).map(|_| random.normal()).collect();
        let mean = normals.iter().sum::<f64>() / f64::from(n);
        let variance = normals.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / f64::from(n);
        assert!(
            mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05,
            "{mean} {variance}"
        );
        let pixels: Vec<_> = (0..n).map(|_| random.pixel()).collect();
        for c in 0..3 {
            let moment = |f: fn(f32, f32, f32) -> f32| {
                let next = (c + 1) % 3;
                let value = |p: &(f32, [f32; 3])| f64::from(f(p.0, p.1[c], p.1[next]));
                pixels.iter().map(value).sum::<f64>() / f64::from(n)
            };
            assert!((moment(|common, _, _| common * common) - 1.0).abs() < 0.03);
            assert!((moment(|_, own, _| own * own) - 1.0).abs() < 0.03);
            assert!(moment(|_, own, _| own).abs() < 0.03);
            assert!(moment(|common, own, _| common * own).abs() < 0.03);
            assert!(moment(|_, own, next| own * next).abs() < 0.03);
        }
        let counts: Vec<u32> = (0..1000).map(|_| random.count(3, 5)).collect();
        assert!((3..=5).all(|k| counts.contains(&k)) && counts.iter().all(|k| (3..=5).contains(k)));
    }

    #[test]
    fn streams_differ_by_each_part_of_their_name() {
        let first = |seed, path: &[u64]| Random::stream(seed, path).bits();
        let all = [
            first(1, &[1, 2]),
            first(1, &[2, 1]),
            first(2, &[1, 2]),
            first(1, &[1]),
            first(1, &[1, 2, 0]),
        ];
        let distinct: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
    }
}
