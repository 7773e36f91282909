//! Random numbers by purpose: each purpose has a stream of its own, so that one more model changes no other's scores. No
//! platform, no global state. It must not know what the numbers are for.

use super::maths::ln;
use focus_store::ContentHash;

/// xoshiro256++ (Blackman and Vigna, 2019), its state the BLAKE3 of seed and purpose.
pub(super) struct Stream {
    state: [u64; 4],
    spare: Option<f64>,
}

impl Stream {
    pub fn new(seed: u64, purpose: &[&str]) -> Self {
        let hash = ContentHash::of(format!("{seed}\n{}", purpose.join("\n")).as_bytes()).0;
        let mut state = [0; 4];
        for (word, bytes) in state.iter_mut().zip(hash.chunks_exact(8)) {
            *word = bytes
                .iter()
                .fold(0, |word, byte| word << 8 | u64::from(*byte));
        }
        Self { state, spare: None }
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

    /// In [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Standard normal. Marsaglia's polar method: no sine, no cosine.
    pub fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let (u, v) = (2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0);
            let s = u * u + v * v;
            if s < 1.0 && s > 1e-300 {
                let factor = (-2.0 * ln(s) / s).sqrt();
                self.spare = Some(v * factor);
                return u * factor;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_the_published_one() {
        let mut stream = Stream {
            state: [1, 2, 3, 4],
            spare: None,
        };
        assert_eq!(
            [(); 4].map(|()| stream.next()),
            [41943041, 58720359, 3588806011781223, 3591011842654386]
        );
    }

    #[test]
    fn normals_are_normal_and_purposes_differ() {
        let mut stream = Stream::new(7, &["a", "b"]);
        let n = 200_000;
        let draws: Vec<f64> = (0..n).map(|_| stream.normal()).collect();
        let mean = draws.iter().sum::<f64>() / f64::from(n);
        let square = draws.iter().map(|x| x * x).sum::<f64>() / f64::from(n);
        let below = draws.iter().filter(|x| **x < 1.0).count() as f64 / f64::from(n);
        let root = f64::from(n).sqrt();
        assert!(mean.abs() < 4.0 / root && (square - 1.0).abs() < 4.0 * 2.0_f64.sqrt() / root);
        assert!((below - 0.841_344_746).abs() < 4.0 * 0.366 / root);
        assert_ne!(
            Stream::new(7, &["ab"]).next(),
            Stream::new(7, &["a", "b"]).next()
        );
        assert_ne!(Stream::new(7, &["a"]).next(), Stream::new(8, &["a"]).next());
        assert_eq!(Stream::new(7, &["a"]).next(), Stream::new(7, &["a"]).next());
    }
}
