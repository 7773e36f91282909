//! `focus-host eval`: one model, or [`many`].

mod many;

use super::CommandResult;
use super::args::{BatchSize, DecodeArg, EvalArgs, SplitArg, SplitArgs, Weights};
use super::failure::{Code, Failure};
use super::output::Output;
use crate::config::{EvalConfig, Folders, SplitChoice, WorkerConfig};
use crate::eval::RunOutcome;
use crate::{doctor, eval, plugins, report};
use focus_analysis::CellStatus;
use focus_plugin_abi::v1::message::RANDOM_WEIGHTS;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

pub(crate) fn run(args: &EvalArgs, out: &Output) -> CommandResult {
    let folders = Folders::from_environment();
    if let ([plugin], [] | [_]) = (args.plugins.as_slice(), args.models.as_slice())
        && args.models.first().is_none_or(|id| id != many::ALL)
    {
        return one(&config(args, plugin, args.models.first(), folders)?, out);
    }
    many::run(args, &folders, out)
}

fn one(config: &EvalConfig, out: &Output) -> CommandResult {
    let progress = out.progress();
    let outcome = eval::run(config, &progress)?;
    let form = if out.json() { "json" } else { "text" };
    let text = report::render(&outcome.report, form)
        .ok_or_else(|| Failure::internal(format!("No renderer named `{form}`")))?;
    out.result(&text)?;
    out.note(&format!("run          {}", outcome.folder.display()));
    Ok(
        if failed_cells(&outcome) > 0 || outcome.report.cells.is_empty() {
            ExitCode::from(Code::CellFailed as u8)
        } else {
            ExitCode::SUCCESS
        },
    )
}

fn failed_cells(outcome: &RunOutcome) -> usize {
    let cells = &outcome.report.cells;
    cells
        .iter()
        .filter(|cell| cell.analysis.status == CellStatus::Failed)
        .count()
}

/// What a run of one model is asked to do.
fn config(
    args: &EvalArgs,
    plugin: &str,
    model: Option<&String>,
    folders: Folders,
) -> Result<EvalConfig, Failure> {
    let plugin = plugins::find(plugin, &folders).map_err(|error| {
        Failure::new(Code::Plugin, error.to_string()).with_hint(Some(error.hint()))
    })?;
    for (at, (key, _)) in args.settings.iter().enumerate() {
        if args.settings[..at].iter().any(|(other, _)| other == key) {
            return Err(Failure::new(
                Code::Usage,
                format!("Setting `{key}` is given twice"),
            ));
        }
    }
    let mut settings: BTreeMap<String, String> = args.settings.iter().cloned().collect();
    let weights = match &args.weights {
        None => None,
        Some(Weights::Folder(folder)) => Some(folder.clone()),
        Some(Weights::Random(seed)) => {
            let drawn = settings.insert(RANDOM_WEIGHTS.into(), format!("random:{seed}"));
            if drawn.is_some() {
                let message = format!("Setting `{RANDOM_WEIGHTS}` is given beside `--weights`");
                return Err(Failure::new(Code::Usage, message));
            }
            None
        }
    };
    Ok(EvalConfig {
        plugin,
        model: model.cloned(),
        settings,
        weights,
        dataset: args.dataset.clone(),
        data: args.data.clone(),
        dataset_options: args.dataset_options.clone(),
        tasks: args.tasks.clone(),
        methods: args.methods.clone(),
        split: split(&args.split),
        limit: args.limit,
        out: args.out.clone(),
        device: args.device.clone(),
        dtype: args.dtype.clone(),
        batch_size: match args.batch_size {
            BatchSize::Auto => None,
            BatchSize::Of(size) => Some(size),
        },
        error_budget: args.error_budget,
        worker: worker(&args.worker),
        cache: !args.no_cache,
        pixel_cache: args.pixel_cache << 20,
        field: args.field,
        decode: decode(args.decode),
        folders,
    })
}

/// How JPEG is decoded.
pub(super) fn decode(arg: DecodeArg) -> focus_images::Decode {
    match arg {
        DecodeArg::Exact => focus_images::Decode::Exact,
        DecodeArg::Fast => focus_images::Decode::Fast,
    }
}

/// Where the split comes from.
pub(super) fn split(args: &SplitArgs) -> SplitChoice {
    match args.split {
        SplitArg::Auto => SplitChoice::Auto(args.split_seed),
        SplitArg::Source => SplitChoice::Source,
        SplitArg::Own => SplitChoice::Own(args.split_seed),
    }
}

/// The worker's options with this machine's defaults filled in.
pub(super) fn worker(args: &super::args::WorkerOptions) -> WorkerConfig {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    WorkerConfig {
        in_process: args.in_process,
        sandbox: !args.no_sandbox,
        allow_network: args.allow_network.clone(),
        load_timeout: Duration::from_secs(args.load_timeout),
        open_timeout: Duration::from_secs(args.open_timeout),
        batch_timeout: Duration::from_secs(args.batch_timeout),
        memory: args
            .worker_memory
            .map_or_else(doctor::worker_memory, |mib| mib << 20),
        max_restarts: args.max_restarts,
        threads: args.threads.unwrap_or(threads).max(1),
    }
}
