//! What is done with a mapped dataset before any model sees it: splits, and the audit. It must not know models, metrics or
//! how a number is printed.
#![forbid(unsafe_code)]
