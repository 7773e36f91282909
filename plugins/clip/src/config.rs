//! An architecture in numbers. Knows no tensors; [`read`] reads them from `config.json` in any of its spellings.

mod check;
mod known;
mod read;

use focus_nn::Activation;

/// How a checkpoint calls its tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// transformers' CLIP and SigLIP.
    Hub,
    /// OpenAI's CLIP and its heirs.
    OpenAi,
}

/// Blocks of one width.
#[derive(Debug, Clone, PartialEq)]
pub struct Stack {
    /// Width.
    pub dim: usize,
    /// Blocks.
    pub depth: usize,
    /// Heads; divides `dim`.
    pub heads: usize,
    /// Width of the feed-forward's middle.
    pub hidden: usize,
    /// Added to variances in norms.
    pub eps: f64,
    /// Of the feed-forward.
    pub activation: Activation,
}

/// The image side.
#[derive(Debug, Clone, PartialEq)]
pub enum Image {
    /// A vision transformer.
    Transformer(Vision),
    /// A ResNet, its features brought to length 1 before and after the projection (FLAIR).
    ResNet(ResNet),
}

/// A vision transformer of pictures of one size.
#[derive(Debug, Clone, PartialEq)]
pub struct Vision {
    /// Its blocks.
    pub stack: Stack,
    /// Side of a patch in pixels.
    pub patch: usize,
    /// Side of a picture in pixels.
    pub size: usize,
    /// How tokens become one vector.
    pub pool: ImagePool,
}

/// From patches to one vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImagePool {
    /// A class token, with a norm before the blocks, then a projection without bias (CLIP).
    Class,
    /// A learnt query attends to the patches (SigLIP's multi-head attention pooling). No class token, no projection.
    Map,
}

/// A ResNet of bottleneck blocks.
#[derive(Debug, Clone, PartialEq)]
pub struct ResNet {
    /// Channels of the stem.
    pub stem: usize,
    /// Narrow channels of each stage; its output has four times as many.
    pub planes: [usize; 4],
    /// Blocks of each stage.
    pub blocks: [usize; 4],
    /// Side of the square canvas in pixels.
    pub size: usize,
}

/// The text side.
#[derive(Debug, Clone, PartialEq)]
pub enum Text {
    /// CLIP's and SigLIP's own transformer.
    Transformer(TextTransformer),
    /// BERT, whose first token goes through a head of two maps (RET-CLIP).
    BertHeads(Bert),
    /// BERT, of which three hidden states are averaged over all places (FLAIR).
    BertMean(Bert),
}

/// CLIP's and SigLIP's text transformer.
#[derive(Debug, Clone, PartialEq)]
pub struct TextTransformer {
    /// Its blocks.
    pub stack: Stack,
    /// Rows of the token table.
    pub vocab: usize,
    /// Rows of the position table: the longest text.
    pub context: usize,
    /// Which place is the text's vector; also says whether places see later ones.
    pub pool: TextPool,
}

/// From places to one vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextPool {
    /// The first place of this token; places see earlier ones only.
    End(u32),
    /// The first place of the highest id, as OpenAI's code has it, whose end token has it; places see earlier ones only.
    Highest,
    /// The last place, padding or not; places see all others, padding too (SigLIP).
    Last,
}

impl TextPool {
    /// Whether places see earlier ones only.
    pub fn causal(self) -> bool {
        self != Self::Last
    }
}

/// BERT.
#[derive(Debug, Clone, PartialEq)]
pub struct Bert {
    /// Its blocks.
    pub stack: Stack,
    /// Rows of the token table.
    pub vocab: usize,
    /// Rows of the position table.
    pub places: usize,
    /// Rows of the segment table.
    pub segments: usize,
}

/// How the checkpoint turns cosines into logits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scaling {
    /// `exp(logit_scale)`.
    Exp,
    /// `exp(logit_scale)`, the exponent held in 0 to 4.6052 (FLAIR).
    ClampedExp,
    /// `exp(logit_scale)` and `logit_bias` added, both of one value (SigLIP).
    ExpBias,
}

/// A dual encoder.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// What its transformers' tensors are called.
    pub naming: Naming,
    /// Image side.
    pub image: Image,
    /// Text side.
    pub text: Text,
    /// Length of both vectors.
    pub embed_dim: usize,
    /// Cosines to logits.
    pub scaling: Scaling,
}

impl Config {
    /// Side of the square picture in pixels.
    pub fn size(&self) -> usize {
        match &self.image {
            Image::Transformer(vision) => vision.size,
            Image::ResNet(resnet) => resnet.size,
        }
    }

    /// Rows of the token table.
    pub fn vocab(&self) -> usize {
        match &self.text {
            Text::Transformer(text) => text.vocab,
            Text::BertHeads(bert) | Text::BertMean(bert) => bert.vocab,
        }
    }

    /// Most bytes of intermediate values an image takes.
    pub fn image_bytes(&self, dtype: focus_nn::DType) -> u64 {
        match &self.image {
            Image::Transformer(vision) => {
                let side = vision.size / vision.patch;
                let stack = &vision.stack;
                focus_nn::batch::transformer_bytes(
                    side * side + 1,
                    stack.dim,
                    stack.hidden,
                    stack.heads,
                    dtype,
                )
            }
            // The first stage is the widest: four maps of a quarter of the side, with room for patches of a convolution.
            Image::ResNet(resnet) => {
                let area = (resnet.size / 4) as u64 * (resnet.size / 4) as u64;
                4 * area
                    * (4 * resnet.planes[0] + 9 * resnet.stem) as u64
                    * dtype.size_in_bytes() as u64
            }
        }
    }

    /// Read a `config.json`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let config = read::parse(text)?;
        config.check()?;
        Ok(config)
    }

    /// Tensors that belong to the text side, as patterns of [`focus_nn::weights::load`].
    pub fn text_tensors(&self) -> &'static [&'static str] {
        match (&self.text, self.naming) {
            (Text::BertHeads(_), _) => &["bert.*", "text_projection*"],
            (Text::BertMean(_), _) => &["text_model.*"],
            (Text::Transformer(_), Naming::Hub) => &["text_model.*", "text_projection.weight"],
            (Text::Transformer(_), Naming::OpenAi) => &[
                "token_embedding.weight",
                "positional_embedding",
                "transformer.*",
                "ln_final.*",
                "text_projection",
            ],
        }
    }

    /// Tensors that belong to the image side.
    pub fn image_tensors(&self) -> &'static [&'static str] {
        match (&self.image, self.naming) {
            (Image::Transformer(_), Naming::OpenAi) => &["visual.*"],
            _ => &["vision_model.*", "visual_projection.weight"],
        }
    }

    /// Tensors of published checkpoints that neither side needs.
    pub fn unused_tensors(&self) -> &'static [&'static str] {
        match &self.text {
            // Maps of two eyes to one patient, scales of their losses, and a pooler that is never called.
            Text::BertHeads(_) => &[
                "global_feature_mapping.weight",
                "left_feature_mapping.weight",
                "right_feature_mapping.weight",
                "logit_scale_left",
                "logit_scale_right",
                "bert.pooler.*",
            ],
            Text::BertMean(_) => &["text_model.model.pooler.*"],
            // EyeCLIP is trained with a decoder of masked patches as well.
            Text::Transformer(_) if self.naming == Naming::OpenAi => {
                &["visual.decoder*", "visual.mask_token"]
            }
            Text::Transformer(_) => &[],
        }
    }

    /// The tensors of cosines to logits.
    pub fn scale_tensors(&self) -> &'static [&'static str] {
        &["logit_scale", "logit_bias"]
    }
}
