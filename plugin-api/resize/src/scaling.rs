//! What is resized to what: sizes, filter, part of the source, part of the target, order of the passes. Knows no pixels.

use crate::coefficients::Axis;
use crate::{Filter, ResizeError};

/// Part of the source to read, in source pixels, edges not necessarily whole (Pillow's `box`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Region {
    /// Left edge, from 0.
    pub left: f32,
    /// Upper edge, from 0.
    pub top: f32,
    /// Right edge, at most the width.
    pub right: f32,
    /// Lower edge, at most the height.
    pub bottom: f32,
}

/// Part of the target to write: the same pixels as resizing all of it and cropping, without the work for the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Window {
    /// Left column in target pixels.
    pub x: u32,
    /// Upper row in target pixels.
    pub y: u32,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
}

/// Which pass runs first. Each pass rounds to the pixel type, so the order can move a value by one level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PassOrder {
    /// Pillow 13: horizontal first, unless the height shrinks and by more than twice as many pixels as the width.
    #[default]
    Pillow13,
    /// Pillow up to 12, and torchvision: always horizontal first.
    HorizontalFirst,
}

/// A resize, described. Sides are in pixels, width first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scaling {
    pub(crate) source: (u32, u32),
    pub(crate) target: (u32, u32),
    pub(crate) filter: Filter,
    pub(crate) region: Option<Region>,
    pub(crate) window: Option<Window>,
    pub(crate) order: PassOrder,
}

impl Scaling {
    /// All of the source to all of the target.
    pub fn new(source: (u32, u32), target: (u32, u32), filter: Filter) -> Self {
        Self {
            source,
            target,
            filter,
            region: None,
            window: None,
            order: PassOrder::default(),
        }
    }

    /// Reads only `region` of the source, stretched to the target.
    #[must_use]
    pub fn with_region(mut self, region: Region) -> Self {
        self.region = Some(region);
        self
    }

    /// Writes only `window` of the target.
    #[must_use]
    pub fn with_window(mut self, window: Window) -> Self {
        self.window = Some(window);
        self
    }

    /// Chooses the order of the passes.
    #[must_use]
    pub fn with_order(mut self, order: PassOrder) -> Self {
        self.order = order;
        self
    }

    /// Size of what is written: the window's, else the target's.
    pub fn output_size(&self) -> (u32, u32) {
        self.window
            .map_or(self.target, |window| (window.width, window.height))
    }

    pub(crate) fn check(&self) -> Result<(), ResizeError> {
        for (what, (width, height)) in [
            ("source", self.source),
            ("target", self.target),
            ("window", self.output_size()),
        ] {
            if width == 0 || height == 0 {
                return Err(ResizeError::EmptySide {
                    what,
                    width,
                    height,
                });
            }
        }
        let (width, height) = self.source;
        let Region {
            left,
            top,
            right,
            bottom,
        } = self.full_region();
        let inside =
            |from: f32, to: f32, side: u32| from >= 0.0 && to <= side as f32 && to - from > 0.0;
        if !(inside(left, right, width) && inside(top, bottom, height)) {
            return Err(ResizeError::Region {
                left,
                top,
                right,
                bottom,
                width,
                height,
            });
        }
        let Window {
            x,
            y,
            width,
            height,
        } = self.full_window();
        let (target_width, target_height) = self.target;
        let fits =
            |at: u32, length: u32, side: u32| at.checked_add(length).is_some_and(|end| end <= side);
        if !(fits(x, width, target_width) && fits(y, height, target_height)) {
            return Err(ResizeError::Window {
                x,
                y,
                width,
                height,
                target_width,
                target_height,
            });
        }
        Ok(())
    }

    fn full_region(&self) -> Region {
        let (width, height) = self.source;
        self.region.unwrap_or(Region {
            left: 0.0,
            top: 0.0,
            right: width as f32,
            bottom: height as f32,
        })
    }

    pub(crate) fn full_window(&self) -> Window {
        self.window.unwrap_or(Window {
            x: 0,
            y: 0,
            width: self.target.0,
            height: self.target.1,
        })
    }

    /// The horizontal pass, if one is needed.
    pub(crate) fn horizontal(&self) -> Option<Axis> {
        let Region { left, right, .. } = self.full_region();
        let window = self.full_window();
        let (source, target) = (self.source.0, self.target.0);
        let needed = target != source || left != 0.0 || right != target as f32;
        needed.then_some(Axis {
            source,
            from: left,
            to: right,
            target,
            first: window.x,
            count: window.width,
            filter: self.filter,
        })
    }

    /// The vertical pass, if one is needed.
    pub(crate) fn vertical(&self) -> Option<Axis> {
        let Region { top, bottom, .. } = self.full_region();
        let window = self.full_window();
        let (source, target) = (self.source.1, self.target.1);
        let needed = target != source || top != 0.0 || bottom != target as f32;
        needed.then_some(Axis {
            source,
            from: top,
            to: bottom,
            target,
            first: window.y,
            count: window.height,
            filter: self.filter,
        })
    }

    /// Whether the horizontal pass comes first.
    pub(crate) fn horizontal_first(&self) -> bool {
        let rows = i64::from(self.source.1) - i64::from(self.target.1);
        let columns = i64::from(self.source.0) - i64::from(self.target.0);
        self.order == PassOrder::HorizontalFirst || !(rows > 0 && rows > columns * 2)
    }
}
