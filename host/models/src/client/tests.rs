//! The supervisor against scripted peers: deaths, silences and lies at every place.

use super::*;
use crate::describe::describe_with;
use crate::peer::{Birth, Deed, Peer, Seen, batches, embedding, image, options};
use crate::{
    Answer, Ask, AskedGroup, FullPicture, Generator, GroupAnswer, ImageEncoder, PixelBatch,
};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

struct Run {
    answers: Vec<Answer>,
    result: Result<(), ModelError>,
    record: WorkerRecord,
    seen: Arc<Mutex<Seen>>,
}

impl Run {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().expect("unpoisoned")
    }

    fn failed(&self) -> Vec<(usize, FailureKind)> {
        self.answers
            .iter()
            .filter_map(|answer| {
                answer
                    .result
                    .as_ref()
                    .err()
                    .map(|error| (answer.sample, error.kind))
            })
            .collect()
    }
}

fn run_with(peer: Peer, options: &ClientOptions, count: u16) -> Run {
    let size = peer.opened.batch_size as u16;
    let seen = Arc::clone(&peer.seen);
    let mut client = WorkerClient::open_with(Box::new(peer), options).expect("opens");
    let mut answers = Vec::new();
    let result = client.encode_all(&mut batches(count, size), &mut |batch| {
        answers.extend(batch);
        Ok(())
    });
    Run {
        answers,
        result,
        record: client.close(),
        seen,
    }
}

fn run(peer: Peer, count: u16) -> Run {
    let run = run_with(peer, &options(), count);
    if let Err(error) = &run.result {
        panic!("{error}");
    }
    let samples: Vec<usize> = run.answers.iter().map(|answer| answer.sample).collect();
    assert_eq!(
        samples,
        (1..=usize::from(count)).collect::<Vec<_>>(),
        "every image once, in order"
    );
    for answer in &run.answers {
        if let Ok(values) = &answer.result {
            assert_eq!(values, &embedding(answer.sample as u16));
        }
    }
    run
}

/// Does `deed` whenever image 6 is in the call.
fn on_six(deed: Deed) -> Peer {
    Peer::new(4, move |images, _, _| {
        if images.contains(&6) {
            deed.clone()
        } else {
            Deed::Answer
        }
    })
}

#[test]
fn batches_keep_their_shape_and_tails_are_black() {
    let run = run(Peer::new(4, |_, _, _| Deed::Answer), 10);
    assert_eq!(run.failed(), []);
    assert_eq!(
        run.seen().calls,
        [vec![1, 2, 3, 4], vec![5, 6, 7, 8], vec![9, 10]]
    );
    assert_eq!(run.seen().rows, [(4, 4), (4, 4), (4, 2)]);
    assert_eq!((run.record.restarts, run.record.contract), (0, 1));
}

#[test]
fn a_client_can_move_to_another_thread() {
    fn send<T: Send>() {}
    send::<WorkerClient>();
}

#[test]
fn the_next_batch_is_submitted_before_the_first_is_answered() {
    // The peer answers its first call only once the host has asked for a second batch.
    let (asked, wait) = std::sync::mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let peer = Peer::new(2, move |images, _, _| {
        if images == [1, 2] {
            wait.lock()
                .expect("unpoisoned")
                .recv_timeout(Duration::from_secs(20))
                .expect("pipelined");
        }
        Deed::Answer
    });
    let mut client = WorkerClient::open_with(Box::new(peer), &options()).expect("opens");
    let mut supply = batches(6, 2).enumerate().map(|(number, batch)| {
        if number == 1 {
            asked.send(()).expect("peer lives");
        }
        batch
    });
    let mut seen = 0;
    client
        .encode_all(&mut supply, &mut |answers| {
            seen += answers.len();
            Ok(())
        })
        .expect("works");
    assert_eq!(seen, 6);
}

