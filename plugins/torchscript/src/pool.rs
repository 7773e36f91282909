//! One vector out of what a program gives. Knows tensors' shapes only.

use serde::Deserialize;
use tch::Tensor;

/// From many vectors to one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pool {
    /// The program gives one vector an image, (images, values).
    #[default]
    None,
    /// The first of the tokens, (images, tokens, values).
    FirstToken,
    /// The mean of all tokens, (images, tokens, values).
    MeanTokens,
    /// The mean over all places, (images, values, rows, columns).
    MeanPlaces,
}

impl Pool {
    /// (images, values) from the program's output.
    pub fn apply(self, output: &Tensor) -> Result<Tensor, String> {
        let size = output.size();
        let wanted = match self {
            Self::None => 2,
            Self::FirstToken | Self::MeanTokens => 3,
            Self::MeanPlaces => 4,
        };
        if size.len() != wanted || size.contains(&0) {
            return Err(format!(
                "pooling `{self:?}` wants {wanted} dimensions, found shape {size:?}"
            ));
        }
        let kind = output.kind();
        let pooled = match self {
            Self::None => Ok(output.shallow_clone()),
            Self::FirstToken => output.f_select(1, 0),
            Self::MeanTokens => output.f_mean_dim([1_i64].as_slice(), false, kind),
            Self::MeanPlaces => output.f_mean_dim([2_i64, 3].as_slice(), false, kind),
        };
        pooled.map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(tensor: &Tensor) -> Vec<f32> {
        Vec::try_from(tensor.reshape([-1])).unwrap()
    }

    #[test]
    fn poolings_are_as_named() {
        let numbers: Vec<f32> = (0..12_u8).map(f32::from).collect();
        let all = Tensor::from_slice(&numbers);
        let tokens = all.reshape([2, 3, 2]);
        assert_eq!(
            values(&Pool::FirstToken.apply(&tokens).unwrap()),
            [0.0, 1.0, 6.0, 7.0]
        );
        assert_eq!(
            values(&Pool::MeanTokens.apply(&tokens).unwrap()),
            [2.0, 3.0, 8.0, 9.0]
        );
        let places = all.reshape([1, 3, 2, 2]);
        assert_eq!(
            values(&Pool::MeanPlaces.apply(&places).unwrap()),
            [1.5, 5.5, 9.5]
        );
        let plain = all.reshape([3, 4]);
        assert_eq!(values(&Pool::None.apply(&plain).unwrap()), numbers);
    }

    #[test]
    fn another_number_of_dimensions_is_refused() {
        let plain = Tensor::zeros([2, 3], (tch::Kind::Float, tch::Device::Cpu));
        for pool in [Pool::FirstToken, Pool::MeanTokens, Pool::MeanPlaces] {
            assert!(pool.apply(&plain).unwrap_err().contains("[2, 3]"));
        }
    }
}
