//! The traits of generative models and their adapters, and what goes in and out of them. Must not know how groups cross.

use crate::{AttachReply, AttachRequest, Error, GenerateReply, GenerateRequest, Host};

/// Pictures and prompts to text and token scores.
///
/// ```
/// use focus_plugin_sdk::{
///     Error, Finish, GenerateBatch, GenerateReply, GeneratedAnswer, Generator, GroupReply, Host, VariantScore,
/// };
///
/// /// Says `yes` to bright pictures, and is sure of it.
/// struct Bright;
///
/// impl Generator for Bright {
///     fn generate(&mut self, batch: &GenerateBatch<'_>, host: &Host) -> Result<GenerateReply, Error> {
///         let request = batch.request();
///         let mut groups = Vec::new();
///         for (number, group) in request.groups.iter().enumerate() {
///             host.check_cancelled()?;
///             let bright = batch.group(number).flat_map(|picture| picture.rgb).all(|&value| value > 127);
///             let text = if bright { "yes" } else { "no" };
///             let scores = request.score.iter().map(|variant| VariantScore {
///                 token: Some(0),
///                 logprob: Some(if variant == text { 0.0 } else { -100.0 }),
///             });
///             let answer = GeneratedAnswer {
///                 text: text.into(),
///                 finish: Finish::End,
///                 scores: scores.collect(),
///                 prompt_tokens: Vec::new(),
///                 prompt_length: 0,
///                 new_tokens: Vec::new(),
///                 new_length: 1,
///             };
///             groups.push(GroupReply { answers: vec![answer; group.prompts.len()], ..GroupReply::default() });
///         }
///         Ok(GenerateReply { groups })
///     }
/// }
/// ```
pub trait Generator {
    /// Answer every prompt of every group. A group that fails does so alone, in its reply; an `Err` is for what concerns the call:
    /// a senseless request, a lost device. Token scores are taken over the full vocabulary at the first generated position.
    fn generate(&mut self, batch: &GenerateBatch<'_>, host: &Host) -> Result<GenerateReply, Error>;
}

/// Takes low-rank adapters in the PEFT folder format. Requests choose among those attached by name.
pub trait LoraAdaptable {
    /// Read, check and attach. Every tensor is accounted for, or nothing is attached. The reply proves that logits changed.
    fn attach(&mut self, request: &AttachRequest, host: &Host) -> Result<AttachReply, Error>;

    /// Forget an adapter.
    fn detach(&mut self, name: &str, host: &Host) -> Result<(), Error>;
}

/// A picture, borrowed from the host's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Picture<'a> {
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
    /// u8 RGB, row-major, `width * height * 3` bytes.
    pub rgb: &'a [u8],
}

/// One request with its pictures.
#[derive(Debug, Clone)]
pub struct GenerateBatch<'a> {
    request: &'a GenerateRequest,
    pictures: Vec<Picture<'a>>,
}

impl<'a> GenerateBatch<'a> {
    /// `pictures` are the bytes of `request.images`, one for each, in order.
    pub fn new(request: &'a GenerateRequest, pictures: &[&'a [u8]]) -> Result<Self, Error> {
        if pictures.len() != request.images.len() {
            return Err(Error::invalid_request(format!(
                "Pictures do not match the header: expected {}, found {}",
                request.images.len(),
                pictures.len()
            )));
        }
        let pictures: Vec<_> = request
            .images
            .iter()
            .zip(pictures)
            .map(|(size, rgb)| {
                let (width, height) = (size.width as usize, size.height as usize);
                let bytes = width.checked_mul(height).and_then(|n| n.checked_mul(3));
                if rgb.is_empty() || bytes != Some(rgb.len()) {
                    return Err(Error::invalid_request(format!(
                        "Picture does not fit its size: expected {width} x {height} x 3 bytes, found {}",
                        rgb.len()
                    )));
                }
                Ok(Picture { width, height, rgb })
            })
            .collect::<Result<_, _>>()?;
        for (number, group) in request.groups.iter().enumerate() {
            if let Some(index) = group.images.iter().find(|&&i| i as usize >= pictures.len()) {
                return Err(Error::invalid_request(format!(
                    "Group {number} names picture {index}: there are {}",
                    pictures.len()
                )));
            }
        }
        Ok(Self { request, pictures })
    }

    /// The header.
    pub fn request(&self) -> &'a GenerateRequest {
        self.request
    }

    /// All pictures.
    pub fn pictures(&self) -> &[Picture<'a>] {
        &self.pictures
    }

    /// The pictures of a group, in the order that its conversations show them. Panics past the last group.
    pub fn group(&self, number: usize) -> impl ExactSizeIterator<Item = Picture<'a>> + '_ {
        self.request.groups[number]
            .images
            .iter()
            .map(|&index| self.pictures[index as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ImageSize, PromptGroup, StopRule};

    fn request(images: Vec<u32>) -> GenerateRequest {
        GenerateRequest {
            images: vec![
                ImageSize {
                    width: 1,
                    height: 1,
                },
                ImageSize {
                    width: 2,
                    height: 1,
                },
            ],
            groups: vec![PromptGroup {
                images,
                prompts: vec!["?".into()],
            }],
            adapter: None,
            score: Vec::new(),
            max_new_tokens: 0,
            stop: StopRule::End,
        }
    }

    #[test]
    fn a_group_sees_its_pictures_in_its_own_order() {
        let request = request(vec![1, 0]);
        let batch = GenerateBatch::new(&request, &[&[1, 2, 3], &[4, 5, 6, 7, 8, 9]]).expect("fits");
        let widths: Vec<usize> = batch.group(0).map(|picture| picture.width).collect();
        assert_eq!(widths, [2, 1]);
    }

    #[test]
    fn senseless_requests_are_refused() {
        let good: [&[u8]; 2] = [&[0; 3], &[0; 6]];
        assert!(GenerateBatch::new(&request(vec![2]), &good).is_err());
        assert!(GenerateBatch::new(&request(vec![0]), &good[..1]).is_err());
        assert!(GenerateBatch::new(&request(vec![0]), &[&[0; 3], &[0; 3]]).is_err());
    }
}
