//! The store from outside: through its public face, from other processes, and from Python.

#![forbid(unsafe_code)]

#[path = "all/common.rs"]
mod common;
#[path = "all/generation.rs"]
mod generation;
#[path = "all/hostile.rs"]
mod hostile;
#[path = "all/kill.rs"]
mod kill;
#[path = "all/lock.rs"]
mod lock;
#[path = "all/log.rs"]
mod log;
#[path = "all/python.rs"]
mod python;
