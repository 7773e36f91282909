//! What a plugin may ask of the host while it works: log, progress, cancelled. Counted, callable from any thread.
//!
//! Must not know where the lines go.

use abi_stable::StableAbi;
use abi_stable::std_types::RStr;
use std::ffi::c_void;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The host's end of the callbacks. Called from whichever thread the plugin likes.
pub trait HostEvents: Send + Sync + 'static {
    /// A log line. `level`: 1 error, 2 warn, 3 info, 4 debug, 5 trace.
    fn log(&self, level: u32, message: &str);
    /// `done` of `total` units of `stage`; `total` 0 when unknown.
    fn progress(&self, stage: &str, done: u64, total: u64);
    /// The host no longer wants the answer of the call in progress.
    fn cancelled(&self) -> bool;
}

/// Functions and a counted context; the plugin's handle on the host. Cloning and dropping go through the owner's functions.
#[repr(C)]
#[derive(StableAbi)]
pub struct HostCallbacks {
    context: *const c_void,
    retain: unsafe extern "C" fn(context: *const c_void),
    release: unsafe extern "C" fn(context: *const c_void),
    log: unsafe extern "C" fn(context: *const c_void, level: u32, message: RStr<'_>),
    progress: unsafe extern "C" fn(context: *const c_void, stage: RStr<'_>, done: u64, total: u64),
    cancelled: unsafe extern "C" fn(context: *const c_void) -> bool,
}

// SAFETY: the context is an `Arc<Arc<dyn HostEvents>>` of the host, and `HostEvents` is Send + Sync.
unsafe impl Send for HostCallbacks {}
// SAFETY: as above; every function takes the context by shared reference.
unsafe impl Sync for HostCallbacks {}

type Context = Arc<dyn HostEvents>;

impl HostCallbacks {
    /// Wrap the host's events.
    pub fn new(events: Arc<dyn HostEvents>) -> Self {
        Self {
            context: Arc::into_raw(Arc::new(events)).cast(),
            retain,
            release,
            log,
            progress,
            cancelled,
        }
    }

    /// Say something.
    pub fn log(&self, level: u32, message: &str) {
        // SAFETY: `context` is alive as long as `self` holds its count, and belongs to these functions.
        unsafe { (self.log)(self.context, level, message.into()) }
    }

    /// Tell how far a long call is.
    pub fn progress(&self, stage: &str, done: u64, total: u64) {
        // SAFETY: as in `log`.
        unsafe { (self.progress)(self.context, stage.into(), done, total) }
    }

    /// Whether to stop.
    pub fn cancelled(&self) -> bool {
        // SAFETY: as in `log`.
        unsafe { (self.cancelled)(self.context) }
    }
}

impl Clone for HostCallbacks {
    fn clone(&self) -> Self {
        // SAFETY: as in `log`; the new handle owns the count taken here.
        unsafe { (self.retain)(self.context) };
        Self { ..*self }
    }
}

impl Drop for HostCallbacks {
    fn drop(&mut self) {
        // SAFETY: gives back the one count that this handle owns.
        unsafe { (self.release)(self.context) }
    }
}

impl fmt::Debug for HostCallbacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostCallbacks").finish_non_exhaustive()
    }
}

/// A panic of the host's own must not unwind into the plugin, which would end the process.
fn quietly<T>(otherwise: T, work: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(otherwise)
}

unsafe extern "C" fn retain(context: *const c_void) {
    // SAFETY: the caller passes a context made by `HostCallbacks::new` that is still counted.
    unsafe { Arc::increment_strong_count(context.cast::<Context>()) };
}

unsafe extern "C" fn release(context: *const c_void) {
    // SAFETY: as in `retain`; the caller gives up one count.
    let context = unsafe { Arc::from_raw(context.cast::<Context>()) };
    quietly((), || drop(context));
}

unsafe extern "C" fn log(context: *const c_void, level: u32, message: RStr<'_>) {
    // SAFETY: as in `retain`; the reference ends with this call.
    let events = unsafe { &*context.cast::<Context>() };
    quietly((), || events.log(level, message.as_str()));
}

unsafe extern "C" fn progress(context: *const c_void, stage: RStr<'_>, done: u64, total: u64) {
    // SAFETY: as in `log`.
    let events = unsafe { &*context.cast::<Context>() };
    quietly((), || events.progress(stage.as_str(), done, total));
}

unsafe extern "C" fn cancelled(context: *const c_void) -> bool {
    // SAFETY: as in `log`.
    let events = unsafe { &*context.cast::<Context>() };
    quietly(false, || events.cancelled())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    struct Recorder(Mutex<Vec<String>>);

    impl HostEvents for Recorder {
        fn log(&self, level: u32, message: &str) {
            assert_ne!(message, "panic", "asked to");
            self.0
                .lock()
                .expect("no panic holds it")
                .push(format!("{level} {message}"));
        }
        fn progress(&self, stage: &str, done: u64, total: u64) {
            self.0
                .lock()
                .expect("no panic holds it")
                .push(format!("{stage} {done}/{total}"));
        }
        fn cancelled(&self) -> bool {
            true
        }
    }

    #[test]
    fn lines_arrive_and_the_context_lives_as_long_as_its_last_handle() {
        let recorder = Arc::new(Recorder(Mutex::new(Vec::new())));
        let first = HostCallbacks::new(recorder.clone());
        let second = first.clone();
        first.log(3, "hello");
        drop(first);
        std::thread::scope(|scope| {
            scope.spawn(|| second.progress("load", 1, 2));
        });
        assert!(second.cancelled());
        assert_eq!(*recorder.0.lock().expect("free"), ["3 hello", "load 1/2"]);
        assert_eq!(Arc::strong_count(&recorder), 2);
        drop(second);
        assert_eq!(Arc::strong_count(&recorder), 1);
    }

    #[test]
    fn a_panic_of_the_host_stays_on_its_side() {
        let host = HostCallbacks::new(Arc::new(Recorder(Mutex::new(Vec::new()))));
        host.log(1, "panic");
        assert!(host.cancelled());
    }
}
