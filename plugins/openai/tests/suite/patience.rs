//! Servers that are slow, busy or gone: what is tried again, when, and when it is given up.

use crate::mock::{Act, Mock, completion, ok, status};
use crate::support::{ask, ask_one, end_of, ended, error, open, request};
use focus_plugin_sdk::ErrorKind;
use serde_json::json;
use std::net::TcpListener;
use std::time::{Duration, Instant, SystemTime};

fn good() -> Vec<u8> {
    completion("yes").to_string().into_bytes()
}

#[test]
fn what_may_pass_is_sent_again() {
    for code in [408, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529] {
        let mock = Mock::start(move |number, _| match number {
            0 | 1 => status(code, &json!({"error": {"message": "busy"}})),
            _ => ok(&completion("yes")),
        });
        let group = ask_one(&mut open(&mock, &[]));
        assert_eq!(group.answers[0].text, "yes", "{code}");
        assert_eq!(mock.questions().len(), 3);
    }
}

#[test]
fn broken_connections_are_tried_again() {
    let acts: [fn() -> Act; 4] = [
        || Act::Close,
        || Act::Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"choices\"".to_vec()),
        || Act::Raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"cho".to_vec()),
        || Act::Raw(b"HTT".to_vec()),
    ];
    for act in acts {
        let mock = Mock::start(move |number, _| match number {
            0 => act(),
            _ => ok(&completion("yes")),
        });
        let group = ask_one(&mut open(&mock, &[]));
        assert!(group.error.is_none(), "{group:?}");
        assert_eq!(mock.questions().len(), 2);
    }
}

#[test]
fn retries_end() {
    let mock = Mock::start(|_, _| status(503, &json!({"error": {"message": "still loading"}})));
    let mut model = open(&mock, &[]);
    let text = end_of(&mut model);
    assert!(
        text.contains("Gave up after 4 attempts") && text.contains("still loading"),
        "{text}"
    );
    assert_eq!(mock.questions().len(), 4);
}

#[test]
fn retry_after_is_kept() {
    let mock = Mock::start(|number, _| match number {
        0 => Act::Reply(429, vec![("Retry-After", "1".into())], b"{}".to_vec()),
        _ => ok(&completion("yes")),
    });
    assert!(ask_one(&mut open(&mock, &[])).error.is_none());
    let asked = mock.questions();
    let wait = asked[1].at - asked[0].at;
    assert!(wait >= Duration::from_millis(995), "{wait:?}");
}

#[test]
fn retry_after_may_be_a_date() {
    let mock = Mock::start(|number, _| match number {
        0 => {
            let date = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(2));
            Act::Reply(503, vec![("Retry-After", date)], b"{}".to_vec())
        }
        _ => ok(&completion("yes")),
    });
    assert!(ask_one(&mut open(&mock, &[])).error.is_none());
    let asked = mock.questions();
    // Dates have whole seconds.
    assert!(asked[1].at - asked[0].at >= Duration::from_millis(900));
}

#[test]
fn too_long_a_wait_is_given_up_at_once() {
    let mock =
        Mock::start(|_, _| Act::Reply(429, vec![("Retry-After", "86400".into())], b"{}".to_vec()));
    let start = Instant::now();
    let text = end_of(&mut open(&mock, &[]));
    assert!(start.elapsed() < Duration::from_mins(1));
    assert!(
        text.contains("Gave up after 1 attempts") && text.contains("status 429"),
        "{text}"
    );
    assert_eq!(mock.questions().len(), 1);
}

/// A number that no clock holds is a long pause, not none.
#[test]
fn an_endless_pause_is_a_pause() {
    for endless in ["99999999999999999999999", "18446744073709551615"] {
        let mock = Mock::start(move |_, _| {
            Act::Reply(503, vec![("Retry-After", endless.into())], b"{}".to_vec())
        });
        let text = end_of(&mut open(&mock, &[]));
        assert!(text.contains("Gave up after 1 attempts"), "{text}");
        assert_eq!(mock.asked().len(), 1);
    }
}

