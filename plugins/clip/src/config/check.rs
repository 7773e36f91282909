//! Which numbers make no sense. Nothing is built from what this refuses.

use super::{Bert, Config, Image, Stack, Text};

/// Largest side of anything; keeps products far from overflow.
const LARGEST: usize = 1 << 20;

impl Config {
    pub(super) fn check(&self) -> Result<(), String> {
        let mut sides = vec![("embedding", self.embed_dim)];
        match &self.image {
            Image::Transformer(vision) => {
                stack("image side", &vision.stack)?;
                sides.extend([("patch", vision.patch), ("picture", vision.size)]);
                if vision.patch > vision.size {
                    return Err(format!(
                        "pictures of {} pixels hold no patch of {}",
                        vision.size, vision.patch
                    ));
                }
            }
            Image::ResNet(resnet) => {
                sides.extend([("stem", resnet.stem), ("picture", resnet.size)]);
                sides.extend(resnet.planes.map(|side| ("planes", side)));
                sides.extend(resnet.blocks.map(|count| ("blocks", count)));
            }
        }
        match &self.text {
            Text::Transformer(text) => {
                stack("text side", &text.stack)?;
                sides.extend([("vocabulary", text.vocab), ("context", text.context)]);
            }
            Text::BertHeads(bert) | Text::BertMean(bert) => check_bert(bert, &mut sides)?,
        }
        match sides.iter().find(|(_, side)| *side == 0 || *side > LARGEST) {
            None => Ok(()),
            Some((what, side)) => Err(format!("{what}: expected 1 to {LARGEST}, found {side}")),
        }
    }
}

fn check_bert(bert: &Bert, sides: &mut Vec<(&'static str, usize)>) -> Result<(), String> {
    stack("text side", &bert.stack)?;
    // The averaged states are those after the first and the second block.
    if bert.stack.depth < 2 {
        return Err(format!(
            "text side: expected 2 blocks or more, found {}",
            bert.stack.depth
        ));
    }
    sides.extend([
        ("vocabulary", bert.vocab),
        ("places", bert.places),
        ("segments", bert.segments),
    ]);
    Ok(())
}

fn stack(what: &str, stack: &Stack) -> Result<(), String> {
    let sides = [stack.dim, stack.depth, stack.heads, stack.hidden];
    if sides.iter().any(|&side| side == 0 || side > LARGEST) {
        return Err(format!(
            "{what}: sizes must be 1 to {LARGEST}, found {sides:?}"
        ));
    }
    if !stack.dim.is_multiple_of(stack.heads) {
        return Err(format!(
            "{what}: heads must divide the width, found {} heads and width {}",
            stack.heads, stack.dim
        ));
    }
    if !(stack.eps > 0.0 && stack.eps < 1.0) {
        return Err(format!(
            "{what}: `layer_norm_eps` {} makes no sense",
            stack.eps
        ));
    }
    Ok(())
}
