//! Generation over real workers: what fails is the group that misbehaves, whatever it does.

use crate::support::{built, generator_options, worker_options};
use focus_models::{
    Ask, AskedGroup, ClientOptions, FullPicture, Generator, GroupAnswer, InProcessEncoder,
    ModelError, WorkerClient,
};
use focus_wire::FailureKind;
use std::time::Duration;

/// Groups in all, in batches of four.
const COUNT: usize = 10;
/// The group that sets the misdeed off.
pub const BAD: usize = 6;

pub fn options(name: &str, more: &[(&str, &str)]) -> ClientOptions {
    let mut settings = vec![("misdeed", name), ("marker", "fffefd")];
    settings.extend_from_slice(more);
    let mut options = ClientOptions::new(worker_options(), generator_options(&settings));
    options.worker.timeouts.batch = Duration::from_mins(2);
    options
}

fn picture(width: u32, height: u32, seed: usize) -> FullPicture {
    let rgb: Vec<u8> = (0..width * height * 3)
        .map(|at| ((at as usize * 7 + seed * 13) % 250) as u8)
        .collect();
    FullPicture {
        width,
        height,
        rgb: rgb.into(),
    }
}

/// Sizes grow, so that slots must too; group `BAD` carries the marker in its second picture.
pub fn group(sample: usize) -> AskedGroup {
    let side = sample as u32 * 20;
    let mut second = picture(3, 2, sample);
    if sample == BAD {
        let mut rgb = second.rgb.to_vec();
        rgb[..3].copy_from_slice(&[0xff, 0xfe, 0xfd]);
        second.rgb = rgb.into();
    }
    AskedGroup {
        sample,
        pictures: vec![picture(side, side + 1, sample), second],
        prompts: vec![format!("first of {sample}"), "second \u{e9}\n\"".into()],
    }
}

fn batches() -> impl Iterator<Item = Vec<AskedGroup>> {
    (1..=COUNT)
        .step_by(4)
        .map(|first| (first..=COUNT.min(first + 3)).map(group).collect())
}

pub fn ask(adapter: Option<&str>) -> Ask {
    Ask {
        adapter: adapter.map(str::to_owned),
        score: vec!["yes".into(), " no".into()],
        max_new_tokens: 4,
        ..Ask::default()
    }
}

/// All answers, checked to be each group once, in order, and right where there is one.
pub fn generate(model: &mut dyn Generator, ask: &Ask) -> Result<Vec<GroupAnswer>, ModelError> {
    let mut seen: Vec<GroupAnswer> = Vec::new();
    model.generate_all(ask, &mut batches(), &mut |answers| {
        seen.extend(answers);
        Ok(())
    })?;
    let samples: Vec<usize> = seen.iter().map(|answer| answer.sample).collect();
    assert_eq!(samples, (1..=COUNT).collect::<Vec<_>>());
    for found in &seen {
        let group = group(found.sample);
        let Ok(answers) = &found.result else { continue };
        for (answer, prompt) in answers.iter().zip(&group.prompts) {
            let pictures = group.pictures.iter().map(|p| (p.width, p.height, &*p.rgb));
            let text = hostile::generated(ask.adapter.as_deref(), pictures, prompt);
            assert_eq!(answer.text, text);
            let told: Vec<_> = answer.scores.iter().map(|score| score.logprob).collect();
            assert_eq!(told, [Some(-3.0), Some(-3.0)]);
        }
        assert_eq!(answers.len(), 2);
    }
    Ok(seen)
}

pub fn failed(answers: &[GroupAnswer]) -> Vec<(usize, FailureKind, &str)> {
    answers
        .iter()
        .filter_map(|answer| {
            let error = answer.result.as_ref().err()?;
            Some((answer.sample, error.kind, error.message.as_str()))
        })
        .collect()
}

#[test]
fn a_worker_and_the_own_process_answer_alike() {
    let mut client = WorkerClient::open(&options("none", &[])).expect("opens");
    let process = client.worker_id();
    let found = generate(&mut client, &ask(None)).expect("works");
    assert_eq!(failed(&found), []);
    assert_eq!(
        client.worker_id(),
        process,
        "growing slots costs no process"
    );
    assert_eq!(generate(&mut client, &ask(None)).expect("again"), found);
    let record = client.close();
    assert_eq!(record.restarts, 0);
    let mut own =
        InProcessEncoder::open(&worker_options(), &generator_options(&[])).expect("opens");
    assert_eq!(generate(&mut own, &ask(None)).expect("works"), found);
}

#[test]
fn groups_without_pictures_and_empty_batches() {
    let mut client = WorkerClient::open(&options("none", &[])).expect("opens");
    let text = AskedGroup {
        pictures: Vec::new(),
        ..group(1)
    };
    let mut sizes = Vec::new();
    let supply = [Vec::new(), vec![text.clone(), text], Vec::new()];
    client
        .generate_all(&ask(None), &mut supply.into_iter(), &mut |answers| {
            sizes.push(answers.len());
            for answer in &answers {
                assert_eq!(answer.result.as_ref().expect("works")[0].text, "first of 1");
            }
            Ok(())
        })
        .expect("works");
    assert_eq!(sizes, [0, 2, 0]);
    let large = vec![group(1); 5];
    let error = client
        .generate_all(&ask(None), &mut [large].into_iter(), &mut |_| Ok(()))
        .expect_err("five");
    assert!(matches!(error, ModelError::BadBatch { .. }), "{error}");
}

