//! Finding the circular field by brightness. Knows no steps.
//!
//! 1. The picture is reduced to means of square blocks, at most [`GRID`] along the longer side; a block's brightness is its brightest channel.
//! 2. The background is the darkest of the four corners' medians (text may stand in one, a cut field may fill others), the field the median of the
//!    middle ninth. The threshold lies 15 % of the way up, low enough for vignettes. Without contrast between the two there is no field.
//! 3. Of what is brighter, the largest connected part is kept: text in a corner is another part.
//! 4. The part's outermost blocks in each row and column, but not those on the picture's own border (where the field is cut), are fitted with a circle
//!    by least squares (Kåsa's linear form), three times, each time without the points that lie far off.
//! 5. The circle must be of a plausible size, centred within the picture, filled by the part, and hold nearly all of it.

use super::FieldCircle;

/// Most blocks along the longer side.
const GRID: usize = 512;
/// Least difference between field and background, in levels.
const LEAST_CONTRAST: u32 = 16;
/// Fewest points that a circle is fitted to.
const LEAST_POINTS: usize = 24;

/// Brightness of blocks.
struct Grid {
    width: usize,
    height: usize,
    /// Pixels along a block's side.
    block: usize,
    values: Vec<u8>,
}

/// The field of an upright RGB picture; `Err` says why there is none.
pub(crate) fn find(pixels: &[u8], size: (u32, u32)) -> Result<FieldCircle, String> {
    let grid = Grid::new(pixels, size);
    let threshold = grid.threshold()?;
    let part = grid.largest_part(threshold);
    let points = grid.edge_points(&part);
    let (x, y, radius) = fit(points)?;
    grid.check(&part, (x, y, radius))?;
    // From blocks to pixels: a block's middle lies half a block from its edge.
    let block = grid.block as f64;
    let pixel = |at: f64, side: u32| {
        ((at + 0.5) * block - 0.5)
            .round()
            .clamp(0.0, f64::from(side - 1)) as u32
    };
    Ok(FieldCircle {
        x: pixel(x, size.0),
        y: pixel(y, size.1),
        radius: (radius * block).round().max(1.0) as u32,
    })
}

impl Grid {
    fn new(pixels: &[u8], (width, height): (u32, u32)) -> Self {
        let (w, h) = (width as usize, height as usize);
        let block = w.max(h).div_ceil(GRID).max(1);
        let (columns, rows) = (w.div_ceil(block), h.div_ceil(block));
        let mut values = Vec::with_capacity(columns * rows);
        let mut sums = vec![[0_u32; 3]; columns];
        for (index, band) in pixels.chunks(block * w * 3).enumerate() {
            sums.fill([0; 3]);
            for row in band.chunks_exact(w * 3) {
                for (sum, part) in sums.iter_mut().zip(row.chunks(block * 3)) {
                    for pixel in part.as_chunks::<3>().0 {
                        for (total, &value) in sum.iter_mut().zip(pixel) {
                            *total += u32::from(value);
                        }
                    }
                }
            }
            let tall = block.min(h - index * block);
            for (column, sum) in sums.iter().enumerate() {
                let count = (tall * block.min(w - column * block)) as u32;
                let most = sum.iter().max().expect("three channels");
                values.push((most / count) as u8);
            }
        }
        Self {
            width: columns,
            height: rows,
            block,
            values,
        }
    }

    /// Median of a rectangle.
    fn median(&self, (left, top): (usize, usize), (width, height): (usize, usize)) -> u32 {
        let rows = (top..top + height).map(|y| &self.values[y * self.width + left..][..width]);
        let mut values: Vec<u8> = rows.flatten().copied().collect();
        let middle = values.len() / 2;
        (*values.select_nth_unstable(middle).1).into()
    }

    fn threshold(&self) -> Result<u8, String> {
        let (w, h) = (self.width, self.height);
        // A corner is 3 % of each side.
        let corner = ((w * 3 / 100).max(1), (h * 3 / 100).max(1));
        let (right, lower) = (w - corner.0, h - corner.1);
        let background = [(0, 0), (right, 0), (0, lower), (right, lower)]
            .into_iter()
            .map(|at| self.median(at, corner))
            .min()
            .expect("four corners");
        let middle = self.median((w / 3, h / 3), ((w / 3).max(1), (h / 3).max(1)));
        if middle < background + LEAST_CONTRAST {
            return Err(format!(
                "no field of view found: the middle (level {middle}) is not brighter than the corners (level {background})"
            ));
        }
        Ok((background + ((middle - background) * 15 / 100).max(6)) as u8)
    }

    /// Blocks of the largest part that is brighter than `threshold`, connected by sides.
    fn largest_part(&self, threshold: u8) -> Vec<bool> {
        const NONE: u32 = 0;
        let (w, count) = (self.width, self.values.len());
        let mut names = vec![NONE; count];
        let (mut best, mut best_size) = (NONE, 0);
        let mut name = NONE;
        let mut queue = Vec::new();
        for start in 0..count {
            if names[start] != NONE || self.values[start] <= threshold {
                continue;
            }
            name += 1;
            names[start] = name;
            queue.push(start);
            let mut size = 0;
            while let Some(at) = queue.pop() {
                size += 1;
                let x = at % w;
                let around = [
                    (x > 0).then(|| at - 1),
                    (x + 1 < w).then(|| at + 1),
                    at.checked_sub(w),
                    Some(at + w).filter(|&below| below < count),
                ];
                for near in around.into_iter().flatten() {
                    if names[near] == NONE && self.values[near] > threshold {
                        names[near] = name;
                        queue.push(near);
                    }
                }
            }
            if size > best_size {
                (best, best_size) = (name, size);
            }
        }
        names
            .iter()
            .map(|&found| found == best && best != NONE)
            .collect()
    }

