//! Messages between the host and a worker process, and their framing. Types only: no sockets, no processes, no models.
//!
//! A frame is a little-endian `u32` length followed by that many bytes of postcard. Both ends are the same executable,
//! so the format needs no versions; `Hello` carries the build's digest to prove it.

mod frame;
mod message;

pub use frame::{FrameError, MAX_FRAME, MAX_HEADER, read_frame, write_frame};
pub use message::{
    Area, FailureKind, FromWorker, LoadRequest, Matrix, Method, Reply, ToWorker, WireError,
};
