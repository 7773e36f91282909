//! An image encoder in a worker process: batches pipelined through shared memory, deaths survived.
//!
//! The supervisor's rules. Answers leave in order. While the worker computes one batch the next already lies in another slot. A batch
//! that fails is settled by `bisect` before anything later is looked at; batches behind it are answered first if the process
//! lives, or sent again after it was restarted. A process that died, hung, grew too large, panicked, lost its device or broke the
//! contract is replaced; each replacement counts against `max_restarts`.
//!
//! Must not know of datasets or stores. What the process is lies behind `life`; what is said to it in `session`.

use crate::bisect::{Called, Caller, RowResult, settle};
use crate::check::Plan;
use crate::error::wire_error;
use crate::life::{Launcher, ProcessLauncher};
use crate::session::{Failure, Loaded, Session};
use crate::{
    Answer, ClientOptions, ImageEncoder, ModelError, PixelBatch, PreparedImage, SinkError,
    Timeouts, WorkerOptions,
};
use focus_os::{OsError, WritableSlots};
use focus_plugin_abi::v1::message::OpenedModel;
use focus_wire::{FailureKind, LoadRequest, WireError};
use std::collections::VecDeque;

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

/// An image encoder in a worker process. Dropping it ends the process.
pub struct WorkerClient {
    launcher: Box<dyn Launcher>,
    setup: Setup,
    max_restarts: u32,
    opened: OpenedModel,
    plan: Plan,
    slots: WritableSlots,
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
            StartError::Failure(failure) => ModelError::Plugin {
                plugin: self.plugin.clone(),
                error: failure.error,
            },
        }
    }
}

