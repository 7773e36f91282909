//! The network: stem, blocks, head, the mean over places. Knows the checkpoint's names; no files and no plugin.

use crate::config::{Lite, Stage};
use crate::convolution::{After, Depthwise, Full, Pointwise};
use crate::fold::{counter, folded};
use focus_nn::candle::Result;
use focus_nn::{LoadError, Tensor, Weights};

const STEM: (&str, &str) = ("_conv_stem", "_bn0");
const EXPAND: (&str, &str) = ("_expand_conv", "_bn0");
const SPATIAL: (&str, &str) = ("_depthwise_conv", "_bn1");
const PROJECT: (&str, &str) = ("_project_conv", "_bn2");
const HEAD: (&str, &str) = ("_conv_head", "_bn1");
const BLOCKS: &str = "_blocks";

/// The classifier, which an encoder leaves alone.
pub const CLASSIFIER: [&str; 2] = ["_fc.weight", "_fc.bias"];

/// An encoder for pictures of any size.
#[derive(Debug, Clone)]
pub struct Network {
    stem: Full,
    blocks: Vec<Block>,
    head: Pointwise,
}

#[derive(Debug, Clone)]
struct Block {
    expand: Option<Pointwise>,
    spatial: Depthwise,
    project: Pointwise,
    /// Whether the input is added to the output.
    skip: bool,
}

impl Network {
    /// Claim the weights.
    pub fn load(config: &Lite, weights: &Weights) -> std::result::Result<Self, LoadError> {
        let (kernel, bias) = folded(weights, STEM.0, STEM.1, [config.stem, 3, 3, 3])?;
        let stem = Full::new(&kernel, bias, 2, After::Relu6)?;
        let mut blocks = Vec::new();
        let mut width = config.stem;
        for stage in &config.stages {
            for number in 0..stage.blocks {
                let at = weights.at(BLOCKS).at(blocks.len());
                blocks.push(Block::load(stage, number, width, &at)?);
                width = stage.out;
            }
        }
        let (kernel, bias) = folded(weights, HEAD.0, HEAD.1, [config.head, width, 1, 1])?;
        Ok(Self {
            stem,
            blocks,
            head: Pointwise::new(&kernel, bias, After::Relu6)?,
        })
    }

    /// Names in a checkpoint of this network that an encoder has no use for: the classifier, and each norm's count of training steps.
    pub fn unused(config: &Lite) -> Vec<String> {
        let mut names: Vec<String> = CLASSIFIER.map(str::to_owned).to_vec();
        names.extend([counter(STEM.1), counter(HEAD.1)]);
        let stages = config.stages.iter();
        let expansions =
            stages.flat_map(|stage| std::iter::repeat_n(stage.expansion, stage.blocks));
        for (block, expansion) in expansions.enumerate() {
            let norms = [EXPAND.1, SPATIAL.1, PROJECT.1];
            let norms = if expansion == 1 {
                &norms[1..]
            } else {
                &norms[..]
            };
            for norm in norms {
                names.push(counter(&format!("{BLOCKS}.{block}.{norm}")));
            }
        }
        names
    }

    /// Pictures (batch, 3, height, width), normalised, to vectors (batch, head): the mean over places after the head.
    pub fn forward(&self, pixels: &Tensor) -> Result<Tensor> {
        let mut x = self
            .stem
            .forward(&pixels.permute((0, 2, 3, 1))?.contiguous()?)?;
        for block in &self.blocks {
            x = block.forward(&x)?;
        }
        self.head.forward(&x)?.flatten(1, 2)?.mean(1)
    }
}

impl Block {
    fn load(
        stage: &Stage,
        number: usize,
        width: usize,
        at: &Weights,
    ) -> std::result::Result<Self, LoadError> {
        let wide = width * stage.expansion;
        let expand = if stage.expansion == 1 {
            None
        } else {
            let (kernel, bias) = folded(at, EXPAND.0, EXPAND.1, [wide, width, 1, 1])?;
            Some(Pointwise::new(&kernel, bias, After::Relu6)?)
        };
        let shape = [wide, 1, stage.kernel, stage.kernel];
        let (kernel, bias) = folded(at, SPATIAL.0, SPATIAL.1, shape)?;
        let stride = if number == 0 { stage.stride } else { 1 };
        let spatial = Depthwise::new(&kernel, bias, stride)?;
        let (kernel, bias) = folded(at, PROJECT.0, PROJECT.1, [stage.out, wide, 1, 1])?;
        Ok(Self {
            expand,
            spatial,
            project: Pointwise::new(&kernel, bias, After::Nothing)?,
            skip: stride == 1 && width == stage.out,
        })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let wide = match &self.expand {
            Some(expand) => expand.forward(x)?,
            None => x.clone(),
        };
        let y = self.project.forward(&self.spatial.forward(&wide)?)?;
        if self.skip { x + y } else { Ok(y) }
    }
}
