//! The same plugin without a process: one code path calls it in both cases.

use crate::support::{
    BATCH, MARKER, batch, expected, hostile, image, load_request, marked, options,
};
use focus_wire::{FailureKind, Matrix, Method, WireError};
use focus_worker::{HostEvents, InProcess};
use hostile::DIM;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

#[derive(Default)]
struct Events {
    log: Mutex<Vec<String>>,
    stop: AtomicBool,
}

impl HostEvents for Events {
    fn log(&self, _level: u32, message: &str) {
        self.log.lock().expect("free").push(message.to_owned());
    }
    fn progress(&self, _stage: &str, _done: u64, _total: u64) {
        // The model is at work: now it can be stopped.
        self.stop.store(true, SeqCst);
    }
    fn cancelled(&self) -> bool {
        self.stop.load(SeqCst)
    }
}

fn encode(plugin: &mut InProcess, header: String, pixels: Vec<u8>) -> Result<Matrix, WireError> {
    let reply = plugin.call(Method::Encode, header, pixels)?;
    Ok(reply.matrix.expect("embeddings"))
}

#[test]
fn it_answers_as_the_worker_does() {
    let events = Arc::new(Events::default());
    let mut plugin = InProcess::load(&load_request(hostile()), events.clone()).expect("loads");
    assert_eq!(plugin.contract(), 1);
    assert!(plugin.sandbox()[0].contains("none"));
    assert!(
        plugin
            .describe()
            .expect("describes")
            .contains("\"hostile\"")
    );
    plugin
        .open(&options(&[("misdeed", "panic"), ("marker", MARKER)]))
        .expect("opens");
    assert!(events.log.lock().expect("free")[0].contains("opened with misdeed `panic`"));
    let images = [image(4), image(5), image(6)];
    let (pixels, header) = batch(&images);
    let found = encode(&mut plugin, header, pixels).expect("encodes");
    assert_eq!((found.rows as usize, found.dim as usize), (BATCH, DIM));
    assert_eq!(found.values[..3 * DIM], expected(&images));
    let (pixels, header) = batch(&[marked()]);
    let error = encode(&mut plugin, header, pixels).expect_err("panics");
    assert_eq!(error.kind, FailureKind::Panic);
    assert!(error.message.contains("misdeed.rs:"), "{error}");
}

#[test]
fn it_can_be_cancelled_and_opened_again() {
    let events = Arc::new(Events::default());
    let mut plugin =
        InProcess::load(&load_request(hostile()), events.clone()).expect("loads a second time");
    plugin
        .open(&options(&[("misdeed", "slow")]))
        .expect("opens");
    let (pixels, header) = batch(&[image(1)]);
    let error = encode(&mut plugin, header, pixels).expect_err("stops");
    assert_eq!(error.kind, FailureKind::Cancelled);
    drop(plugin);
    assert_eq!(
        Arc::strong_count(&events),
        1,
        "closing gives the callbacks back"
    );
}

#[test]
fn one_path_is_never_loaded_with_two_contents() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("libhostile.so");
    std::fs::copy(hostile(), &path).expect("copies");
    let events = || Arc::new(Events::default());
    InProcess::load(&load_request(&path), events()).expect("loads");
    let mut bytes = std::fs::read(&path).expect("reads");
    bytes.push(0);
    // Another file under the same name: glibc would answer with the one it has.
    std::fs::remove_file(&path).expect("removes");
    std::fs::write(&path, bytes).expect("writes");
    let error = InProcess::load(&load_request(&path), events()).expect_err("refused");
    assert!(
        error.message.contains("loaded before with another content"),
        "{error}"
    );
}
