//! The known model: literature, licence, files, preprocessing. Data only.

use focus_plugin_sdk::{
    Family, Geometry, Group, InterfaceName, ModelDescriptor, PixelMode, PreprocessingCard,
    ResizeFilter,
};

/// The model's name.
pub const ID: &str = "efficientnet-lite0";

/// The file as published, inside the package.
pub const FILE: &str = "efficientnet-lite0-57934424.pth";

/// Images in one call.
const BATCH: u32 = 8;

/// The evaluation of TensorFlow's reference: the middle 224/256 of the short side at 224 pixels, bicubic; 127 off each value of 0 to
/// 255, over 128. (The reference resizes the crop; here the picture is resized, then cropped, with the same scale.)
pub fn preprocessing() -> PreprocessingCard {
    PreprocessingCard {
        mode: PixelMode::Resized,
        width: 224,
        height: 224,
        geometry: Geometry::ShortestEdgeCrop { edge: 256 },
        filter: ResizeFilter::Bicubic,
        mean: [127.0 / 255.0; 3],
        std: [128.0 / 255.0; 3],
    }
}

/// As the host sees it.
pub fn descriptor() -> ModelDescriptor {
    ModelDescriptor {
        id: ID.into(),
        title: "EfficientNet-Lite0, supervised on ImageNet-1k, 224 pixels".into(),
        family: Family::Vm,
        group: Group::General,
        interfaces: vec![InterfaceName::ImageEncoder],
        preprocessing: preprocessing(),
        embedding_dim: Some(1280),
        dtypes: vec!["f32".into()],
        devices: vec!["cpu".into()],
        batch_size: BATCH,
        weight_files: vec![FILE.into()],
        pretraining_datasets: Some(vec!["imagenet-1k".into()]),
        weights_license: Some("Apache-2.0".into()),
        papers: vec![
            "Tan and Le. EfficientNet: rethinking model scaling for convolutional neural networks. ICML 2019. arXiv:1905.11946".into(),
        ],
        reference_code: Some(
            "https://github.com/ml-illustrated/EfficientNet-Lite-PyTorch".into(),
        ),
        hub: None,
    }
}
