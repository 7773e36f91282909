//! Planes against their RGB, made here by the plain formula; on every back end.

use super::*;
use crate::Filter;
use proptest::prelude::*;

const CHROMAS: [Chroma; 3] = [Chroma::Full, Chroma::HalfWidth, Chroma::Quarter];

/// Planes of noise with strides beyond their widths.
#[derive(Debug)]
struct Drawn {
    size: (u32, u32),
    chroma: Chroma,
    luma: Vec<u8>,
    differences: [Vec<u8>; 2],
    padding: usize,
}

impl Drawn {
    fn new(size: (u32, u32), chroma: Chroma, padding: usize, seed: u64) -> Self {
        let mut state = seed | 1;
        let mut noise = |(width, height): (usize, usize)| -> Vec<u8> {
            let draw = |_| {
                state = state
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                // Extremes are where clamping and rounding live.
                match state >> 62 {
                    0 => 0,
                    1 => 255,
                    _ => (state >> 40) as u8,
                }
            };
            (0..(width + padding) * height).map(draw).collect()
        };
        let mut drawn = Self {
            size,
            chroma,
            luma: noise((size.0 as usize, size.1 as usize)),
            differences: [Vec::new(), Vec::new()],
            padding,
        };
        let extent = drawn.planes().chroma_size();
        drawn.differences = [noise(extent), noise(extent)];
        drawn
    }

    fn planes(&self) -> YccPlanes<'_> {
        let mut planes = YccPlanes {
            size: self.size,
            chroma: self.chroma,
            luma: &self.luma,
            luma_stride: self.size.0 as usize + self.padding,
            differences: [&self.differences[0], &self.differences[1]],
            difference_stride: 0,
        };
        planes.difference_stride = planes.chroma_size().0 + self.padding;
        planes
    }

    /// A difference at a pixel, by the weights of its four samples: 9, 3, 3 and 1 sixteenths.
    fn widened(&self, plane: usize, x: usize, y: usize) -> i32 {
        let planes = self.planes();
        let (width, height) = planes.chroma_size();
        let sample = |x: usize, y: usize| {
            i32::from(planes.differences[plane][y * planes.difference_stride + x])
        };
        let side = |at: usize, count: usize| match at % 2 {
            0 => (at / 2).saturating_sub(1),
            _ => (at / 2 + 1).min(count - 1),
        };
        match self.chroma {
            Chroma::Full => sample(x, y),
            Chroma::HalfWidth => {
                let sum = 3 * sample(x / 2, y) + sample(side(x, width), y);
                (sum + if x.is_multiple_of(2) { 1 } else { 2 }) / 4
            }
            Chroma::Quarter => {
                let (beside, below) = (side(x, width), side(y, height));
                let sum = 9 * sample(x / 2, y / 2)
                    + 3 * sample(beside, y / 2)
                    + 3 * sample(x / 2, below)
                    + sample(beside, below);
                (sum + if x.is_multiple_of(2) { 8 } else { 7 }) / 16
            }
        }
    }

    fn rgb(&self) -> Vec<u8> {
        let (width, height) = (self.size.0 as usize, self.size.1 as usize);
        let mut out = Vec::new();
        for y in 0..height {
            for x in 0..width {
                let luma = f64::from(self.luma[y * (width + self.padding) + x]);
                let [blue, red] = [0, 1].map(|plane| f64::from(self.widened(plane, x, y) - 128));
                // Factors as libjpeg's 16 fraction bits have them; halves go up.
                let fixed = |factor: i32| f64::from(factor) / 65536.0;
                for offset in [
                    fixed(91881) * red,
                    fixed(-22554) * blue + fixed(-46802) * red,
                    fixed(116_130) * blue,
                ] {
                    out.push((luma + (offset + 0.5).floor()).clamp(0.0, 255.0) as u8);
                }
            }
        }
        out
    }
}

fn both(drawn: &Drawn, scaling: &Scaling, rgb: &[u8], backend: Backend) -> [Vec<u8>; 2] {
    let (width, height) = scaling.output_size();
    let mut resizer = Resizer::with_backend(backend).unwrap();
    let mut outs = [7, 8].map(|fill| vec![fill; (width * height * 3) as usize]);
    resizer.resize(scaling, 3, rgb, &mut outs[0]).unwrap();
    resizer
        .resize_ycc(scaling, &drawn.planes(), &mut outs[1])
        .unwrap();
    outs
}