#[test]
fn each_misdeed_costs_its_image_alone() {
    for (deed, kind) in [
        (Deed::Die(11), FailureKind::Crash),
        (Deed::ExitWell, FailureKind::Crash),
        (Deed::Grow, FailureKind::MemoryKill),
        (Deed::Short, FailureKind::BadReply),
        (Deed::Wide, FailureKind::BadReply),
        (Deed::Thin, FailureKind::BadReply),
        (Deed::WrongCall, FailureKind::BadReply),
        (Deed::WrongMessage, FailureKind::BadReply),
        (Deed::Garbage, FailureKind::Wire),
        (Deed::Typed(FailureKind::Panic), FailureKind::Panic),
        (Deed::Typed(FailureKind::Device), FailureKind::Device),
    ] {
        let run = run(on_six(deed.clone()), 11);
        assert_eq!(run.failed(), [(6, kind)], "{deed:?}");
        // Alone it fails in the batch, in its half and by itself.
        assert_eq!(run.record.restarts, 3, "{deed:?}");
    }
}

#[test]
fn a_typed_error_costs_its_image_and_no_restart() {
    for kind in [
        FailureKind::Image,
        FailureKind::InvalidRequest,
        FailureKind::Internal,
    ] {
        let run = run(on_six(Deed::Typed(kind)), 11);
        assert_eq!(run.failed(), [(6, kind)]);
        assert_eq!(run.record.restarts, 0);
        let error = run.answers[5].result.as_ref().expect_err("failed");
        assert_eq!(
            (error.message.as_str(), error.hint.as_deref()),
            ("says no", Some("do otherwise"))
        );
    }
}

#[test]
fn an_embedding_that_is_not_finite_costs_its_image_one_more_call() {
    let run = run(on_six(Deed::Nan(6)), 11);
    assert_eq!(run.failed(), [(6, FailureKind::BadReply)]);
    assert_eq!(run.record.restarts, 0);
    assert_eq!(run.seen().calls.len(), 4);
}

#[test]
fn a_hang_is_killed_and_costs_its_image_alone() {
    let mut options = options();
    options.worker.timeouts.batch = Duration::from_millis(300);
    let run = run_with(on_six(Deed::Hang), &options, 11);
    run.result.as_ref().expect("goes on");
    assert_eq!(run.failed(), [(6, FailureKind::Hang)]);
    assert_eq!(run.seen().kills, 3);
    let message = &run.answers[5].result.as_ref().expect_err("failed").message;
    assert_eq!(
        message,
        "The worker gave no answer within 300ms while encoding and was killed"
    );
}

#[test]
fn a_crash_is_told_by_its_signal_with_the_last_output_as_hint() {
    let run = run(on_six(Deed::Die(11)), 8);
    let error = run.answers[5].result.as_ref().expect_err("failed");
    assert_eq!(
        error.message,
        "The worker was killed by SIGSEGV while encoding"
    );
    assert!(
        error.hint.as_ref().expect("hint").ends_with("last words"),
        "{error:?}"
    );
    let run = self::run(on_six(Deed::ExitWell), 8);
    assert_eq!(
        run.answers[5].result.as_ref().expect_err("failed").message,
        "The worker exited with status 0 while encoding"
    );
}

#[test]
fn a_crash_that_does_not_repeat_blames_nobody() {
    for batch in [1, 4] {
        let peer = Peer::new(batch, |images, life, _| {
            if images.contains(&6) && life == 0 {
                Deed::Die(6)
            } else {
                Deed::Answer
            }
        });
        let run = run(peer, 11);
        assert_eq!(run.failed(), []);
        assert_eq!(run.record.restarts, 1);
    }
}

#[test]
fn a_plugin_that_fails_on_black_is_broken_not_its_images() {
    let run = run_with(Peer::new(4, |_, _, _| Deed::Die(11)), &options(), 11);
    assert!(
        matches!(run.result, Err(ModelError::FailsOnBlack { .. })),
        "{:?}",
        run.result
    );
    assert_eq!((run.answers.len(), run.record.restarts), (0, 2));
    // Works for a while, then never again.
    let run = run_with(
        Peer::new(4, |_, _, call| {
            if call < 2 {
                Deed::Answer
            } else {
                Deed::Typed(FailureKind::Internal)
            }
        }),
        &options(),
        40,
    );
    assert!(
        matches!(run.result, Err(ModelError::FailsOnBlack { .. })),
        "{:?}",
        run.result
    );
    assert_eq!(run.answers.len(), 8);
}

