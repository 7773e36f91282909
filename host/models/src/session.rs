//! The conversation with one life of a worker: requests, answers in time, and what a silence or a closed socket means.
//!
//! Must not know of batches' images, bisecting or restarts: a session that has failed is thrown away by its owner.

use crate::error::{MESSAGE_CAP, capped, wire_error};
use crate::life::{Control, Life};
use crate::logs::{LogTail, Origin};
use focus_os::{FD_MARK, ProcessEnd, WritableSlots, send_with_fd};
use focus_plugin_abi::v1::message::{OpenedModel, PluginDescriptor};
use focus_wire::{
    Area, FailureKind, FrameError, FromWorker, LoadRequest, MAX_HEADER, Method, Reply, ToWorker,
    WireError, read_frame, write_frame,
};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// How long a process may take to be gone after its socket closed or it was killed, and its pipes to run dry.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a worker may take to read a request: requests are small, so only a stopped process fills its socket.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// Messages that may wait for the host before the worker is held up.
const INBOX: usize = 2;

/// What the worker was doing, in words of an error message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Load,
    Describe,
    Open,
    Attach,
    Call(Method),
}

impl Phase {
    fn word(self) -> &'static str {
        match self {
            Self::Load => "loading the plugin",
            Self::Describe => "describing the plugin",
            Self::Open => "opening the model",
            Self::Attach => "mapping the pixel memory",
            Self::Call(Method::Encode) => "encoding",
            Self::Call(Method::EncodeTexts) => "encoding texts",
            Self::Call(Method::Generate) => "generating",
            Self::Call(Method::AttachAdapter) => "attaching an adapter",
            Self::Call(Method::DetachAdapter) => "detaching an adapter",
        }
    }
}

/// A request that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) error: WireError,
    /// The process is gone or must not be trusted with another request.
    pub(crate) over: bool,
}

/// A typed error after which the process is not trusted: a panic may have left anything behind, a device context does not
/// recover, memory that ran out may be fragmented, and who breaks the contract once does it again.
fn distrusted(kind: FailureKind) -> bool {
    use FailureKind::{BadReply, Crash, Device, Hang, MemoryKill, OutOfMemory, Panic, Wire};
    matches!(
        kind,
        Panic | Device | OutOfMemory | Crash | Hang | MemoryKill | BadReply | Wire
    )
}

/// What `Load` brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Loaded {
    pub(crate) contract: u32,
    pub(crate) sandbox: Vec<String>,
}

/// A living worker. Dropping it ends the process.
pub(crate) struct Session {
    socket: UnixStream,
    inbox: Receiver<Result<FromWorker, FrameError>>,
    control: Box<dyn Control>,
    logs: Arc<LogTail>,
}

impl Session {
    pub(crate) fn begin(life: Life) -> Result<Self, Failure> {
        let Life {
            socket,
            control,
            logs,
        } = life;
        let lost = |error: std::io::Error| Failure {
            error: wire_error(
                FailureKind::Wire,
                format!("Cannot talk to the worker: {error}"),
            ),
            over: true,
        };
        socket
            .set_write_timeout(Some(WRITE_TIMEOUT))
            .map_err(lost)?;
        let reader = socket.try_clone().map_err(lost)?;
        let (sender, inbox) = sync_channel(INBOX);
        let tail = Arc::clone(&logs);
        std::thread::Builder::new()
            .name("focus-inbox".into())
            .spawn(move || read_all(reader, &tail, &sender))
            .map_err(lost)?;
        Ok(Self {
            socket,
            inbox,
            control,
            logs,
        })
    }

    pub(crate) fn load(
        &mut self,
        request: LoadRequest,
        timeout: Duration,
    ) -> Result<Loaded, Failure> {
        self.send(&ToWorker::Load(request));
        match self.receive(Phase::Load, timeout)? {
            FromWorker::Loaded { contract, sandbox } => Ok(Loaded { contract, sandbox }),
            other => Err(unexpected(Phase::Load, &other)),
        }
    }

    pub(crate) fn describe(&mut self, timeout: Duration) -> Result<PluginDescriptor, Failure> {
        self.send(&ToWorker::Describe);
        match self.receive(Phase::Describe, timeout)? {
            FromWorker::Described { descriptor } => parse(Phase::Describe, &descriptor),
            other => Err(unexpected(Phase::Describe, &other)),
        }
    }

