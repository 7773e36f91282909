//! The image side of any family.

use super::resnet::ResNet;
use super::vision::VisionTransformer;
use super::{projection, unit};
use crate::config::{Config, Image};
use crate::names::Projection;
use focus_nn::candle::Result;
use focus_nn::{Linear, LoadError, Tensor, Weights};

/// Pictures to vectors.
#[expect(
    clippy::large_enum_variant,
    reason = "one of them a model: a box would buy nothing"
)]
#[derive(Debug, Clone)]
pub enum ImageTower {
    /// A vision transformer.
    Transformer(VisionTransformer),
    /// A ResNet, its features brought to length 1 before the projection and after it.
    ResNet(ResNet, Linear),
}

impl ImageTower {
    /// Claim the weights, `weights` being the root.
    pub fn load(config: &Config, weights: &Weights) -> std::result::Result<Self, LoadError> {
        Ok(match &config.image {
            Image::Transformer(vision) => Self::Transformer(VisionTransformer::load(
                vision,
                config.naming,
                config.embed_dim,
                weights,
            )?),
            Image::ResNet(resnet) => {
                let stored =
                    Projection::Rows("vision_model.projection_head_vision.projection.weight");
                let features = 4 * resnet.planes[3];
                Self::ResNet(
                    ResNet::load(resnet, &weights.at("vision_model.model"))?,
                    projection(weights, stored, features, config.embed_dim)?,
                )
            }
        })
    }

    /// Pictures (batch, 3, size, size), prepared, to vectors (batch, embed_dim): of length 1 where the model itself makes them so.
    pub fn forward(&self, pixels: &Tensor) -> Result<Tensor> {
        match self {
            Self::Transformer(tower) => tower.forward(pixels),
            Self::ResNet(tower, projection) => {
                unit(&projection.forward(&unit(&tower.forward(pixels)?)?)?)
            }
        }
    }
}
