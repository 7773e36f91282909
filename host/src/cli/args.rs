//! The commands and options, as clap reads them. Help texts are the reference; docs/cli.md is generated from them.

use crate::config;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Evaluate retinal AI models on colour fundus photographs.
///
/// Models are native plugins (dylibs) that run in a process of their own; datasets are read through sandboxed WASM mappers.
#[derive(Debug, Parser)]
#[command(name = "focus-host", version, propagate_version = true, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The exit codes, shown below the help.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  an unexpected failure of focus-host itself
  2  the command line makes no sense
  3  bad input (dataset, label file, image folder, run folder), or a file or folder that cannot be read or written
  4  the plugin could not be loaded or failed as a whole
  5  finished, but a cell failed (too many images without an answer, or a missing metric's cause is an error)
  6  verify or a check found a difference
  7  the run folder is in use by another process, or belongs to another run";

/// Options of every command.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// Print results as JSON on stdout.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// No progress and no notes on stderr; errors only.
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// More log lines; repeat for more. FOCUS_LOG takes filters (`focus_models=debug`).
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Evaluate a model on a dataset and write a run folder.
    Eval(Box<EvalArgs>),
    /// List, inspect and seal model plugins.
    Plugin {
        #[command(subcommand)]
        command: PluginCommand,
    },
    /// List dataset mappers and map a dataset's labels.
    Dataset {
        #[command(subcommand)]
        command: DatasetCommand,
    },
    /// Print the report of a run folder.
    Report(ReportArgs),
    /// Rebuild a run's probe fits, metrics and report from its stored answers and compare.
    Verify(VerifyArgs),
    /// Check this machine: sandbox, memory, folders, plugins, mappers.
    Doctor,
    /// Print a shell completion script.
    Completions {
        /// The shell to complete for.
        shell: clap_complete::Shell,
    },
    /// Serve one plugin over a socket; started by focus-host itself.
    #[command(hide = true)]
    Worker(WorkerArgs),
}

#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    /// The model plugin: a dylib's path, or a name looked up in FOCUS_PLUGIN_PATH and the usual folders.
    #[arg(long, value_name = "PATH|NAME")]
    pub(crate) plugin: String,
    /// Which model of the plugin [default: its first].
    #[arg(long, value_name = "ID")]
    pub(crate) model: Option<String>,
    /// A switch of the model's own; repeatable.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) settings: Vec<(String, String)>,
    /// Folder with the model's weights.
    #[arg(long, value_name = "DIR")]
    pub(crate) weights: Option<PathBuf>,
    /// Dataset: an embedded mapper's id, or the path of a mapper component.
    #[arg(long, value_name = "ID|PATH", default_value = config::DEFAULT_DATASET)]
    pub(crate) dataset: String,
    /// The dataset's folder, as downloaded. Not needed for the embedded synthetic dataset.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// An option of the mapper; repeatable.
    #[arg(long = "dataset-option", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) dataset_options: Vec<(String, String)>,
    /// Tasks, comma separated [default: all that the dataset has labels for].
    #[arg(long, value_name = "TASK", value_delimiter = ',')]
    pub(crate) tasks: Vec<String>,
    /// Methods, comma separated [default: all that fit the model].
    #[arg(long, value_name = "METHOD", value_delimiter = ',')]
    pub(crate) methods: Vec<String>,
    /// Use at most N images of each split, in record order; for trying things out. 0: all.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) limit: usize,
    /// Run folder; the same command resumes an interrupted run there [default: runs/<dataset>-<model>-<key>].
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Device for model and probe: cpu or cuda:N.
    #[arg(long, default_value = "cpu")]
    pub(crate) device: String,
    /// Number type of the model [default: the model card's first].
    #[arg(long, value_name = "f32|bf16|f16")]
    pub(crate) dtype: Option<String>,
    /// Share of a cell's test images that may fail before the cell counts as failed (exit code 5).
    #[arg(long, value_name = "SHARE", default_value_t = config::DEFAULT_ERROR_BUDGET, value_parser = share)]
    pub(crate) error_budget: f64,
    /// Compute everything anew: neither read nor write the embedding and pixel caches.
    #[arg(long)]
    pub(crate) no_cache: bool,
    /// Prepared pixels are kept for other models of the same size until they take MIB in all.
    #[arg(long, value_name = "MIB", default_value_t = config::DEFAULT_PIXEL_CACHE_MIB, value_parser = clap::value_parser!(u64).range(..=1 << 30))]
    pub(crate) pixel_cache: u64,
    #[command(flatten)]
    pub(crate) worker: WorkerOptions,
}

