//! The raw features of one photograph: a pure function. Knows nothing of plugins, batches or the probe.

use crate::sink::Sink;
use crate::{disc, feature, field, frame, pyramid};

/// What was found in a photograph.
pub struct Analysis {
    /// Raw features, in the order of [`names`]. Always finite, always the same number of them.
    pub features: Vec<f32>,
    /// Centre of the circular field, pixels of the picture.
    pub field: (f32, f32),
    /// Radius of the field, pixels of the picture.
    pub radius: f32,
    /// Centre of the optic disc, pixels of the picture.
    pub disc: (f32, f32),
    /// Centre of the fovea as guessed from field and disc, pixels of the picture.
    pub fovea: (f32, f32),
}

/// Analyses an RGB picture, `width * height * 3` bytes, row-major.
///
/// # Panics
/// When there are no pixels or their number does not fit the size.
pub fn analyse(rgb: &[u8], width: usize, height: usize) -> Analysis {
    let mut sink = Sink::new(false);
    let (field, found) = fill(rgb, width, height, &mut sink);
    let middle = 0.5 * (frame::SIDE as f32 - 1.0);
    let scale = field.radius / frame::RADIUS;
    let back = |(x, y): (f32, f32)| {
        (
            field.centre.0 + (x - middle) * scale,
            field.centre.1 + (y - middle) * scale,
        )
    };
    let (disc, fovea) = (back(found.disc), back(found.fovea));
    Analysis {
        features: sink.values(),
        field: field.centre,
        radius: field.radius,
        disc,
        fovea,
    }
}

/// The raw features' names, in order.
pub fn names() -> Vec<String> {
    let mut sink = Sink::new(true);
    fill(&[0; 3 * 64], 8, 8, &mut sink);
    sink.names()
}

fn fill(
    rgb: &[u8],
    width: usize,
    height: usize,
    sink: &mut Sink,
) -> (field::Field, disc::Landmarks) {
    assert!(
        width > 0 && height > 0 && rgb.len() == width * height * 3,
        "{} bytes for {width} x {height}",
        rgb.len()
    );
    let field = field::detect(rgb, width, height);
    let frame = frame::Frame::new(rgb, width, height, &field);
    let landmarks = disc::locate(&frame, &feature::blob::vessels(&frame.contrast));
    let levels = pyramid::build(&frame, &landmarks);
    feature::blob::extract(&levels, frame.spread, sink);
    feature::pattern::extract(&levels, sink);
    feature::colour::extract(&frame, &landmarks, sink);
    feature::nerve::extract(&frame, &landmarks, sink);
    (field, landmarks)
}
