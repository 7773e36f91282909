//! A scripted worker for the supervisor's tests: a thread on a socketpair that speaks the real protocol over real shared memory
//! and can die, hang or lie. Its process is pretended: deaths close the socket, kills are noted.
//!
//! Images are named by their first two bytes (little-endian, from 1); 0 is black, and refused among the used rows. A group is named
//! as its first picture.

use crate::fake::{opened, opened_generator};
use crate::life::{Control, Launcher, Life};
use crate::logs::{LogTail, Origin};
use crate::{ClientOptions, PixelBatch, PreparedImage, WorkerOptions};
use focus_os::{FD_MARK, OsError, ProcessEnd, ReadOnlySlots, recv_with_fd};
use focus_plugin_abi::v1::message::{
    EncodeRequest, Finish, GenerateReply, GenerateRequest, GeneratedAnswer, GroupReply,
    OpenOptions, OpenedModel,
};
use focus_wire::{
    Area, FailureKind, FromWorker, Matrix, Method, Reply, ToWorker, WireError, read_frame,
    write_frame,
};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the peer does with a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Deed {
    Answer,
    Typed(FailureKind),
    Die(i32),
    ExitWell,
    Grow,
    Hang,
    /// Leaves out the last row.
    Short,
    /// One value too many in each row.
    Wide,
    /// Claims the rows but sends fewer values.
    Thin,
    /// Not a number in the row of this image.
    Nan(u16),
    /// Answers to another call.
    WrongCall,
    /// Answers with something else.
    WrongMessage,
    Garbage,
}

/// What a life does outside of calls.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Birth {
    Fine,
    DiesLoading,
    RefusesToLoad,
    DiesOpening,
    HangsOpening,
    OpensOther,
}

/// Decides by the images in the call (without black ones) and the number of the life and of the call.
pub(crate) type Script = dyn Fn(&[u16], usize, u64) -> Deed + Send + Sync;

pub(crate) struct Peer {
    pub(crate) opened: OpenedModel,
    pub(crate) script: Arc<Script>,
    pub(crate) births: Arc<dyn Fn(usize) -> Birth + Send + Sync>,
    pub(crate) seen: Arc<Mutex<Seen>>,
}

/// What tests look at afterwards.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) lives: usize,
    pub(crate) kills: usize,
    pub(crate) calls: Vec<Vec<u16>>,
    /// `rows` and `used` of each call.
    pub(crate) rows: Vec<(u32, u32)>,
}

impl Peer {
    pub(crate) fn new(
        batch_size: u32,
        script: impl Fn(&[u16], usize, u64) -> Deed + Send + Sync + 'static,
    ) -> Self {
        Self {
            opened: opened(batch_size, 3, 2, 1),
            script: Arc::new(script),
            births: Arc::new(|_| Birth::Fine),
            seen: Arc::default(),
        }
    }

    /// A generator.
    pub(crate) fn generator(
        batch_size: u32,
        script: impl Fn(&[u16], usize, u64) -> Deed + Send + Sync + 'static,
    ) -> Self {
        Self {
            opened: opened_generator(batch_size),
            ..Self::new(batch_size, script)
        }
    }

    pub(crate) fn births(
        mut self,
        births: impl Fn(usize) -> Birth + Send + Sync + 'static,
    ) -> Self {
        self.births = Arc::new(births);
        self
    }
}

/// Options that go with a peer: short time-outs.
pub(crate) fn options() -> ClientOptions {
    let mut worker = WorkerOptions::new("/plugins/libpeer.so", "sha256:00");
    worker.timeouts.batch = Duration::from_secs(20);
    worker.timeouts.open = Duration::from_secs(20);
    let open = OpenOptions {
        model: "fake".into(),
        device: "cpu".into(),
        dtype: None,
        weights: None,
        threads: 1,
        batch_size: None,
        settings: std::collections::BTreeMap::new(),
        network: Vec::new(),
    };
    ClientOptions::new(worker, open)
}

/// An image named `name` (from 1) of the peer's size.
pub(crate) fn image(name: u16) -> PreparedImage {
    let [low, high] = name.to_le_bytes();
    PreparedImage {
        sample: usize::from(name),
        pixels: vec![low, high, 9, 9, 9, 9].into(),
    }
}

/// Images 1 to `count` in batches of `size`.
pub(crate) fn batches(count: u16, size: u16) -> impl Iterator<Item = PixelBatch> {
    (1..=count)
        .step_by(usize::from(size))
        .map(move |first| PixelBatch {
            images: (first..=count.min(first + size - 1)).map(image).collect(),
        })
}

/// What the peer answers for an image.
pub(crate) fn embedding(name: u16) -> Vec<f32> {
    vec![f32::from(name), 0.5, -1.0]
}

