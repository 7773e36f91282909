//! Made-up embeddings by a formula that `tests/data/formula.py` states too, bit for bit: integer hashing, then f64
//! products and sums in a fixed order, rounded to f32 once. Owns no expectations.

/// The parameters of one data set.
#[derive(Debug, Clone, Copy, serde::Deserialize)]
pub struct Recipe {
    pub rows: usize,
    pub width: usize,
    /// Latent factors, at least 3: the labels come from the first three.
    pub factors: usize,
    /// Length of the common mean against the rest.
    pub offset: f64,
    /// Length of the independent part.
    pub noise: f64,
    /// Length of the first factor; the k-th is `strength / k`.
    pub strength: f64,
    /// Noise in the labels.
    pub confusion: f64,
    /// Rows whose label score is above it are positive.
    pub threshold: f64,
    pub seed: u64,
}

fn mix(value: u64) -> u64 {
    let mut x = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// `count` bell-shaped values of standard deviation 1.155, exact in f64.
fn bell(seed: u64, count: usize) -> Vec<f64> {
    let start = mix(seed);
    let value = |index: u64| {
        let hash = mix(start.wrapping_add(index));
        let sum: i64 = (0..4)
            .map(|part| i64::from((hash >> (16 * part)) as u16))
            .sum();
        (sum - 2 * 65535) as f64 / 32768.0
    };
    (0..count as u64).map(value).collect()
}

impl Recipe {
    /// Row-major embeddings and labels.
    pub fn make(&self) -> (Vec<f32>, Vec<bool>) {
        let Self {
            rows,
            width,
            factors,
            ..
        } = *self;
        let latent = bell(self.seed, rows * factors);
        let noise = bell(self.seed + 1, rows * width);
        let mean = bell(self.seed + 2, width);
        let mut loads = bell(self.seed + 3, factors * width);
        let confusion = bell(self.seed + 4, rows);
        for (index, load) in loads.iter_mut().enumerate() {
            *load *= self.strength / (index / width + 1) as f64;
        }
        let mut values = Vec::with_capacity(rows * width);
        let mut row = vec![0.0; width];
        for index in 0..rows {
            for (column, value) in row.iter_mut().enumerate() {
                *value = noise[index * width + column] * self.noise + mean[column] * self.offset;
            }
            for factor in 0..factors {
                let amount = latent[index * factors + factor];
                for (value, load) in row.iter_mut().zip(&loads[factor * width..]) {
                    *value += amount * load;
                }
            }
            values.extend(row.iter().map(|value| *value as f32));
        }
        let labels = (0..rows)
            .map(|index| {
                let own = &latent[index * factors..];
                own[0] + own[1] - own[2] + self.confusion * confusion[index] > self.threshold
            })
            .collect();
        (values, labels)
    }
}
