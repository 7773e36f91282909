//! The plugin's face: descriptor, opening, and a batch of images shared out to threads. Knows nothing of the features.

use crate::extract::analyse;
use crate::scaling::{DIM, embed};
use focus_plugin_sdk::{
    Embeddings, Error, Family, Geometry, Group, Host, ImageBatch, ImageEncoder, InterfaceName,
    Model, ModelDescriptor, OpenOptions, OpenedModel, PixelMode, PreprocessingCard, ResizeFilter,
    deny_unknown_settings, opened,
};
use std::sync::atomic::{AtomicUsize, Ordering};

// The long side of an IDRiD photograph in the project's data; finer microaneurysms are lost below it.
const SIDE: u32 = 768;

const PAPERS: [&str; 8] = [
    "Ojala, Pietikäinen, Mäenpää. Multiresolution gray-scale and rotation invariant texture classification with local binary patterns. IEEE TPAMI 2002. doi:10.1109/TPAMI.2002.1017623",
    "Niemeijer, van Ginneken, Staal, Suttorp-Schulten, Abràmoff. Automatic detection of red lesions in digital color fundus photographs. IEEE TMI 2005. doi:10.1109/TMI.2005.843738",
    "Walter, Massin, Erginay, Ordonez, Jeulin, Klein. Automatic detection of microaneurysms in color fundus images. Medical Image Analysis 2007. doi:10.1016/j.media.2007.05.001",
    "Walter, Klein, Massin, Erginay. A contribution of image processing to the diagnosis of diabetic retinopathy: detection of exudates in color fundus images. IEEE TMI 2002. doi:10.1109/TMI.2002.806290",
    "Frangi, Niessen, Vincken, Viergever. Multiscale vessel enhancement filtering. MICCAI 1998. doi:10.1007/BFb0056195",
    "Lindeberg. Feature detection with automatic scale selection. IJCV 1998. doi:10.1023/A:1008045108935",
    "Foracchia, Grisan, Ruggeri. Luminosity and contrast normalization in retinal images. Medical Image Analysis 2005. doi:10.1016/j.media.2004.07.001",
    "Hoover, Goldbaum. Locating the optic nerve in a retinal image using the fuzzy convergence of the blood vessels. IEEE TMI 2003. doi:10.1109/TMI.2003.815900",
];

/// The model's card.
pub fn descriptor() -> ModelDescriptor {
    ModelDescriptor {
        id: "handcrafted".to_owned(),
        title: "Handcrafted retinal features, no weights; scaling constants from IDRiD's training photographs".to_owned(),
        family: Family::Vm,
        group: Group::Baseline,
        interfaces: vec![InterfaceName::ImageEncoder],
        preprocessing: PreprocessingCard {
            mode: PixelMode::Resized,
            width: SIDE,
            height: SIDE,
            geometry: Geometry::Fit,
            filter: ResizeFilter::Bilinear,
            mean: [0.0; 3],
            std: [1.0; 3],
        },
        embedding_dim: Some(DIM as u32),
        dtypes: vec!["f32".to_owned()],
        devices: vec!["cpu".to_owned()],
        batch_size: 16,
        weight_files: Vec::new(),
        // Features were checked and scaled on IDRiD's training split; its test split had no part in it.
        pretraining_datasets: Some(vec!["idrid-train".to_owned()]),
        weights_license: None,
        papers: PAPERS.map(str::to_owned).to_vec(),
        reference_code: None,
        hub: None,
    }
}

/// Opens the model.
pub fn open(options: &OpenOptions, _host: &Host) -> Result<Box<dyn Model>, Error> {
    deny_unknown_settings(options, &[])?;
    Ok(Box::new(Handcrafted {
        opened: opened(&descriptor(), options),
        threads: options.threads.max(1) as usize,
    }))
}

struct Handcrafted {
    opened: OpenedModel,
    threads: usize,
}

impl Model for Handcrafted {
    fn opened(&self) -> OpenedModel {
        self.opened.clone()
    }

    fn image_encoder(&mut self) -> Option<&mut dyn ImageEncoder> {
        Some(self)
    }
}

impl ImageEncoder for Handcrafted {
    fn encode(&mut self, images: &ImageBatch<'_>, host: &Host) -> Result<Embeddings, Error> {
        let rows = encode(images, self.threads, || host.cancelled());
        Embeddings::new(DIM, rows.ok_or_else(Error::cancelled)?)
    }
}

// Embeddings with the row each belongs to: threads finish in any order.
type Rows = Vec<(usize, Vec<f32>)>;

// Each image is worked on by one thread alone, so that the number of threads cannot show in the values. `None` when cancelled.
fn encode(
    images: &ImageBatch<'_>,
    threads: usize,
    cancelled: impl Fn() -> bool + Sync,
) -> Option<Vec<f32>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut rows = Rows::new();
        while !cancelled() {
            let row = next.fetch_add(1, Ordering::Relaxed);
            if row >= images.used() {
                return Some(rows);
            }
            rows.push((
                row,
                embed(&analyse(images.image(row), images.width(), images.height()).features),
            ));
        }
        None
    };
    let threads = threads.clamp(1, images.used().max(1));
    let parts: Vec<Option<Rows>> = if threads == 1 {
        vec![work()]
    } else {
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            // A panic goes on in the calling thread, where the plugin's barrier catches it.
            workers
                .into_iter()
                .map(|w| {
                    w.join()
                        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                })
                .collect()
        })
    };
    let mut values = vec![0.0; images.used() * DIM];
    for (row, embedding) in parts
        .into_iter()
        .collect::<Option<Vec<_>>>()?
        .into_iter()
        .flatten()
    {
        values[row * DIM..][..DIM].copy_from_slice(&embedding);
    }
    Some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch() -> Vec<u8> {
        let config = focus_synth::Config {
            size: 128,
            ..focus_synth::Config::default()
        };
        (0..5)
            .flat_map(|i| focus_synth::generate(&config, i).rgb)
            .collect()
    }

    #[test]
    fn values_do_not_depend_on_threads_or_neighbours() {
        let pixels = batch();
        let images = ImageBatch::new(&pixels, 128, 128, 5).unwrap();
        let one = encode(&images, 1, || false).unwrap();
        for threads in [2, 3, 64] {
            assert_eq!(
                encode(&images, threads, || false).unwrap(),
                one,
                "{threads} threads"
            );
        }
        let alone = ImageBatch::new(images.image(3), 128, 128, 1).unwrap();
        assert_eq!(encode(&alone, 1, || false).unwrap(), one[3 * DIM..4 * DIM]);
        assert_ne!(one[..DIM], one[DIM..2 * DIM]);
    }

    #[test]
    fn padding_is_not_computed_and_cancelling_stops() {
        let pixels = batch();
        let images = ImageBatch::new(&pixels, 128, 128, 2).unwrap();
        assert_eq!(encode(&images, 2, || false).unwrap().len(), 2 * DIM);
        assert_eq!(
            encode(&ImageBatch::new(&pixels, 128, 128, 0).unwrap(), 2, || false)
                .unwrap()
                .len(),
            0
        );
        assert!(encode(&images, 2, || true).is_none());
    }

    #[test]
    fn the_card_says_what_it_is() {
        let card = descriptor();
        assert_eq!(
            (card.family, card.group, card.embedding_dim),
            (Family::Vm, Group::Baseline, Some(DIM as u32))
        );
        assert!(card.papers.iter().all(|paper| paper.contains("doi:")));
        assert!(card.weight_files.is_empty() && card.title.contains("IDRiD"));
    }
}