impl Launcher for Peer {
    fn launch(&mut self) -> Result<Life, OsError> {
        let life = {
            let mut seen = self.seen.lock().expect("unpoisoned");
            seen.lives += 1;
            seen.lives - 1
        };
        let (host, worker) = UnixStream::pair().expect("pair");
        let state = Arc::new(Mutex::new(Pretence::default()));
        let logs = LogTail::new("libpeer.so");
        let (script, opened, birth) = (
            Arc::clone(&self.script),
            self.opened.clone(),
            (self.births)(life),
        );
        let (pretence, seen, tail) = (
            Arc::clone(&state),
            Arc::clone(&self.seen),
            Arc::clone(&logs),
        );
        let socket = worker.try_clone().expect("dup");
        std::thread::spawn(move || {
            let end = live(&worker, life, &*script, &opened, &birth, &seen, &tail);
            let mut pretence = pretence.lock().expect("unpoisoned");
            if let Some(end) = end {
                if end == ProcessEnd::Killed(9) {
                    pretence.grown = true;
                }
                pretence.end.get_or_insert(end);
            }
            drop(pretence);
            // The control holds a clone of the socket.
            drop(worker.shutdown(Shutdown::Both));
        });
        let control = PeerControl {
            socket,
            state,
            seen: Arc::clone(&self.seen),
        };
        Ok(Life {
            socket: host,
            control: Box::new(control),
            logs,
        })
    }
}

#[derive(Debug, Default)]
struct Pretence {
    end: Option<ProcessEnd>,
    grown: bool,
}

struct PeerControl {
    socket: UnixStream,
    state: Arc<Mutex<Pretence>>,
    seen: Arc<Mutex<Seen>>,
}

impl Control for PeerControl {
    fn id(&self) -> u32 {
        0
    }

    fn kill(&self) {
        let mut state = self.state.lock().expect("unpoisoned");
        if state.end.is_none() {
            state.end = Some(ProcessEnd::Killed(9));
            self.seen.lock().expect("unpoisoned").kills += 1;
        }
        drop(self.socket.shutdown(Shutdown::Both));
    }

    fn wait(&self, _: Duration) -> Option<ProcessEnd> {
        self.state.lock().expect("unpoisoned").end
    }

    fn memory_killed_at(&self) -> Option<u64> {
        self.state
            .lock()
            .expect("unpoisoned")
            .grown
            .then_some(3 << 30)
    }

    fn peak_memory(&self) -> u64 {
        1 << 20
    }
}

impl Drop for PeerControl {
    fn drop(&mut self) {
        drop(self.socket.shutdown(Shutdown::Both));
    }
}

/// One life; returns how it ended, or `None` when it was ended from outside.
fn live(
    socket: &UnixStream,
    life: usize,
    script: &Script,
    opened: &OpenedModel,
    birth: &Birth,
    seen: &Mutex<Seen>,
    logs: &LogTail,
) -> Option<ProcessEnd> {
    let say = |message: &FromWorker| write_frame(&mut &*socket, message).ok();
    let mut slots = None;
    loop {
        match read_frame::<ToWorker>(&mut &*socket).ok()? {
            ToWorker::Load(_) => match birth {
                Birth::DiesLoading => return Some(ProcessEnd::Killed(11)),
                Birth::RefusesToLoad => say(&FromWorker::Failed {
                    call: None,
                    error: typed(FailureKind::Load),
                })?,
                _ => say(&FromWorker::Loaded {
                    contract: 1,
                    sandbox: vec!["pretended".into()],
                })?,
            },
            ToWorker::Describe => say(&FromWorker::Described {
                descriptor:
                    r#"{"name":"peer","version":"1.0.0","license":"MIT","models":[],"news":1}"#
                        .into(),
            })?,
            ToWorker::Open { .. } => match birth {
                Birth::DiesOpening => return Some(ProcessEnd::Killed(6)),
                Birth::HangsOpening => {}
                Birth::OpensOther => {
                    let other = OpenedModel {
                        device: "cuda:0".into(),
                        ..opened.clone()
                    };
                    say(&FromWorker::Opened {
                        opened: serde_json::to_string(&other).expect("json"),
                    })?;
                }
                _ => say(&FromWorker::Opened {
                    opened: serde_json::to_string(opened).expect("json"),
                })?,
            },
            ToWorker::Attach {
                slots: count,
                slot_bytes,
            } => {
                let mut mark = [0];
                let (_, fd) = recv_with_fd(socket, &mut mark).ok()?;
                assert_eq!(mark, [FD_MARK]);
                slots = Some(
                    ReadOnlySlots::map(fd.expect("a descriptor"), count, slot_bytes).expect("maps"),
                );
                say(&FromWorker::Attached)?;
            }
            ToWorker::Call {
                call,
                method,
                header,
                pixels,
            } => {
                let memory = match pixels {
                    Some(Area { slot, bytes }) => {
                        let slots: &ReadOnlySlots = slots.as_ref().expect("attached");
                        &slots.slot(slot).expect("slot")[..bytes as usize]
                    }
                    None => &[],
                };
                let asked = match method {
                    Method::Encode => Asked::images(&header, memory),
                    Method::Generate => Asked::groups(&header, memory),
                    other => panic!("{other:?} is for the real worker"),
                };
                {
                    let mut seen = seen.lock().expect("unpoisoned");
                    seen.calls.push(asked.real.clone());
                    seen.rows.push((asked.names.len() as u32, asked.used));
                }
                let mut deed = script(&asked.real, life, call);
                if deed == Deed::Answer && asked.names[..asked.used as usize].contains(&0) {
                    deed = Deed::Typed(FailureKind::Image);
                }
                let answered = match deed {
                    Deed::Typed(kind) => {
                        say(&FromWorker::Failed {
                            call: Some(call),
                            error: typed(kind),
                        })?;
                        continue;
                    }
                    Deed::Die(signal) => {
                        logs.line(Origin::Stderr, "last words");
                        return Some(ProcessEnd::Killed(signal));
                    }
                    Deed::ExitWell => return Some(ProcessEnd::Exited(0)),
                    Deed::Grow => return Some(ProcessEnd::Killed(9)),
                    // Deaf from here on: later requests stay unanswered too.
                    Deed::Hang => loop {
                        read_frame::<ToWorker>(&mut &*socket).ok()?;
                    },
                    Deed::WrongMessage => {
                        say(&FromWorker::Attached)?;
                        continue;
                    }
                    Deed::Garbage => {
                        use std::io::Write;
                        (&*socket).write_all(&[2, 0, 0, 0, 0xff, 0xff]).ok()?;
                        continue;
                    }
                    Deed::WrongCall => call + 1,
                    _ => call,
                };
                say(&FromWorker::Log {
                    level: 4,
                    message: format!("call {call}"),
                })?;
                say(&FromWorker::Answered {
                    call: answered,
                    reply: match method {
                        Method::Encode => embeddings(&asked.names, &deed),
                        _ => answers(&asked.names, &deed),
                    },
                })?;
            }
            ToWorker::Cancel => {}
            ToWorker::Shutdown => return Some(ProcessEnd::Exited(0)),
        }
    }
}

