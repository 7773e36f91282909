//! Tokens of a question to what the language model is fed: a picture's one token becomes as many as it has rows, and every token gets its
//! place on the axes of time, height and width. Knows no tokenizer.

use focus_nn::lm::{Features, ImageSpan, Place, Prompt};

/// What the chat template prints for a picture, between tokens of beginning and end.
pub const SLOT: &str = "<|image_pad|>";

/// Expand `tokens`, in which `image` stands once for each of `pictures`, in order.
///
/// Text goes on all three axes at once. A picture's rows keep the time of its first and count rows and columns of the grid from there.
/// Text after it goes on behind the largest place of any axis, so a picture takes fewer places than tokens.
pub fn expand(tokens: &[u32], image: u32, pictures: &[&Features]) -> Prompt {
    let mut prompt = Prompt {
        tokens: Vec::new(),
        images: Vec::new(),
        places: Vec::new(),
    };
    let mut next: u32 = 0;
    let mut picture = 0;
    for &token in tokens {
        let features = pictures.get(picture).filter(|_| token == image);
        let Some(features) = features else {
            prompt.tokens.push(token);
            prompt.places.push([next; 3]);
            next += 1;
            continue;
        };
        let (rows, columns) = features.grid;
        prompt.images.push(ImageSpan {
            start: prompt.tokens.len(),
            length: rows * columns,
            picture,
        });
        for row in 0..rows as u32 {
            for column in 0..columns as u32 {
                let place: Place = [next, next + row, next + column];
                prompt.tokens.push(image);
                prompt.places.push(place);
            }
        }
        next += rows.max(columns) as u32;
        picture += 1;
    }
    prompt
}

#[cfg(test)]
mod tests {
    use super::*;
    use focus_nn::{DType, Device, Tensor};

    fn picture(rows: usize, columns: usize) -> Features {
        Features {
            rows: Tensor::zeros((rows * columns, 1), DType::F32, &Device::Cpu).unwrap(),
            deep: Vec::new(),
            grid: (rows, columns),
        }
    }

    #[test]
    fn text_goes_on_behind_the_longer_side_of_a_picture() {
        let (wide, high) = (picture(1, 3), picture(2, 1));
        let prompt = expand(&[7, 9, 8, 9, 6], 9, &[&wide, &high]);
        assert_eq!(prompt.tokens, [7, 9, 9, 9, 8, 9, 9, 6]);
        let places = [
            [0, 0, 0],
            [1, 1, 1],
            [1, 1, 2],
            [1, 1, 3],
            [4, 4, 4],
            [5, 5, 5],
            [5, 6, 5],
            [7, 7, 7],
        ];
        assert_eq!(prompt.places, places);
        let spans: Vec<_> = prompt
            .images
            .iter()
            .map(|s| (s.start, s.length, s.picture))
            .collect();
        assert_eq!(spans, [(1, 3, 0), (5, 2, 1)]);
        assert_eq!(prompt.next_place(), 8);
        prompt.check(&[&wide, &high]).unwrap();
    }
}