/// Why a life did not come up.
#[derive(Debug)]
pub(crate) enum StartError {
    Os(OsError),
    Failure(Failure),
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
            let plan = Plan::new(&opened).map_err(|error| Failure { error, over: true })?;
            let slots = WritableSlots::create(options.slots.max(1), plan.batch_bytes())?;
            session.attach(&slots, setup.timeouts.load)?;
            Ok((session, loaded, opened, plan, slots))
        };
        let (session, loaded, opened, plan, slots) =
            start(&mut *launcher).map_err(|error| setup.error(error))?;
        Ok(Self {
            launcher,
            setup,
            max_restarts: options.max_restarts,
            opened,
            plan,
            slots,
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
                let unknown = || wire_error(FailureKind::Crash, "The worker ended".into());
                return Err(ModelError::RestartsUsedUp {
                    plugin: self.setup.plugin.clone(),
                    restarts: self.restarts,
                    last: self.last_failure.clone().unwrap_or_else(unknown),
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
                Ok((session, opened)) => {
                    if opened != self.opened {
                        return Err(ModelError::changed(
                            self.setup.plugin.clone(),
                            &self.opened,
                            &opened,
                        ));
                    }
                    self.session = Some(session);
                }
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

    fn restart(&mut self) -> Result<(Session, OpenedModel), StartError> {
        let (mut session, loaded) = self.setup.start(&mut *self.launcher)?;
        let opened = session.open(&self.setup.open, self.setup.timeouts.open)?;
        session.attach(&self.slots, self.setup.timeouts.load)?;
        self.loaded = loaded;
        Ok((session, opened))
    }

    /// Put images at their rows of `slot` and submit; returns the call's number.
    fn submit(&mut self, slot: u32, rows: &[(usize, &PreparedImage)]) -> Result<u64, ModelError> {
        self.session()?;
        let call = self.next_call;
        self.next_call += 1;
        let laid: Vec<(usize, &[u8])> = rows
            .iter()
            .map(|(row, image)| (*row, &*image.pixels))
            .collect();
        self.plan.lay(self.slots.slot_mut(slot), &laid);
        let header = self.plan.header(rows.last().map_or(0, |(row, _)| row + 1));
        let bytes = self.plan.batch_bytes();
        self.session()?.encode(call, slot, header, bytes);
        Ok(call)
    }

    /// Fetch the answer to `call`, whose images lie at `rows`.
    fn fetch(&mut self, call: u64, rows: impl Iterator<Item = usize>) -> Called {
        let Some(session) = self.session.as_mut() else {
            return Err(self
                .last_failure
                .clone()
                .unwrap_or_else(|| wire_error(FailureKind::Crash, "The worker ended".into())));
        };
        let checked = session
            .encoded(call, self.setup.timeouts.batch)
            .and_then(
                |reply| match self.plan.check(reply.rows, reply.dim, &reply.values) {
                    Ok(()) => Ok(reply.values),
                    Err(error) => Err(Failure { error, over: true }),
                },
            );
        match checked {
            Ok(values) => {
                self.proven = true;
                Ok(self.plan.rows(&values, rows))
            }
            Err(failure) => {
                self.note(&failure);
                Err(failure.error)
            }
        }
    }

    /// Keep every slot busy.
    fn fill(
        &mut self,
        flying: &mut VecDeque<Flight>,
        batches: &mut dyn Iterator<Item = PixelBatch>,
        more: &mut bool,
    ) -> Result<(), ModelError> {
        // First what a death threw back, in order; then new batches.
        for flight in flying.iter_mut() {
            self.launch_flight(flight)?;
        }
        while *more && flying.len() < self.slots.slots() as usize {
            let Some(batch) = batches.next() else {
                *more = false;
                break;
            };
            self.plan.admit(&self.opened.model, &batch)?;
            let slot = (0..self.slots.slots())
                .find(|slot| flying.iter().all(|flight| flight.slot != *slot));
            let slot = slot.expect("fewer batches fly than there are slots");
            let state = if batch.images.is_empty() {
                State::Answered(Ok(Vec::new()))
            } else {
                State::Unsent
            };
            let mut flight = Flight { batch, slot, state };
            self.launch_flight(&mut flight)?;
            flying.push_back(flight);
        }
        Ok(())
    }

    fn launch_flight(&mut self, flight: &mut Flight) -> Result<(), ModelError> {
        if matches!(flight.state, State::Unsent) {
            let rows: Vec<_> = flight.batch.images.iter().enumerate().collect();
            flight.state = State::Sent(self.submit(flight.slot, &rows)?);
        }
        Ok(())
    }

    /// Results of the oldest batch. Leaves no call of a later one open if anything failed.
    fn land(
        &mut self,
        flight: Flight,
        later: &mut VecDeque<Flight>,
    ) -> Result<Vec<Answer>, ModelError> {
        let images = &flight.batch.images;
        let outcome = match flight.state {
            State::Sent(call) => self.fetch(call, 0..images.len()),
            State::Answered(outcome) => outcome,
            State::Unsent => Err(self
                .last_failure
                .clone()
                .expect("unsent after filling only if a session ended")),
        };
        let clean = matches!(&outcome, Ok(rows) if rows.iter().all(Result::is_ok));
        let results = if clean {
            outcome.expect("clean is Ok")
        } else {
            for flight in later.iter_mut() {
                if let State::Sent(call) = flight.state {
                    let images = flight.batch.images.len();
                    // Without a session the call died with the process, unanswered and unblamed.
                    flight.state = if self.session.is_some() {
                        State::Answered(self.fetch(call, 0..images))
                    } else {
                        State::Unsent
                    };
                }
            }
            settle(self, images, outcome)?
        };
        Ok(images
            .iter()
            .zip(results)
            .map(|(image, result)| Answer {
                sample: image.sample,
                result,
            })
            .collect())
    }

    fn run(
        &mut self,
        batches: &mut dyn Iterator<Item = PixelBatch>,
        sink: &mut dyn FnMut(Vec<Answer>) -> Result<(), SinkError>,
    ) -> Result<(), ModelError> {
        let mut flying = VecDeque::new();
        let mut more = true;
        self.fill(&mut flying, batches, &mut more)?;
        while let Some(front) = flying.pop_front() {
            let answers = self.land(front, &mut flying)?;
            // The worker gets its next batch before the caller gets to work on this one's answers.
            self.fill(&mut flying, batches, &mut more)?;
            sink(answers).map_err(ModelError::Sink)?;
        }
        Ok(())
    }
}

/// A batch between `batches` and `sink`.
struct Flight {
    batch: PixelBatch,
    slot: u32,
    state: State,
}

enum State {
    Unsent,
    Sent(u64),
    Answered(Called),
}

impl Caller for WorkerClient {
    /// Only while no call is open, so that the first slot is free.
    fn call(
        &mut self,
        rows: &[(usize, &PreparedImage)],
    ) -> Result<Result<Vec<RowResult>, WireError>, ModelError> {
        let call = self.submit(0, rows)?;
        Ok(self.fetch(call, rows.iter().map(|(row, _)| *row)))
    }

    fn proven(&self) -> bool {
        self.proven
    }

    fn plugin(&self) -> &str {
        &self.setup.plugin
    }
}

impl ImageEncoder for WorkerClient {
    fn opened(&self) -> &OpenedModel {
        &self.opened
    }

    fn encode_all(
        &mut self,
        batches: &mut dyn Iterator<Item = PixelBatch>,
        sink: &mut dyn FnMut(Vec<Answer>) -> Result<(), SinkError>,
    ) -> Result<(), ModelError> {
        let result = self.run(batches, sink);
        if result.is_err() {
            // Calls may be open and slots in use: a fresh process is the quickest way back to a known state.
            self.end_session();
            self.given_up = true;
        }
        result
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
