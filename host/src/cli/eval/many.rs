//! Several models in one command: a run folder each, one after another. What they share, prepared pixels and embeddings, they share
//! through the caches on disk. A model that fails does not keep the others from theirs.

use super::super::CommandResult;
use super::super::args::{EvalArgs, Weights};
use super::super::failure::{Code, Failure};
use super::super::output::{Output, plain_table};
use super::super::plugin::described;
use super::{config, failed_cells};
use crate::config::{EvalConfig, Folders};
use crate::eval::{self, RunOutcome};
use focus_plugin_abi::v1::message::ModelDescriptor;
use std::fmt::Write as _;
use std::process::ExitCode;

/// What `--model` says for every model.
pub(super) const ALL: &str = "all";

pub(super) fn run(args: &EvalArgs, folders: &Folders, out: &Output) -> CommandResult {
    let offered = args
        .plugins
        .iter()
        .map(|plugin| Ok((plugin.as_str(), described(plugin, folders)?.models)))
        .collect::<Result<Vec<_>, Failure>>()?;
    let chosen = choose(&offered, &args.models)?;
    let mut configs = Vec::with_capacity(chosen.len());
    for (plugin, model) in &chosen {
        configs.push(of_model(args, plugin, model, folders)?);
    }
    let mut rows = Vec::with_capacity(configs.len());
    for (at, ((_, model), config)) in chosen.iter().zip(&configs).enumerate() {
        out.note(&format!("model {} of {}: {model}", at + 1, configs.len()));
        let ended = eval::run(config, &out.progress()).map_err(Failure::from);
        if let Err(failure) = &ended {
            out.note(&failure.for_people(false));
        }
        rows.push(Row {
            model,
            ended,
            config,
        });
    }
    tell(&rows, args, out)?;
    let first = rows.iter().find_map(|row| row.ended.as_ref().err());
    Ok(match first {
        Some(failure) => failure.exit_code(),
        None if rows.iter().any(Row::has_failed_cells) => ExitCode::from(Code::CellFailed as u8),
        None => ExitCode::SUCCESS,
    })
}

/// Plugin and model of each run, in the order asked; of `all` and of nothing asked, in the plugins' order.
fn choose<'a>(
    offered: &[(&'a str, Vec<ModelDescriptor>)],
    asked: &[String],
) -> Result<Vec<(&'a str, String)>, Failure> {
    let mut chosen = Vec::new();
    if asked.is_empty() {
        for (plugin, models) in offered {
            let first = models.first().ok_or_else(|| {
                Failure::new(Code::Plugin, format!("Plugin `{plugin}` offers no model"))
            })?;
            chosen.push((*plugin, first.id.clone()));
        }
    }
    for id in asked {
        let here = offered.iter().flat_map(|(plugin, models)| {
            models
                .iter()
                .filter(|model| {
                    // A card without a length of embedding is of whatever its folder describes: no model until it is named.
                    model.id == *id || (id == ALL && model.embedding_dim.is_some())
                })
                .map(|model| (*plugin, model.id.clone()))
        });
        let before = chosen.len();
        chosen.extend(here);
        if chosen.len() == before {
            let known: Vec<String> = offered
                .iter()
                .flat_map(|(_, models)| models.iter().map(|model| format!("`{}`", model.id)))
                .collect();
            return Err(
                Failure::new(Code::Usage, format!("No plugin here has a model `{id}`"))
                    .with_hint(Some(format!("Their models: {}", known.join(", ")))),
            );
        }
    }
    for (at, (_, id)) in chosen.iter().enumerate() {
        if let Some((other, _)) = chosen[..at].iter().find(|(_, before)| before == id) {
            return Err(Failure::new(
                Code::Usage,
                format!("Model `{id}` is asked for twice, first of plugin `{other}`"),
            )
            .with_hint(Some(
                "Name each model once; models of one name in two plugins go into two commands"
                    .into(),
            )));
        }
    }
    Ok(chosen)
}

fn of_model(
    args: &EvalArgs,
    plugin: &str,
    model: &String,
    folders: &Folders,
) -> Result<EvalConfig, Failure> {
    let mut config = config(args, plugin, Some(model), folders.clone())?;
    config.out = args.out.as_ref().map(|out| out.join(folder_name(model)));
    if let Some(Weights::Folder(folder)) = &args.weights {
        config.weights = Some(folder.join(model));
    }
    Ok(config)
}

/// `google_siglip2-base-patch16-224`: a folder's name, without folders in it.
fn folder_name(model: &str) -> String {
    model.replace(['/', '\\'], "_")
}

struct Row<'a> {
    model: &'a str,
    config: &'a EvalConfig,
    ended: Result<RunOutcome, Failure>,
}