/// What a call is about.
struct Asked {
    /// Of each row or group; 0 is black.
    names: Vec<u16>,
    /// Leading ones that are real.
    used: u32,
    /// Each name once.
    real: Vec<u16>,
}

impl Asked {
    fn images(header: &str, memory: &[u8]) -> Self {
        let request: EncodeRequest = serde_json::from_str(header).expect("header");
        let names: Vec<u16> = memory.chunks(6).map(name).collect();
        assert_eq!(names.len(), request.rows as usize);
        Self::new(names, request.used)
    }

    /// A group is named by its first picture.
    fn groups(header: &str, memory: &[u8]) -> Self {
        let request: GenerateRequest = serde_json::from_str(header).expect("header");
        let mut starts = vec![0];
        for size in &request.images {
            starts.push(starts[starts.len() - 1] + (size.width * size.height * 3) as usize);
        }
        assert_eq!(
            starts.last(),
            Some(&memory.len()),
            "bytes are those of the pictures"
        );
        let names = request
            .groups
            .iter()
            .map(|group| name(&memory[starts[group.images[0] as usize]..]))
            .collect();
        Self::new(names, request.groups.len() as u32)
    }

    fn new(names: Vec<u16>, used: u32) -> Self {
        let mut real: Vec<u16> = names.iter().copied().filter(|name| *name > 0).collect();
        // Images left out are replaced by repeating one that is there.
        real.sort_unstable();
        real.dedup();
        Self { names, used, real }
    }
}

fn name(pixels: &[u8]) -> u16 {
    u16::from_le_bytes([pixels[0], pixels[1]])
}

fn embeddings(names: &[u16], deed: &Deed) -> Reply {
    let mut rows = names.len() as u32;
    let mut dim = 3;
    let mut values: Vec<f32> = names.iter().flat_map(|name| embedding(*name)).collect();
    match deed {
        Deed::Short => {
            rows -= 1;
            values.truncate(rows as usize * 3);
        }
        Deed::Wide => {
            dim = 4;
            values = vec![0.0; rows as usize * 4];
        }
        Deed::Thin => values.truncate(values.len() - 1),
        Deed::Nan(name) => {
            let row = names.iter().position(|found| found == name).unwrap_or(0);
            values[row * 3 + 1] = f32::NAN;
        }
        _ => {}
    }
    Reply {
        header: String::new(),
        matrix: Some(Matrix { rows, dim, values }),
    }
}

/// A group's only answer is its name.
fn answers(names: &[u16], deed: &Deed) -> Reply {
    let mut groups: Vec<GroupReply> = names
        .iter()
        .map(|name| GroupReply {
            answers: vec![GeneratedAnswer {
                text: name.to_string(),
                finish: Finish::End,
                scores: Vec::new(),
                prompt_tokens: Vec::new(),
                prompt_length: 0,
                new_tokens: Vec::new(),
                new_length: 0,
            }],
            ..GroupReply::default()
        })
        .collect();
    if *deed == Deed::Short {
        groups.pop();
    }
    Reply {
        header: serde_json::to_string(&GenerateReply { groups }).expect("JSON"),
        matrix: None,
    }
}

fn typed(kind: FailureKind) -> WireError {
    WireError {
        kind,
        message: "says no".into(),
        hint: Some("do otherwise".into()),
    }
}