    pub(crate) fn open(
        &mut self,
        options: &str,
        timeout: Duration,
    ) -> Result<OpenedModel, Failure> {
        self.send(&ToWorker::Open {
            options: options.to_owned(),
        });
        match self.receive(Phase::Open, timeout)? {
            FromWorker::Opened { opened } => parse(Phase::Open, &opened),
            other => Err(unexpected(Phase::Open, &other)),
        }
    }

    pub(crate) fn attach(
        &mut self,
        slots: &WritableSlots,
        timeout: Duration,
    ) -> Result<(), Failure> {
        self.send(&ToWorker::Attach {
            slots: slots.slots(),
            slot_bytes: slots.slot_bytes(),
        });
        // The byte after the frame carries the descriptor; a worker that is gone is met at `receive`.
        drop(send_with_fd(&self.socket, &[FD_MARK], slots.as_fd()));
        match self.receive(Phase::Attach, timeout)? {
            FromWorker::Attached => Ok(()),
            other => Err(unexpected(Phase::Attach, &other)),
        }
    }

    /// Submit a call; the answer is fetched with [`Self::answered`], in order of submission.
    pub(crate) fn call(&mut self, call: u64, method: Method, header: String, pixels: Option<Area>) {
        self.send(&ToWorker::Call {
            call,
            method,
            header,
            pixels,
        });
    }

    /// The answer to `call`, which must be the oldest one submitted and not yet fetched.
    pub(crate) fn answered(
        &mut self,
        call: u64,
        method: Method,
        timeout: Duration,
    ) -> Result<Reply, Failure> {
        let phase = Phase::Call(method);
        match self.receive(phase, timeout)? {
            FromWorker::Answered { call: found, reply }
                if found == call && reply.header.len() <= MAX_HEADER =>
            {
                Ok(reply)
            }
            FromWorker::Answered { call: found, reply } if found == call => Err(Failure {
                error: wire_error(
                    FailureKind::BadReply,
                    format!(
                        "Header of an answer is too long: expected at most {MAX_HEADER} bytes, found {}",
                        reply.header.len()
                    ),
                ),
                over: true,
            }),
            FromWorker::Answered { call: found, .. } => Err(Failure {
                error: wire_error(
                    FailureKind::BadReply,
                    format!("Answer to another call: expected {call}, found {found}"),
                ),
                over: true,
            }),
            other => Err(unexpected(phase, &other)),
        }
    }

    /// Tell the model to stop, and wait a moment for the answers to the `open` calls, which nobody wants. Whether the worker can be
    /// used again.
    pub(crate) fn cancel(&mut self, method: Method, open: usize) -> bool {
        if open > 0 {
            self.send(&ToWorker::Cancel);
        }
        (0..open).all(|_| match self.receive(Phase::Call(method), PATIENCE) {
            Ok(message) => matches!(message, FromWorker::Answered { .. }),
            Err(failure) => !failure.over,
        })
    }

    /// Ask it to end, give it a moment, end it.
    pub(crate) fn shut_down(mut self) {
        self.send(&ToWorker::Shutdown);
        self.control.wait(PATIENCE);
    }

    pub(crate) fn worker_id(&self) -> u32 {
        self.control.id()
    }

    pub(crate) fn peak_memory(&self) -> u64 {
        self.control.peak_memory()
    }

    /// A failed write means that the worker is gone or stuck; the next `receive` finds out which and says it better.
    fn send(&mut self, message: &ToWorker) {
        if let Err(error) = write_frame(&mut &self.socket, message) {
            tracing::debug!(%error, "Request not delivered");
            // A request cut short must not be answered: the peer sees the end of the stream instead.
            drop(self.socket.shutdown(Shutdown::Write));
        }
    }

    fn receive(&mut self, phase: Phase, timeout: Duration) -> Result<FromWorker, Failure> {
        match self.inbox.recv_timeout(timeout) {
            Ok(Ok(FromWorker::Failed { error, .. })) => {
                let over = distrusted(error.kind);
                let hint = error.hint.map(|hint| capped(&hint, MESSAGE_CAP));
                Err(Failure {
                    error: WireError {
                        hint,
                        ..wire_error(error.kind, error.message)
                    },
                    over,
                })
            }
            Ok(Ok(message)) => Ok(message),
            Ok(Err(error @ (FrameError::TooLarge(_) | FrameError::Malformed(_)))) => {
                self.control.kill();
                let message = format!(
                    "The worker sent what is no message while {}: {error}",
                    phase.word()
                );
                Err(self.over(FailureKind::Wire, message))
            }
            Ok(Err(FrameError::Closed | FrameError::Io(_)))
            | Err(RecvTimeoutError::Disconnected) => Err(self.death(phase)),
            Err(RecvTimeoutError::Timeout) => {
                self.control.kill();
                // The memory watch may have been first.
                if self.control.memory_killed_at().is_some() {
                    return Err(self.death(phase));
                }
                let message = format!(
                    "The worker gave no answer within {timeout:?} while {} and was killed",
                    phase.word()
                );
                Err(self.over(FailureKind::Hang, message))
            }
        }
    }

