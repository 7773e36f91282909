//! An image encoder in the host's own process, for debuggers and profilers (`--in-process`). Same answers, same batch plan, same
//! bisecting of typed errors; no protection: a crash, a hang or a leak of the plugin is the host's.
//!
//! A model that panicked is not trusted again: it is opened anew, as a worker would be started anew.
//!
//! Must not know of sockets or processes.

use crate::bisect::{Called, Caller, settle};
use crate::check::Plan;
use crate::error::wire_error;
use crate::logs::{LogTail, Origin};
use crate::{
    Answer, DescribedPlugin, ImageEncoder, ModelError, PixelBatch, PreparedImage, SinkError,
    WorkerOptions,
};
use focus_plugin_abi::v1::message::{OpenOptions, OpenedModel};
use focus_wire::{FailureKind, LoadRequest, WireError};
use focus_worker::{HostEvents, InProcess};
use std::sync::Arc;

/// A model opened in this process. Not `Send`: the plugin stays on the thread that loaded it.
#[derive(Debug)]
pub struct InProcessEncoder {
    plugin: String,
    inner: InProcess,
    opened: OpenedModel,
    plan: Plan,
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
        let ready = opened.and_then(|opened| Plan::new(&opened).map(|plan| (opened, plan)));
        match ready {
            Ok((opened, plan)) => Ok(Self {
                plugin,
                inner,
                opened,
                plan,
                proven: false,
                json,
                panic: None,
                reopened: 0,
            }),
            Err(error) => Err(ModelError::Plugin { plugin, error }),
        }
    }

    /// Contract version the plugin speaks, and what there is of a sandbox (nothing), in words for the run record.
    pub fn record(&self) -> (u32, Vec<String>) {
        (self.inner.contract(), self.inner.sandbox().to_vec())
    }

    /// Open the model again if it panicked.
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
            Ok(opened) if opened == self.opened => Ok(()),
            Ok(opened) => Err(ModelError::changed(plugin, &self.opened, &opened)),
            Err(error) => Err(ModelError::Plugin { plugin, error }),
        }
    }

    fn encode(&mut self, rows: &[(usize, &PreparedImage)]) -> Called {
        let called = self.try_encode(rows);
        if let Err(error) = &called
            && error.kind == FailureKind::Panic
        {
            self.panic = Some(error.clone());
        }
        called
    }

    fn try_encode(&mut self, rows: &[(usize, &PreparedImage)]) -> Called {
        let mut pixels = vec![0; self.plan.batch_bytes() as usize];
        let laid: Vec<(usize, &[u8])> = rows
            .iter()
            .map(|(row, image)| (*row, &*image.pixels))
            .collect();
        self.plan.lay(&mut pixels, &laid);
        let header = self.plan.header(rows.last().map_or(0, |(row, _)| row + 1));
        let reply = self.inner.encode(&header, pixels)?;
        self.plan.check(reply.rows, reply.dim, &reply.values)?;
        self.proven = true;
        Ok(self
            .plan
            .rows(&reply.values, rows.iter().map(|(row, _)| *row)))
    }
}

impl Caller for InProcessEncoder {
    fn call(&mut self, rows: &[(usize, &PreparedImage)]) -> Result<Called, ModelError> {
        self.revive()?;
        Ok(self.encode(rows))
    }

    fn proven(&self) -> bool {
        self.proven
    }

    fn plugin(&self) -> &str {
        &self.plugin
    }
}

impl ImageEncoder for InProcessEncoder {
    fn opened(&self) -> &OpenedModel {
        &self.opened
    }

    fn encode_all(
        &mut self,
        batches: &mut dyn Iterator<Item = PixelBatch>,
        sink: &mut dyn FnMut(Vec<Answer>) -> Result<(), SinkError>,
    ) -> Result<(), ModelError> {
        for batch in batches {
            self.plan.admit(&self.opened.model, &batch)?;
            let images = &batch.images;
            let results = if images.is_empty() {
                Vec::new()
            } else {
                let rows: Vec<_> = images.iter().enumerate().collect();
                let outcome = self.call(&rows)?;
                settle(self, images, outcome)?
            };
            let answers = images
                .iter()
                .zip(results)
                .map(|(image, result)| Answer {
                    sample: image.sample,
                    result,
                })
                .collect();
            sink(answers).map_err(ModelError::Sink)?;
        }
        Ok(())
    }
}
