//! `focus-host plugin list|seal`.

use super::CommandResult;
use super::args::PluginCommand;
use super::failure::{Code, Failure};
use super::output::{Output, plain_table};
use crate::config::{Folders, WorkerConfig};
use crate::{doctor, eval, plugins};
use focus_models::WorkerOptions;
use focus_plugin_abi::v1::message::PluginDescriptor;
use focus_worker::sidecar::{Manifest, Sidecar};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) fn run(command: &PluginCommand, out: &Output) -> CommandResult {
    match command {
        PluginCommand::List { plugin } => list(plugin.as_deref(), out),
        PluginCommand::Seal { library, manifest } => seal(library, manifest.as_deref(), out),
    }
}

#[derive(Debug, Serialize)]
struct Listed {
    path: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    descriptor: Option<PluginDescriptor>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip)]
    hint: Option<String>,
}

fn list(plugin: Option<&str>, out: &Output) -> CommandResult {
    let folders = Folders::from_environment();
    let files = match plugin {
        Some(wanted) => vec![plugins::find(wanted, &folders).map_err(|error| {
            Failure::new(Code::Plugin, error.to_string()).with_hint(Some(error.hint()))
        })?],
        None => plugins::installed(&folders),
    };
    let listed: Vec<Listed> = files.into_iter().map(describe).collect();
    // Asked about one plugin, its failure is the command's; in a list it is a line.
    if let (
        Some(_),
        [
            Listed {
                error: Some(error),
                hint,
                ..
            },
        ],
    ) = (plugin, listed.as_slice())
    {
        return Err(Failure::new(Code::Plugin, error.clone()).with_hint(hint.clone()));
    }
    out.either(&listed, || table(&listed, &folders))
}

/// What one plugin says of itself.
pub(super) fn described(wanted: &str, folders: &Folders) -> Result<PluginDescriptor, Failure> {
    let file = plugins::find(wanted, folders).map_err(|error| {
        Failure::new(Code::Plugin, error.to_string()).with_hint(Some(error.hint()))
    })?;
    let listed = describe(file);
    listed.descriptor.ok_or_else(|| {
        Failure::new(Code::Plugin, listed.error.unwrap_or_default()).with_hint(listed.hint)
    })
}

fn describe(path: PathBuf) -> Listed {
    let worker = WorkerConfig {
        in_process: false,
        sandbox: true,
        allow_upload: Vec::new(),
        allow_network: Vec::new(),
        load_timeout: Duration::from_mins(1),
        open_timeout: Duration::from_mins(1),
        batch_timeout: Duration::from_mins(1),
        memory: doctor::worker_memory(),
        max_restarts: 0,
        threads: 1,
    };
    let described = eval::worker_options(&path, &worker)
        .and_then(|options| Ok(focus_models::describe(&options)?))
        .map_err(|error| (error.to_string(), error.hint()));
    match described {
        Ok(plugin) => Listed {
            path,
            descriptor: Some(plugin.descriptor),
            error: None,
            hint: None,
        },
        Err((error, hint)) => Listed {
            path,
            descriptor: None,
            error: Some(error),
            hint,
        },
    }
}

fn table(listed: &[Listed], folders: &Folders) -> String {
    if listed.is_empty() {
        let searched: Vec<_> = folders
            .plugin_path
            .iter()
            .map(|dir| dir.display().to_string())
            .collect();
        return format!("No plugins found; searched: {}", searched.join(", "));
    }
    let mut grid = plain_table();
    grid.set_header([
        "plugin", "version", "model", "family", "group", "pixels", "title",
    ]);
    for entry in listed {
        let Some(plugin) = &entry.descriptor else {
            let name = plugins::name_of(&entry.path).to_owned();
            let error = entry.error.clone().unwrap_or_default();
            grid.add_row([
                name,
                String::new(),
                String::new(),
                String::new(),
                String::new(),
                String::new(),
                error,
            ]);
            continue;
        };
        for model in &plugin.models {
            let card = &model.preprocessing;
            grid.add_row([
                plugin.name.clone(),
                plugin.version.clone(),
                model.id.clone(),
                word(&model.family),
                word(&model.group),
                format!("{}x{}", card.width, card.height),
                model.title.clone(),
            ]);
        }
    }
    grid.to_string()
}

fn word(value: &impl Serialize) -> String {
    serde_json::to_value(value)
        .ok()
        .and_then(|v| v.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// Loads the file in a worker before it writes anything: a file that is no plugin must not carry a seal.
fn seal(library: &Path, manifest: Option<&Path>, out: &Output) -> CommandResult {
    let refuse =
        |message: String, hint: Option<String>| Failure::new(Code::Plugin, message).with_hint(hint);
    let unreadable =
        |e: std::io::Error| refuse(format!("Cannot read `{}`: {e}", library.display()), None);
    let library = library.canonicalize().map_err(unreadable)?;
    let manifest = match manifest {
        Some(file) => Some(Manifest::read(file).map_err(|e| refuse(e.to_string(), e.hint()))?),
        None => None,
    };
    let mut options = WorkerOptions::new(
        &library,
        focus_worker::digest_file(&library).map_err(unreadable)?,
    );
    if let Some(manifest) = &manifest {
        let folder = library.parent().unwrap_or(Path::new("."));
        options.library_paths = manifest
            .library_paths
            .iter()
            .map(|path| folder.join(path))
            .collect();
    }
    let plugin = focus_models::describe(&options).map_err(|e| refuse(e.to_string(), e.hint()))?;
    let own = Manifest::from_descriptor(&plugin.descriptor);
    let manifest = manifest.unwrap_or_else(|| own.clone());
    let unknown = manifest
        .devices
        .iter()
        .find(|device| !own.devices.contains(device));
    if (&manifest.name, &manifest.version) != (&own.name, &own.version) || unknown.is_some() {
        let say = |m: &Manifest| format!("{} {} for {}", m.name, m.version, m.devices.join(", "));
        let message = format!(
            "Manifest contradicts the plugin: expected {}, found {}",
            say(&own),
            say(&manifest)
        );
        return Err(refuse(
            message,
            Some("Name, version and devices must be those of the plugin's descriptor".into()),
        ));
    }
    let sidecar =
        Sidecar::write_for(&library, &manifest).map_err(|e| refuse(e.to_string(), e.hint()))?;
    out.either(&sidecar, || {
        format!(
            "Sealed {} ({})",
            Sidecar::path_for(&library).display(),
            sidecar.digest
        )
    })
}
