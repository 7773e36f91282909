//! What the host and a worker say to each other.

use serde::{Deserialize, Serialize};

/// Host to worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ToWorker {
    /// Check the sidecar and digest, then load the dylib. First message on a socket.
    Load(LoadRequest),
    /// Ask for the plugin's descriptor.
    Describe,
    /// Open one model. `options` is JSON (`v1::message::OpenOptions`).
    Open {
        /// JSON text.
        options: String,
    },
    /// The pixel memory follows as one file descriptor (SCM_RIGHTS) on this message's first byte: `slots` areas of `slot_bytes`.
    Attach {
        /// Number of slots.
        slots: u32,
        /// Bytes in each, page aligned.
        slot_bytes: u64,
    },
    /// Call a method of the open model. Answers come in order of request.
    Call {
        /// Number of this call, echoed in the answer.
        call: u64,
        /// Which method.
        method: Method,
        /// JSON text, the method's request header.
        header: String,
        /// Where the bytes of the request's array lie; `None` for a method that takes none, or an array without bytes.
        pixels: Option<Area>,
    },
    /// Stop the call in progress if the model can.
    Cancel,
    /// End in good order.
    Shutdown,
}

/// What to load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadRequest {
    /// Absolute path of the dylib.
    pub library: String,
    /// `sha256:hex` that the file must have.
    pub digest: String,
    /// Deny writing to the file system and every socket family but Unix before loading.
    pub sandbox: bool,
    /// Network hosts granted by both sidecar and user; empty: no network at all.
    pub network: Vec<String>,
    /// CPU threads the process may use.
    pub threads: u32,
}

/// A method of the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Method {
    /// `image_encoder.encode`.
    Encode,
    /// `dual_encoder.encode_texts`.
    EncodeTexts,
    /// `generator.generate`. The pictures lie one after the other, in the header's order.
    Generate,
    /// `lora_adaptable.attach`.
    AttachAdapter,
    /// `lora_adaptable.detach`.
    DetachAdapter,
}

/// The leading bytes of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Area {
    /// Which slot.
    pub slot: u32,
    /// How many bytes of it are used.
    pub bytes: u64,
}

/// A model's reply, as the worker passes it on: its shape is true to its header, the content is for the host to judge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// JSON text, the method's reply header, at most [`MAX_HEADER`](crate::MAX_HEADER) bytes.
    pub header: String,
    /// The array beside it, where the method has one.
    pub matrix: Option<Matrix>,
}

/// Rows of numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Matrix {
    /// Rows returned.
    pub rows: u32,
    /// Values a row.
    pub dim: u32,
    /// Row-major, `rows * dim` values.
    pub values: Vec<f32>,
}

/// Worker to host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum FromWorker {
    /// The library is loaded.
    Loaded {
        /// Contract version the plugin speaks.
        contract: u32,
        /// What of the sandbox is in force, in words for the run record.
        sandbox: Vec<String>,
    },
    /// JSON text (`v1::message::PluginDescriptor`).
    Described {
        /// JSON text.
        descriptor: String,
    },
    /// JSON text (`v1::message::OpenedModel`).
    Opened {
        /// JSON text.
        opened: String,
    },
    /// Slots are mapped.
    Attached,
    /// A call's reply.
    Answered {
        /// The call answered.
        call: u64,
        /// What the model said.
        reply: Reply,
    },
    /// The request failed; the process lives on (unless it says goodbye).
    Failed {
        /// The call it answers; `None` for other requests.
        call: Option<u64>,
        /// What went wrong.
        error: WireError,
    },
    /// A log line of the plugin. `level`: 1 error, 2 warn, 3 info, 4 debug, 5 trace.
    Log {
        /// Severity.
        level: u8,
        /// The line, capped.
        message: String,
    },
    /// Progress of a long call.
    Progress {
        /// What is going on.
        stage: String,
        /// Units done.
        done: u64,
        /// Units in all; 0 when unknown.
        total: u64,
    },
}

/// An error that crossed the process boundary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct WireError {
    /// What kind it is.
    pub kind: FailureKind,
    /// Message, capped at 4 kB.
    pub message: String,
    /// Advice.
    pub hint: Option<String>,
}

/// Kinds of failure, as stored in outcomes. The numbers are those of `abi::ErrorKind`; from 100 on the host's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u32)]
pub enum FailureKind {
    /// The request makes no sense to the plugin.
    InvalidRequest = 1,
    /// The plugin does not offer it.
    Unsupported = 2,
    /// Weights are missing, wrong or unreadable.
    Weights = 3,
    /// This image cannot be processed.
    Image = 4,
    /// The plugin ran out of memory and said so.
    OutOfMemory = 5,
    /// The device failed.
    Device = 6,
    /// Cancelled as asked.
    Cancelled = 7,
    /// The model panicked; the barrier caught it.
    Panic = 8,
    /// Anything else the plugin reported.
    Internal = 9,
    /// The file is not a plugin this host can load.
    Load = 100,
    /// The process died.
    Crash = 101,
    /// The process gave no answer in time and was killed.
    Hang = 102,
    /// The process grew past its memory limit and was killed.
    MemoryKill = 103,
    /// The reply broke the contract: shape, count, or a value that is not finite.
    BadReply = 104,
    /// The socket or its framing failed.
    Wire = 105,
}

impl FailureKind {
    /// The kind that a plugin means by a number; `None` for one that this host does not know, and for its own.
    pub fn of_plugin(number: u32) -> Option<Self> {
        Some(match number {
            1 => Self::InvalidRequest,
            2 => Self::Unsupported,
            3 => Self::Weights,
            4 => Self::Image,
            5 => Self::OutOfMemory,
            6 => Self::Device,
            7 => Self::Cancelled,
            8 => Self::Panic,
            9 => Self::Internal,
            _ => return None,
        })
    }

    /// Its stable name in stores and reports, `model_panic` style without prefix: `panic`, `crash`, `hang`, ...
    pub fn name(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::Unsupported => "unsupported",
            Self::Weights => "weights",
            Self::Image => "image",
            Self::OutOfMemory => "out_of_memory",
            Self::Device => "device",
            Self::Cancelled => "cancelled",
            Self::Panic => "panic",
            Self::Internal => "internal",
            Self::Load => "load",
            Self::Crash => "crash",
            Self::Hang => "hang",
            Self::MemoryKill => "memory_kill",
            Self::BadReply => "bad_reply",
            Self::Wire => "wire",
        }
    }
}
