//! Downloads of datasets and weights: resumable, checked, polite. It must not know what the files mean.
#![forbid(unsafe_code)]
