//! No secret appears in a log line, an event, an error or a file.

use crate::{
    server::{Server, whole},
    support::Bench,
};
use focus_fetch::{FileJob, Keyring, Login, Origin, Secret, Service, fetch_all};
use std::{
    ffi::OsString,
    io::Write,
    sync::{Arc, Mutex},
};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("log").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

const USER: &str = "ann-s3cret-user";
const WORD: &str = "hunter2-s3cret";

#[test]
fn nothing_tells_the_secret() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let server = Server::start(|r, s| match (&*r.path, r.number) {
        ("/busy", 0..8) => whole(s, "503 Unavailable", &[], b""),
        ("/moved", _) => whole(s, "302 Found", &[("Location", "/ok?token=s3cret")], b""),
        ("/refused", _) => whole(s, "401 Unauthorized", &[], b""),
        _ => whole(s, "200 OK", &[], b"x"),
    });
    let bench = Bench::new();
    let mut told = String::new();
    tracing::subscriber::with_default(subscriber, || {
        let origin = |path: &str| {
            let job = FileJob::new("x", &server.url(path)).expect("a job");
            Origin::of(&job.url).expect("origin")
        };
        let login = Login::new(
            Service::Web,
            origin("/"),
            Secret::new(USER),
            Secret::new(WORD),
        )
        .expect("within this computer");
        for path in ["/busy", "/moved", "/refused", "/ok"] {
            let job = FileJob {
                login: Some(login.clone()),
                ..FileJob::new(&path[1..], &server.url(path)).expect("a job")
            };
            told += &format!("{job:?} {:?}", bench.fetch(&job));
        }
        // A half login, and a malformed netrc that holds the word; a file that others may read is warned of.
        let netrc = bench.path("netrc");
        std::fs::write(&netrc, format!("machine 127.0.0.1 {WORD}")).expect("writes");
        let file = netrc.into_os_string();
        let ring = Keyring::new(move |name| match name {
            "NETRC" => Some(file.clone()),
            "KAGGLE_KEY" => Some(OsString::from(WORD)),
            _ => None,
        });
        for service in [Service::Web, Service::Kaggle] {
            let error = ring.login(service, &origin("/")).expect_err("malformed");
            told += &format!("{ring:?} {error} {error:?} {:?}", error.hint());
        }
        std::fs::remove_file(bench.path("netrc")).expect("removes");
        let jobs = [FileJob {
            login: Some(login),
            ..FileJob::new("z", &server.url("/refused")).expect("a job")
        }];
        told += &format!("{:?}", fetch_all(&bench.context(), &bench.folder(), &jobs));
    });
    told += &bench.ear.heard.lock().expect("list").join("\n");
    let lines = String::from_utf8_lossy(&log.0.lock().expect("log")).into_owned();
    assert!(
        lines.contains("trying again") && lines.contains("redirected"),
        "{lines}"
    );
    assert!(lines.contains("chmod 600"), "{lines}");
    assert!(
        server
            .seen()
            .iter()
            .all(|r| r.header("authorization").is_some()),
        "they were sent"
    );
    told += &lines;
    for name in bench.names() {
        told += &String::from_utf8_lossy(&bench.read(&name));
    }
    for secret in ["s3cret", "YW5uLXMzY3JldC11c2Vy"] {
        assert!(!told.contains(secret), "{told}");
    }
}
