//! The operating system behind a safe face: pixel memory shared with a worker, descriptors over sockets, starting a
//! worker process, locking it down, watching its memory. Linux x86-64 is what is tested.
//!
//! Knows nothing of messages, plugins or models. One of the few crates that may hold `unsafe`.

pub mod fd;
pub mod sandbox;
pub mod shm;
pub mod spawn;
pub mod watch;

mod error;

pub use error::OsError;
pub use fd::{FD_MARK, recv_with_fd, send_with_fd};
pub use sandbox::SandboxSpec;
pub use shm::{ReadOnlySlots, WritableSlots};
pub use spawn::{ProcessEnd, WorkerCommand, WorkerProcess};
pub use watch::MemoryWatch;
