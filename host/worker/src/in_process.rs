//! The session as plain calls in the caller's own process, for debuggers and profilers (`--in-process`).
//!
//! Must not pretend to protect: no sandbox, no time-out, and a crash of the plugin is a crash of the caller.

use crate::library::{From, verify};
use crate::session::Session;
use arrow_buffer::Buffer;
use focus_plugin_abi::v1::HostEvents;
use focus_wire::{LoadRequest, Method, Reply, WireError};
use std::path::Path;
use std::sync::Arc;

/// A plugin in this process. Not `Send`: the plugin stays on the thread that loaded it.
pub struct InProcess {
    session: Session,
    words: Vec<String>,
}

impl std::fmt::Debug for InProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InProcess")
            .field("words", &self.words)
            .finish_non_exhaustive()
    }
}

impl InProcess {
    /// Check the digest and load. Of the request `library` and `digest` count; nothing else can be enforced here.
    /// `events` hears the plugin's log and progress and is asked whether to stop.
    pub fn load(request: &LoadRequest, events: Arc<dyn HostEvents>) -> Result<Self, WireError> {
        let library = verify(Path::new(&request.library), &request.digest, From::File)?;
        let words = vec![
            "sandbox: none (the plugin runs in the host's own process)".to_owned(),
            library.words.clone(),
        ];
        Ok(Self {
            session: Session::load(library, events)?,
            words,
        })
    }

    /// Contract version the plugin speaks.
    pub fn contract(&self) -> u32 {
        self.session.contract()
    }

    /// What of the sandbox is in force, in words for the run record.
    pub fn sandbox(&self) -> &[String] {
        &self.words
    }

    /// JSON (`v1::message::PluginDescriptor`).
    pub fn describe(&self) -> Result<String, WireError> {
        self.session.describe()
    }

    /// Open a model: JSON (`v1::message::OpenOptions`) in, JSON (`v1::message::OpenedModel`) out. Closes the one that was open.
    pub fn open(&mut self, options: &str) -> Result<String, WireError> {
        self.session.open(options)
    }

    /// Call a method: `header` is its request's JSON, `pixels` the bytes of its array (`image_encoder.encode`: those of all rows;
    /// `generator.generate`: those of all pictures, one after the other), empty where it takes none.
    pub fn call(
        &mut self,
        method: Method,
        header: String,
        pixels: Vec<u8>,
    ) -> Result<Reply, WireError> {
        let pixels = (!pixels.is_empty()).then(|| Buffer::from_vec(pixels));
        self.session.call(method, header, pixels)
    }
}
