//! `focus-worker --socket-fd N`: the worker process as a program of its own, for library users without a `focus-host` binary.
//!
//! Must not do anything itself.

fn main() {
    focus_worker::run_from_args(std::env::args_os().skip(1))
}
