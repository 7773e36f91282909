//! Schematic colour fundus photographs with exact truth: the embedded default dataset and the tests' data.
//!
//! Owns the drawing, the truth behind it and the folder layout that the `synthetic` mapper reads.
//! Knows nothing of models, tasks or metrics. Everything but `dataset` is a pure function of a [`Config`] and an index:
//! the same bytes on every platform, since only IEEE additions, multiplications, divisions and square roots are used.
//!
//! Rooms: [`config`], [`camera`], [`group`] what is asked for; `random` and `maths` portable building blocks; `cohort` who
//! the patients are; `anatomy` and `optic` where disc, cup, fovea and field lie; `vessels` the tree; `lesions` where disease
//! shows; `canvas` layers; `stamp` lesions on them; `paint` layers to light; `expose` light to pixels; [`mask`] and
//! [`truth`] what is known of a picture; [`sheet`] many pictures on one; `encode` PNG; `table` rows; `tally` the digest of a
//! folder; [`dataset`] files.

#![forbid(unsafe_code)]

mod anatomy;
pub mod camera;
mod canvas;
mod cohort;
pub mod config;
pub mod dataset;
mod encode;
mod expose;
pub mod group;
mod lesions;
pub mod mask;
mod maths;
mod optic;
mod paint;
mod random;
pub mod sheet;
mod stamp;
mod table;
mod tally;
pub mod truth;
mod vessels;

pub use camera::Camera;
pub use cohort::GON_RATIO;
pub use config::{Config, ConfigError};
pub use dataset::{Error, Summary, write_dataset, write_dataset_with};
pub use encode::{encode_mask, encode_png};
pub use group::{GroupEffect, LabelNoise, NoiseIn, NoiseKind, Population, Target};
pub use mask::{MASK_KINDS, Mask};
pub use sheet::{Picture, contact_sheet};
pub use table::COLUMNS;
pub use truth::{Eye, Labels, Laterality, Lesion, LesionKind, Quality, Sex, Split, Truth};

/// Version of the drawing. Raised whenever any picture or truth of any seed changes, so that older folders are redrawn.
pub const GENERATOR_VERSION: u32 = 2;

/// Draws one eye: picture, masks and truth. Any index below [`Config::images`] may be asked for, in any order; patient
/// `index / 2`, right eye first.
///
/// # Panics
/// When `index` is not below [`Config::images`] or the config does not pass [`Config::check`].
pub fn generate(config: &Config, index: u32) -> Eye {
    assert!(
        index < config.images(),
        "index {index} out of {} images",
        config.images()
    );
    if let Err(error) = config.check() {
        panic!("{error}");
    }
    let case = cohort::case(config, index);
    let anatomy = anatomy::Anatomy::draw(config, &case);
    let optic = optic::Optic::draw(&case, &anatomy);
    let tree = vessels::draw(&case, &anatomy);
    let marks = lesions::place(&case, &anatomy, &tree.arcade);
    let stamps = stamp::stamp(&anatomy, &marks);
    let planes = paint::paint(&case, &anatomy, &optic, &tree, &stamps);
    let rgb = expose::expose(&case, &anatomy, &config.cameras[case.camera], planes);
    let lesions = lesions::told(&marks, &stamps.bounds);
    let masks = mask::masks(&anatomy, &optic, &tree, stamps);
    Eye {
        truth: truth::assemble(config, &case, &anatomy, &optic, lesions, &masks),
        rgb,
        masks,
    }
}
