//! Downloads from a server that misbehaves in every way a test can think of. Everything stays on this computer.

mod archive;
mod batch;
mod documents;
mod folder;
mod hub;
mod redirect;
mod refusal;
mod resume;
mod secret;
mod server;
mod slow;
mod source;
mod support;
mod wrong;
