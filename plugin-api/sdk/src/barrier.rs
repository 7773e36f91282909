//! The panic barrier: whatever a model does, nothing unwinds across the border. (An unwinding panic there ends the process.)
//!
//! Must not know what is being called.

use crate::{Error, ErrorKind};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// Advice that goes with every panic.
const HINT: &str = "A fault of the plugin, whose state is unknown from here on: its author needs the place named, and the plugin's log has the panic's own text";

thread_local! {
    /// How many barriers are on this thread's stack.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// Where the last panic under a barrier happened.
    static LOCATION: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Run `work`; a panic becomes an error of kind `panic` with the panic's message and place.
pub(crate) fn guard<T>(doing: &str, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    install_hook();
    DEPTH.set(DEPTH.get() + 1);
    // The model is poisoned after a panic, so no broken invariant of it is ever seen again.
    let outcome = catch_unwind(AssertUnwindSafe(work));
    DEPTH.set(DEPTH.get() - 1);
    outcome.unwrap_or_else(|payload| {
        let place = LOCATION
            .take()
            .unwrap_or_else(|| "an unknown place".to_owned());
        let message = describe(&*payload);
        // A payload whose own `Drop` panics would unwind from here.
        std::mem::forget(payload);
        Err(Error::new(
            ErrorKind::PANIC,
            format!("Model panicked {doing} at `{place}`: {message}"),
        )
        .with_hint(HINT))
    })
}

fn describe(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}

/// A hook that notes the place and then does what the hook before it did. It stays for good and does nothing outside a barrier:
/// putting the old one back after each call would race with other threads' calls, and throw away a hook that the model set itself.
fn install_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if DEPTH.get() > 0 {
                let place = info.location().map(ToString::to_string);
                LOCATION.with(|slot| {
                    if let Ok(mut slot) = slot.try_borrow_mut() {
                        *slot = place;
                    }
                });
            }
            previous(info);
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fails(work: impl FnOnce() -> Result<(), Error>) -> Error {
        guard("in a test", work).expect_err("panics")
    }

    #[test]
    fn message_and_place_are_kept() {
        let line = line!() + 1;
        let error = fails(|| panic!("value {}", 7));
        assert_eq!(error.kind(), ErrorKind::PANIC);
        let text = error.to_string();
        assert!(
            text.contains("value 7")
                && text.contains(&format!("barrier.rs:{line}:"))
                && text.contains("in a test"),
            "{text}"
        );
        assert!(
            fails(|| std::panic::panic_any(7))
                .to_string()
                .ends_with("no message")
        );
    }

    #[test]
    fn a_payload_that_panics_when_dropped_does_no_harm() {
        struct Mine;
        impl Drop for Mine {
            fn drop(&mut self) {
                panic!("in the payload");
            }
        }
        assert_eq!(
            fails(|| std::panic::panic_any(Mine)).kind(),
            ErrorKind::PANIC
        );
        assert_eq!(guard("again", || Ok(1)), Ok(1));
    }

    #[test]
    fn errors_and_values_pass() {
        assert_eq!(guard("x", || Ok(3)), Ok(3));
        assert_eq!(
            guard("x", || Err::<(), _>(Error::image("no")))
                .expect_err("passes")
                .kind(),
            ErrorKind::IMAGE
        );
    }

    #[test]
    fn barriers_nest() {
        let inner = guard("outside", || Ok(fails(|| panic!("inner")))).expect("outer goes on");
        assert!(inner.to_string().contains("inner"));
        assert_eq!(DEPTH.get(), 0);
    }
}