/// How the plugin's process is run.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Worker")]
pub(crate) struct WorkerOptions {
    /// Load the plugin into this process, for debuggers. A crash then ends focus-host.
    #[arg(long)]
    pub(crate) in_process: bool,
    /// Let the plugin write files and open sockets. Recorded in the run.
    #[arg(long)]
    pub(crate) no_sandbox: bool,
    /// Grant the plugin the network for this host, if its sidecar asks for it; repeatable. Recorded in the run.
    #[arg(long, value_name = "HOST")]
    pub(crate) allow_network: Vec<String>,
    /// Seconds the plugin may take to load.
    #[arg(long, value_name = "S", default_value_t = config::DEFAULT_LOAD_SECONDS, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) load_timeout: u64,
    /// Seconds the model may take to open.
    #[arg(long, value_name = "S", default_value_t = config::DEFAULT_OPEN_SECONDS, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) open_timeout: u64,
    /// Seconds a batch may take before its worker is killed and the images at fault are found.
    #[arg(long, value_name = "S", default_value_t = config::DEFAULT_BATCH_SECONDS, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) batch_timeout: u64,
    /// Resident memory in MiB at which the worker is killed [default: 80 % of what is available].
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(16..))]
    pub(crate) worker_memory: Option<u64>,
    /// Restarts of the worker before the run gives up.
    #[arg(long, value_name = "N", default_value_t = config::DEFAULT_MAX_RESTARTS)]
    pub(crate) max_restarts: u32,
    /// CPU threads of the worker [default: all].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) threads: Option<u32>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// List the plugins found, or the models of one plugin.
    List {
        /// A dylib's path or a plugin's name.
        #[arg(long, value_name = "PATH|NAME")]
        plugin: Option<String>,
    },
    /// Write the sidecar of a plugin you trust: contract version, digest, permissions.
    Seal {
        /// The dylib.
        library: PathBuf,
        /// The author's manifest with devices, library paths and permissions wanted.
        #[arg(long, value_name = "FILE")]
        manifest: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum DatasetCommand {
    /// List the embedded mappers with licence and access route.
    List,
    /// Map a dataset's label files and say what came of it.
    Map {
        /// An embedded mapper's id, or the path of a mapper component.
        #[arg(long, value_name = "ID|PATH", default_value = config::DEFAULT_DATASET)]
        dataset: String,
        /// The dataset's folder, as downloaded.
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
        /// An option of the mapper; repeatable.
        #[arg(long = "dataset-option", value_name = "KEY=VALUE", value_parser = key_value)]
        options: Vec<(String, String)>,
        /// Write the records as JSON lines to this file.
        #[arg(long, value_name = "FILE")]
        records: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The run folder.
    pub(crate) run: PathBuf,
    /// How to write it.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// A report's form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table for the terminal.
    Text,
    /// Markdown.
    Markdown,
    /// JSON.
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// The run folder.
    pub(crate) run: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    /// Number of the inherited socket.
    #[arg(long)]
    pub(crate) socket_fd: i32,
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.into(), value.into())),
        _ => Err("expected KEY=VALUE".into()),
    }
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=1.0).contains(&value) => Ok(value),
        _ => Err("expected a number from 0 to 1".into()),
    }
}
