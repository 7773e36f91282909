//! `focus-host dataset fetch`.

use super::CommandResult;
use super::args::FetchArgs;
use super::failure::{Code, Failure};
use super::output::Output;
use focus_fetch::{
    Cancel, Client, Context, Dataset, Event, FetchError, Folder, Keyring, Limits, Progress,
    Proxies, Registry, System, Unpacked, fetch_dataset, unpack_all,
};
use indicatif::ProgressBar;
use std::path::PathBuf;
use std::process::ExitCode;

pub(crate) fn run(args: &FetchArgs, out: &Output) -> CommandResult {
    let mut registry = Registry::built_in();
    if let Some(file) = &args.registry {
        registry.extend(file).map_err(failure)?;
    }
    let Some(id) = &args.id else {
        return list(&registry, out);
    };
    let dataset = registry.get(id).map_err(failure)?;
    let to = args.to.clone().unwrap_or_else(|| PathBuf::from(id));
    if let Some(steps) = dataset.steps(&to) {
        let told = serde_json::json!({"dataset": id, "by_hand": steps, "terms": dataset.sign});
        return out.either(&told, || format!("{}{steps}\n", terms(dataset)));
    }
    out.note(terms(dataset).trim_end());
    let client = Client::new(Limits::default(), Proxies::FromEnvironment);
    let listener = Listener(out.byte_bar());
    let context = Context {
        client: &client,
        machine: &System,
        progress: &listener,
        cancel: &Cancel::new(),
    };
    let keyring = Keyring::from_environment();
    let summary =
        fetch_dataset(&context, dataset, registry.bases(), &keyring, &to).map_err(failure)?;
    if let Some(bar) = &listener.0 {
        bar.finish_and_clear();
    }
    let failed: Vec<_> = summary
        .failed()
        .map(|(name, error)| serde_json::json!({"file": name, "error": error.to_string()}))
        .collect();
    // Archives come whole or not at all, so those that are there can be unpacked even where another file is missing.
    let fetched = summary.files.iter().filter(|file| file.result.is_ok());
    let unpacked = if args.no_unpack {
        Unpacked::default()
    } else {
        let folder = Folder::open(&to).map_err(failure)?;
        unpack_all(&context, &folder, fetched.map(|file| file.name.as_str())).map_err(failure)?
    };
    let told = serde_json::json!({
        "unpacked": unpacked,
        "dataset": id,
        "folder": to,
        "fetched": summary.fetched(),
        "present": summary.present(),
        "received": summary.received(),
        "failed": failed,
    });
    out.either(&told, || {
        let mut text = format!(
            "{} files in `{}`\n",
            summary.fetched() + summary.present(),
            to.display()
        );
        if unpacked.written + unpacked.present > 0 {
            text.push_str(&format!(
                "{} files unpacked now, {} were there\n",
                unpacked.written, unpacked.present
            ));
        }
        for (name, error) in summary.failed() {
            text.push_str(&format!("failed   {name}: {error}\n"));
        }
        for note in &dataset.notes {
            text.push_str(&format!("note     {note}\n"));
        }
        text
    })?;
    match summary.failed().next() {
        None => Ok(ExitCode::SUCCESS),
        Some((name, error)) => Err(Failure::new(
            Code::Input,
            format!("{} files are not there, `{name}` the first", failed.len()),
        )
        .with_hint(
            error
                .hint()
                .or_else(|| Some("Run the same command again: what is there is kept".into())),
        )),
    }
}

fn failure(error: FetchError) -> Failure {
    let hint = error.hint();
    Failure::from_error(Code::Input, &error, hint)
}

fn terms(dataset: &Dataset) -> String {
    let mut text = format!(
        "{} ({})\nlicence  {}\n",
        dataset.name, dataset.id, dataset.licence
    );
    for line in &dataset.sign {
        text.push_str(&format!("needs    {line}\n"));
    }
    text
}

fn list(registry: &Registry, out: &Output) -> CommandResult {
    let all: Vec<&Dataset> = registry.datasets().collect();
    let told: Vec<_> = all
        .iter()
        .map(|d| serde_json::json!({"id": d.id, "name": d.name, "licence": d.licence, "sign": d.sign}))
        .collect();
    out.either(&told, || {
        let mut grid = super::output::plain_table();
        grid.set_header(["dataset", "name", "licence", "by hand"]);
        for dataset in &all {
            let by_hand = dataset.steps(&PathBuf::from(".")).is_some();
            grid.add_row([
                dataset.id.as_str(),
                &dataset.name,
                &dataset.licence,
                if by_hand { "yes" } else { "" },
            ]);
        }
        grid.to_string()
    })
}

/// Events as a bar of bytes on a terminal, and log lines.
pub(super) struct Listener(pub(super) Option<ProgressBar>);

impl Progress for Listener {
    fn event(&self, event: &Event<'_>) {
        match event {
            Event::Planned { files, bytes } => {
                tracing::info!(files, bytes, "fetching");
                if let Some(bar) = &self.0 {
                    bar.set_length(bytes.unwrap_or(0));
                }
            }
            Event::Started { have: bytes, .. } | Event::Received { bytes, .. } => {
                if let Some(bar) = &self.0 {
                    bar.inc(*bytes);
                }
            }
            Event::Retrying {
                name,
                attempt,
                wait,
                error,
            } => {
                tracing::warn!(%name, attempt, wait_s = wait.as_secs_f64(), %error, "trying again");
            }
            Event::Restarted {
                name,
                discarded,
                reason,
            } => tracing::warn!(%name, discarded, %reason, "starting again"),
            _ => {}
        }
    }
}
