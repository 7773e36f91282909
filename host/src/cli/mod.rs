//! The command line: the only room that prints. Results go to stdout, progress and complaints to stderr.
//!
//! Each command is a file; `failure` turns errors into messages, hints and exit codes.

mod args;
mod audit;
mod bars;
mod compare;
mod dataset;
mod doctor;
mod eval;
mod failure;
mod fetch;
mod import;
mod output;
mod plugin;
mod predictions;
mod prepare;
mod report;
mod synth;
mod verify;
mod weights;
mod worker;

use clap::{CommandFactory, Parser};
use failure::Failure;
use std::process::ExitCode;

/// Parse the command line, run the command, say how it went.
pub fn main() -> ExitCode {
    let cli = args::Cli::parse();
    if let args::Command::Worker(command) = &cli.command {
        // Before any set-up: the worker's only output is its socket.
        return worker::run(command);
    }
    output::start_logging(&cli.global);
    let out = output::Output::new(&cli.global);
    let result = match cli.command {
        args::Command::Eval(command) => eval::run(&command, &out),
        args::Command::Plugin { command } => plugin::run(&command, &out),
        args::Command::Dataset { command } => dataset::run(&command, &out),
        args::Command::Weights { command } => weights::run(&command, &out),
        args::Command::Report(command) => report::run(&command, &out),
        args::Command::Compare(command) => compare::run(&command, &out),
        args::Command::Verify(command) => verify::run(&command, &out),
        args::Command::Import { command } => import::run(&command, &out),
        args::Command::Export(command) => import::export(&command, &out),
        args::Command::Synth(command) => synth::run(&command, &out),
        args::Command::Doctor => doctor::run(&out),
        args::Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut args::Cli::command(), "focus-host", &mut script);
            out.result(&String::from_utf8_lossy(&script))
        }
        args::Command::Worker(_) => unreachable!("handled above"),
    };
    match result {
        Ok(code) => code,
        Err(failure) => {
            out.failure(&failure);
            failure.exit_code()
        }
    }
}

/// What a command returns: an exit code, or why it could not do its work.
type CommandResult = Result<ExitCode, Failure>;