fn backends() -> impl Iterator<Item = Backend> {
    Backend::ALL.into_iter().filter(|kind| kind.is_available())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn planes_are_resized_like_their_rgb(
        width in 5_u32..210, height in 1_u32..40, to in (1_u32..120, 1_u32..60), chroma in prop::sample::select(CHROMAS.to_vec()),
        padding in 0_usize..3, cut in (0.0_f32..0.5, 0.5_f32..1.0), filter in prop::sample::select(Filter::ALL.to_vec()), seed in any::<u64>(),
    ) {
        let drawn = Drawn::new((width, height), chroma, padding, seed);
        let rgb = drawn.rgb();
        let scaling = Scaling::new((width, height), to, filter);
        let window = crate::Window { x: to.0 / 3, y: to.1 / 4, width: (to.0 / 2).max(1), height: (to.1 / 2).max(1) };
        let (w, h) = (width as f32, height as f32);
        let region = crate::Region { left: w * cut.0, top: h * cut.0, right: w * cut.1, bottom: h * cut.1 };
        for backend in backends() {
            for scaling in [scaling, scaling.with_window(window), scaling.with_region(region), Scaling::new((width, height), (width, height), filter)] {
                let [expected, found] = both(&drawn, &scaling, &rgb, backend);
                prop_assert!(expected == found, "{:?} {:?}", backend, scaling);
            }
        }
    }
}

#[test]
fn every_pair_of_differences_is_converted_alike() {
    let ramp: Vec<u8> = (0..=255).collect();
    for luma in [0, 1, 127, 128, 254, 255] {
        let drawn = Drawn {
            size: (256, 256),
            chroma: Chroma::Full,
            luma: vec![luma; 1 << 16],
            differences: [
                ramp.repeat(256),
                ramp.iter().flat_map(|&value| [value; 256]).collect(),
            ],
            padding: 0,
        };
        let rgb = drawn.rgb();
        let scaling = Scaling::new(drawn.size, drawn.size, Filter::Box);
        for backend in backends() {
            let [expected, found] = both(&drawn, &scaling, &rgb, backend);
            assert!(expected == found, "{backend:?} luma {luma}");
        }
    }
}

#[test]
fn large_reductions_take_every_layout_of_the_weights() {
    // Steps of 16 outputs, of 4, and reductions too large for either.
    for (width, to) in [(300, 60), (2000, 100), (2000, 20), (2001, 3)] {
        let drawn = Drawn::new((width, 6), Chroma::Quarter, 1, u64::from(width));
        let rgb = drawn.rgb();
        for filter in Filter::ALL {
            let scaling = Scaling::new((width, 6), (to, 4), filter);
            for backend in backends() {
                let [expected, found] = both(&drawn, &scaling, &rgb, backend);
                assert!(expected == found, "{backend:?} {width} to {to} {filter:?}");
            }
        }
    }
}

#[test]
fn a_region_that_takes_nothing_is_black_by_both_ways() {
    let drawn = Drawn::new((9, 6), Chroma::Quarter, 0, 5);
    let region = crate::Region {
        left: 0.0,
        top: 2.1,
        right: 9.0,
        bottom: 2.2,
    };
    let scaling = Scaling::new((9, 6), (4, 1), Filter::Box).with_region(region);
    let rgb = drawn.rgb();
    for backend in backends() {
        let [expected, found] = both(&drawn, &scaling, &rgb, backend);
        assert!(expected == found, "{backend:?}");
    }
}

#[test]
fn planes_that_do_not_fit_are_refused_with_a_hint() {
    let drawn = Drawn::new((9, 5), Chroma::Quarter, 0, 3);
    let good = drawn.planes();
    let refused = |scaling: Scaling, planes: YccPlanes<'_>, target: usize| {
        let error = Resizer::new()
            .resize_ycc(&scaling, &planes, &mut vec![0; target])
            .unwrap_err();
        assert!(error.hint().is_some());
        error.to_string()
    };
    let scaling = Scaling::new((9, 5), (4, 4), Filter::Bilinear);
    assert_eq!(
        refused(scaling, good, 47),
        "Expected `48` values in the destination buffer, found `47`"
    );
    assert_eq!(
        refused(Scaling::new((5, 9), (4, 4), Filter::Bilinear), good, 48),
        "Expected planes of `5` x `9` pixels, found `9` x `5`"
    );
    let luma = &drawn.luma[1..];
    assert_eq!(
        refused(scaling, YccPlanes { luma, ..good }, 48),
        "Expected `45` values in the luma buffer, found `44`"
    );
    let differences = [good.differences[0], &good.differences[1][..14]];
    assert_eq!(
        refused(
            scaling,
            YccPlanes {
                differences,
                ..good
            },
            48
        ),
        "Expected `15` values in the red difference buffer, found `14`"
    );
    for stride in [4, usize::MAX] {
        let planes = YccPlanes {
            difference_stride: stride,
            ..good
        };
        assert!(refused(scaling, planes, 48).contains("blue difference"));
    }
    let narrow = Drawn::new((4, 5), Chroma::HalfWidth, 0, 3);
    assert_eq!(
        refused(
            Scaling::new((4, 5), (4, 4), Filter::Bilinear),
            narrow.planes(),
            48
        ),
        "Expected chroma rows of at least `3` samples, found `2`"
    );
}
