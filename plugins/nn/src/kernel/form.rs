//! Which form layers take: fused steps for inference, or basic operations that keep gradients. One switch for all of them.

use std::cell::Cell;

thread_local! {
    static TRAINING: Cell<bool> = const { Cell::new(false) };
}

/// Restores what was before, after a panic too.
struct Before(bool);

impl Drop for Before {
    fn drop(&mut self) {
        TRAINING.set(self.0);
    }
}

/// Run with every layer in its training form: candle's basic operations, each of which has a gradient, whether or not anything in a product
/// is tracked yet. Without it a layer takes that form only where a tracked tensor reaches it. Holds for layers called on this thread;
/// forms agree within the rounding of f32.
pub fn training<T>(run: impl FnOnce() -> T) -> T {
    let _before = Before(TRAINING.replace(true));
    run()
}

/// Whether the training form is asked for.
pub(crate) fn is_training() -> bool {
    TRAINING.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_switch_goes_back_by_itself() {
        assert!(!is_training());
        training(|| {
            assert!(is_training());
            training(|| assert!(is_training()));
            assert!(is_training());
        });
        assert!(!is_training());
        let caught = std::panic::catch_unwind(|| training(|| panic!("on purpose")));
        assert!(caught.is_err() && !is_training());
        // Threads have their own.
        training(|| std::thread::scope(|s| s.spawn(|| assert!(!is_training())).join()))
            .expect("the other thread is not in training");
    }
}
