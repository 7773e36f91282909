//! What each library calls the tensors of a vision transformer. Names only.

/// A way of naming.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// transformers' ViT.
    Vit,
    /// transformers' DINOv2, with or without registers.
    Dinov2,
    /// transformers' DINOv3.
    Dinov3,
    /// timm's vision transformer, whose names MAE, iBOT, DINOv2's own code and RETFound share.
    Timm,
}

/// Names of the parts; those of a block are below the block's own.
#[derive(Debug)]
pub struct Names {
    /// The class token, (1, 1, dim).
    pub cls: &'static str,
    /// Register tokens, (1, count, dim).
    pub registers: &'static str,
    /// The position table, (1, places, dim).
    pub positions: &'static str,
    /// Patch embedding.
    pub patches: &'static str,
    /// What precedes a block's number.
    pub block: &'static str,
    /// Norm before attention.
    pub norm1: &'static str,
    /// Queries, keys, values: one name when packed, else three.
    pub attention: &'static [&'static str],
    /// Attention's output.
    pub output: &'static str,
    /// Layer scale after attention, the tensor itself.
    pub scale1: &'static str,
    /// Norm before the feed-forward.
    pub norm2: &'static str,
    /// Feed-forward, widening.
    pub up: &'static str,
    /// Feed-forward, narrowing.
    pub down: &'static str,
    /// Feed-forward, the gate; packed with `up` where the name is the same.
    pub gate: &'static str,
    /// Layer scale after the feed-forward.
    pub scale2: &'static str,
    /// The last norm.
    pub norm: &'static str,
}

impl Naming {
    /// The names.
    pub fn names(self) -> &'static Names {
        match self {
            Self::Vit => &VIT,
            Self::Dinov2 => &DINOV2,
            Self::Dinov3 => &DINOV3,
            Self::Timm => &TIMM,
        }
    }

    /// Tensors of published checkpoints that no encoder needs: heads, decoders, the token that stands for hidden patches.
    pub fn ignored(self) -> &'static [&'static str] {
        match self {
            Self::Vit => &[
                "classifier.*",
                "pooler.*",
                "embeddings.mask_token",
                "decoder.*",
            ],
            Self::Dinov2 | Self::Dinov3 => &["classifier.*", "embeddings.mask_token"],
            Self::Timm => &[
                "mask_token",
                "decoder_*",
                "head.*",
                "fc_norm.*",
                "dino_head.*",
                "ibot_head.*",
            ],
        }
    }
}

const HF_ATTENTION: &[&str] = &[
    "attention.attention.query",
    "attention.attention.key",
    "attention.attention.value",
];

static VIT: Names = Names {
    cls: "embeddings.cls_token",
    registers: "",
    positions: "embeddings.position_embeddings",
    patches: "embeddings.patch_embeddings.projection",
    block: "encoder.layer",
    norm1: "layernorm_before",
    attention: HF_ATTENTION,
    output: "attention.output.dense",
    scale1: "",
    norm2: "layernorm_after",
    up: "intermediate.dense",
    down: "output.dense",
    gate: "",
    scale2: "",
    norm: "layernorm",
};

static DINOV2: Names = Names {
    cls: "embeddings.cls_token",
    registers: "embeddings.register_tokens",
    positions: "embeddings.position_embeddings",
    patches: "embeddings.patch_embeddings.projection",
    block: "encoder.layer",
    norm1: "norm1",
    attention: HF_ATTENTION,
    output: "attention.output.dense",
    scale1: "layer_scale1.lambda1",
    norm2: "norm2",
    up: "mlp.fc1",
    down: "mlp.fc2",
    gate: "mlp.weights_in",
    scale2: "layer_scale2.lambda1",
    norm: "layernorm",
};

static DINOV3: Names = Names {
    cls: "embeddings.cls_token",
    registers: "embeddings.register_tokens",
    positions: "",
    patches: "embeddings.patch_embeddings",
    block: "layer",
    norm1: "norm1",
    attention: &["attention.q_proj", "attention.k_proj", "attention.v_proj"],
    output: "attention.o_proj",
    scale1: "layer_scale1.lambda1",
    norm2: "norm2",
    up: "mlp.up_proj",
    down: "mlp.down_proj",
    gate: "mlp.gate_proj",
    scale2: "layer_scale2.lambda1",
    norm: "norm",
};

static TIMM: Names = Names {
    cls: "cls_token",
    registers: "reg_token",
    positions: "pos_embed",
    patches: "patch_embed.proj",
    block: "blocks",
    norm1: "norm1",
    attention: &["attn.qkv"],
    output: "attn.proj",
    scale1: "ls1.gamma",
    norm2: "norm2",
    up: "mlp.fc1",
    down: "mlp.fc2",
    gate: "",
    scale2: "ls2.gamma",
    norm: "norm",
};

/// DINOv2's own code can keep blocks in chunks, `blocks.CHUNK.NUMBER.`, where the number counts through all of them. The plain name.
pub fn unchunked(name: &str) -> Option<String> {
    let rest = name.strip_prefix("blocks.")?;
    let mut parts = rest.splitn(3, '.');
    let (chunk, number, tail) = (parts.next()?, parts.next()?, parts.next()?);
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    (is_number(chunk) && is_number(number)).then(|| format!("blocks.{number}.{tail}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_flattened() {
        assert_eq!(
            unchunked("blocks.3.23.attn.qkv.weight").as_deref(),
            Some("blocks.23.attn.qkv.weight")
        );
        assert_eq!(unchunked("blocks.3.attn.qkv.weight"), None);
        assert_eq!(unchunked("cls_token"), None);
    }
}
