//! Groups of features. Siblings: none imports another; each takes the frame and writes into a sink.

pub mod blob;
pub mod colour;
pub mod nerve;
pub mod pattern;
