//! What enters and leaves the store besides a run of our own: result files of others, exports, simulated readers.
//! It must not know models, plugins, images or metrics' formulas.
#![forbid(unsafe_code)]
