//! The contract between host and model plugins.

pub mod v1 {
    //! Contract version 1.
    pub mod message;
}
