//! What the two lines of CLIP call their tensors. Names only.

use crate::config::Naming;

/// Names of the parts of a block.
#[derive(Debug)]
pub(crate) struct BlockNames {
    pub(crate) norm1: &'static str,
    /// Queries, keys, values: three maps, or one in PyTorch's packed form (`in_proj_weight`, `in_proj_bias`).
    pub(crate) attention: &'static [&'static str],
    pub(crate) output: &'static str,
    pub(crate) norm2: &'static str,
    pub(crate) up: &'static str,
    pub(crate) down: &'static str,
}

/// Names of the image side, from the root.
#[derive(Debug)]
pub(crate) struct VisionNames {
    pub(crate) class: &'static str,
    pub(crate) patches: &'static str,
    pub(crate) positions: &'static str,
    pub(crate) norm_before: &'static str,
    pub(crate) blocks: &'static str,
    pub(crate) norm_after: &'static str,
    pub(crate) projection: Projection,
}

/// Names of the text side, from the root.
#[derive(Debug)]
pub(crate) struct TextNames {
    pub(crate) tokens: &'static str,
    pub(crate) positions: &'static str,
    pub(crate) blocks: &'static str,
    pub(crate) norm: &'static str,
    pub(crate) projection: Projection,
}

/// How a projection without bias is stored.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Projection {
    /// (out, in), applied as `x W^T`.
    Rows(&'static str),
    /// (in, out), applied as `x W`.
    Columns(&'static str),
}

impl Naming {
    pub(crate) fn block(self) -> &'static BlockNames {
        match self {
            Self::Hub => &HUB_BLOCK,
            Self::OpenAi => &OPENAI_BLOCK,
        }
    }

    pub(crate) fn vision(self) -> &'static VisionNames {
        match self {
            Self::Hub => &HUB_VISION,
            Self::OpenAi => &OPENAI_VISION,
        }
    }

    pub(crate) fn text(self) -> &'static TextNames {
        match self {
            Self::Hub => &HUB_TEXT,
            Self::OpenAi => &OPENAI_TEXT,
        }
    }
}

static HUB_BLOCK: BlockNames = BlockNames {
    norm1: "layer_norm1",
    attention: &["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
    output: "self_attn.out_proj",
    norm2: "layer_norm2",
    up: "mlp.fc1",
    down: "mlp.fc2",
};

static OPENAI_BLOCK: BlockNames = BlockNames {
    norm1: "ln_1",
    attention: &["attn"],
    output: "attn.out_proj",
    norm2: "ln_2",
    up: "mlp.c_fc",
    down: "mlp.c_proj",
};

static HUB_VISION: VisionNames = VisionNames {
    class: "vision_model.embeddings.class_embedding",
    patches: "vision_model.embeddings.patch_embedding",
    positions: "vision_model.embeddings.position_embedding.weight",
    // Misspelt in every published file.
    norm_before: "vision_model.pre_layrnorm",
    blocks: "vision_model.encoder.layers",
    norm_after: "vision_model.post_layernorm",
    projection: Projection::Rows("visual_projection.weight"),
};

static OPENAI_VISION: VisionNames = VisionNames {
    class: "visual.class_embedding",
    patches: "visual.conv1",
    positions: "visual.positional_embedding",
    norm_before: "visual.ln_pre",
    blocks: "visual.transformer.resblocks",
    norm_after: "visual.ln_post",
    projection: Projection::Columns("visual.proj"),
};

static HUB_TEXT: TextNames = TextNames {
    tokens: "text_model.embeddings.token_embedding.weight",
    positions: "text_model.embeddings.position_embedding.weight",
    blocks: "text_model.encoder.layers",
    norm: "text_model.final_layer_norm",
    projection: Projection::Rows("text_projection.weight"),
};

static OPENAI_TEXT: TextNames = TextNames {
    tokens: "token_embedding.weight",
    positions: "positional_embedding",
    blocks: "transformer.resblocks",
    norm: "ln_final",
    projection: Projection::Columns("text_projection"),
};
