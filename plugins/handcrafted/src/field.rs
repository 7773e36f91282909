//! Finds the circular field of view. Knows nothing of what is in it.

/// Where the retina is visible, in pixels of the picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Field {
    /// Centre of the circle.
    pub centre: (f32, f32),
    /// Radius of the circle.
    pub radius: f32,
    /// First and last visible column.
    pub columns: (f32, f32),
    /// First and last visible row.
    pub rows: (f32, f32),
}

/// The box of rows and columns in which enough pixels are lit, and the circle over its longer side: cameras crop the circle
/// at top and bottom, hardly ever on all sides. Where nothing stands out (black, white, a picture without a dark surround)
/// the whole picture is the field.
pub fn detect(rgb: &[u8], width: usize, height: usize) -> Field {
    let whole = field(0, width - 1, 0, height - 1);
    let brightness = |pixel: &[u8]| usize::from(pixel[0].max(pixel[1]).max(pixel[2]));
    let mut histogram = [0_usize; 256];
    for pixel in rgb.chunks_exact(3) {
        histogram[brightness(pixel)] += 1;
    }
    let threshold = lit_from(&histogram, width * height);
    let mut by_row = vec![0_usize; height];
    let mut by_column = vec![0_usize; width];
    for (y, row) in rgb.chunks_exact(3 * width).enumerate() {
        for (column, pixel) in by_column.iter_mut().zip(row.chunks_exact(3)) {
            let lit = usize::from(brightness(pixel) >= threshold);
            *column += lit;
            by_row[y] += lit;
        }
    }
    let (Some(columns), Some(rows)) = (extent(&by_column), extent(&by_row)) else {
        return whole;
    };
    let (w, h) = (columns.1 - columns.0 + 1, rows.1 - rows.0 + 1);
    if w.min(h) * 3 < w.max(h) || w * 4 < width || h * 4 < height.min(width) {
        return whole;
    }
    field(columns.0, columns.1, rows.0, rows.1)
}

fn field(left: usize, right: usize, top: usize, bottom: usize) -> Field {
    let (left, right, top, bottom) = (left as f32, right as f32, top as f32, bottom as f32);
    Field {
        centre: (0.5 * (left + right), 0.5 * (top + bottom)),
        radius: 0.5 * ((right - left).max(bottom - top) + 1.0),
        columns: (left, right),
        rows: (top, bottom),
    }
}

// A fifth of the 95th percentile, but no darker than the noise of a black surround.
fn lit_from(histogram: &[usize; 256], total: usize) -> usize {
    let mut above = 0;
    for level in (0..256).rev() {
        above += histogram[level];
        if above * 20 > total {
            return (level / 5).max(14);
        }
    }
    14
}

// First and last line with at least an eighth of the fullest line's lit pixels; `None` when nothing is lit.
fn extent(counts: &[usize]) -> Option<(usize, usize)> {
    let most = counts.iter().copied().max().filter(|&most| most > 0)?;
    let enough = |&count: &usize| count * 8 >= most;
    Some((
        counts.iter().position(enough)?,
        counts.iter().rposition(enough)?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disc(width: usize, height: usize, cx: f32, cy: f32, r: f32) -> Vec<u8> {
        let mut rgb = Vec::new();
        for y in 0..height {
            for x in 0..width {
                let inside = (x as f32 - cx).hypot(y as f32 - cy) <= r;
                rgb.extend(if inside { [180, 90, 40] } else { [3, 2, 4] });
            }
        }
        rgb
    }

    #[test]
    fn finds_a_circle_even_cropped() {
        let field = detect(&disc(300, 200, 140.0, 100.0, 110.0), 300, 200);
        assert!(
            (field.centre.0 - 140.0).abs() < 3.0 && (field.centre.1 - 100.0).abs() < 3.0,
            "{field:?}"
        );
        assert!((field.radius - 110.0).abs() < 4.0, "{field:?}");
        assert_eq!(field.rows, (0.0, 199.0));
    }

    #[test]
    fn falls_back_to_the_whole_picture() {
        for level in [0_u8, 255] {
            let field = detect(&vec![level; 40 * 30 * 3], 40, 30);
            assert_eq!(
                (field.columns, field.rows, field.radius),
                ((0.0, 39.0), (0.0, 29.0), 20.0),
                "{level}"
            );
        }
        assert_eq!(detect(&[9, 9, 9], 1, 1).radius, 0.5);
        // A lit sliver is no field.
        let mut rgb = vec![0; 90 * 90 * 3];
        rgb[..90 * 3 * 4].fill(200);
        assert_eq!(detect(&rgb, 90, 90).rows, (0.0, 89.0));
    }
}
