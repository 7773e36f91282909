//! Groups of pictures and prompts: what is asked, and how it lies in memory. Knows no replies.

use super::{MAX_BATCH, MAX_SIDE, header};
use crate::error::wire_error;
use crate::{Ask, AskedGroup, FullPicture, ModelError};
use focus_os::shm;
use focus_plugin_abi::v1::message::{
    GenerateRequest, ImageSize, OpenedModel, PixelMode, PromptGroup,
};
use focus_wire::{FailureKind, WireError};
use std::sync::Arc;

/// The bounds of every generate call to one open model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupPlan {
    batch_size: u32,
    /// The card's size, where the host resizes.
    size: Option<(u32, u32)>,
    /// Most bytes of pictures in one call.
    most: u64,
    slots: u32,
}

impl GroupPlan {
    /// `slots`: how many batches lie in memory at once.
    pub(crate) fn new(opened: &OpenedModel, slots: u32) -> Result<Self, WireError> {
        if opened.batch_size == 0 || opened.batch_size > MAX_BATCH {
            return Err(wire_error(
                FailureKind::BadReply,
                format!(
                    "Opened model `{}`: batch size must be 1 to {MAX_BATCH}, found {}",
                    opened.model, opened.batch_size
                ),
            ));
        }
        let card = &opened.preprocessing;
        Ok(Self {
            batch_size: opened.batch_size,
            size: (card.mode == PixelMode::Resized).then_some((card.width, card.height)),
            // Arrow's Binary counts bytes in i32.
            most: (shm::MAX_BYTES / u64::from(slots.max(1))).min(i32::MAX as u64),
            slots: slots.max(1),
        })
    }

    /// The caller's batch must fit.
    pub(crate) fn admit(&self, model: &str, groups: &[AskedGroup]) -> Result<(), ModelError> {
        let bad = |expected: String, found: String| {
            Err(ModelError::BadBatch {
                model: model.to_owned(),
                expected,
                found,
            })
        };
        if groups.len() > self.batch_size as usize {
            return bad(
                format!("at most {} groups", self.batch_size),
                format!("{} groups", groups.len()),
            );
        }
        for (number, group) in groups.iter().enumerate() {
            let sample = group.sample;
            if group.prompts.is_empty() {
                return bad(
                    "at least one prompt a group".into(),
                    format!("none for sample {sample}"),
                );
            }
            for picture in &group.pictures {
                let (width, height) = (picture.width, picture.height);
                let sides = 1..=MAX_SIDE;
                if !sides.contains(&width) || !sides.contains(&height) {
                    return bad(
                        format!("sides of 1 to {MAX_SIDE} pixels"),
                        format!("{width} x {height} for sample {sample}"),
                    );
                }
                if let Some(size) = self.size.filter(|size| *size != (width, height)) {
                    return bad(
                        format!("pictures of {} x {} pixels", size.0, size.1),
                        format!("{width} x {height} for sample {sample}"),
                    );
                }
                let bytes = width as usize * height as usize * 3;
                if picture.rgb.len() != bytes {
                    return bad(
                        format!("{bytes} bytes for a picture of {width} x {height}"),
                        format!("{} bytes for sample {sample}", picture.rgb.len()),
                    );
                }
            }
            let bytes = LaidGroups::new(&groups[..=number]).bytes();
            if bytes > self.most {
                return bad(
                    format!("at most {} bytes of pictures in a call", self.most),
                    format!("{bytes} bytes with sample {sample}"),
                );
            }
        }
        Ok(())
    }

    /// Bytes of a slot for a call of `bytes`: a power of two, so that slots seldom grow.
    pub(crate) fn slot_bytes(&self, bytes: u64) -> u64 {
        bytes
            .next_power_of_two()
            .min(shm::MAX_BYTES / u64::from(self.slots))
    }
}

/// Groups of one call with their pictures, each once however many groups show it.
#[derive(Debug)]
pub(crate) struct LaidGroups<'a> {
    groups: &'a [AskedGroup],
    pictures: Vec<&'a FullPicture>,
    /// What each group sees of them.
    indices: Vec<Vec<u32>>,
}

