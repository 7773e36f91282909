//! Schematic colour fundus photographs with exact truth: the embedded default dataset and the tests' data.
//!
//! Owns the drawing, the truth behind it and the folder layout that the `synthetic` mapper reads.
//! Knows nothing of models, tasks or metrics. Everything but `dataset` is a pure function of a [`Config`] and an index:
//! the same bytes on every platform, since only IEEE additions, multiplications, divisions and square roots are used.
//!
//! Rooms: [`config`] what is asked for; `random` and `maths` portable building blocks; `cohort` who the patients are;
//! `anatomy` where disc, fovea and field lie; `vessels` the tree; `lesions` where disease shows; `canvas` the layers;
//! `render` layers to pixels; [`truth`] what is known of a picture; [`sheet`] many pictures on one; [`dataset`] files.

#![forbid(unsafe_code)]

mod anatomy;
mod canvas;
mod cohort;
pub mod config;
pub mod dataset;
mod lesions;
mod maths;
mod random;
mod render;
pub mod sheet;
pub mod truth;
mod vessels;

pub use config::Config;
pub use dataset::{Error, Summary, write_dataset};
pub use sheet::{Picture, contact_sheet, encode_png};
pub use truth::{Eye, Laterality, Lesion, LesionKind, Quality, Sex, Split, Truth};

/// Version of the drawing. Raised whenever any picture or truth of any seed changes, so that older folders are redrawn.
pub const GENERATOR_VERSION: u32 = 1;

/// Draws one eye: picture and truth. Any index below [`Config::images`] may be asked for, in any order; patient
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
    let tree = vessels::draw(&case, &anatomy);
    let marks = lesions::place(&case, &anatomy);
    let rgb = render::render(&case, &anatomy, &tree, &marks);
    Eye {
        rgb,
        truth: truth::assemble(config, &case, &anatomy, &marks),
    }
}
