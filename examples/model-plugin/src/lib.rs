//! A template of a model plugin: mean and spread of each colour channel over a grid of cells, no weights.
//!
//! Copy the folder, rename the package, and change the three parts below: the card, `open`, and `encode`.
//!
//! * Paper: M. A. Stricker, M. Orengo, "Similarity of color images", SPIE 2420 (1995), doi:10.1117/12.205308 (colour moments).
//! * Reference code, weights: none.

#![forbid(unsafe_code)]

use focus_plugin_sdk::{
    Embeddings, Error, Family, Geometry, Group, Host, ImageBatch, ImageEncoder, InterfaceName,
    Model, ModelDescriptor, OpenOptions, OpenedModel, PixelMode, PreprocessingCard, ResizeFilter,
    deny_unknown_settings, opened,
};

/// Side of the input in pixels.
const EDGE: u32 = 64;
/// Cells along each side, unless the setting `grid` says otherwise.
const GRID: usize = 4;

/// The card: what the model is and how the host must prepare pixels for it.
fn card() -> ModelDescriptor {
    ModelDescriptor {
        id: "colour-moments".into(),
        title: "Mean and spread of colour over a grid".into(),
        family: Family::Vm,
        group: Group::Baseline,
        interfaces: vec![InterfaceName::ImageEncoder],
        preprocessing: PreprocessingCard {
            mode: PixelMode::Resized,
            width: EDGE,
            height: EDGE,
            geometry: Geometry::Squash,
            filter: ResizeFilter::Bilinear,
            mean: [0.0; 3],
            std: [1.0; 3],
        },
        // Depends on a setting, so it is not known before `open`.
        embedding_dim: None,
        dtypes: vec!["f32".into()],
        devices: vec!["cpu".into()],
        batch_size: 8,
        weight_files: Vec::new(),
        pretraining_datasets: Some(Vec::new()),
        weights_license: None,
        papers: vec!["M. A. Stricker, M. Orengo, Similarity of color images, SPIE 2420 (1995), doi:10.1117/12.205308".into()],
        reference_code: None,
        hub: None,
    }
}

/// Open the model. A model with weights reads them from `options.weights` here, and nowhere else.
fn open(options: &OpenOptions, host: &Host) -> Result<Box<dyn Model>, Error> {
    deny_unknown_settings(options, &["grid"])?;
    let grid = match options.settings.get("grid") {
        None => GRID,
        Some(text) => text
            .parse()
            .ok()
            .filter(|grid| (1..=16).contains(grid))
            .ok_or_else(|| {
                Error::invalid_request(format!("Setting `grid` must be 1 to 16, found `{text}`"))
            })?,
    };
    host.info(format!("{grid} x {grid} cells"));
    let mut opened = opened(&card(), options);
    opened.embedding_dim = (grid * grid * 6) as u32;
    Ok(Box::new(ColourMoments { grid, opened }))
}

struct ColourMoments {
    grid: usize,
    opened: OpenedModel,
}

impl Model for ColourMoments {
    fn opened(&self) -> OpenedModel {
        self.opened.clone()
    }

    fn image_encoder(&mut self) -> Option<&mut dyn ImageEncoder> {
        Some(self)
    }
}

impl ImageEncoder for ColourMoments {
    /// One row an image: for each cell, the channels' means, then their standard deviations, in units of pixel/255.
    fn encode(&mut self, images: &ImageBatch<'_>, host: &Host) -> Result<Embeddings, Error> {
        let mut values = Vec::with_capacity(images.used() * self.opened.embedding_dim as usize);
        for rgb in images.iter() {
            host.check_cancelled()?;
            for cell in 0..self.grid * self.grid {
                values.extend(moments(
                    rgb,
                    images.width(),
                    images.height(),
                    self.grid,
                    cell,
                ));
            }
        }
        Embeddings::new(self.opened.embedding_dim as usize, values)
    }
}

fn moments(rgb: &[u8], width: usize, height: usize, grid: usize, cell: usize) -> [f32; 6] {
    let span = |index: usize, length: usize| index * length / grid..(index + 1) * length / grid;
    let (rows, columns) = (span(cell / grid, height), span(cell % grid, width));
    let count = (rows.len() * columns.len()).max(1) as f64;
    let (mut sum, mut squares) = ([0.0; 3], [0.0; 3]);
    for y in rows {
        for pixel in
            rgb[(y * width + columns.start) * 3..(y * width + columns.end) * 3].chunks_exact(3)
        {
            for channel in 0..3 {
                let value = f64::from(pixel[channel]) / 255.0;
                sum[channel] += value;
                squares[channel] += value * value;
            }
        }
    }
    std::array::from_fn(|at| {
        let mean = sum[at % 3] / count;
        // Rounding can take a variance of nothing below zero.
        let value = if at < 3 {
            mean
        } else {
            (squares[at % 3] / count - mean * mean).max(0.0).sqrt()
        };
        value as f32
    })
}

focus_plugin_sdk::register_model! { describe: card, open: open }
focus_plugin_sdk::export_plugin! { name: "model-plugin", version: env!("CARGO_PKG_VERSION"), license: env!("CARGO_PKG_LICENSE") }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_image_has_its_colour_and_no_spread() {
        let pixels = [51, 102, 255].repeat(16);
        let found = moments(&pixels, 4, 4, 2, 3);
        assert_eq!(found[..3], [0.2, 0.4, 1.0]);
        assert!(found[3..].iter().all(|spread| *spread < 1e-6), "{found:?}");
    }

    #[test]
    fn the_model_answers_for_the_used_images() {
        let options = OpenOptions {
            model: "colour-moments".into(),
            device: "cpu".into(),
            dtype: None,
            weights: None,
            threads: 1,
            batch_size: None,
            settings: [("grid".to_owned(), "2".to_owned())].into(),
            network: Vec::new(),
        };
        let mut model = open(&options, &Host::detached()).expect("opens");
        let pixels = vec![9; 3 * 4 * 4 * 3];
        let batch = ImageBatch::new(&pixels, 4, 4, 2).expect("fits");
        let found = model
            .image_encoder()
            .expect("encodes images")
            .encode(&batch, &Host::detached())
            .expect("encodes");
        assert_eq!((found.rows(), found.dim()), (2, 24));
    }
}
