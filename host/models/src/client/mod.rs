//! A model in a worker process: batches pipelined through shared memory, deaths survived. One process serves all that one open model
//! can be asked.
//!
//! The supervisor's rules. A process that died, hung, grew too large, panicked, lost its device or broke the contract is replaced;
//! each replacement counts against `max_restarts`, opens the same model again and attaches the same adapters. What streams keep to
//! is in `stream`.
//!
//! Must not know of datasets or stores. What the process is lies behind `life`; what is said to it in `session`.
//!
//! Rooms: `stream` (pipelining of any kind of call) under `images` and `generate`; `texts`; `adapters`.

mod adapters;
mod generate;
mod images;
mod stream;
mod texts;

use crate::check::Plans;
use crate::error::wire_error;
use crate::life::{Launcher, ProcessLauncher};
use crate::session::{Failure, Loaded, Session};
use crate::{ClientOptions, ModelError, Timeouts, WorkerOptions};
use focus_os::{OsError, WritableSlots};
use focus_plugin_abi::v1::message::{AttachReply, AttachRequest, OpenedModel};
use focus_wire::{FailureKind, LoadRequest, Method, Reply, WireError};
use std::time::Duration;

/// What a run record says of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerRecord {
    /// Contract version the plugin speaks.
    pub contract: u32,
    /// What of the sandbox is in force, in words.
    pub sandbox: Vec<String>,
    /// How often the process was restarted.
    pub restarts: u32,
    /// Largest resident set of any of its lives, bytes.
    pub peak_memory: u64,
}

/// A model in a worker process: [`ImageEncoder`](crate::ImageEncoder), [`DualEncoder`](crate::DualEncoder) and
/// [`Generator`](crate::Generator), as far as the model is that; what it is not, it answers with `unsupported`. Dropping it ends the
/// process.
pub struct WorkerClient {
    launcher: Box<dyn Launcher>,
    setup: Setup,
    max_restarts: u32,
    opened: OpenedModel,
    plans: Plans,
    slots: WritableSlots,
    /// What is attached, in order.
    adapters: Vec<(AttachRequest, AttachReply)>,
    session: Option<Session>,
    next_call: u64,
    restarts: u32,
    /// The session was given up by the host: replacing it is not the plugin's fault.
    given_up: bool,
    last_failure: Option<WireError>,
    proven: bool,
    loaded: Loaded,
    peak_memory: u64,
}

/// What every life is told first.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub(crate) plugin: String,
    pub(crate) load: LoadRequest,
    pub(crate) timeouts: Timeouts,
    open: String,
}

impl Setup {
    pub(crate) fn new(worker: &WorkerOptions, threads: u32, open: String) -> Self {
        Self {
            plugin: worker.plugin_name(),
            load: LoadRequest {
                library: worker.library.to_string_lossy().into_owned(),
                digest: worker.digest.clone(),
                sandbox: worker.sandbox,
                network: worker.network.clone(),
                threads,
            },
            timeouts: worker.timeouts,
            open,
        }
    }

    /// Launch and load: the part that describing and opening share.
    pub(crate) fn start(
        &self,
        launcher: &mut dyn Launcher,
    ) -> Result<(Session, Loaded), StartError> {
        let mut session = Session::begin(launcher.launch()?)?;
        let loaded = session.load(self.load.clone(), self.timeouts.load)?;
        Ok((session, loaded))
    }

    pub(crate) fn error(&self, error: StartError) -> ModelError {
        match error {
            StartError::Os(source) => ModelError::Worker {
                plugin: self.plugin.clone(),
                source,
            },
            StartError::Failure(failure) => self.plugin_error(failure.error),
            StartError::Changed(error) => error,
        }
    }

    fn plugin_error(&self, error: WireError) -> ModelError {
        ModelError::Plugin {
            plugin: self.plugin.clone(),
            error,
        }
    }
}

/// Why a life did not come up.
#[derive(Debug)]
pub(crate) enum StartError {
    Os(OsError),
    Failure(Failure),
    /// It came up as something else than before.
    Changed(ModelError),
}

