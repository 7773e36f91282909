//! Zero-shot classification of a dual encoder: which of a task's two sentences a photograph's embedding is nearer to. Nothing is fitted.
//!
//! As the benchmark has it, for every model whatever its own scale: logits are 100 times the cosine, the score is the softmax over the
//! two, the label is the larger; equal ones are negative. The model's own reading is kept beside it: raw cosines, the softmax under its
//! own scale, and for models trained pair by pair (SigLIP) each sentence's sigmoid.

use super::{How, METHODS, Method, MethodInput, MethodOutput, Scored};
use crate::task::Track;
use focus_plugin_abi::v1::message::InterfaceName;
use focus_probe::ProbeError;
use linkme::distributed_slice;

#[expect(unsafe_code, reason = "linkme places the element in a linker section")]
#[distributed_slice(METHODS)]
static ZERO_SHOT: Method = Method {
    id: "zero_shot",
    title: "Zero-shot",
    order: 3,
    needs: InterfaceName::DualEncoder,
    fits: false,
    tracks: &Track::ALL,
    how: How::Embeddings(classify),
};

/// Factor of every cosine.
const SCALE: f64 = 100.0;

#[expect(
    clippy::unnecessary_wraps,
    reason = "methods that fit may fail, and all have one shape"
)]
fn classify(input: &MethodInput<'_>) -> Result<MethodOutput, ProbeError> {
    let texts = input
        .texts
        .expect("methods of dual encoders are given the task's texts");
    let cosines: Vec<[f64; 2]> = input
        .test
        .chunks_exact(input.dim)
        .map(|image| [cosine(image, texts.negative), cosine(image, texts.positive)])
        .collect();
    let column = |value: &dyn Fn(&[f64; 2]) -> f64| cosines.iter().map(value).collect::<Vec<_>>();
    let mut extra = vec![
        ("cosine_negative", column(&|c| c[0])),
        ("cosine_positive", column(&|c| c[1])),
    ];
    if let Some(own) = texts.similarity {
        extra.push((
            "own_softmax",
            column(&|c| sigmoid(own.scale * (c[1] - c[0]))),
        ));
        if own.sigmoid {
            let alone = |cosine: f64| sigmoid(own.scale * cosine + own.bias);
            extra.push(("sigmoid_negative", column(&|c| alone(c[0]))));
            extra.push(("sigmoid_positive", column(&|c| alone(c[1]))));
        }
    }
    Ok(MethodOutput {
        train: Vec::new(),
        test: cosines
            .iter()
            .map(|[negative, positive]| Scored {
                // The softmax over two is the sigmoid of their difference.
                score: sigmoid(SCALE * (positive - negative)),
                predicted: positive > negative,
            })
            .collect(),
        extra,
        fit: None,
    })
}

/// Of vectors of any length; one of length 0 is like nothing, and has cosine 0.
fn cosine(image: &[f32], text: &[f64]) -> f64 {
    let (mut dot, mut images, mut texts) = (0.0, 0.0, 0.0);
    for (a, b) in image.iter().zip(text) {
        let a = f64::from(*a);
        dot += a * b;
        images += a * a;
        texts += b * b;
    }
    let norms = f64::sqrt(images) * f64::sqrt(texts);
    if norms > 0.0 { dot / norms } else { 0.0 }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::method::TextPair;
    use focus_plugin_abi::v1::message::Similarity;

    fn run(test: &[f32], similarity: Option<Similarity>) -> MethodOutput {
        let input = MethodInput {
            dim: 2,
            train: &[],
            train_labels: &[],
            test,
            texts: Some(TextPair {
                negative: &[0.0, 3.0],
                positive: &[2.0, 0.0],
                similarity,
            }),
            device: &focus_probe::Device::Cpu,
        };
        classify(&input).expect("nothing is fitted")
    }

    #[test]
    fn the_nearer_sentence_wins_and_equal_ones_are_negative() {
        // Nearer the positive sentence by far; by a little; as near to both; without direction.
        let found = run(&[5.0, 0.0, 0.8, 0.6, 1.0, 1.0, 0.0, 0.0], None);
        let labels: Vec<bool> = found.test.iter().map(|s| s.predicted).collect();
        assert_eq!(labels, [true, true, false, false]);
        let scores: Vec<f64> = found.test.iter().map(|s| s.score).collect();
        assert!((scores[0] - 1.0).abs() < 1e-12);
        // 1 / (1 + exp(-100 (0.8 - 0.6))); cosines of f32 values.
        assert!((scores[1] - 1.0 / (1.0 + (-20.0_f64).exp())).abs() < 1e-9);
        assert_eq!(scores[2..], [0.5, 0.5]);
        assert!(found.train.is_empty() && found.fit.is_none());
        let names: Vec<_> = found.extra.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["cosine_negative", "cosine_positive"]);
        assert!((found.extra[0].1[1] - 0.6).abs() < 1e-7);
        assert!((found.extra[1].1[1] - 0.8).abs() < 1e-7);
    }

    #[test]
    fn the_models_own_reading_stands_beside() {
        let own = Similarity {
            scale: 10.0,
            bias: -7.0,
            sigmoid: true,
        };
        let found = run(&[0.8, 0.6], Some(own));
        let value = |name: &str| {
            let column = found.extra.iter().find(|(other, _)| *other == name);
            column.unwrap_or_else(|| panic!("no `{name}`")).1[0]
        };
        // Of what f32 makes of 0.8 and 0.6, so to seven digits.
        for (name, wanted) in [
            ("own_softmax", 1.0 / (1.0 + (-2.0_f64).exp())),
            ("sigmoid_negative", 1.0 / (1.0 + 1.0_f64.exp())),
            ("sigmoid_positive", 1.0 / (1.0 + (-1.0_f64).exp())),
        ] {
            assert!((value(name) - wanted).abs() < 1e-6, "{name}");
        }
        // The benchmark's score does not look at it.
        assert_eq!(found.test, run(&[0.8, 0.6], None).test);
        let softmax = Similarity {
            sigmoid: false,
            ..own
        };
        assert_eq!(run(&[0.8, 0.6], Some(softmax)).extra.len(), 3);
    }

    #[test]
    fn extreme_values_stay_finite() {
        let own = Similarity {
            scale: 1e9,
            bias: 1e9,
            sigmoid: true,
        };
        let found = run(&[3e38, -3e38, -3e38, 3e38, 1e-38, 0.0], Some(own));
        assert!(found.test.iter().all(|s| (0.0..=1.0).contains(&s.score)));
        assert!(
            found
                .extra
                .iter()
                .flat_map(|(_, v)| v)
                .all(|v| v.is_finite())
        );
        let labels: Vec<bool> = found.test.iter().map(|s| s.predicted).collect();
        assert_eq!(labels, [true, false, true]);
    }
}