#[test]
fn each_misdeed_costs_its_group_alone() {
    for (name, amount, kind, word, restarts) in [
        (
            "short_rows",
            "0",
            FailureKind::Internal,
            "answers for group 0: expected 2, found 1",
            0,
        ),
        (
            "extra_rows",
            "0",
            FailureKind::Internal,
            "expected 2, found 3",
            0,
        ),
        ("nan", "0", FailureKind::Internal, "not finite: NaN", 0),
        (
            "positive",
            "0",
            FailureKind::BadReply,
            "prompt 1 has a false log probability: expected at most 0, found 0.5",
            0,
        ),
        (
            "huge_text",
            "2",
            FailureKind::BadReply,
            "prompt 1 is too long",
            0,
        ),
        // Longer than a message may be: the worker says so of each call that holds the group, and is replaced.
        (
            "huge_text",
            "70",
            FailureKind::BadReply,
            "Header of the reply is too long",
            3,
        ),
        ("panic", "0", FailureKind::Panic, "asked to panic", 3),
        (
            "error",
            "0",
            FailureKind::Image,
            "Asked to refuse image 1",
            0,
        ),
        (
            "unknown_error",
            "0",
            FailureKind::Internal,
            "error kind 4711, unknown to this host",
            0,
        ),
        (
            "segfault",
            "0",
            FailureKind::Crash,
            "The worker was killed by SIGSEGV while generating",
            3,
        ),
        (
            "exit",
            "0",
            FailureKind::Crash,
            "The worker exited with status 0 while generating",
            3,
        ),
    ] {
        let mut client = WorkerClient::open(&options(name, &[("amount", amount)])).expect("opens");
        let answers = generate(&mut client, &ask(None)).expect("goes on");
        let failed = failed(&answers);
        assert_eq!(failed.len(), 1, "{name}: {failed:?}");
        assert_eq!(
            (failed[0].0, failed[0].1),
            (BAD, kind),
            "{name}: {failed:?}"
        );
        assert!(failed[0].2.contains(word), "{name}: {failed:?}");
        assert_eq!(client.close().restarts, restarts, "{name}");
    }
}

#[test]
fn a_hang_is_killed_and_costs_its_group_alone() {
    let mut options = options("hang", &[]);
    options.worker.timeouts.batch = Duration::from_secs(2);
    let mut client = WorkerClient::open(&options).expect("opens");
    let answers = generate(&mut client, &ask(None)).expect("goes on");
    let words = "The worker gave no answer within 2s while generating and was killed";
    assert_eq!(failed(&answers), [(BAD, FailureKind::Hang, words)]);
    assert_eq!(client.close().restarts, 3);
}

#[test]
fn restarts_are_bounded() {
    let mut options = options("abort", &[]);
    options.max_restarts = 2;
    let mut client = WorkerClient::open(&options).expect("opens");
    let error = generate(&mut client, &ask(None)).expect_err("used up");
    assert!(
        matches!(error, ModelError::RestartsUsedUp { restarts: 2, .. }),
        "{error}"
    );
}

#[test]
fn in_process_a_panic_costs_its_group_alone() {
    let open = generator_options(&[("misdeed", "panic"), ("marker", "fffefd")]);
    let mut own = InProcessEncoder::open(&worker_options(), &open).expect("opens");
    let answers = generate(&mut own, &ask(None)).expect("goes on");
    let failed = failed(&answers);
    assert_eq!(
        (failed.len(), failed[0].0, failed[0].1),
        (1, BAD, FailureKind::Panic)
    );
}

#[test]
fn a_model_that_generates_nothing_says_so_at_once() {
    let mut client = WorkerClient::open(&crate::support::misdeed("none", &[])).expect("opens");
    let small = AskedGroup {
        pictures: vec![picture(8, 8, 1)],
        ..group(1)
    };
    let supply = || [vec![small.clone()]].into_iter();
    let error = client
        .generate_all(&ask(None), &mut supply(), &mut |_| Ok(()))
        .expect_err("an encoder");
    assert!(
        error.to_string().ends_with("Model offers no generator"),
        "{error}"
    );
    assert!(built().plugin.exists());
}

#[test]
fn a_sink_that_fails_stops_the_model_and_keeps_the_process() {
    // Slow, but it stops when told: the process need not go.
    let mut client = WorkerClient::open(&options("slow", &[("amount", "60")])).expect("opens");
    let process = client.worker_id();
    let begun = std::time::Instant::now();
    let result = client.generate_all(&ask(None), &mut batches(), &mut |_| Err("disk full".into()));
    assert_eq!(result.expect_err("stops").to_string(), "disk full");
    assert!(
        begun.elapsed() < Duration::from_secs(30),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(client.worker_id(), process);
    let mut seen = 0;
    client
        .generate_all(
            &ask(None),
            &mut [vec![group(1)]].into_iter(),
            &mut |answers| {
                seen += answers
                    .iter()
                    .filter(|answer| answer.result.is_ok())
                    .count();
                Ok(())
            },
        )
        .expect("works again");
    assert_eq!((seen, client.record().restarts), (1, 0));
}
