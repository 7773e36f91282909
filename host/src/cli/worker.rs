//! `focus-host worker`: hands the inherited socket to focus-worker. Sets up nothing and prints nothing.

use super::args::WorkerArgs;
use std::process::ExitCode;

pub(crate) fn run(args: &WorkerArgs) -> ExitCode {
    focus_worker::run_from_fd(args.socket_fd)
}
