//! Real dylibs loaded by a real worker process, and by this process; the dylibs are built when the tests run.

mod host;
mod in_process;
mod interfaces;
mod loading;
mod misdeed;
mod protocol;
mod support;
mod template;
