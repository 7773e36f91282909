//! focus-worker: the process that loads a plugin and answers for it, and the same operations as plain calls.
//!
//! Owns `dlopen`, the checks before it, and every read through a plugin's pointers. Must not know of datasets, tasks, metrics,
//! restarts or time-outs: whoever started the process watches over it. Prints nothing: the process's stdout and stderr are the
//! plugin's log.
//!
//! Rooms:
//! * [`sidecar`]: `libx.toml` beside `libx.so`, read before any code of the plugin runs.
//! * `library`: digest, sealed copy, `dlopen`, contract version.
//! * `session`: a loaded plugin and its open model; the only caller of the contract. `request` makes its arrays, `reply` reads them.
//! * `serve`: the session behind a socket ([`run_from_fd`]). `in_process`: the session behind calls ([`InProcess`]).
//!
//! # Traps
//! * A library is never unloaded, and one path is never loaded with two contents: glibc would answer with the first.
//! * The plugin runs on the thread that loaded it; the socket is read by another, which ends the process at EOF whatever the plugin
//!   is doing.

mod failure;
mod in_process;
mod library;
mod reply;
mod request;
mod serve;
mod session;
pub mod sidecar;

pub use focus_plugin_abi::v1::HostEvents;
pub use in_process::InProcess;
pub use library::digest_file;
pub use serve::{EXIT_BAD_SOCKET, EXIT_GONE, EXIT_PROTOCOL, run_from_args, run_from_fd};
pub use sidecar::Sidecar;
