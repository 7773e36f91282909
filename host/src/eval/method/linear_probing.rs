//! The linear probe: L2-normalised embeddings, logistic regression with C = 1, fit on the training split
//! (focus-benchmark.md, section 4). Balanced as the paper has it, and unweighted beside it in the corrected track.

use super::{FitSummary, How, METHODS, Method, MethodInput, MethodOutput, Scored};
use crate::task::Track;
use focus_plugin_abi::v1::message::InterfaceName;
use focus_probe::{ProbeError, ProbeSpec};
use linkme::distributed_slice;

#[expect(unsafe_code, reason = "linkme places the element in a linker section")]
#[distributed_slice(METHODS)]
static BALANCED: Method = Method {
    id: "linear_probing",
    title: "Linear probe, balanced",
    order: 1,
    needs: InterfaceName::ImageEncoder,
    fits: true,
    tracks: &Track::ALL,
    how: How::Embeddings(|input| probe(input, &ProbeSpec::default())),
};

#[expect(unsafe_code, reason = "linkme places the element in a linker section")]
#[distributed_slice(METHODS)]
static UNWEIGHTED: Method = Method {
    id: "linear_probing_unweighted",
    title: "Linear probe, unweighted",
    order: 2,
    needs: InterfaceName::ImageEncoder,
    fits: true,
    tracks: &[Track::Corrected],
    how: How::Embeddings(|input| probe(input, &ProbeSpec::unweighted())),
};

fn probe(input: &MethodInput<'_>, spec: &ProbeSpec) -> Result<MethodOutput, ProbeError> {
    let fit = focus_probe::fit(input.train, input.train_labels, spec, input.device)?;
    let scored = |embeddings: &[f32]| -> Result<Vec<Scored>, ProbeError> {
        let scores = fit.scores(embeddings)?;
        // The decision is the logit's: a probability of exactly one half may be a rounded larger one.
        Ok(scores
            .iter()
            .map(|s| Scored {
                score: s.probability,
                predicted: s.logit > 0.0,
            })
            .collect())
    };
    Ok(MethodOutput {
        train: scored(input.train)?,
        test: scored(input.test)?,
        extra: Vec::new(),
        fit: Some(FitSummary {
            status: fit.status,
            iterations: fit.iterations as u64,
            gradient_norm: fit.gradient_norm,
            loss: fit.loss,
            n: fit.rows as u64,
            n_pos: fit.positives as u64,
            n_neg: fit.negatives as u64,
            zero_rows: fit.zero_rows as u64,
        }),
    })
}
