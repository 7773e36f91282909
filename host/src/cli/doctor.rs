//! `focus-host doctor`.

use super::CommandResult;
use super::failure::Code;
use super::output::Output;
use crate::config::Folders;
use crate::doctor::{self, Verdict};
use std::process::ExitCode;

pub(crate) fn run(out: &Output) -> CommandResult {
    let findings = doctor::examine(&Folders::from_environment());
    out.either(&findings, || {
        let word = |verdict| match verdict {
            Verdict::Good => "ok",
            Verdict::Note => "note",
            Verdict::Bad => "BAD",
        };
        findings
            .iter()
            .map(|f| format!("{:<5} {:<14} {}\n", word(f.verdict), f.what, f.detail))
            .collect()
    })?;
    let bad = findings.iter().any(|f| f.verdict == Verdict::Bad);
    Ok(if bad {
        ExitCode::from(Code::Difference as u8)
    } else {
        ExitCode::SUCCESS
    })
}
