//! The session behind a socket: the worker process.
//!
//! Must not print, restart anything, or decide what a failure means.
//!
//! The main thread serves requests in order and runs the plugin. A reader thread takes frames off the socket meanwhile, so that
//! `Cancel` reaches a call in progress and EOF ends the process at once, even when the plugin hangs. `Cancel` holds for every request
//! that was sent before it: those not yet begun are answered with `cancelled` without asking the plugin.

use crate::failure::{cap, failure};
use crate::library::{From, verify};
use crate::session::Session;
use arrow_buffer::Buffer;
use focus_os::sandbox::{self, SandboxSpec};
use focus_os::shm::ReadOnlySlots;
use focus_plugin_abi::v1::HostEvents;
use focus_wire::{
    Area, FailureKind, FrameError, FromWorker, LoadRequest, ToWorker, WireError, read_frame,
    write_frame,
};
use std::ffi::OsString;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Exit status after `Shutdown`, or when the host is gone.
pub const EXIT_GONE: i32 = 0;
/// Exit status without a usable socket.
pub const EXIT_BAD_SOCKET: i32 = 2;
/// Exit status when the host's frames make no sense.
pub const EXIT_PROTOCOL: i32 = 3;

/// The worker's command line, after the program (and after `worker` in `focus-host worker`): `--socket-fd N`, as
/// `focus_os::spawn` passes it. Never returns.
pub fn run_from_args(args: impl IntoIterator<Item = OsString>) -> ! {
    let args: Vec<_> = args.into_iter().collect();
    let number = match args.as_slice() {
        [name, number] if name == focus_os::spawn::SOCKET_ARGUMENT => {
            number.to_str().and_then(|n| n.parse().ok())
        }
        _ => None,
    };
    run_from_fd(number.unwrap_or(-1))
}

/// Serve the protocol on a Unix stream socket with this descriptor number until EOF or `Shutdown`; then end the process. Takes the
/// descriptor: nothing else in the process may own it. Call it from `main` before any other thread exists: the sandbox does not
/// reach threads that already run.
pub fn run_from_fd(fd: i32) -> ! {
    let status = match socket(fd) {
        Some(socket) => serve(socket),
        None => EXIT_BAD_SOCKET,
    };
    end(status)
}

/// End without running destructors or exit handlers: a plugin's threads may still be at work in what those would tear down.
fn end(status: i32) -> ! {
    // SAFETY: `_exit` takes no memory and does not return.
    unsafe { libc::_exit(status) }
}

fn socket(fd: i32) -> Option<UnixStream> {
    if fd < 0 {
        return None;
    }
    // SAFETY: only asks the kernel about the number; that it is open is what is being asked.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    rustix::net::sockopt::socket_type(borrowed)
        .ok()
        .filter(|kind| *kind == rustix::net::SocketType::STREAM)?;
    // SAFETY: it is open (asked above), and the caller gives it up.
    let owned = unsafe { OwnedFd::from_raw_fd(fd) };
    // A program that the plugin starts must not hold the line open.
    rustix::io::fcntl_setfd(&owned, rustix::io::FdFlags::CLOEXEC).ok()?;
    Some(owned.into())
}

/// The writing end, for all threads.
struct Line(Mutex<UnixStream>);

impl Line {
    /// Send; when the host is gone there is nothing left to do.
    fn send(&self, message: &FromWorker) {
        let mut socket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = write_frame(&mut *socket, message) {
            end(if matches!(error, FrameError::Io(_)) {
                EXIT_GONE
            } else {
                EXIT_PROTOCOL
            });
        }
    }

    fn answer(&self, call: Option<u64>, outcome: Result<FromWorker, WireError>) {
        self.send(&outcome.unwrap_or_else(|error| FromWorker::Failed { call, error }));
    }
}

/// What the reader passes on: a request with its number, counted from 1.
enum Job {
    Request(u64, ToWorker),
    Attach(Result<OwnedFd, WireError>, u32, u64),
}

struct Shared {
    line: Line,
    /// The request being served.
    current: AtomicU64,
    /// Requests up to this one are cancelled.
    cancelled_through: AtomicU64,
}

impl Shared {
    fn is_cancelled(&self, number: u64) -> bool {
        number <= self.cancelled_through.load(SeqCst)
    }
}

