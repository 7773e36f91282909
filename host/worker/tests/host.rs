//! The host's side of the socket, as little of it as tests need.

use crate::support::{BATCH, IMAGE, batch, load_request, options, worker};
use focus_os::shm::WritableSlots;
use focus_os::spawn::{ProcessEnd, WorkerCommand, WorkerProcess};
use focus_os::{FD_MARK, send_with_fd};
use focus_wire::{
    Area, FrameError, FromWorker, LoadRequest, Method, Reply, ToWorker, WireError, read_frame,
    write_frame,
};
use std::io::Read;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Far above what any step takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_mins(1);

pub struct Host {
    pub process: WorkerProcess,
    pub slots: WritableSlots,
    /// Log lines heard so far.
    pub log: Vec<(u8, String)>,
    /// Progress messages heard so far.
    pub progress: Vec<(String, u64, u64)>,
    output: Vec<JoinHandle<Vec<u8>>>,
    calls: u64,
}

impl Host {
    /// Start a worker; nothing is loaded.
    pub fn start() -> Self {
        let command = WorkerCommand {
            program: worker(),
            args: Vec::new(),
            ..WorkerCommand::default()
        };
        let mut process = command.start().expect("starts");
        process
            .socket()
            .set_read_timeout(Some(PATIENCE))
            .expect("sets");
        let drain = |mut from: Box<dyn Read + Send>| {
            std::thread::spawn(move || {
                let mut all = Vec::new();
                from.read_to_end(&mut all).expect("reads");
                all
            })
        };
        let (out, err) = (
            process.take_stdout().expect("piped"),
            process.take_stderr().expect("piped"),
        );
        let output = vec![drain(Box::new(out)), drain(Box::new(err))];
        let slots = WritableSlots::create(2, (BATCH * IMAGE) as u64).expect("creates");
        Self {
            process,
            slots,
            log: Vec::new(),
            progress: Vec::new(),
            output,
            calls: 0,
        }
    }

    /// A worker with the plugin loaded.
    pub fn loaded(request: &LoadRequest) -> Self {
        let mut host = Self::start();
        let answer = host.ask(&ToWorker::Load(request.clone()));
        assert!(
            matches!(answer, FromWorker::Loaded { contract: 1, .. }),
            "{answer:?}"
        );
        host
    }

    /// A worker with a model of the library open and the slots attached.
    pub fn opened(library: &Path, settings: &[(&str, &str)]) -> Self {
        let mut host = Self::loaded(&load_request(library));
        host.open(settings).expect("opens");
        host.attach();
        host
    }

    pub fn open(&mut self, settings: &[(&str, &str)]) -> Result<String, WireError> {
        match self.ask(&ToWorker::Open {
            options: options(settings),
        }) {
            FromWorker::Opened { opened } => Ok(opened),
            FromWorker::Failed { call: None, error } => Err(error),
            other => panic!("{other:?}"),
        }
    }

    pub fn attach(&mut self) {
        self.send(&ToWorker::Attach {
            slots: self.slots.slots(),
            slot_bytes: self.slots.slot_bytes(),
        });
        send_with_fd(self.process.socket(), &[FD_MARK], self.slots.as_fd()).expect("sends");
        assert_eq!(self.answer(), FromWorker::Attached);
    }

    /// Put a batch into a slot and ask for its embeddings; returns the call's number.
    pub fn request(&mut self, slot: u32, images: &[Vec<u8>]) -> u64 {
        let (pixels, header) = batch(images);
        self.slots.slot_mut(slot)[..pixels.len()].copy_from_slice(&pixels);
        self.calls += 1;
        self.send(&ToWorker::Call {
            call: self.calls,
            method: Method::Encode,
            header,
            pixels: Some(Area {
                slot,
                bytes: pixels.len() as u64,
            }),
        });
        self.calls
    }

    /// Call a method over the leading `bytes` of slot 0, written here.
    pub fn call(&mut self, method: Method, header: &str, bytes: &[u8]) -> Result<Reply, WireError> {
        self.slots.slot_mut(0)[..bytes.len()].copy_from_slice(bytes);
        self.calls += 1;
        let area = Area {
            slot: 0,
            bytes: bytes.len() as u64,
        };
        let asked = self.calls;
        match self.ask(&ToWorker::Call {
            call: asked,
            method,
            header: header.to_owned(),
            pixels: (!bytes.is_empty()).then_some(area),
        }) {
            FromWorker::Answered { call, reply } if call == asked => Ok(reply),
            FromWorker::Failed { call, error } if call == Some(asked) => Err(error),
            other => panic!("{other:?}"),
        }
    }

    /// Rows, dim and values of one batch, or why not.
    pub fn encode(&mut self, images: &[Vec<u8>]) -> Result<(u32, u32, Vec<f32>), WireError> {
        let asked = self.request(0, images);
        match self.answer() {
            FromWorker::Answered { call, reply } if call == asked => {
                let matrix = reply.matrix.expect("embeddings");
                Ok((matrix.rows, matrix.dim, matrix.values))
            }
            FromWorker::Failed { call, error } if call == Some(asked) => Err(error),
            other => panic!("{other:?}"),
        }
    }

    pub fn send(&mut self, message: &ToWorker) {
        write_frame(&mut self.process.socket(), message).expect("sends");
    }

    /// The next answer; log and progress on the way are kept.
    pub fn next(&mut self) -> Result<FromWorker, FrameError> {
        loop {
            match read_frame(&mut self.process.socket())? {
                FromWorker::Log { level, message } => self.log.push((level, message)),
                FromWorker::Progress { stage, done, total } => {
                    self.progress.push((stage, done, total));
                }
                answer => return Ok(answer),
            }
        }
    }

    pub fn answer(&mut self) -> FromWorker {
        self.next().expect("an answer")
    }

    pub fn ask(&mut self, message: &ToWorker) -> FromWorker {
        self.send(message);
        self.answer()
    }

    /// The failure that answers `message`.
    pub fn fails(&mut self, message: &ToWorker) -> WireError {
        match self.ask(message) {
            FromWorker::Failed { error, .. } => error,
            other => panic!("{other:?}"),
        }
    }

    /// The connection ends without another answer; how the process ended.
    pub fn ends(&mut self) -> ProcessEnd {
        match self.next() {
            Err(FrameError::Closed | FrameError::Io(_)) => {}
            other => panic!("{other:?}"),
        }
        self.end()
    }

    /// Wait for the process to end.
    pub fn end(&mut self) -> ProcessEnd {
        self.process.handle().wait(PATIENCE).expect("ends in time")
    }

    /// What the process wrote to stdout and stderr; after it ended.
    pub fn output(mut self) -> (Vec<u8>, Vec<u8>) {
        drop(self.process);
        let err = self.output.pop().expect("two").join().expect("joins");
        (self.output.pop().expect("two").join().expect("joins"), err)
    }

    /// Whether the process is there and answers.
    pub fn lives(&mut self) {
        let answer = self.ask(&ToWorker::Describe);
        assert!(matches!(answer, FromWorker::Described { .. }), "{answer:?}");
    }
}

/// Seconds that `work` took.
pub fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}
