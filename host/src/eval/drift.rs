//! How far `--decode fast` moves a model's embeddings: measured on some of the run's own photographs, before the run, and kept
//! with it. Knows encoders and pixel sources; no probe, no metric.

use super::features::Wanted;
use super::pixels::PixelSource;
use focus_models::{Answer, ImageEncoder, ModelError, PixelBatch, PreparedImage};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// File name in the run folder.
pub const DRIFT_FILE: &str = "drift.json";
/// Photographs compared, spread evenly over those asked about.
const COMPARED: usize = 32;

/// Embeddings of fast against exactly decoded photographs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drift {
    /// Photographs compared.
    pub images: u32,
    /// Photographs of the choice that gave no embedding on one side or the other.
    pub left_out: u32,
    /// Mean of 1 - cosine between the two embeddings; none where no photograph was compared.
    pub mean_cosine_distance: Option<f64>,
    /// The largest of them.
    pub max_cosine_distance: Option<f64>,
}

/// Embed the same photographs both ways.
pub fn measure(
    wanted: &[Wanted],
    exact: &dyn PixelSource,
    fast: &dyn PixelSource,
    encoder: &mut dyn ImageEncoder,
) -> Result<Drift, ModelError> {
    let chosen = spread(wanted);
    let exact = embed(&chosen, exact, encoder)?;
    let fast = embed(&chosen, fast, encoder)?;
    let distances: Vec<f64> = exact
        .iter()
        .filter_map(|(sample, a)| Some(cosine_distance(a, fast.get(sample)?)))
        .collect();
    let known = (!distances.is_empty()).then_some(());
    Ok(Drift {
        images: distances.len() as u32,
        left_out: (chosen.len() - distances.len()) as u32,
        mean_cosine_distance: known
            .map(|()| distances.iter().sum::<f64>() / distances.len() as f64),
        max_cosine_distance: known.map(|()| distances.iter().copied().fold(0.0, f64::max)),
    })
}

fn spread(wanted: &[Wanted]) -> Vec<&Wanted> {
    let count = wanted.len().min(COMPARED);
    (0..count)
        .map(|i| &wanted[i * wanted.len() / count])
        .collect()
}

fn embed(
    chosen: &[&Wanted],
    source: &dyn PixelSource,
    encoder: &mut dyn ImageEncoder,
) -> Result<BTreeMap<usize, Vec<f32>>, ModelError> {
    let size = encoder.opened().batch_size.max(1) as usize;
    let mut found = BTreeMap::new();
    let mut batches = chosen
        .chunks(size)
        .map(|chunk| PixelBatch {
            images: chunk
                .par_iter()
                .filter_map(|wanted| {
                    let file = source.read(wanted.sample).ok()?;
                    let pixels = source.prepare(&file.bytes, file.hash).ok()?;
                    Some(PreparedImage {
                        sample: wanted.sample as usize,
                        pixels: pixels.rgb,
                    })
                })
                .collect(),
        })
        .filter(|batch| !batch.images.is_empty());
    encoder.encode_all(&mut batches, &mut |answers: Vec<Answer>| {
        let embedded = answers
            .into_iter()
            .filter_map(|answer| Some((answer.sample, answer.result.ok()?)));
        found.extend(embedded);
        Ok(())
    })?;
    Ok(found)
}

fn cosine_distance(a: &[f32], b: &[f32]) -> f64 {
    let dot = |x: &[f32], y: &[f32]| -> f64 {
        x.iter()
            .zip(y)
            .map(|(x, y)| f64::from(*x) * f64::from(*y))
            .sum()
    };
    let norms = (dot(a, a) * dot(b, b)).sqrt();
    // Two zero vectors are the same; one of them is not like any other.
    if norms == 0.0 {
        return if a == b { 0.0 } else { 1.0 };
    }
    (1.0 - dot(a, b) / norms).clamp(0.0, 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::pixels::{FileBytes, ImageFailure, Pixels};
    use focus_models::fake::{FakeEncoder, opened};
    use focus_store::ContentHash;

    /// Equal pixels but for a step added to each; one sample cannot be read.
    struct Shifted(u8);

    impl PixelSource for Shifted {
        fn read(&self, sample: u32) -> Result<FileBytes, ImageFailure> {
            if sample == 3 {
                return Err(ImageFailure {
                    reason: "missing".into(),
                    message: "The file is not there".into(),
                });
            }
            let bytes: Vec<u8> = (0..48).map(|i| (sample * 5 + i * 3) as u8).collect();
            Ok(FileBytes {
                hash: ContentHash::of(&bytes),
                note: None,
                bytes,
            })
        }

        fn prepare(&self, bytes: &[u8], _: ContentHash) -> Result<Pixels, ImageFailure> {
            let rgb: Vec<u8> = bytes.iter().map(|b| b.wrapping_add(self.0)).collect();
            Ok(Pixels {
                rgb: rgb.into(),
                note: None,
            })
        }
    }

    fn wanted(n: u32) -> Vec<Wanted> {
        (0..n)
            .map(|sample| Wanted {
                sample,
                id: sample.to_string(),
            })
            .collect()
    }

    #[test]
    fn equal_pixels_do_not_drift_and_others_do() {
        let mut encoder = FakeEncoder::new(opened(4, 3, 4, 4));
        let same = measure(&wanted(10), &Shifted(0), &Shifted(0), &mut encoder).expect("measures");
        assert_eq!((same.images, same.left_out), (9, 1));
        assert!(
            same.max_cosine_distance.is_some_and(|d| d < 1e-12),
            "{same:?}"
        );
        let moved =
            measure(&wanted(10), &Shifted(0), &Shifted(90), &mut encoder).expect("measures");
        assert!(
            moved.max_cosine_distance > same.max_cosine_distance,
            "{moved:?}"
        );
        assert!(moved.mean_cosine_distance <= moved.max_cosine_distance);
        let none = measure(&[], &Shifted(0), &Shifted(0), &mut encoder).expect("measures");
        assert_eq!((none.images, none.mean_cosine_distance), (0, None));
    }

    #[test]
    fn the_choice_is_spread_over_all() {
        let all = wanted(320);
        let samples: Vec<u32> = spread(&all).iter().map(|w| w.sample).collect();
        assert_eq!(samples.len(), COMPARED);
        assert_eq!((samples[0], samples[1], samples[31]), (0, 10, 310));
    }

    #[test]
    fn distances_of_zero_vectors_are_numbers() {
        assert_eq!(cosine_distance(&[0.0; 2], &[0.0; 2]), 0.0);
        assert_eq!(cosine_distance(&[0.0; 2], &[1.0, 0.0]), 1.0);
        assert!((cosine_distance(&[1.0, 0.0], &[0.0, 1.0]) - 1.0).abs() < 1e-15);
    }
}