/// A service that is busy for this client still lists its models; its pictures are not to blame, now or in the next call.
#[test]
fn a_busy_service_ends_the_run_and_blames_no_picture() {
    let busy: [fn() -> Act; 4] = [
        || Act::Reply(429, vec![("Retry-After", "3600".into())], b"{}".to_vec()),
        || Act::Reply(503, vec![("Retry-After", "3600".into())], b"{}".to_vec()),
        || status(429, &json!({"error": {"message": "slow down"}})),
        || status(529, &json!({"error": {"message": "overloaded"}})),
    ];
    for (number, busy) in busy.into_iter().enumerate() {
        for concurrency in ["1", "3"] {
            let mock = Mock::start(move |_, asked| match asked.path.as_str() {
                "/v1/models" => ok(&json!({"data": [{"id": "m"}]})),
                _ => busy(),
            });
            let mut model = open(&mock, &[("concurrency", concurrency)]);
            let questions = request(&[&["a"], &["b"], &["c"]]);
            let end = ask(&mut model, &questions).expect_err("busy");
            assert_eq!(end.kind(), ErrorKind::UNSUPPORTED);
            assert!(ended(&end).contains("Gave up after"), "{end}");
            if number > 1 {
                continue;
            }
            // Nobody asks in the pause.
            let sent = mock.asked().len();
            let end = ask(&mut model, &questions).expect_err("still busy");
            assert_eq!(end.kind(), ErrorKind::UNSUPPORTED);
            let text = ended(&end);
            assert!(
                text.contains("Gave up after 0 attempts")
                    && text.contains("asked to be left alone for 3"),
                "{text}"
            );
            assert_eq!(mock.asked().len(), sent);
        }
    }
}

/// The time that passed in a pause is missing when the next question would have needed it.
#[test]
fn a_pause_that_used_up_the_time_blames_no_picture() {
    let mock = Mock::start(|number, asked| match asked.path.as_str() {
        "/v1/models" => ok(&json!({"data": []})),
        _ if number == 0 => Act::Reply(429, vec![("Retry-After", "1".into())], b"{}".to_vec()),
        _ => Act::Late(Duration::from_secs(5), good()),
    });
    let mut model = open(&mock, &[("retries", "0"), ("give_up_after", "2")]);
    assert!(end_of(&mut model).contains("status 429"));
    let text = end_of(&mut model);
    assert!(
        text.contains("Gave up after 1 attempts") && text.contains("asked to be left alone for"),
        "{text}"
    );
    assert_eq!(mock.asked().len(), 2);
}

/// The attempts that a busy server took are missing when the picture would have needed them.
#[test]
fn a_failure_after_a_busy_answer_blames_no_picture() {
    let mock = Mock::start(|number, asked| match asked.path.as_str() {
        "/v1/models" => ok(&json!({"data": []})),
        _ if number < 3 => status(429, &json!({"error": {"message": "slow down"}})),
        _ => status(500, &json!({"error": {"message": "CUDA"}})),
    });
    let text = end_of(&mut open(&mock, &[]));
    assert!(
        text.contains("Gave up after 4 attempts") && text.contains("slow down"),
        "{text}"
    );
}

#[test]
fn a_busy_server_pauses_every_thread() {
    let mock = Mock::start(|number, _| match number {
        0 => Act::Reply(429, vec![("Retry-After", "1".into())], b"{}".to_vec()),
        _ => ok(&completion("yes")),
    });
    // The second question must not start while the first one waits.
    let mut model = open(&mock, &[("concurrency", "1")]);
    let reply = ask(&mut model, &request(&[&["a"], &["b"]])).expect("a reply");
    assert!(reply.groups.iter().all(|group| group.error.is_none()));
    let asked = mock.questions();
    assert!(
        asked[1..]
            .iter()
            .all(|later| later.at - asked[0].at >= Duration::from_millis(995))
    );
}

#[test]
fn slow_servers_meet_the_time_limit() {
    let mock = Mock::start(|_, _| Act::Late(Duration::from_secs(40), good()));
    let mut model = open(&mock, &[("timeout", "1"), ("retries", "0")]);
    let start = Instant::now();
    let text = end_of(&mut model);
    assert!(start.elapsed() < Duration::from_secs(20));
    assert!(
        text.contains("too slow: expected a whole answer within 1 s")
            && text.contains("timeout=SECONDS"),
        "{text}"
    );
}

