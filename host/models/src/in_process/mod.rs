//! A model in the host's own process, for debuggers and profilers (`--in-process`). Same answers, same batch plan, same
//! bisecting of typed errors; no protection: a crash, a hang or a leak of the plugin is the host's.
//!
//! A model that panicked is not trusted again: it is opened anew, as a worker would be started anew.
//!
//! Must not know of sockets or processes.

mod generate;
mod images;

use crate::check::{Plans, attach_header, attached};
use crate::error::wire_error;
use crate::logs::{LogTail, Origin};
use crate::{DescribedPlugin, ModelError, WorkerOptions};
use focus_plugin_abi::v1::message::{AttachReply, AttachRequest, OpenOptions, OpenedModel};
use focus_wire::{FailureKind, LoadRequest, Method, Reply, WireError};
use focus_worker::{HostEvents, InProcess};
use std::sync::Arc;

/// A model opened in this process: image encoder, dual encoder and generator, as far as it is that. Not `Send`: the plugin stays on the thread that loaded it.
#[derive(Debug)]
pub struct InProcessEncoder {
    plugin: String,
    inner: InProcess,
    opened: OpenedModel,
    plans: Plans,
    adapters: Vec<(AttachRequest, AttachReply)>,
    proven: bool,
    json: String,
    panic: Option<WireError>,
    reopened: u32,
}

/// How often a panicked model is opened again.
const MAX_REOPENED: u32 = 100;

/// The plugin's log goes where a worker's would.
struct Events(Arc<LogTail>);

impl HostEvents for Events {
    fn log(&self, level: u32, message: &str) {
        self.0.line(Origin::Callback(level.min(5) as u8), message);
    }

    fn progress(&self, stage: &str, done: u64, total: u64) {
        self.0
            .line(Origin::Callback(4), &format!("{stage}: {done} of {total}"));
    }

    fn cancelled(&self) -> bool {
        false
    }
}

fn load(options: &WorkerOptions, threads: u32) -> Result<InProcess, ModelError> {
    let plugin = options.plugin_name();
    let request = LoadRequest {
        library: options.library.to_string_lossy().into_owned(),
        digest: options.digest.clone(),
        sandbox: false,
        network: options.network.clone(),
        threads,
    };
    let events = Arc::new(Events(LogTail::new(&plugin)));
    InProcess::load(&request, events).map_err(|error| ModelError::Plugin { plugin, error })
}

fn parse<T: serde::de::DeserializeOwned>(json: &str) -> Result<T, WireError> {
    serde_json::from_str(json).map_err(|error| {
        wire_error(
            FailureKind::BadReply,
            format!("The plugin's answer is not what the contract says: {error}"),
        )
    })
}

/// Load the plugin into this process and ask it to describe itself. It stays loaded until the process ends.
pub fn describe_in_process(options: &WorkerOptions) -> Result<DescribedPlugin, ModelError> {
    let inner = load(options, 1)?;
    let descriptor = inner.describe().and_then(|json| parse(&json));
    let descriptor = descriptor.map_err(|error| ModelError::Plugin {
        plugin: options.plugin_name(),
        error,
    })?;
    Ok(DescribedPlugin {
        descriptor,
        digest: options.digest.clone(),
        contract: inner.contract(),
        sandbox: inner.sandbox().to_vec(),
    })
}

impl InProcessEncoder {
    /// Load the plugin into this process and open the model. Of the options, `library` and `digest` count.
    pub fn open(options: &WorkerOptions, open: &OpenOptions) -> Result<Self, ModelError> {
        let plugin = options.plugin_name();
        let mut inner = load(options, open.threads)?;
        let json = serde_json::to_string(open).expect("options are strings and numbers");
        let opened = inner
            .open(&json)
            .and_then(|json| parse::<OpenedModel>(&json));
        let ready = opened.and_then(|opened| Plans::new(&opened, 1).map(|plans| (opened, plans)));
        match ready {
            Ok((opened, plans)) => Ok(Self {
                plugin,
                inner,
                opened,
                plans,
                adapters: Vec::new(),
                proven: false,
                json,
                panic: None,
                reopened: 0,
            }),
            Err(error) => Err(ModelError::Plugin { plugin, error }),
        }
    }

    /// What was opened.
    pub fn opened(&self) -> &OpenedModel {
        &self.opened
    }

    /// Contract version the plugin speaks, and what there is of a sandbox (nothing), in words for the run record.
    pub fn record(&self) -> (u32, Vec<String>) {
        (self.inner.contract(), self.inner.sandbox().to_vec())
    }

    /// Open the model again if it panicked, with the adapters it had.
    fn revive(&mut self) -> Result<(), ModelError> {
        let Some(last) = self.panic.take() else {
            return Ok(());
        };
        let plugin = self.plugin.clone();
        if self.reopened >= MAX_REOPENED {
            return Err(ModelError::RestartsUsedUp {
                plugin,
                restarts: self.reopened,
                last,
            });
        }
        self.reopened += 1;
        let opened = self.inner.open(&self.json);
        match opened.and_then(|json| parse::<OpenedModel>(&json)) {
            Ok(opened) if opened == self.opened => {}
            Ok(opened) => return Err(ModelError::changed(plugin, &self.opened, &opened)),
            Err(error) => return Err(self.error(error)),
        }
        for (request, expected) in &self.adapters {
            let header = attach_header(request);
            let reply = self.inner.call(Method::AttachAdapter, header, Vec::new());
            let found = reply
                .and_then(|reply| attached(request, &reply))
                .map_err(|error| self.error(error))?;
            ModelError::same_adapter(&plugin, expected, &found)?;
        }
        Ok(())
    }

    fn error(&self, error: WireError) -> ModelError {
        ModelError::Plugin {
            plugin: self.plugin.clone(),
            error,
        }
    }

    /// Call a method of the model, which has been revived.
    fn call(
        &mut self,
        method: Method,
        header: String,
        pixels: Vec<u8>,
    ) -> Result<Reply, WireError> {
        let called = self.inner.call(method, header, pixels);
        if let Err(error) = &called
            && error.kind == FailureKind::Panic
        {
            self.panic = Some(error.clone());
        }
        called
    }
}