impl<'a> LaidGroups<'a> {
    pub(crate) fn new(groups: &'a [AskedGroup]) -> Self {
        let mut pictures: Vec<&FullPicture> = Vec::new();
        let mut index = |picture: &'a FullPicture| {
            let known = pictures.iter().position(|known| {
                Arc::ptr_eq(&known.rgb, &picture.rgb)
                    && (known.width, known.height) == (picture.width, picture.height)
            });
            known.unwrap_or_else(|| {
                pictures.push(picture);
                pictures.len() - 1
            }) as u32
        };
        let indices = groups
            .iter()
            .map(|group| group.pictures.iter().map(&mut index).collect())
            .collect();
        Self {
            groups,
            pictures,
            indices,
        }
    }

    /// Bytes that the pictures take.
    pub(crate) fn bytes(&self) -> u64 {
        self.pictures
            .iter()
            .map(|picture| picture.rgb.len() as u64)
            .sum()
    }

    /// Lay the pictures one after the other into `memory`, at least [`Self::bytes`].
    pub(crate) fn lay(&self, memory: &mut [u8]) {
        let mut at = 0;
        for picture in &self.pictures {
            memory[at..][..picture.rgb.len()].copy_from_slice(&picture.rgb);
            at += picture.rgb.len();
        }
    }

    /// Header of the call.
    pub(crate) fn header(&self, model: &str, ask: &Ask) -> Result<String, ModelError> {
        let request = GenerateRequest {
            images: self
                .pictures
                .iter()
                .map(|picture| ImageSize {
                    width: picture.width,
                    height: picture.height,
                })
                .collect(),
            groups: self
                .groups
                .iter()
                .zip(&self.indices)
                .map(|(group, images)| PromptGroup {
                    images: images.clone(),
                    prompts: group.prompts.clone(),
                })
                .collect(),
            adapter: ask.adapter.clone(),
            score: ask.score.clone(),
            max_new_tokens: ask.max_new_tokens,
            stop: ask.stop.clone(),
        };
        header(model, &request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{opened, opened_generator};

    fn picture(width: u32, height: u32, value: u8) -> FullPicture {
        FullPicture {
            width,
            height,
            rgb: vec![value; (width * height * 3) as usize].into(),
        }
    }

    fn group(sample: usize, pictures: Vec<FullPicture>) -> AskedGroup {
        AskedGroup {
            sample,
            pictures,
            prompts: vec!["a".into(), "b".into()],
        }
    }

    fn plan() -> GroupPlan {
        GroupPlan::new(&opened_generator(3), 2).expect("fits")
    }

    #[test]
    fn a_picture_that_groups_share_lies_there_once() {
        let (one, two) = (picture(1, 1, 7), picture(2, 1, 9));
        let groups = [
            group(0, vec![one.clone()]),
            group(1, vec![two, one.clone()]),
            group(2, Vec::new()),
        ];
        let laid = LaidGroups::new(&groups);
        assert_eq!(laid.bytes(), 9);
        let mut memory = [0; 10];
        laid.lay(&mut memory);
        assert_eq!(memory, [7, 7, 7, 9, 9, 9, 9, 9, 9, 0]);
        let header = laid.header("m", &Ask::default()).expect("short");
        let request: GenerateRequest = serde_json::from_str(&header).expect("JSON");
        let seen: Vec<_> = request.groups.iter().map(|g| g.images.clone()).collect();
        assert_eq!(seen, [vec![0], vec![1, 0], vec![]]);
        assert_eq!(request.images.len(), 2);
    }

    #[test]
    fn batches_that_do_not_fit_name_the_sample() {
        let message = |plan: GroupPlan, groups: &[AskedGroup]| {
            plan.admit("m", groups).expect_err("refused").to_string()
        };
        let good = || group(5, vec![picture(2, 2, 0)]);
        plan().admit("m", &[good(), good(), good()]).expect("fits");
        let many = [good(), good(), good(), good()];
        assert!(message(plan(), &many).ends_with("at most 3 groups, found 4 groups"));
        let mut short = good();
        short.pictures[0].width = 3;
        assert!(message(plan(), &[short]).ends_with("found 12 bytes for sample 5"));
        let none = group(6, vec![picture(0, 2, 0)]);
        assert!(message(plan(), &[none]).ends_with("found 0 x 2 for sample 6"));
        let silent = AskedGroup {
            prompts: Vec::new(),
            ..good()
        };
        assert!(message(plan(), &[silent]).ends_with("none for sample 5"));
        let small = GroupPlan { most: 20, ..plan() };
        let two = [good(), group(9, vec![picture(2, 2, 1)])];
        assert!(
            message(small, &two)
                .ends_with("at most 20 bytes of pictures in a call, found 24 bytes with sample 9")
        );
        let resized = GroupPlan::new(&opened(1, 0, 2, 1), 2).expect("fits");
        assert!(
            message(resized, &[good()])
                .ends_with("pictures of 2 x 1 pixels, found 2 x 2 for sample 5")
        );
    }

    #[test]
    fn slots_grow_by_powers_of_two_within_the_cap() {
        assert_eq!(plan().slot_bytes(5), 8);
        assert_eq!(plan().slot_bytes(i32::MAX as u64), 1 << 31);
        let many = GroupPlan::new(&opened_generator(1), 5).expect("fits");
        assert!(many.slot_bytes(many.most) * 5 <= shm::MAX_BYTES);
        assert!(many.slot_bytes(many.most) >= many.most);
    }
}
