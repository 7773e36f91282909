//! The known models: literature, licence, what the host must do. Data only.

use focus_plugin_sdk::{
    Family, Geometry, Group, HubSource, InterfaceName, ModelDescriptor, PixelMode,
    PreprocessingCard, ResizeFilter,
};

/// Qwen3-VL with 8 billion parameters, trained to follow instructions.
pub const QWEN3_VL_8B: &str = "Qwen/Qwen3-VL-8B-Instruct";
/// Any checkpoint of the architecture.
pub const CHECKPOINT: &str = "checkpoint";

/// Groups in one call.
const BATCH: u32 = 4;

/// The card of [`QWEN3_VL_8B`].
pub fn qwen3_vl_8b() -> ModelDescriptor {
    ModelDescriptor {
        id: QWEN3_VL_8B.into(),
        title: "Qwen3-VL 8B Instruct".into(),
        // The index names the shards; small files beside them count too.
        weight_files: vec!["model.safetensors.index.json".into(), "config.json".into()],
        weights_license: Some("Apache-2.0".into()),
        hub: Some(HubSource {
            repository: QWEN3_VL_8B.into(),
            revision: None,
            gated: false,
        }),
        ..checkpoint()
    }
}

/// The card of [`CHECKPOINT`].
pub fn checkpoint() -> ModelDescriptor {
    let owned = |words: &[&str]| words.iter().map(|&w| w.to_owned()).collect::<Vec<_>>();
    ModelDescriptor {
        id: CHECKPOINT.into(),
        title: "Any dense Qwen3-VL, by the files in its folder".into(),
        family: Family::Mllm,
        group: Group::General,
        interfaces: vec![InterfaceName::Generator, InterfaceName::LoraAdaptable],
        preprocessing: PreprocessingCard {
            mode: PixelMode::Own,
            width: 0,
            height: 0,
            geometry: Geometry::Squash,
            filter: ResizeFilter::Bicubic,
            mean: [0.5; 3],
            std: [0.5; 3],
        },
        embedding_dim: None,
        // As published, and as the published benchmark runs it; f32 is faster on processors without products of bf16.
        dtypes: owned(&["bf16", "f32"]),
        devices: if cfg!(feature = "cuda") {
            owned(&["cuda", "cpu"])
        } else {
            owned(&["cpu"])
        },
        batch_size: BATCH,
        // Shards differ from size to size, and all else in the folder decides the results too: the host takes every file into account.
        weight_files: Vec::new(),
        pretraining_datasets: None,
        weights_license: None,
        papers: owned(&[
            "Bai, Cai, Chen et al. Qwen3-VL technical report. 2025. arXiv:2511.21631",
            "Meng, Yang, Tian et al. DeepStack: deeply stacking visual tokens is surprisingly simple and effective for LMMs. NeurIPS 2024. arXiv:2406.04334",
        ]),
        reference_code: Some("https://github.com/QwenLM/Qwen3-VL".into()),
        hub: None,
    }
}
