//! The architecture's numbers. Knows no tensors.

/// Added to a variance before its root is taken.
pub const EPSILON: f64 = 1e-3;

/// How many times a block widens its input, except in the first stage.
pub const EXPANSION: usize = 6;

/// Blocks of one width. The first may halve the sides; the others add their input to their output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stage {
    /// Number of blocks.
    pub blocks: usize,
    /// Side of the depthwise kernel, odd.
    pub kernel: usize,
    /// Step of the first block's depthwise convolution, 1 or 2.
    pub stride: usize,
    /// Widening inside the block; 1: none, and no convolution for it.
    pub expansion: usize,
    /// Channels that come out.
    pub out: usize,
}

/// One network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lite {
    /// Channels of the stem, a 3 x 3 convolution of step 2.
    pub stem: usize,
    /// The stages.
    pub stages: Vec<Stage>,
    /// Channels of the head, which are the embedding.
    pub head: usize,
}

/// (blocks, kernel, stride, expansion) of every network of the family at depth 1.
const PLAN: [(usize, usize, usize, usize); 7] = [
    (1, 3, 1, 1),
    (2, 3, 2, EXPANSION),
    (2, 5, 2, EXPANSION),
    (3, 3, 2, EXPANSION),
    (3, 5, 1, EXPANSION),
    (4, 5, 2, EXPANSION),
    (1, 3, 1, EXPANSION),
];

impl Lite {
    /// The plan with these widths.
    pub fn of_widths(stem: usize, stages: [usize; 7], head: usize) -> Self {
        let stage = |((blocks, kernel, stride, expansion), out)| Stage {
            blocks,
            kernel,
            stride,
            expansion,
            out,
        };
        Self {
            stem,
            stages: PLAN.into_iter().zip(stages).map(stage).collect(),
            head,
        }
    }

    /// EfficientNet-Lite0.
    pub fn lite0() -> Self {
        Self::of_widths(32, [16, 24, 40, 80, 112, 192, 320], 1280)
    }
}