    /// Outermost blocks of each row and column, without those on the picture's border.
    fn edge_points(&self, part: &[bool]) -> Vec<(f64, f64)> {
        let (w, h) = (self.width, self.height);
        let mut points = Vec::new();
        for y in 0..h {
            let row = &part[y * w..][..w];
            let Some(first) = row.iter().position(|&inside| inside) else {
                continue;
            };
            let last = row.iter().rposition(|&inside| inside).unwrap_or(first);
            // The edge lies between the outermost block and the one beyond.
            if first > 0 {
                points.push((first as f64 - 0.5, y as f64));
            }
            if last + 1 < w {
                points.push((last as f64 + 0.5, y as f64));
            }
        }
        for x in 0..w {
            let column = |y: &usize| part[y * w + x];
            let Some(first) = (0..h).find(column) else {
                continue;
            };
            let last = (0..h).rev().find(column).unwrap_or(first);
            if first > 0 {
                points.push((x as f64, first as f64 - 0.5));
            }
            if last + 1 < h {
                points.push((x as f64, last as f64 + 0.5));
            }
        }
        points
    }

    /// Whether a circle fits the picture and the part.
    fn check(&self, part: &[bool], (x, y, radius): (f64, f64, f64)) -> Result<(), String> {
        let (w, h) = (self.width as f64, self.height as f64);
        let refused = |why: String| Err(format!("no field of view found: {why}"));
        if !(0.0..w).contains(&x) || !(0.0..h).contains(&y) {
            return refused("the circle is not centred in the picture".into());
        }
        if radius < 0.25 * w.min(h) || radius > 0.75 * w.max(h) {
            return refused(format!(
                "a circle of {:.0} % of the picture",
                100.0 * radius / w.max(h)
            ));
        }
        let (mut inside, mut filled, mut total) = (0_u64, 0_u64, 0_u64);
        for (index, &member) in part.iter().enumerate() {
            let (dx, dy) = (
                (index % self.width) as f64 - x,
                (index / self.width) as f64 - y,
            );
            let within = dx * dx + dy * dy <= (radius + 1.0) * (radius + 1.0);
            inside += u64::from(within);
            filled += u64::from(within && member);
            total += u64::from(member);
        }
        // Eyelids and shadows may darken a good part of a field; what lies outside is small.
        if filled * 100 < inside * 60 {
            return refused("the bright part does not fill the circle".into());
        }
        if filled * 100 < total * 95 {
            return refused("the bright part is not round".into());
        }
        Ok(())
    }
}

/// Centre and radius of the circle nearest to the points, far points left out.
fn fit(mut points: Vec<(f64, f64)>) -> Result<(f64, f64, f64), String> {
    let mut circle = None;
    for _ in 0..3 {
        if points.len() < LEAST_POINTS {
            break;
        }
        let Some((x, y, radius)) = least_squares(&points) else {
            break;
        };
        circle = Some((x, y, radius));
        let off = |&(px, py): &(f64, f64)| {
            (((px - x) * (px - x) + (py - y) * (py - y)).sqrt() - radius).abs()
        };
        let mut distances: Vec<f64> = points.iter().map(off).collect();
        let middle = distances.len() / 2;
        let median = *distances.select_nth_unstable_by(middle, f64::total_cmp).1;
        points.retain(|point| off(point) <= (3.0 * median).max(1.0));
    }
    circle.ok_or_else(|| {
        "no field of view found: the bright part has no round edge within the picture".into()
    })
}

/// Kåsa's fit: x^2 + y^2 is linear in the circle's unknowns. `None` for points on a line.
fn least_squares(points: &[(f64, f64)]) -> Option<(f64, f64, f64)> {
    let count = points.len() as f64;
    let (mean_x, mean_y) = (
        points.iter().map(|point| point.0).sum::<f64>() / count,
        points.iter().map(|point| point.1).sum::<f64>() / count,
    );
    let (mut xx, mut xy, mut yy, mut xz, mut yz) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for &(x, y) in points {
        let (x, y) = (x - mean_x, y - mean_y);
        let z = x * x + y * y;
        xx += x * x;
        xy += x * y;
        yy += y * y;
        xz += x * z;
        yz += y * z;
    }
    let determinant = xx * yy - xy * xy;
    if determinant <= 1e-9 * (xx + yy) * (xx + yy) {
        return None;
    }
    let x = (xz * yy - yz * xy) / (2.0 * determinant);
    let y = (yz * xx - xz * xy) / (2.0 * determinant);
    let radius = (x * x + y * y + (xx + yy) / count).sqrt();
    Some((x + mean_x, y + mean_y, radius))
}