impl From<OsError> for StartError {
    fn from(error: OsError) -> Self {
        Self::Os(error)
    }
}

impl From<Failure> for StartError {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<ModelError> for StartError {
    fn from(error: ModelError) -> Self {
        Self::Changed(error)
    }
}

impl WorkerClient {
    /// Start a worker, load the plugin, open the model, map the pixel memory.
    pub fn open(options: &ClientOptions) -> Result<Self, ModelError> {
        let launcher = ProcessLauncher::new(&options.worker, options.open.threads);
        Self::open_with(Box::new(launcher), options)
    }

    pub(crate) fn open_with(
        mut launcher: Box<dyn Launcher>,
        options: &ClientOptions,
    ) -> Result<Self, ModelError> {
        let open = serde_json::to_string(&options.open).expect("options are strings and numbers");
        let setup = Setup::new(&options.worker, options.open.threads, open);
        let start = |launcher: &mut dyn Launcher| -> Result<_, StartError> {
            let (mut session, loaded) = setup.start(launcher)?;
            let opened = session.open(&setup.open, setup.timeouts.open)?;
            let count = options.slots.max(1);
            let plans =
                Plans::new(&opened, count).map_err(|error| Failure { error, over: true })?;
            // A generator's slots grow with the first pictures.
            let bytes = plans.images.map_or(1, |plan| plan.batch_bytes());
            let slots = WritableSlots::create(count, bytes)?;
            session.attach(&slots, setup.timeouts.load)?;
            Ok((session, loaded, opened, plans, slots))
        };
        let (session, loaded, opened, plans, slots) =
            start(&mut *launcher).map_err(|error| setup.error(error))?;
        Ok(Self {
            launcher,
            setup,
            max_restarts: options.max_restarts,
            opened,
            plans,
            slots,
            adapters: Vec::new(),
            session: Some(session),
            next_call: 0,
            restarts: 0,
            given_up: false,
            last_failure: None,
            proven: false,
            loaded,
            peak_memory: 0,
        })
    }

    /// What was opened.
    pub fn opened(&self) -> &OpenedModel {
        &self.opened
    }

    /// What a run record says of it so far.
    pub fn record(&self) -> WorkerRecord {
        WorkerRecord {
            contract: self.loaded.contract,
            sandbox: self.loaded.sandbox.clone(),
            restarts: self.restarts,
            peak_memory: self
                .peak_memory
                .max(self.session.as_ref().map_or(0, Session::peak_memory)),
        }
    }

    /// Process id of the worker, for a debugger or a profiler; `None` while there is none. A restart changes it.
    pub fn worker_id(&self) -> Option<u32> {
        self.session.as_ref().map(Session::worker_id)
    }

    /// End the worker in good order; dropping it kills the worker instead.
    pub fn close(mut self) -> WorkerRecord {
        let record = self.record();
        if let Some(session) = self.session.take() {
            session.shut_down();
        }
        record
    }

    /// Note a failure; a session that is over goes.
    fn note(&mut self, failure: &Failure) {
        self.last_failure = Some(failure.error.clone());
        if failure.over {
            tracing::warn!(
                plugin = self.setup.plugin,
                kind = failure.error.kind.name(),
                "{}",
                failure.error.message
            );
            self.end_session();
        }
    }

    fn end_session(&mut self) {
        if let Some(session) = self.session.take() {
            self.peak_memory = self.peak_memory.max(session.peak_memory());
        }
    }

