//! `focus-host synth predictions`.

use super::CommandResult;
use super::args::{PresetArg, SynthPredictionsArgs};
use super::failure::{Code, Failure};
use super::output::Output;
use super::report::catalogue;
use crate::report;
use focus_analysis::{Catalogue, Family};
use focus_exchange::{Preset, SimModel, simulate};
use focus_store::RunView;

pub(crate) fn run(args: &SynthPredictionsArgs, out: &Output) -> CommandResult {
    let preset = match args.preset {
        PresetArg::Published => Preset::Published,
        PresetArg::Null => Preset::Null,
        PresetArg::Small => Preset::Small,
    };
    let plan = preset.plan(&models(&catalogue(None)?), args.seed);
    let summary = simulate(&plan, &args.out, env!("CARGO_PKG_VERSION"))
        .map_err(|error| Failure::from_error(Code::Input, &error, error.hint()))?;
    if !args.no_report {
        let run = RunView::open(&args.out)
            .map_err(|error| Failure::from_error(Code::Input, &error, error.hint()))?;
        report::store_grid(&run).map_err(super::report::failure)?;
    }
    out.either(&summary, || {
        format!(
            "{} cells, {} rows, {} images in `{}`; what is true of them in `truth.json`\n",
            summary.cells,
            summary.rows,
            summary.images,
            args.out.display()
        )
    })
}

/// The benchmark's models as readers, each under its family's methods; language models with their adapters too.
fn models(catalogue: &Catalogue) -> Vec<SimModel> {
    let trained_on: Vec<String> = catalogue
        .datasets()
        .iter()
        .filter(|dataset| dataset.fine_tuning)
        .map(|dataset| dataset.id.clone())
        .collect();
    catalogue
        .models()
        .iter()
        .map(|model| SimModel {
            id: model.id.clone(),
            methods: model
                .family
                .published_methods()
                .iter()
                .map(|method| (*method).to_owned())
                .collect(),
            adapters: if model.family == Family::Mllm {
                trained_on.clone()
            } else {
                Vec::new()
            },
        })
        .collect()
}
