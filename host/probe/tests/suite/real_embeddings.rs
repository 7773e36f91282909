//! Agreement with scikit-learn on embeddings of real photographs (`data/real_embeddings.py` made the values).

use focus_probe::{Device, ProbeSpec, Status, fit};
use serde::Deserialize;

#[derive(Deserialize)]
struct Reference {
    dim: usize,
    train_labels: Vec<bool>,
    test: usize,
    balanced: Scores,
    unweighted: Scores,
}

#[derive(Deserialize)]
struct Scores {
    gradient_norm: f64,
    scores: Vec<f64>,
}

#[test]
fn scores_agree_with_scikit_learn_on_real_embeddings() {
    let reference: Reference =
        serde_json::from_str(include_str!("../data/real_embeddings.json")).unwrap();
    let values: Vec<f32> = include_bytes!("../data/real_embeddings.f32")
        .chunks_exact(4)
        .map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
        .collect();
    let rows = reference.train_labels.len();
    assert_eq!(values.len(), (rows + reference.test) * reference.dim);
    let (train, test) = values.split_at(rows * reference.dim);
    for (spec, expected) in [
        (ProbeSpec::default(), &reference.balanced),
        (ProbeSpec::unweighted(), &reference.unweighted),
    ] {
        assert!(
            expected.gradient_norm < 1e-8,
            "the reference is no optimum: {}",
            expected.gradient_norm
        );
        let fit = fit(train, &reference.train_labels, &spec, &Device::Cpu).unwrap();
        assert_eq!(fit.status, Status::Converged);
        assert!(fit.gradient_norm <= 1e-10, "{}", fit.gradient_norm);
        let scores = fit.scores(test).unwrap();
        assert_eq!(scores.len(), expected.scores.len());
        for (score, expected) in scores.iter().zip(&expected.scores) {
            assert!(
                (score.probability - expected).abs() < 1e-8,
                "{} against {expected}",
                score.probability
            );
        }
    }
}