#[test]
fn restarts_are_bounded() {
    let bounded = ClientOptions {
        max_restarts: 5,
        ..options()
    };
    let peer = Peer::new(4, |images, _, _| {
        if images.iter().any(|image| image % 4 == 1) {
            Deed::Die(11)
        } else {
            Deed::Answer
        }
    });
    let run = run_with(peer, &bounded, 40);
    let Err(error @ ModelError::RestartsUsedUp { .. }) = run.result else {
        panic!("{:?}", run.result)
    };
    assert_eq!(
        error.to_string(),
        "Plugin `libpeer.so` was restarted 5 times and failed again: The worker was killed by SIGSEGV while encoding"
    );
    assert!(error.hint().expect("hint").contains("restarts"));
    assert_eq!((run.record.restarts, run.answers.len()), (5, 4));
    assert_eq!(run.seen.lock().expect("unpoisoned").lives, 6);
}

#[test]
fn a_worker_that_dies_between_calls_is_replaced() {
    // Dies after answering image 4's batch, before it reads the next request.
    let peer = Peer::new(1, |images, life, _| {
        if images == [4] && life == 0 {
            Deed::Die(15)
        } else {
            Deed::Answer
        }
    });
    let run = run(peer, 9);
    assert_eq!(run.failed(), []);
    assert_eq!(run.record.restarts, 1);
}

#[test]
fn what_fails_at_the_start_is_an_error_at_once() {
    let open = |birth: Birth| {
        let mut options = options();
        options.worker.timeouts.open = Duration::from_millis(100);
        let peer = Peer::new(4, |_, _, _| Deed::Answer).births(move |_| birth.clone());
        WorkerClient::open_with(Box::new(peer), &options)
            .expect_err("fails")
            .to_string()
    };
    assert_eq!(
        open(Birth::DiesLoading),
        "Plugin `libpeer.so`: The worker was killed by SIGSEGV while loading the plugin"
    );
    assert_eq!(open(Birth::RefusesToLoad), "Plugin `libpeer.so`: says no");
    assert_eq!(
        open(Birth::DiesOpening),
        "Plugin `libpeer.so`: The worker was killed by SIGABRT while opening the model"
    );
    assert_eq!(
        open(Birth::HangsOpening),
        "Plugin `libpeer.so`: The worker gave no answer within 100ms while opening the model and was killed"
    );
}

#[test]
fn a_restart_that_fails_is_tried_again_and_counted() {
    let peer = on_six(Deed::Die(11)).births(|life| {
        if life == 1 || life == 2 {
            Birth::DiesOpening
        } else {
            Birth::Fine
        }
    });
    let run = run(peer, 11);
    assert_eq!(run.failed(), [(6, FailureKind::Crash)]);
    assert_eq!(run.record.restarts, 5);
}

#[test]
fn another_model_after_a_restart_is_refused() {
    let peer = on_six(Deed::Die(11)).births(|life| {
        if life == 1 {
            Birth::OpensOther
        } else {
            Birth::Fine
        }
    });
    let run = run_with(peer, &options(), 11);
    let Err(ModelError::Changed {
        expected, found, ..
    }) = run.result
    else {
        panic!("{:?}", run.result)
    };
    assert!(expected.contains("\"cpu\"") && found.contains("\"cuda:0\""));
}

#[test]
fn a_sink_that_fails_stops_the_stream_and_the_encoder_can_be_used_again() {
    let mut client =
        WorkerClient::open_with(Box::new(Peer::new(2, |_, _, _| Deed::Answer)), &options())
            .expect("opens");
    let mut seen = 0;
    let result = client.encode_all(&mut batches(20, 2), &mut |_| {
        seen += 1;
        if seen == 3 {
            Err("disk full".into())
        } else {
            Ok(())
        }
    });
    assert_eq!(result.expect_err("stops").to_string(), "disk full");
    assert_eq!(seen, 3);
    let mut answers = Vec::new();
    client
        .encode_all(&mut batches(5, 2), &mut |batch| {
            answers.extend(batch);
            Ok(())
        })
        .expect("works again");
    assert_eq!(answers.len(), 5);
    assert!(
        answers
            .iter()
            .all(|answer| answer.result.as_deref() == Ok(&embedding(answer.sample as u16)))
    );
    assert_eq!(
        client.record().restarts,
        0,
        "the host gave the first process up itself"
    );
}