impl HostEvents for Shared {
    fn log(&self, level: u32, message: &str) {
        self.line.send(&FromWorker::Log {
            level: level.clamp(1, 5) as u8,
            message: cap(message),
        });
    }

    fn progress(&self, stage: &str, done: u64, total: u64) {
        self.line.send(&FromWorker::Progress {
            stage: cap(stage),
            done,
            total,
        });
    }

    fn cancelled(&self) -> bool {
        self.is_cancelled(self.current.load(SeqCst))
    }
}

fn serve(mut socket: UnixStream) -> i32 {
    let Ok(second) = socket.try_clone() else {
        return EXIT_BAD_SOCKET;
    };
    let shared = Arc::new(Shared {
        line: Line(Mutex::new(second)),
        current: AtomicU64::new(0),
        cancelled_through: AtomicU64::new(0),
    });
    let request = match read_frame(&mut socket) {
        Ok(ToWorker::Load(request)) => request,
        Ok(other) => {
            let message = format!("First message must be `Load`, found `{}`", name(&other));
            shared
                .line
                .answer(None, Err(failure(FailureKind::Wire, message)));
            return EXIT_PROTOCOL;
        }
        Err(error) => return goodbye(&shared, &error),
    };
    // Reading and the sandbox come before the second thread: the sandbox holds for this thread and those that come after.
    let prepared = prepare(&request);
    let (jobs, queue) = channel();
    let reader = Arc::clone(&shared);
    std::thread::Builder::new()
        .name("focus-reader".to_owned())
        .spawn(move || read(socket, &reader, &jobs))
        .expect("a process that may not have two threads cannot work");
    let session = prepared.and_then(|(library, words)| {
        Ok((Session::load(library, Arc::clone(&shared) as _)?, words))
    });
    let session = match session {
        Ok((session, sandbox)) => {
            shared.line.send(&FromWorker::Loaded {
                contract: session.contract(),
                sandbox,
            });
            Some(session)
        }
        Err(error) => {
            shared.line.answer(None, Err(error));
            None
        }
    };
    answer_all(session, &shared, &queue)
}

fn prepare(request: &LoadRequest) -> Result<(crate::library::Verified, Vec<String>), WireError> {
    let library = verify(Path::new(&request.library), &request.digest, From::Copy)?;
    let mut words = if request.sandbox {
        sandbox::apply(&SandboxSpec {
            network: !request.network.is_empty(),
            write: false,
        })
        .map_err(|error| WireError {
            hint: error.hint(),
            ..failure(FailureKind::Load, error.to_string())
        })?
    } else {
        vec!["sandbox: off".to_owned()]
    };
    words.push(library.words.clone());
    Ok((library, words))
}

/// Runs on its own thread until the host is gone.
fn read(mut socket: UnixStream, shared: &Shared, jobs: &Sender<Job>) {
    let mut number = 0;
    loop {
        let job = match read_frame(&mut socket) {
            Ok(ToWorker::Cancel) => {
                shared.cancelled_through.store(number, SeqCst);
                continue;
            }
            Ok(ToWorker::Attach { slots, slot_bytes }) => {
                Job::Attach(descriptor(&socket), slots, slot_bytes)
            }
            Ok(request) => {
                number += 1;
                Job::Request(number, request)
            }
            Err(error) => end(goodbye(shared, &error)),
        };
        if jobs.send(job).is_err() {
            // The main thread is on its way out.
            return;
        }
    }
}

/// The byte after an `Attach` frame, with the pixel memory on it.
fn descriptor(socket: &UnixStream) -> Result<OwnedFd, WireError> {
    let mut mark = [0];
    match focus_os::recv_with_fd(socket, &mut mark) {
        Ok((1, Some(fd))) => Ok(fd),
        Ok(_) => Err(failure(
            FailureKind::Wire,
            "Expected exactly one file descriptor after `Attach`, found none",
        )),
        Err(error) => Err(failure(FailureKind::Wire, error.to_string())),
    }
}

fn goodbye(shared: &Shared, error: &FrameError) -> i32 {
    if matches!(error, FrameError::Closed | FrameError::Io(_)) {
        return EXIT_GONE;
    }
    shared
        .line
        .answer(None, Err(failure(FailureKind::Wire, error.to_string())));
    EXIT_PROTOCOL
}

