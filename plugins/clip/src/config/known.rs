//! The published architectures. Data only.

use super::{
    Bert, Config, Image, ImagePool, Naming, ResNet, Scaling, Stack, Text, TextPool,
    TextTransformer, Vision,
};
use focus_nn::Activation;

impl Stack {
    /// `dim` wide, feed-forward four times as wide, heads of 64.
    fn plain(dim: usize, depth: usize, eps: f64, activation: Activation) -> Self {
        Self {
            dim,
            depth,
            heads: dim / 64,
            hidden: 4 * dim,
            eps,
            activation,
        }
    }
}

impl Config {
    /// OpenAI's CLIP ViT-B/32 under the hub's names.
    pub fn clip_base_32() -> Self {
        Self {
            naming: Naming::Hub,
            ..Self::openai_base_32()
        }
    }

    /// CLIP ViT-B/32 under OpenAI's names: EyeCLIP.
    pub fn openai_base_32() -> Self {
        let quick = |dim| Stack::plain(dim, 12, 1e-5, Activation::QuickGelu);
        Self {
            naming: Naming::OpenAi,
            image: Image::Transformer(Vision {
                stack: quick(768),
                patch: 32,
                size: 224,
                pool: ImagePool::Class,
            }),
            text: Text::Transformer(TextTransformer {
                stack: quick(512),
                vocab: 49408,
                context: 77,
                pool: TextPool::Highest,
            }),
            embed_dim: 512,
            scaling: Scaling::Exp,
        }
    }

    fn siglip(stack: Stack, patch: usize, size: usize, vocab: usize) -> Self {
        Self {
            naming: Naming::Hub,
            embed_dim: stack.dim,
            image: Image::Transformer(Vision {
                stack: stack.clone(),
                patch,
                size,
                pool: ImagePool::Map,
            }),
            text: Text::Transformer(TextTransformer {
                stack,
                vocab,
                context: 64,
                pool: TextPool::Last,
            }),
            scaling: Scaling::ExpBias,
        }
    }

    /// SigLIP 2 base, 224 pixels in patches of 16.
    pub fn siglip2_base_224() -> Self {
        let stack = Stack::plain(768, 12, 1e-6, Activation::GeluTanh);
        Self::siglip(stack, 16, 224, 256_000)
    }

    /// MedSigLIP: SigLIP's shape-optimised model, 448 pixels in patches of 14.
    pub fn medsiglip_448() -> Self {
        let stack = Stack {
            dim: 1152,
            depth: 27,
            heads: 16,
            hidden: 4304,
            eps: 1e-6,
            activation: Activation::GeluTanh,
        };
        Self::siglip(stack, 14, 448, 32_000)
    }

    /// RET-CLIP: ViT-B/16 and the Chinese RoBERTa.
    pub fn ret_clip() -> Self {
        Self {
            naming: Naming::OpenAi,
            image: Image::Transformer(Vision {
                stack: Stack::plain(768, 12, 1e-5, Activation::QuickGelu),
                patch: 16,
                size: 224,
                pool: ImagePool::Class,
            }),
            text: Text::BertHeads(Bert {
                stack: Stack::plain(768, 12, 1e-12, Activation::Gelu),
                vocab: 21_128,
                places: 512,
                segments: 2,
            }),
            embed_dim: 512,
            scaling: Scaling::Exp,
        }
    }

    /// FLAIR: ResNet-50 and Bio_ClinicalBERT.
    pub fn flair() -> Self {
        Self {
            naming: Naming::Hub,
            image: Image::ResNet(ResNet {
                stem: 64,
                planes: [64, 128, 256, 512],
                blocks: [3, 4, 6, 3],
                size: 512,
            }),
            text: Text::BertMean(Bert {
                stack: Stack::plain(768, 12, 1e-12, Activation::Gelu),
                vocab: 28_996,
                places: 512,
                segments: 2,
            }),
            embed_dim: 512,
            scaling: Scaling::ClampedExp,
        }
    }

    /// The same architecture at toy size.
    #[must_use]
    pub fn tiny(self) -> Self {
        let small = |stack: Stack| Stack {
            dim: 32,
            depth: 2,
            heads: 2,
            hidden: 64,
            ..stack
        };
        let bert = |bert: Bert| Bert {
            stack: small(bert.stack),
            vocab: 64,
            places: 64,
            ..bert
        };
        Self {
            image: match self.image {
                Image::Transformer(vision) => Image::Transformer(Vision {
                    stack: small(vision.stack),
                    size: 2 * vision.patch,
                    ..vision
                }),
                Image::ResNet(_) => Image::ResNet(ResNet {
                    stem: 8,
                    planes: [4, 8, 12, 16],
                    blocks: [2, 1, 1, 1],
                    size: 64,
                }),
            },
            text: match self.text {
                Text::Transformer(text) => Text::Transformer(TextTransformer {
                    stack: small(text.stack),
                    vocab: 64,
                    pool: match text.pool {
                        TextPool::End(_) => TextPool::End(63),
                        other => other,
                    },
                    ..text
                }),
                Text::BertHeads(inner) => Text::BertHeads(bert(inner)),
                Text::BertMean(inner) => Text::BertMean(bert(inner)),
            },
            embed_dim: 32,
            ..self
        }
    }
}