#[test]
fn batches_that_do_not_fit_and_empty_ones() {
    let mut client =
        WorkerClient::open_with(Box::new(Peer::new(2, |_, _, _| Deed::Answer)), &options())
            .expect("opens");
    let mut sizes = Vec::new();
    let supply = [
        PixelBatch::default(),
        PixelBatch {
            images: vec![image(1)],
        },
        PixelBatch::default(),
    ];
    client
        .encode_all(&mut supply.into_iter(), &mut |answers| {
            sizes.push(answers.len());
            Ok(())
        })
        .expect("works");
    assert_eq!(sizes, [0, 1, 0]);
    let large = PixelBatch {
        images: vec![image(1), image(2), image(3)],
    };
    let result = client.encode_all(&mut [large].into_iter(), &mut |_| Ok(()));
    assert!(
        matches!(result, Err(ModelError::BadBatch { .. })),
        "{result:?}"
    );
}

#[test]
fn a_plugin_describes_itself_and_unknown_fields_are_ignored() {
    let described = describe_with(&mut Peer::new(1, |_, _, _| Deed::Answer), &options().worker)
        .expect("describes");
    assert_eq!(
        (described.descriptor.name.as_str(), described.contract),
        ("peer", 1)
    );
    let error = describe_with(
        &mut Peer::new(1, |_, _, _| Deed::Answer).births(|_| Birth::RefusesToLoad),
        &options().worker,
    )
    .expect_err("no");
    assert_eq!(error.hint().as_deref(), Some("do otherwise"));
}

/// A group named `name`, its picture `pixels` long.
fn group(name: u16, pixels: u32) -> AskedGroup {
    let mut rgb = vec![0; pixels as usize * 3];
    rgb[..2].copy_from_slice(&name.to_le_bytes());
    AskedGroup {
        sample: usize::from(name),
        pictures: vec![FullPicture {
            width: pixels,
            height: 1,
            rgb: rgb.into(),
        }],
        prompts: vec!["?".into()],
    }
}

fn generate(client: &mut WorkerClient, groups: Vec<AskedGroup>, size: usize) -> Vec<GroupAnswer> {
    let mut batches = groups.chunks(size).map(<[AskedGroup]>::to_vec);
    let mut answers = Vec::new();
    client
        .generate_all(&Ask::default(), &mut batches, &mut |batch| {
            answers.extend(batch);
            Ok(())
        })
        .expect("goes on");
    answers
}

#[test]
fn slots_grow_between_calls_and_in_the_next_life_too() {
    // The first picture fills the first slots' page; each later one is too large for what is there.
    let peer = Peer::generator(1, |groups, life, _| {
        if groups == [3] && life == 0 {
            Deed::Die(11)
        } else {
            Deed::Answer
        }
    });
    let seen = Arc::clone(&peer.seen);
    let mut client = WorkerClient::open_with(Box::new(peer), &options()).expect("opens");
    let groups = (1..=5).map(|name| group(name, 500 << name)).collect();
    let answers = generate(&mut client, groups, 1);
    assert!(answers.iter().all(|answer| answer.result.is_ok()));
    assert_eq!(client.record().restarts, 1);
    let calls = seen.lock().expect("unpoisoned").calls.clone();
    assert_eq!(
        calls,
        [vec![1], vec![2], vec![3], vec![3], vec![4], vec![5]]
    );
}

