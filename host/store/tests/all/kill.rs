//! A process that is killed while it appends, again and again: what `append` returned for is there, and the end is the same.

use crate::common::{CHILD, DIM, answer, child, manifest};
use focus_store::{AnswerLog, AnswerLogOptions, Answers, RunFolder, SyncPolicy};
use std::{
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    time::Duration,
};

const SAMPLES: u32 = 6000;
const OPTIONS: fn() -> AnswerLogOptions = || AnswerLogOptions {
    sync: SyncPolicy::AtEnd,
    ..AnswerLogOptions::default()
};

// Append what is missing in batches of seven; say so after each.
fn work(log: &mut AnswerLog) {
    let missing: Vec<u32> = (0..SAMPLES).filter(|n| !log.done().contains(n)).collect();
    for batch in missing.chunks(7) {
        log.append(&batch.iter().map(|n| answer(*n)).collect::<Vec<_>>())
            .expect("appends");
        if std::env::var_os(CHILD).is_some() {
            writeln!(std::io::stdout(), "\nappended {}", log.done().len())
                .expect("the parent listens");
            // Slow enough for ten kills to fall before the end.
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn kills_lose_nothing_that_was_appended() {
    let open = |path: &PathBuf| {
        let run = RunFolder::create_or_resume(path, &manifest()).expect("opens");
        let Answers::Open(log, summary) = run.answers("m", DIM, OPTIONS()).expect("opens") else {
            panic!("not finished")
        };
        (run, log, summary)
    };
    if let Some(path) = std::env::var_os(CHILD) {
        work(&mut open(&PathBuf::from(path)).1);
        return;
    }
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("run");
    let (mut least, mut midway) = (0, 0);
    for kill in 1..=10 {
        let mut other = child("kill::kills_lose_nothing_that_was_appended", &path)
            .spawn()
            .expect("starts");
        let lines = BufReader::new(other.stdout.take().expect("piped"))
            .lines()
            .map_while(Result::ok);
        let counts = lines.filter_map(|line| line.strip_prefix("appended ")?.parse::<usize>().ok());
        // The child goes on while this side wakes up: the kill falls anywhere.
        let reported = counts.take(1 + kill * 5 % 8).last().unwrap_or(0);
        other.kill().expect("dies");
        other.wait().expect("is dead");
        let (_run, _log, summary) = open(&path);
        assert!(
            summary.done.len() >= reported.max(least),
            "{} of {reported} kept",
            summary.done.len()
        );
        least = summary.done.len();
        midway += usize::from(least < SAMPLES as usize);
    }
    assert!(midway > 0, "at least one kill came before the end");
    let (run, mut log, _) = open(&path);
    work(&mut log);
    let file = run.finish_answers(log).expect("finishes");
    assert_eq!(file.rows(), SAMPLES as usize);
    let ended = std::fs::read(run.answers_path("m")).expect("reads");
    assert!(matches!(
        run.answers("m", DIM, OPTIONS()),
        Ok(Answers::Finished(_))
    ));
    drop(run);

    let (run, mut log, _) = open(&folder.path().join("unhurt"));
    log.append(&(0..SAMPLES).map(answer).collect::<Vec<_>>())
        .expect("appends");
    run.finish_answers(log).expect("finishes");
    assert_eq!(
        std::fs::read(run.answers_path("m")).expect("reads"),
        ended,
        "the same bytes as without any kill"
    );
}