/// Trickling bytes must not keep a request alive for ever.
#[test]
fn the_time_limit_is_of_the_whole_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        let (mut stream, _) = listener.accept().expect("a client");
        let mut bytes = [0; 4096];
        let _ = stream.read(&mut bytes);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
        // 40 seconds in all.
        while stream.write_all(b" ").is_ok() {
            std::thread::sleep(Duration::from_millis(40));
        }
    });
    let base = format!("http://127.0.0.1:{port}/v1");
    let options = crate::support::options(
        &[
            ("base_url", &base),
            ("served_model", "m"),
            ("token_scores", "top_logprobs"),
            ("timeout", "1"),
            ("retries", "0"),
        ],
        &["127.0.0.1"],
    );
    let host = focus_plugin_sdk::Host::detached();
    let mut model =
        openai::generator::ChatModel::open(&options, &host, &|_| None, crate::support::WAITS)
            .expect("opens");
    let start = Instant::now();
    assert!(end_of(&mut model).contains("too slow"));
    assert!(start.elapsed() < Duration::from_secs(20));
}

/// The run ends, and no picture is blamed: a later run asks for what is missing.
#[test]
fn a_server_that_dies_ends_the_run() {
    for gone in [(|| Act::Close) as fn() -> Act, || {
        status(502, &json!({"error": "bad gateway"}))
    }] {
        let mock = Mock::start(move |number, _| match number {
            0 | 1 => ok(&completion("yes")),
            _ => gone(),
        });
        let mut model = open(&mock, &[("concurrency", "1")]);
        ask(&mut model, &request(&[&["a"]])).expect("alive");
        let end = ask(&mut model, &request(&[&["b"], &["c"], &["d"]])).expect_err("gone");
        assert_eq!(end.kind(), ErrorKind::UNSUPPORTED);
        assert!(ended(&end).contains("Gave up after 4 attempts"), "{end}");
        // `c` four times, then whether anybody is there; `d` is not asked.
        let asked = mock.asked();
        assert_eq!(asked.len(), 2 + 4 + 1);
        assert_eq!(asked[6].path, "/v1/models");
    }
}

/// A server that answers others is not gone: the picture that it cannot take is the one that fails.
#[test]
fn a_server_that_chokes_on_one_picture_fails_that_one() {
    for choke in [(|| Act::Close) as fn() -> Act, || {
        status(500, &json!({"error": "CUDA"}))
    }] {
        let mock = Mock::start(move |_, asked| {
            if asked.path != "/v1/chat/completions" {
                return status(404, &json!({"error": "no list here"}));
            }
            match asked.prompt().as_str() {
                "bad" => choke(),
                other => ok(&completion(other)),
            }
        });
        let mut model = open(&mock, &[("concurrency", "2")]);
        let reply = ask(&mut model, &request(&[&["a"], &["bad"], &["b"]])).expect("a reply");
        assert!(error(&reply.groups[1]).contains("Gave up after 4 attempts"));
        let kind = reply.groups[1].error.as_ref().expect("an error").kind;
        assert_eq!(kind, ErrorKind::DEVICE.0);
        assert_eq!(
            (
                &*reply.groups[0].answers[0].text,
                &*reply.groups[2].answers[0].text
            ),
            ("a", "b")
        );
    }
}

/// Whoever waits for the user's own rate longer than `give_up_after` has not met a slow server.
#[test]
fn the_users_own_rate_is_not_the_servers_slowness() {
    let mock = Mock::start(|_, _| ok(&completion("yes")));
    // 100 ms apart, 1.2 s in all.
    let start = Instant::now();
    let mut model = open(
        &mock,
        &[
            ("requests_per_minute", "600"),
            ("concurrency", "13"),
            ("give_up_after", "1"),
        ],
    );
    let groups: Vec<&[&str]> = vec![&["Q?"]; 13];
    let reply = ask(&mut model, &request(&groups)).expect("a reply");
    for group in &reply.groups {
        assert!(group.error.is_none(), "{group:?}");
    }
    let asked = mock.questions();
    assert_eq!(asked.len(), 13);
    assert!(asked[12].at - start >= Duration::from_millis(1200));
}

#[test]
fn the_rate_is_kept() {
    let mock = Mock::start(|_, _| ok(&completion("yes")));
    // 20 ms apart.
    let mut model = open(&mock, &[("requests_per_minute", "3000")]);
    let start = Instant::now();
    ask(&mut model, &request(&[&["a"], &["b"], &["c"], &["d"]])).expect("a reply");
    assert!(mock.questions()[3].at - start >= Duration::from_millis(60));
}
