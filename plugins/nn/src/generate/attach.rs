//! Attaching an adapter and proving that it changes what the model says.

use super::serve::{first_logits, not_finite};
use super::{Family, lora};
use focus_plugin_sdk::{AttachReply, AttachRequest, Error, Host, Picture};
use std::path::Path;

/// Asked about the picture that proves an adapter.
const QUESTION: &str = "What does this picture show?";

/// Attach, or change nothing. An adapter that leaves every first-token logit as it was is refused: nothing that it holds reached the
/// network.
pub fn attach(
    family: &mut dyn Family,
    request: &AttachRequest,
    host: &Host,
) -> Result<AttachReply, Error> {
    let (width, height) = family.probe_size();
    let rgb = drawn(width, height);
    let picture = Picture {
        width,
        height,
        rgb: &rgb,
    };
    family.adapters().select(None).map_err(lora)?;
    let base = first_logits(family, &picture, QUESTION)?;
    // Before anything is attached: the adapter is not at fault.
    if !base.iter().all(|logit| logit.is_finite()) {
        return Err(not_finite());
    }
    host.check_cancelled()?;
    let attached = crate::lora::attach(&mut *family, &request.name, Path::new(&request.folder));
    let attached = attached.map_err(lora)?;
    let changed = family
        .adapters()
        .select(Some(&request.name))
        .map_err(lora)
        .and_then(|()| first_logits(family, &picture, QUESTION))
        .and_then(|adapted| change(&base, &adapted, &request.name));
    let probe_change = match changed {
        Ok(change) => change,
        Err(error) => {
            crate::lora::detach(&mut *family, &request.name).map_err(lora)?;
            return Err(error);
        }
    };
    family.adapters().select(None).map_err(lora)?;
    Ok(AttachReply {
        name: request.name.clone(),
        digest: attached.digest,
        ranks: attached.ranks,
        scales: attached.scales,
        targets: attached.targets,
        modules_to_save: attached.replaced,
        base: attached.base,
        probe_change,
        notes: attached.notes,
    })
}

/// Forget an adapter.
pub fn detach(family: &mut dyn Family, name: &str) -> Result<(), Error> {
    crate::lora::detach(&mut *family, name).map_err(lora)
}

fn change(base: &[f32], adapted: &[f32], name: &str) -> Result<f64, Error> {
    // Not left to the change: a maximum forgets what is no number.
    if let Some(odd) = adapted.iter().find(|logit| !logit.is_finite()) {
        return Err(Error::weights(format!(
            "Adapter `{name}` spoils the logits: expected finite ones on a probe picture, found {odd}"
        )));
    }
    let change = base
        .iter()
        .zip(adapted)
        .map(|(a, b)| (f64::from(*a) - f64::from(*b)).abs())
        .fold(0.0, f64::max);
    if change == 0.0 {
        return Err(Error::weights(format!(
            "Adapter `{name}` changes nothing: expected other logits than the base's on a probe picture, found the same"
        ))
        .with_hint("An adapter saved before training has zeros in every `lora_B`"));
    }
    Ok(change)
}

/// A disc on a dark ground with slopes of colour: every patch differs.
fn drawn(width: usize, height: usize) -> Vec<u8> {
    let mut rgb = Vec::with_capacity(width * height * 3);
    for y in 0..height {
        for x in 0..width {
            let (u, v) = (x * 255 / width.max(1), y * 255 / height.max(1));
            let inside = u.abs_diff(128).pow(2) + v.abs_diff(128).pow(2) < 120 * 120;
            let (r, g) = if inside {
                (255 - u / 2, v / 2)
            } else {
                (u / 8, v / 8)
            };
            rgb.extend([r as u8, g as u8, (u ^ v) as u8 / 4]);
        }
    }
    rgb
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_the_largest_and_finite() {
        let base = [1.0, -2.0, 0.5];
        assert_eq!(change(&base, &[1.0, -1.5, 0.25], "x").unwrap(), 0.5);
        let said = |adapted: &[f32]| change(&base, adapted, "x").unwrap_err().to_string();
        assert!(said(&base).contains("changes nothing"));
        for odd in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            // First or last, and whatever the others do.
            for adapted in [[odd, 9.0, 9.0], [9.0, 9.0, odd], [odd, -2.0, 0.5]] {
                assert!(
                    said(&adapted).contains("`x` spoils the logits"),
                    "{adapted:?}"
                );
            }
        }
        // Far apart, yet both finite.
        assert!(change(&[f32::MIN], &[f32::MAX], "x").unwrap().is_finite());
    }
}
