//! From the tower's patches to rows of the language model's stream: two maps, then the tiles put together, their padding taken off, a
//! newline behind each row. Knows no pixels.

use crate::config::Config;
use crate::grid::{Kept, Size, unpadded};
use focus_nn::candle::{Result, bail};
use focus_nn::lora::Module;
use focus_nn::{Activation, Init, Linear, LoadError, Tensor, Weights};

/// Standard deviation of a drawn newline.
const DEVIATION: f32 = 0.02;

/// The projector, and the newline that goes with it.
#[derive(Debug, Clone)]
pub struct Projector {
    first: Linear,
    second: Linear,
    activation: Activation,
    /// (dim).
    newline: Tensor,
}

impl Projector {
    /// Claim `multi_modal_projector.*` and `image_newline`, `weights` being the root.
    pub fn load(config: &Config, weights: &Weights) -> std::result::Result<Self, LoadError> {
        let at = weights.at("multi_modal_projector");
        let dim = config.text.hidden;
        let map = |name: &str, from| Linear::load(&at.at(name), from, dim, config.projector_bias);
        Ok(Self {
            first: map("linear_1", config.vision.dim)?,
            second: map("linear_2", dim)?,
            activation: config.projector,
            newline: weights.get("image_newline", &[dim], Init::Normal(DEVIATION))?,
        })
    }

    /// Any number of patches, (.., vision dim) to (.., dim).
    pub fn forward(&self, patches: &Tensor) -> Result<Tensor> {
        self.second
            .forward(&self.first.forward_activated(patches, self.activation)?)
    }

    /// Tiles (1 + rows * columns, side * side, dim) of a picture to its rows, (count, dim): the base tile's, then those of its resolution
    /// without padding, row by row across tiles, each row behind it a newline. `tiling` says how many rows and columns of tiles.
    pub fn pack(&self, tiles: &Tensor, tiling: Size, original: Size) -> Result<Tensor> {
        let (count, places, dim) = tiles.dims3()?;
        let side = places.isqrt();
        let (rows, columns) = (tiling.height as usize, tiling.width as usize);
        if side * side != places || count != 1 + rows * columns {
            bail!(
                "Tiles do not fit their picture: expected 1 + {rows} x {columns} squares, found {count} of {places} places"
            );
        }
        let base = tiles.get(0)?;
        let grid = Size::new((rows * side) as u32, (columns * side) as u32);
        let Kept { top, left, size } = unpadded(original, grid);
        if size.height == 0 {
            return Ok(base);
        }
        let (kept_rows, kept_columns) = (size.height as usize, size.width as usize);
        let whole = tiles
            .narrow(0, 1, rows * columns)?
            .reshape((rows, columns, side, side, dim))?
            .permute((0, 2, 1, 3, 4))?
            .reshape((rows * side, columns * side, dim))?
            .narrow(0, top as usize, kept_rows)?
            .narrow(1, left as usize, kept_columns)?;
        let newlines = self
            .newline
            .reshape((1, 1, dim))?
            .expand((kept_rows, 1, dim))?;
        let whole =
            Tensor::cat(&[&whole, &newlines], 1)?.reshape((kept_rows * (kept_columns + 1), dim))?;
        Tensor::cat(&[&base, &whole], 0)
    }

    /// Show both maps to adapters, by their names behind `at`.
    pub fn visit(&mut self, at: &str, visit: &mut dyn FnMut(&str, Module<'_>)) {
        visit(&format!("{at}.linear_1"), Module::Linear(&mut self.first));
        visit(&format!("{at}.linear_2"), Module::Linear(&mut self.second));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use focus_nn::{DType, Device};

    fn projector() -> Projector {
        let eye = Linear::new(Tensor::eye(1, DType::F32, &Device::Cpu).unwrap(), None);
        Projector {
            first: eye.clone(),
            second: eye,
            activation: Activation::Gelu,
            newline: Tensor::new(&[-1.0_f32], &Device::Cpu).unwrap(),
        }
    }

    /// Every value is 100 * tile + place.
    fn tiles(count: usize) -> Tensor {
        let values: Vec<f32> = (0..count)
            .flat_map(|tile| (0..4).map(move |place| (100 * tile + place) as f32))
            .collect();
        Tensor::from_vec(values, (count, 4, 1), &Device::Cpu).unwrap()
    }

    fn pack(tiling: Size, original: Size) -> Vec<f32> {
        let tiles = tiles(1 + (tiling.height * tiling.width) as usize);
        let rows = projector().pack(&tiles, tiling, original).unwrap();
        rows.flatten_all().unwrap().to_vec1().unwrap()
    }

    #[test]
    fn rows_run_across_tiles_and_end_in_a_newline() {
        let base = [0.0, 1.0, 2.0, 3.0];
        let row = |values: [f32; 4]| [&values[..], &[-1.0]].concat();
        let whole = [
            row([100.0, 101.0, 200.0, 201.0]),
            row([102.0, 103.0, 202.0, 203.0]),
        ];
        let wanted = [&base[..], &whole.concat()].concat();
        assert_eq!(pack(Size::new(1, 2), Size::new(10, 20)), wanted);
        // Twice as wide again: one row is padding in all, half of it on either side, so nothing is taken off.
        assert_eq!(pack(Size::new(1, 2), Size::new(10, 40)), wanted);
        // Upright, with height and width in this order.
        let upright = pack(Size::new(2, 1), Size::new(20, 10));
        assert_eq!(upright.len(), 4 + 4 * 3);
        assert_eq!(upright[4..10], [100.0, 101.0, -1.0, 102.0, 103.0, -1.0]);
    }

    #[test]
    fn padding_is_taken_off_both_ends() {
        // 1 of 4 rows, with 1 taken off either end: 2 stay.
        let rows = pack(Size::new(2, 2), Size::new(10, 20));
        assert_eq!(rows.len(), 4 + 2 * 5);
        assert_eq!(rows[4..9], [102.0, 103.0, 202.0, 203.0, -1.0]);
        let columns = pack(Size::new(2, 2), Size::new(20, 10));
        assert_eq!(columns.len(), 4 + 4 * 3);
        assert_eq!(columns[4..7], [101.0, 200.0, -1.0]);
        // A line: the base tile alone.
        assert_eq!(pack(Size::new(1, 2), Size::new(1, 9000)).len(), 4);
    }

    #[test]
    fn tiles_that_do_not_fit_are_refused() {
        let error = projector()
            .pack(&tiles(4), Size::new(2, 2), Size::new(1, 1))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("expected 1 + 2 x 2 squares, found 4"),
            "{error}"
        );
    }
}
