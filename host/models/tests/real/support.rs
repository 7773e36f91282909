//! Building the worker and the hostile plugin, sealing it, and running batches through them.

use focus_models::{
    Answer, ClientOptions, ImageEncoder, ModelError, PixelBatch, PreparedImage, WorkerOptions,
};
use focus_plugin_abi::v1::message::OpenOptions;
use focus_wire::FailureKind;
use focus_worker::Sidecar;
use focus_worker::sidecar::Manifest;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

/// Image side in pixels.
pub const EDGE: usize = 8;
/// Rows of a batch.
pub const BATCH: usize = 4;
/// The image that sets the misdeed off, in the second of three batches.
pub const BAD: usize = 6;
/// Images in all; the tail is not full.
pub const COUNT: usize = 11;

/// What is built once for all tests; the folder stays for the life of the process.
pub struct Built {
    pub worker: PathBuf,
    pub plugin: PathBuf,
}

/// Build with the profile and target folder of these tests, copy (cargo may write its own files again) and seal.
pub fn built() -> &'static Built {
    static BUILT: OnceLock<Built> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = std::env::current_exe()
            .expect("test binary")
            .parent()
            .and_then(Path::parent)
            .expect("target/profile")
            .to_owned();
        let name = folder
            .file_name()
            .expect("named")
            .to_string_lossy()
            .into_owned();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let out = Command::new(env!("CARGO"))
            .args([
                "build",
                "--quiet",
                "-p",
                "focus-worker",
                "-p",
                "hostile",
                "--profile",
                if name == "debug" { "dev" } else { &name },
            ])
            .arg("--target-dir")
            .arg(folder.parent().expect("target"))
            .arg("--manifest-path")
            .arg(root.join("Cargo.toml"))
            .output()
            .expect("cargo runs");
        assert!(
            out.status.success(),
            "{}",
            String::from_utf8_lossy(&out.stderr)
        );
        let own = tempfile::tempdir().expect("folder").keep();
        let copy = |name: &str| {
            std::fs::copy(folder.join(name), own.join(name)).expect("copies");
            own.join(name)
        };
        let built = Built {
            worker: copy("focus-worker"),
            plugin: copy("libhostile.so"),
        };
        Sidecar::write_for(
            &built.plugin,
            &Manifest::read(&root.join("plugins/hostile/plugin.toml")).expect("manifest"),
        )
        .expect("seals");
        built
    })
}

/// Options of a worker for the hostile plugin.
pub fn worker_options() -> WorkerOptions {
    let built = built();
    let (mut options, _) = WorkerOptions::from_sidecar(&built.plugin, &[]).expect("sealed");
    options.program.clone_from(&built.worker);
    options.args.clear();
    options
}

/// Open options of the hostile model with these settings, on images of `EDGE`, batches of `BATCH`.
pub fn open_options(settings: &[(&str, &str)]) -> OpenOptions {
    let mut all: std::collections::BTreeMap<String, String> = settings
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    all.insert("edge".into(), EDGE.to_string());
    all.insert("batch".into(), BATCH.to_string());
    OpenOptions {
        model: "hostile".into(),
        device: "cpu".into(),
        dtype: None,
        weights: None,
        threads: 1,
        batch_size: None,
        settings: all,
        network: Vec::new(),
    }
}

/// Open options of the hostile generator with these settings.
pub fn generator_options(settings: &[(&str, &str)]) -> OpenOptions {
    OpenOptions {
        model: "hostile-generator".into(),
        ..open_options(settings)
    }
}

/// Client options: the misdeed happens on image `BAD` alone.
pub fn misdeed(name: &str, more: &[(&str, &str)]) -> ClientOptions {
    let mut settings = vec![("misdeed", name), ("marker", "fffefd")];
    settings.extend_from_slice(more);
    let mut options = ClientOptions::new(worker_options(), open_options(&settings));
    // A loaded machine must not turn honest calls into hangs; hanging ones set their own.
    options.worker.timeouts.batch = Duration::from_mins(2);
    options
}

/// Pixels of an image; number `BAD` carries the marker.
pub fn pixels(sample: usize) -> Vec<u8> {
    let mut pixels: Vec<u8> = (0..EDGE * EDGE * 3)
        .map(|at| ((at * 31 + sample * 101 + at * at % 13) % 250) as u8)
        .collect();
    if sample == BAD {
        pixels[..3].copy_from_slice(&[0xff, 0xfe, 0xfd]);
    }
    pixels
}

/// Images 1 to `COUNT` in batches.
pub fn batches() -> impl Iterator<Item = PixelBatch> {
    (1..=COUNT).step_by(BATCH).map(|first| PixelBatch {
        images: (first..=COUNT.min(first + BATCH - 1))
            .map(|sample| PreparedImage {
                sample,
                pixels: pixels(sample).into(),
            })
            .collect(),
    })
}

/// All answers, checked to be each image once, in order, and right where there is an embedding.
pub fn encode(encoder: &mut dyn ImageEncoder) -> Result<Vec<Answer>, ModelError> {
    let mut answers = Vec::new();
    encoder.encode_all(&mut batches(), &mut |batch| {
        answers.extend(batch);
        Ok(())
    })?;
    let samples: Vec<usize> = answers
        .iter()
        .map(|answer: &Answer| answer.sample)
        .collect();
    assert_eq!(samples, (1..=COUNT).collect::<Vec<_>>());
    for answer in &answers {
        if let Ok(values) = &answer.result {
            assert_eq!(
                values,
                &hostile::embedding(&pixels(answer.sample)),
                "image {}",
                answer.sample
            );
        }
    }
    Ok(answers)
}

/// Which images failed and how.
pub fn failed(answers: &[Answer]) -> Vec<(usize, FailureKind)> {
    answers
        .iter()
        .filter_map(|answer| {
            answer
                .result
                .as_ref()
                .err()
                .map(|error| (answer.sample, error.kind))
        })
        .collect()
}

/// The message of the bad image's failure.
pub fn message(answers: &[Answer]) -> &str {
    &answers[BAD - 1]
        .result
        .as_ref()
        .expect_err("the bad image")
        .message
}

static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct ToLog;

impl std::io::Write for ToLog {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LOG.lock().expect("unpoisoned").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Collect log records of all tests; returns them so far. The first call starts it.
pub fn log() -> String {
    static START: OnceLock<()> = OnceLock::new();
    START.get_or_init(|| {
        let level = tracing_subscriber::filter::LevelFilter::TRACE;
        tracing_subscriber::fmt()
            .with_max_level(level)
            .with_ansi(false)
            .with_writer(|| ToLog)
            .init();
    });
    String::from_utf8_lossy(&LOG.lock().expect("unpoisoned")).into_owned()
}
