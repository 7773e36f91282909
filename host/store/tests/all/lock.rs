//! Two processes and one run folder.

use crate::common::{CHILD, child, manifest};
use focus_store::{RunFolder, RunView, StoreError};
use std::{
    io::{BufRead, BufReader, Read, Write},
    path::PathBuf,
};

#[test]
fn a_second_process_is_told_and_death_frees_the_lock() {
    if let Some(path) = std::env::var_os(CHILD) {
        let _run = RunFolder::create_or_resume(&PathBuf::from(path), &manifest())
            .expect("the child is first");
        std::io::stdout()
            .write_all(b"\nholding\n")
            .expect("the parent listens");
        let _ = std::io::stdin().read(&mut [0]);
        return;
    }
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("run");
    let mut other = child(
        "lock::a_second_process_is_told_and_death_frees_the_lock",
        &path,
    )
    .spawn()
    .expect("starts");
    let lines = BufReader::new(other.stdout.take().expect("piped")).lines();
    assert!(
        lines.map_while(Result::ok).any(|line| line == "holding"),
        "the child took the lock"
    );

    let error = RunFolder::create_or_resume(&path, &manifest()).expect_err("held by the child");
    let StoreError::Locked { pid, host, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(*pid, other.id().to_string());
    assert!(!host.is_empty());
    assert!(error.hint().expect("advice").contains(pid.as_str()));
    assert!(RunView::open(&path).is_ok(), "reading needs no lock");

    other.kill().expect("dies");
    other.wait().expect("is dead");
    assert!(
        RunFolder::create_or_resume(&path, &manifest())
            .expect("free")
            .resumed()
    );
}