    /// The living session, after restarting as often as it takes and the budget allows.
    fn session(&mut self) -> Result<&mut Session, ModelError> {
        while self.session.is_none() {
            if self.given_up {
                self.given_up = false;
            } else if self.restarts >= self.max_restarts {
                return Err(ModelError::RestartsUsedUp {
                    plugin: self.setup.plugin.clone(),
                    restarts: self.restarts,
                    last: self.last_words(),
                });
            } else {
                self.restarts += 1;
                tracing::info!(
                    plugin = self.setup.plugin,
                    restart = self.restarts,
                    "Worker restarts"
                );
            }
            match self.restart() {
                Ok(session) => self.session = Some(session),
                // A life that ended while it started may do better the next time; a plain no will not.
                Err(StartError::Failure(failure)) if failure.over => self.note(&failure),
                Err(error) => return Err(self.setup.error(error)),
            }
        }
        Ok(self
            .session
            .as_mut()
            .expect("the loop above ends with a session"))
    }

    fn restart(&mut self) -> Result<Session, StartError> {
        let (mut session, loaded) = self.setup.start(&mut *self.launcher)?;
        self.loaded = loaded;
        let opened = session.open(&self.setup.open, self.setup.timeouts.open)?;
        if opened != self.opened {
            let plugin = self.setup.plugin.clone();
            return Err(ModelError::changed(plugin, &self.opened, &opened).into());
        }
        session.attach(&self.slots, self.setup.timeouts.load)?;
        self.attach_again(&mut session)?;
        Ok(session)
    }

    /// Slots of at least this size. Only while no call is open: the worker would answer one where the new memory's receipt is due.
    fn grow_slots(&mut self, bytes: u64) -> Result<(), ModelError> {
        if bytes <= self.slots.slot_bytes() {
            return Ok(());
        }
        let bytes = self.plans.groups.slot_bytes(bytes);
        self.slots = WritableSlots::create(self.slots.slots(), bytes)
            .map_err(|source| self.setup.error(source.into()))?;
        if let Some(session) = self.session.as_mut()
            && let Err(failure) = session.attach(&self.slots, self.setup.timeouts.load)
        {
            // The next life is told of the new slots when it starts.
            self.note(&failure);
            self.end_session();
        }
        Ok(())
    }

    fn number_call(&mut self) -> u64 {
        self.next_call += 1;
        self.next_call - 1
    }

    /// The reply to `call` after it passed `check`, the oldest call open.
    fn fetch<T>(
        &mut self,
        call: u64,
        method: Method,
        timeout: Duration,
        check: impl FnOnce(Reply) -> Result<T, WireError>,
    ) -> Result<T, Failure> {
        let Some(session) = self.session.as_mut() else {
            let error = self.last_words();
            return Err(Failure { error, over: true });
        };
        let checked = session
            .answered(call, method, timeout)
            .and_then(|reply| check(reply).map_err(|error| Failure { error, over: true }));
        if let Err(failure) = &checked {
            self.note(failure);
        }
        checked
    }

    /// Call a method that takes no array, while no call is open. A process that dies of it gets a second chance.
    fn ask<T>(
        &mut self,
        method: Method,
        header: &str,
        timeout: Duration,
        check: impl Fn(Reply) -> Result<T, WireError>,
    ) -> Result<T, ModelError> {
        let mut last = false;
        loop {
            let call = self.number_call();
            self.session()?.call(call, method, header.to_owned(), None);
            match self.fetch(call, method, timeout, &check) {
                Ok(reply) => return Ok(reply),
                Err(failure) if last || !failure.over => {
                    return Err(self.setup.plugin_error(failure.error));
                }
                Err(_) => last = true,
            }
        }
    }

    /// What is known of a session that is not there.
    fn last_words(&self) -> WireError {
        self.last_failure
            .clone()
            .unwrap_or_else(|| wire_error(FailureKind::Crash, "The worker ended".into()))
    }

    /// A stream ended early with `open` calls unanswered. If the model does not stop soon, a fresh process is the quickest way back to
    /// a known state.
    fn give_up(&mut self, method: Method, open: usize) {
        let kept = self
            .session
            .as_mut()
            .map(|session| session.cancel(method, open));
        if kept != Some(true) {
            self.end_session();
            self.given_up = true;
        }
    }
}

impl std::fmt::Debug for WorkerClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerClient")
            .field("plugin", &self.setup.plugin)
            .field("opened", &self.opened)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
