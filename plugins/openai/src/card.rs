//! The one model's card. Data only.

use focus_plugin_sdk::{
    Family, Geometry, Group, InterfaceName, ModelDescriptor, PixelMode, PreprocessingCard,
    ResizeFilter,
};

/// Its id.
pub const MODEL: &str = "chat-completions";

/// Whatever the server serves. Number type and device are the server's: `served` says so in place of a type.
pub fn descriptor() -> ModelDescriptor {
    ModelDescriptor {
        id: MODEL.into(),
        title: "A model behind OpenAI-compatible chat completions".into(),
        family: Family::Mllm,
        group: Group::General,
        interfaces: vec![InterfaceName::Generator],
        // The full picture goes out; sizes and filter say nothing in this mode.
        preprocessing: PreprocessingCard {
            mode: PixelMode::Own,
            width: 0,
            height: 0,
            geometry: Geometry::Squash,
            filter: ResizeFilter::Bicubic,
            mean: [0.0; 3],
            std: [1.0; 3],
        },
        embedding_dim: None,
        dtypes: vec!["served".into()],
        devices: vec!["cpu".into()],
        batch_size: crate::settings::CONCURRENCY,
        weight_files: Vec::new(),
        pretraining_datasets: None,
        weights_license: None,
        papers: Vec::new(),
        reference_code: Some("https://platform.openai.com/docs/api-reference/chat".into()),
        hub: None,
    }
}