impl Row<'_> {
    fn has_failed_cells(&self) -> bool {
        let failed = |run: &RunOutcome| failed_cells(run) > 0 || run.report.cells.is_empty();
        self.ended.as_ref().is_ok_and(failed)
    }

    fn json(&self) -> serde_json::Value {
        match &self.ended {
            Ok(run) => serde_json::json!({
                "model": self.model,
                "plugin": self.config.plugin,
                "folder": run.folder,
                "cells": run.report.cells.len(),
                "failed_cells": failed_cells(run),
                "images": run.counts,
                "error": null,
            }),
            Err(failure) => serde_json::json!({
                "model": self.model,
                "plugin": self.config.plugin,
                "folder": null,
                "cells": 0,
                "failed_cells": 0,
                "images": null,
                "error": failure.value(),
            }),
        }
    }

    fn cells(&self) -> Vec<String> {
        let mut cells = vec![self.model.to_owned()];
        match &self.ended {
            Ok(run) => {
                let (all, failed) = (run.report.cells.len(), failed_cells(run));
                cells.push(match failed {
                    0 => all.to_string(),
                    _ => format!("{all}, {failed} failed"),
                });
                let counts = run.counts;
                for count in [
                    counts.computed,
                    counts.cached,
                    counts.resumed,
                    counts.failed,
                ] {
                    cells.push(count.to_string());
                }
                cells.push(run.folder.display().to_string());
            }
            Err(failure) => {
                cells.extend(std::iter::repeat_n("-".to_owned(), 5));
                cells.push(format!("not done: {}", failure.message()));
            }
        }
        cells
    }
}

fn tell(rows: &[Row<'_>], args: &EvalArgs, out: &Output) -> CommandResult {
    let all: Vec<_> = rows.iter().map(Row::json).collect();
    out.either(&serde_json::json!({ "runs": all }), || {
        let mut table = plain_table();
        table.set_header([
            "model",
            "cells",
            "computed",
            "cached",
            "resumed",
            "failed",
            "run folder",
        ]);
        for row in rows {
            table.add_row(row.cells());
        }
        let done = rows.iter().filter(|row| row.ended.is_ok()).count();
        let mut text = table.to_string();
        let _ = write!(text, "\n\n{done} of {} models evaluated", rows.len());
        text
    })?;
    let folders: Vec<String> = match &args.out {
        Some(folder) => vec![format!("{}/*", folder.display())],
        None => rows
            .iter()
            .filter_map(|row| Some(row.ended.as_ref().ok()?.folder.display().to_string()))
            .collect(),
    };
    if !folders.is_empty() {
        out.note(&format!(
            "every table: focus-host report {}",
            folders.join(" ")
        ));
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn models(ids: &[(&str, Option<u32>)]) -> Vec<ModelDescriptor> {
        let one = |(id, dim): &(&str, Option<u32>)| {
            serde_json::from_value(serde_json::json!({
                "id": id, "title": "A model", "family": "vlm", "group": "general",
                "interfaces": ["image_encoder"], "embedding_dim": dim,
                "preprocessing": {"mode": "resized", "width": 8, "height": 8, "geometry": {"kind": "squash"}, "filter": "bilinear"},
                "dtypes": ["f32"], "devices": ["cpu"], "batch_size": 8
            }))
            .expect("a constant that parses")
        };
        ids.iter().map(one).collect()
    }

    fn chosen(asked: &[&str]) -> Result<Vec<(&'static str, String)>, Failure> {
        let offered = [
            ("one", models(&[("a/x", Some(4)), ("checkpoint", None)])),
            ("two", models(&[("b", Some(4)), ("c", Some(4))])),
        ];
        let asked: Vec<String> = asked.iter().map(|id| (*id).to_owned()).collect();
        choose(&offered, &asked)
    }

    #[test]
    fn models_are_found_in_whichever_plugin_has_them() {
        let names = |asked: &[&str]| -> Vec<String> {
            let found = chosen(asked).expect("found");
            found.iter().map(|(p, m)| format!("{p}:{m}")).collect()
        };
        assert_eq!(names(&[]), ["one:a/x", "two:b"]);
        assert_eq!(names(&["c", "a/x"]), ["two:c", "one:a/x"]);
        assert_eq!(names(&["all"]), ["one:a/x", "two:b", "two:c"]);
        assert_eq!(names(&["checkpoint"]), ["one:checkpoint"]);
        for (asked, wanted) in [
            (&["d"][..], "No plugin here has a model `d`"),
            (&["b", "b"], "asked for twice"),
            (&["all", "c"], "asked for twice"),
        ] {
            let failure = chosen(asked).expect_err("refused");
            assert!(failure.message().contains(wanted), "{failure:?}");
        }
        assert_eq!(folder_name("a/x"), "a_x");
    }
}
