//! The probe from outside: agreement with scikit-learn, and what must hold for any data. Needs no file outside the crate.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod common;
mod suite {
    //! Themed modules of this one binary.
    mod behaviour;
    mod property;
    mod real_embeddings;
    mod scikit_learn;

    use super::common;
}
