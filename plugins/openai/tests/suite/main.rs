//! The plugin against a server of its own that behaves and misbehaves as told.

mod answers;
mod leaks;
mod misdeeds;
mod mock;
mod opening;
mod patience;
mod support;