    /// The socket closed: why?
    fn death(&mut self, phase: Phase) -> Failure {
        let end = self.control.wait(PATIENCE);
        let doing = phase.word();
        if let Some(bytes) = self.control.memory_killed_at() {
            let mut failure = self.over(
                FailureKind::MemoryKill,
                format!("The worker grew past its memory limit while {doing} and was killed"),
            );
            add_hint(
                &mut failure,
                format!("It held {} MiB when it was killed", bytes >> 20),
            );
            return failure;
        }
        let Some(end) = end else {
            self.control.kill();
            return self.over(
                FailureKind::Crash,
                format!("The worker closed its connection while {doing} and was killed"),
            );
        };
        let mut failure = self.over(
            FailureKind::Crash,
            format!("The worker {}{end} while {doing}", verb(end)),
        );
        if matches!(end, ProcessEnd::Killed(9)) {
            add_hint(
                &mut failure,
                "Nothing in the host killed it; the system may have run out of memory".into(),
            );
        }
        failure
    }

    /// An error that ends the session, with what the worker printed last as its hint: messages stay the same from run to run.
    fn over(&self, kind: FailureKind, message: String) -> Failure {
        self.control.wait(PATIENCE);
        let hint = self
            .logs
            .last_words(PATIENCE / 4)
            .map(|words| capped(&words, MESSAGE_CAP));
        Failure {
            error: WireError {
                hint,
                ..wire_error(kind, message)
            },
            over: true,
        }
    }
}

/// Advice goes before what the worker printed.
fn add_hint(failure: &mut Failure, hint: String) {
    failure.error.hint = Some(match failure.error.hint.take() {
        Some(words) => format!("{hint}\n{words}"),
        None => hint,
    });
}

fn verb(end: ProcessEnd) -> &'static str {
    match end {
        ProcessEnd::Exited(_) => "",
        ProcessEnd::Killed(_) => "was ",
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Ends the inbox thread even if the process cannot be ended; the process goes with its control.
        drop(self.socket.shutdown(Shutdown::Both));
    }
}

fn parse<T: serde::de::DeserializeOwned>(phase: Phase, text: &str) -> Result<T, Failure> {
    serde_json::from_str(text).map_err(|error| Failure {
        error: wire_error(
            FailureKind::BadReply,
            format!(
                "The plugin's answer is not what the contract says while {}: {error}",
                phase.word()
            ),
        ),
        over: true,
    })
}

fn unexpected(phase: Phase, message: &FromWorker) -> Failure {
    let name = match message {
        FromWorker::Loaded { .. } => "Loaded",
        FromWorker::Described { .. } => "Described",
        FromWorker::Opened { .. } => "Opened",
        FromWorker::Attached => "Attached",
        FromWorker::Answered { .. } => "Answered",
        FromWorker::Failed { .. } => "Failed",
        FromWorker::Log { .. } => "Log",
        FromWorker::Progress { .. } => "Progress",
    };
    Failure {
        error: wire_error(
            FailureKind::BadReply,
            format!("Unexpected answer `{name}` while {}", phase.word()),
        ),
        over: true,
    }
}

/// Read until the socket ends. Log records and progress are dealt with here, so that a chatty worker is never held up by a
/// busy host.
fn read_all(
    mut socket: UnixStream,
    logs: &LogTail,
    inbox: &SyncSender<Result<FromWorker, FrameError>>,
) {
    let mut told = Instant::now();
    loop {
        let message = match read_frame::<FromWorker>(&mut socket) {
            Ok(FromWorker::Log { level, message }) => {
                logs.line(Origin::Callback(level), &message);
                continue;
            }
            Ok(FromWorker::Progress { stage, done, total }) => {
                if done == total || told.elapsed() >= Duration::from_secs(1) {
                    told = Instant::now();
                    logs.line(Origin::Callback(4), &format!("{stage}: {done} of {total}"));
                }
                continue;
            }
            other => other,
        };
        let last = message.is_err();
        if inbox.send(message).is_err() || last {
            return;
        }
    }
}