fn answer_all(mut session: Option<Session>, shared: &Shared, queue: &Receiver<Job>) -> i32 {
    let mut slots: Option<Arc<ReadOnlySlots>> = None;
    for job in queue {
        let (number, request) = match job {
            Job::Attach(fd, count, bytes) => {
                let mapped = fd.and_then(|fd| {
                    ReadOnlySlots::map(fd, count, bytes).map_err(|error| WireError {
                        hint: error.hint(),
                        ..failure(FailureKind::InvalidRequest, error.to_string())
                    })
                });
                shared.line.answer(
                    None,
                    mapped.map(|mapped| {
                        slots = Some(Arc::new(mapped));
                        FromWorker::Attached
                    }),
                );
                continue;
            }
            Job::Request(number, request) => (number, request),
        };
        shared.current.store(number, SeqCst);
        let call = if let ToWorker::Call { call, .. } = &request {
            Some(*call)
        } else {
            None
        };
        if matches!(request, ToWorker::Shutdown) {
            if let Some(session) = &mut session {
                session.close();
            }
            // SAFETY: flushes every C stream; the plugin may have buffered log lines there.
            unsafe { libc::fflush(std::ptr::null_mut()) };
            return EXIT_GONE;
        }
        let outcome = match &mut session {
            _ if shared.is_cancelled(number) => {
                Err(failure(FailureKind::Cancelled, "Cancelled before it began"))
            }
            None => Err(failure(
                FailureKind::InvalidRequest,
                "No plugin is loaded: the first request failed",
            )),
            Some(session) => answer(session, slots.as_ref(), request),
        };
        shared.line.answer(call, outcome);
    }
    EXIT_GONE
}

fn answer(
    session: &mut Session,
    slots: Option<&Arc<ReadOnlySlots>>,
    request: ToWorker,
) -> Result<FromWorker, WireError> {
    match request {
        ToWorker::Describe => session
            .describe()
            .map(|descriptor| FromWorker::Described { descriptor }),
        ToWorker::Open { options } => session
            .open(&options)
            .map(|opened| FromWorker::Opened { opened }),
        ToWorker::Call {
            call,
            method,
            header,
            pixels,
        } => {
            let pixels = pixels.map(|area| lend(slots, area)).transpose()?;
            let reply = session.call(method, header, pixels)?;
            Ok(FromWorker::Answered { call, reply })
        }
        other => Err(failure(
            FailureKind::InvalidRequest,
            format!(
                "`{}` cannot come here: it is the first message or none",
                name(&other)
            ),
        )),
    }
}

/// The leading `bytes` of a slot as an Arrow buffer, where they lie.
fn lend(slots: Option<&Arc<ReadOnlySlots>>, area: Area) -> Result<Buffer, WireError> {
    let Area { slot, bytes } = area;
    let invalid = |message: String| failure(FailureKind::InvalidRequest, message);
    let slots = slots
        .ok_or_else(|| invalid("No pixel memory: expected `Attach` before `Call`".to_owned()))?;
    let area = slots
        .slot(slot)
        .ok_or_else(|| invalid(format!("No slot {slot}: there are {}", slots.slots())))?;
    let length = usize::try_from(bytes)
        .ok()
        .filter(|&n| n > 0 && n <= area.len());
    let length = length.ok_or_else(|| {
        invalid(format!(
            "Batch does not fit its slot: expected 1 to {} bytes, found {bytes}",
            area.len()
        ))
    })?;
    let start = NonNull::from(area).cast::<u8>();
    // SAFETY: the memory is mapped as long as `slots` lives, which the buffer holds a count of; `length` lies within it. The host
    // leaves the slot alone until this request is answered.
    Ok(unsafe { Buffer::from_custom_allocation(start, length, Arc::clone(slots) as _) })
}

fn name(message: &ToWorker) -> &'static str {
    match message {
        ToWorker::Load(_) => "Load",
        ToWorker::Describe => "Describe",
        ToWorker::Open { .. } => "Open",
        ToWorker::Attach { .. } => "Attach",
        ToWorker::Call { .. } => "Call",
        ToWorker::Cancel => "Cancel",
        ToWorker::Shutdown => "Shutdown",
    }
}
