//! How to run a plugin's worker: plain data with documented defaults. Knows nothing of how it is done.

use focus_plugin_abi::v1::message::OpenOptions;
use focus_worker::Sidecar;
use focus_worker::sidecar::SidecarError;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// How long each phase may take before the worker is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Starting the process and loading the dylib with its libraries: 60 s (libtorch with CUDA from a cold disk is the worst case).
    pub load: Duration,
    /// Describing: 20 s.
    pub describe: Duration,
    /// Opening a model, with reading its weights: 20 minutes.
    pub open: Duration,
    /// One batch: 10 minutes.
    pub batch: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            load: Duration::from_mins(1),
            describe: Duration::from_secs(20),
            open: Duration::from_mins(20),
            batch: Duration::from_mins(10),
        }
    }
}

/// A worker and the plugin it loads.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// Absolute path of the dylib.
    pub library: PathBuf,
    /// `sha256:hex` that the file must have, from its sidecar.
    pub digest: String,
    /// `LD_LIBRARY_PATH` of the worker, from the sidecar.
    pub library_paths: Vec<PathBuf>,
    /// The worker's program: `/proc/self/exe` unless the host is a library in another program.
    pub program: PathBuf,
    /// The program's arguments, `worker` by default; `--socket-fd N` is added.
    pub args: Vec<OsString>,
    /// Further environment variables for the worker.
    pub env: Vec<(String, OsString)>,
    /// Names of the host's environment variables that the plugin gets too, from its sidecar; values are read when a worker starts,
    /// and kept nowhere. None by default, and none without the network.
    pub environment: Vec<String>,
    /// Lock the worker down before it loads the dylib. On by default.
    pub sandbox: bool,
    /// Network hosts granted by both sidecar and user. None by default.
    pub network: Vec<String>,
    /// Resident set in bytes above which the worker is killed; `None`, the default: no limit.
    pub memory_limit: Option<u64>,
    /// Time-outs per phase.
    pub timeouts: Timeouts,
}

impl WorkerOptions {
    /// Defaults for a dylib with this digest.
    pub fn new(library: impl Into<PathBuf>, digest: impl Into<String>) -> Self {
        Self {
            library: library.into(),
            digest: digest.into(),
            library_paths: Vec::new(),
            program: "/proc/self/exe".into(),
            args: vec!["worker".into()],
            env: Vec::new(),
            environment: Vec::new(),
            sandbox: true,
            network: Vec::new(),
            memory_limit: None,
            timeouts: Timeouts::default(),
        }
    }

    /// Defaults for a sealed plugin: its sidecar is read and compared with the file before any code of it runs. `allowed` are the
    /// network hosts the user grants.
    pub fn from_sidecar(
        library: impl Into<PathBuf>,
        allowed: &[String],
    ) -> Result<(Self, Sidecar), SidecarError> {
        let library = library.into();
        let sidecar = Sidecar::read_for(&library)?;
        sidecar.verify(&library)?;
        let library = std::path::absolute(&library).unwrap_or(library);
        let mut options = Self::new(&library, &sidecar.digest);
        options.library_paths = sidecar.library_folders(&library);
        options.network = sidecar.granted_network(allowed);
        options.environment = sidecar.granted_environment(allowed);
        Ok((options, sidecar))
    }

    /// The plugin's name in messages: its file name.
    pub fn plugin_name(&self) -> String {
        self.library.file_name().map_or_else(
            || self.library.display().to_string(),
            |name| name.to_string_lossy().into_owned(),
        )
    }
}

/// A worker, and the model it opens.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// The worker.
    pub worker: WorkerOptions,
    /// The model.
    pub open: OpenOptions,
    /// Restarts over the encoder's life; 100 by default. An image that kills the worker costs about `log2(batch_size) + 1`.
    pub max_restarts: u32,
    /// Batches in flight: 2 by default, so that the worker never waits for the host. At least 1.
    pub slots: u32,
}

impl ClientOptions {
    /// Defaults around a worker and a model.
    pub fn new(worker: WorkerOptions, open: OpenOptions) -> Self {
        Self {
            worker,
            open,
            max_restarts: 100,
            slots: 2,
        }
    }
}