#[test]
fn a_service_that_goes_away_while_groups_are_told_apart_blames_none() {
    let peer = Peer::generator(4, |groups, _, _| {
        Deed::Typed(if groups.len() > 1 {
            FailureKind::Internal
        } else {
            FailureKind::Unsupported
        })
    });
    let mut client = WorkerClient::open_with(Box::new(peer), &options()).expect("opens");
    let batch = vec![group(1, 10), group(2, 10), group(3, 10)];
    let error = client
        .generate_all(&Ask::default(), &mut [batch].into_iter(), &mut |answers| {
            panic!("{answers:?}")
        })
        .expect_err("gone");
    assert_eq!(error.to_string(), "Plugin `libpeer.so`: says no");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Whatever is bad, in whichever way, with whatever sizes of pictures: exactly the bad groups fail, in their own way.
    #[test]
    fn exactly_the_bad_groups_fail(
        sizes in prop::collection::vec(1u32..40_000, 1..16),
        size in 1u32..5,
        slots in 1u32..4,
        bad in prop::collection::btree_map(1u16..16, 0usize..6, 0..4),
    ) {
        let deeds = [Deed::Die(11), Deed::Typed(FailureKind::Image), Deed::Typed(FailureKind::Panic), Deed::Short, Deed::Grow, Deed::Garbage];
        let kinds = [FailureKind::Crash, FailureKind::Image, FailureKind::Panic, FailureKind::BadReply, FailureKind::MemoryKill, FailureKind::Wire];
        let script = bad.clone();
        let peer = Peer::generator(size, move |groups, _, _| {
            groups.iter().find_map(|group| script.get(group)).map_or(Deed::Answer, |deed| deeds[*deed].clone())
        });
        let options = ClientOptions { slots, ..options() };
        let mut client = WorkerClient::open_with(Box::new(peer), &options).expect("opens");
        let groups: Vec<_> = (1u16..).zip(&sizes).map(|(name, pixels)| group(name, *pixels.min(&16_384))).collect();
        let count = groups.len();
        let answers = generate(&mut client, groups, size as usize);
        let samples: Vec<usize> = answers.iter().map(|answer| answer.sample).collect();
        prop_assert_eq!(samples, (1..=count).collect::<Vec<_>>());
        for answer in &answers {
            match (&answer.result, bad.get(&(answer.sample as u16))) {
                (Ok(found), None) => prop_assert_eq!(&found[0].text, &answer.sample.to_string()),
                (Err(error), Some(deed)) => prop_assert_eq!(error.kind, kinds[*deed]),
                other => prop_assert!(false, "{other:?}"),
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever is bad, in whichever way, with whatever batch size: exactly the bad images fail, in their own way.
    #[test]
    fn exactly_the_bad_images_fail(
        count in 1u16..30,
        size in 1u32..9,
        slots in 1u32..4,
        bad in prop::collection::btree_map(1u16..30, 0usize..6, 0..6),
    ) {
        let deeds = [Deed::Die(11), Deed::Typed(FailureKind::Image), Deed::Typed(FailureKind::Panic), Deed::Short, Deed::Grow, Deed::Garbage];
        let script = bad.clone();
        let peer = Peer::new(size, move |images, _, _| {
            images.iter().find_map(|image| script.get(image)).map_or(Deed::Answer, |deed| deeds[*deed].clone())
        });
        let options = ClientOptions { slots, ..options() };
        let run = run_with(peer, &options, count);
        prop_assert!(run.result.is_ok(), "{:?}", run.result);
        let kinds = [FailureKind::Crash, FailureKind::Image, FailureKind::Panic, FailureKind::BadReply, FailureKind::MemoryKill, FailureKind::Wire];
        let expected: Vec<(usize, FailureKind)> =
            bad.iter().filter(|(image, _)| **image <= count).map(|(image, deed)| (usize::from(*image), kinds[*deed])).collect();
        prop_assert_eq!(run.failed(), expected);
        let samples: BTreeSet<usize> = run.answers.iter().map(|answer| answer.sample).collect();
        prop_assert_eq!((samples.len(), run.answers.len()), (usize::from(count), usize::from(count)));
        for answer in &run.answers {
            if let Ok(values) = &answer.result {
                prop_assert_eq!(values, &embedding(answer.sample as u16));
            }
        }
    }
}
