//! A hub of our own: its list, its files, its refusals, and what is left in the cache.

use crate::{
    server::{Request, Server, file, whole},
    support::{Bench, body, sha256},
};
use focus_fetch::{FetchError, Hub, Snapshot};
use std::{
    ffi::OsString,
    net::TcpStream,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
const CONFIG: &str = "cccccccccccccccccccccccccccccccccccccccc";
const TOKEN: &str = "hf_hunter2";

/// The list of a repository with a small `config.json`, large weights in two forms, and the same weights in a folder.
fn list() -> Vec<u8> {
    let weights = body(70_000);
    let large = |name: &str| {
        let sha = sha256(&weights).hex().to_owned();
        serde_json::json!({"rfilename": name, "size": 70_000, "blobId": "d".repeat(40), "lfs": {"sha256": sha, "size": 70_000, "pointerSize": 130}})
    };
    let list = serde_json::json!({
        "id": "org/name", "sha": COMMIT, "gated": false,
        "siblings": [
            {"rfilename": "config.json", "size": 9, "blobId": CONFIG},
            large("model.safetensors"), large("pytorch_model.bin"), large("deep/copy.safetensors"),
        ],
    });
    list.to_string().into_bytes()
}

fn honest(request: &Request, stream: &mut TcpStream, cut: usize) {
    let file_at = format!("/org/name/resolve/{COMMIT}/");
    match request.path.strip_prefix(&file_at) {
        Some("config.json") => whole(stream, "200 OK", &[("ETag", "\"c\"")], b"{\"a\": 12}"),
        Some("model.safetensors" | "deep/copy.safetensors") => {
            file(request, stream, &body(70_000), "\"w\"", cut);
        }
        None if request.path == "/api/models/org/name/revision/main?blobs=true" => {
            whole(stream, "200 OK", &[], &list());
        }
        _ => whole(stream, "404 Not Found", &[], b"no"),
    }
}

struct Cache {
    bench: Bench,
    endpoint: String,
    offline: bool,
    token: bool,
}

impl Cache {
    fn of(server: &Server) -> Self {
        Self {
            bench: Bench::new(),
            endpoint: server.base.clone(),
            offline: false,
            token: false,
        }
    }

    fn fetch_of(&self, name: &str, wanted: &[&str]) -> Result<Snapshot, FetchError> {
        let (endpoint, offline, token) = (self.endpoint.clone(), self.offline, self.token);
        let hub = Hub::new(self.bench.dir.path(), move |name| match name {
            "HF_ENDPOINT" => Some(OsString::from(&endpoint)),
            "HF_HUB_OFFLINE" if offline => Some("1".into()),
            "HF_TOKEN" if token => Some(TOKEN.into()),
            _ => None,
        })?;
        let wanted: Vec<String> = wanted.iter().map(|&name| name.to_owned()).collect();
        hub.fetch(&self.bench.context(), name, None, &wanted)
    }

    fn fetch(&self) -> Result<Snapshot, FetchError> {
        self.fetch_of("org/name", &[])
    }

    fn path(&self, name: &str) -> PathBuf {
        self.bench.path("models--org--name").join(name)
    }

    fn referred(&self) -> bool {
        self.path("refs/main").exists()
    }
}

#[test]
fn a_repository_lies_in_the_cache_as_others_expect_it() {
    let server = Server::start(|r, s| honest(r, s, usize::MAX));
    let cache = Cache::of(&server);
    let first = cache.fetch().expect("fetched");
    assert_eq!(first.folder, cache.path(&format!("snapshots/{COMMIT}")));
    // Two contents: the copy has its sibling's.
    assert_eq!((first.fetched, first.present), (2, 0));
    let read = |name: &str| std::fs::read(first.folder.join(name)).expect(name);
    assert_eq!(read("config.json"), b"{\"a\": 12}");
    assert_eq!(read("model.safetensors"), body(70_000));
    assert_eq!(read("deep/copy.safetensors"), body(70_000));
    assert!(!first.folder.join("pytorch_model.bin").exists());
    let link = std::fs::read_link(first.folder.join("config.json")).expect("a link");
    assert_eq!(link, PathBuf::from(format!("../../blobs/{CONFIG}")));
    let reference = std::fs::read_to_string(cache.path("refs/main")).expect("written");
    assert_eq!(reference, COMMIT);
    let left: Vec<_> = std::fs::read_dir(cache.path("blobs"))
        .expect("lists")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(left.len(), 2, "{left:?}");

    let again = cache.fetch().expect("there");
    assert_eq!((again.fetched, again.present, again.received), (0, 2, 0));
    // Without a token none is sent.
    assert!(
        server
            .seen()
            .iter()
            .all(|r| r.header("authorization").is_none())
    );
}

#[test]
fn files_can_be_named() {
    let server = Server::start(|r, s| honest(r, s, usize::MAX));
    let cache = Cache::of(&server);
    let one = cache
        .fetch_of("org/name", &["config.json"])
        .expect("fetched");
    assert_eq!(one.fetched, 1);
    assert!(!one.folder.join("model.safetensors").exists());
    let error = cache.fetch_of("org/name", &["absent"]).expect_err("absent");
    assert_eq!(
        error.to_string(),
        "Repository `org/name` has no file `absent`"
    );
}

#[test]
fn a_gated_repository_wants_a_token_and_gets_it() {
    let server = Server::start(|r, s| {
        if r.header("authorization") == Some("Bearer hf_hunter2") {
            honest(r, s, usize::MAX);
        } else {
            whole(s, "401 Unauthorized", &[], b"gated");
        }
    });
    let mut cache = Cache::of(&server);
    let error = cache.fetch().expect_err("gated");
    assert!(
        matches!(error, FetchError::Refused { status: 401, .. }),
        "{error}"
    );
    let hint = error.hint().expect("advice");
    for word in ["HF_TOKEN", "/org/name", "terms"] {
        assert!(hint.contains(word), "{hint}");
    }
    assert!(!cache.referred());
    cache.token = true;
    assert_eq!(cache.fetch().expect("allowed").fetched, 2);
}

#[test]
fn a_token_that_does_not_suffice_is_not_told() {
    let server = Server::start(|_, s| whole(s, "403 Forbidden", &[], b"not you"));
    let mut cache = Cache::of(&server);
    cache.token = true;
    let error = cache.fetch().expect_err("refused");
    assert!(
        matches!(
            error,
            FetchError::Refused {
                status: 403,
                with_login: true,
                ..
            }
        ),
        "{error}"
    );
    let told = format!("{error} {error:?} {:?}", error.hint());
    assert!(!told.contains("hunter2"), "{told}");
}

#[test]
fn a_token_stays_with_its_host() {
    let elsewhere = Server::start(|r, s| file(r, s, &body(70_000), "\"w\"", usize::MAX));
    let target = elsewhere.url("/store");
    let server = Server::start(move |r, s| {
        if r.path.ends_with("safetensors") {
            whole(s, "302 Found", &[("Location", &target)], b"");
        } else {
            honest(r, s, usize::MAX);
        }
    });
    let mut cache = Cache::of(&server);
    cache.token = true;
    cache.fetch().expect("fetched");
    assert!(!elsewhere.seen().is_empty());
    for request in elsewhere.seen() {
        assert_eq!(request.header("authorization"), None);
    }
    let first = &server.seen()[0];
    assert_eq!(first.header("authorization"), Some("Bearer hf_hunter2"));
}

#[test]
fn what_is_not_there_is_said() {
    let server = Server::start(|r, s| honest(r, s, usize::MAX));
    let cache = Cache::of(&server);
    let error = cache.fetch_of("org/other", &[]).expect_err("absent");
    assert!(
        matches!(error, FetchError::NotFound { status: 404, .. }),
        "{error}"
    );
    for name in ["", "..", "a/../b", "a/b/c", "a b", "/a"] {
        let error = cache.fetch_of(name, &[]).expect_err("bad name");
        assert!(
            matches!(error, FetchError::RepositoryName { .. }),
            "{name:?}: {error}"
        );
    }
}

#[test]
fn a_file_cut_short_is_continued() {
    let served = Arc::new(AtomicUsize::new(0));
    let count = served.clone();
    let server = Server::start(move |r, s| {
        let weights = r.path.ends_with("safetensors");
        let first = weights && count.fetch_add(1, Ordering::Relaxed) == 0;
        honest(r, s, if first { 40_000 } else { usize::MAX });
    });
    let cache = Cache::of(&server);
    let snapshot = cache.fetch().expect("continued");
    let weights = std::fs::read(snapshot.folder.join("model.safetensors")).expect("whole");
    assert_eq!(weights, body(70_000));
    assert!(server.seen().iter().any(|r| r.from() == Some(40_000)));
    assert_eq!(snapshot.received, 70_000 + 9);
}

#[test]
fn a_file_that_changes_meanwhile_never_becomes_a_mixture() {
    let served = Arc::new(AtomicUsize::new(0));
    let count = served.clone();
    let server = Server::start(move |r, s| {
        if !r.path.ends_with("safetensors") {
            return honest(r, s, usize::MAX);
        }
        if count.fetch_add(1, Ordering::Relaxed) == 0 {
            // Another content, cut short; what follows has another tag.
            file(r, s, &vec![7; 70_000], "\"old\"", 40_000);
        } else {
            file(r, s, &body(70_000), "\"new\"", usize::MAX);
        }
    });
    let cache = Cache::of(&server);
    let snapshot = cache.fetch().expect("started again");
    let weights = std::fs::read(snapshot.folder.join("model.safetensors")).expect("whole");
    assert_eq!(weights, body(70_000));
}

#[test]
fn another_content_than_listed_is_refused_and_leaves_no_reference() {
    let server = Server::start(|r, s| {
        if r.path.ends_with("safetensors") {
            whole(s, "200 OK", &[("ETag", "\"w\"")], &vec![7; 70_000]);
        } else {
            honest(r, s, usize::MAX);
        }
    });
    let cache = Cache::of(&server);
    let error = cache.fetch().expect_err("another content");
    assert!(
        matches!(error, FetchError::ChecksumDiffers { .. }),
        "{error}"
    );
    assert!(!cache.referred());
    assert!(!cache.path("snapshots").exists());
}

#[test]
fn lists_that_lead_astray_are_refused() {
    for siblings in [
        r#"[{"rfilename": "../x", "size": 1, "blobId": "BLOB"}]"#,
        r#"[{"rfilename": "x", "size": 1, "blobId": "../../x"}]"#,
        r#"[{"rfilename": "x", "blobId": "BLOB"}]"#,
        r#"[{"rfilename": "x", "size": 1}]"#,
        r#"[{"rfilename": "x", "size": 1, "lfs": {"sha256": "zz", "size": 1}}]"#,
        "7",
    ] {
        let list = format!("{{\"sha\": \"{COMMIT}\", \"siblings\": {siblings}}}");
        let list = list.replace("BLOB", CONFIG).into_bytes();
        let server = Server::start(move |_, s| whole(s, "200 OK", &[], &list));
        let cache = Cache::of(&server);
        let error = cache.fetch().expect_err("refused");
        assert!(
            matches!(
                error,
                FetchError::Listing { .. } | FetchError::UnsafeName { .. }
            ),
            "{siblings}: {error}"
        );
    }
    let server =
        Server::start(|_, s| whole(s, "200 OK", &[], b"{\"sha\": \"../x\", \"siblings\": []}"));
    let error = Cache::of(&server).fetch().expect_err("refused");
    assert!(matches!(error, FetchError::Listing { .. }), "{error}");
}

#[test]
fn offline_asks_nobody() {
    let server = Server::start(|r, s| honest(r, s, usize::MAX));
    let mut cache = Cache::of(&server);
    cache.offline = true;
    let error = cache.fetch().expect_err("nothing there");
    assert!(matches!(error, FetchError::Offline { .. }), "{error}");
    assert!(error.to_string().contains("HF_HUB_OFFLINE"), "{error}");
    assert!(server.seen().is_empty());
    cache.offline = false;
    let fetched = cache.fetch().expect("fetched");
    let asked = server.seen().len();
    cache.offline = true;
    assert_eq!(cache.fetch().expect("there").folder, fetched.folder);
    let error = cache.fetch_of("org/name", &["pytorch_model.bin"]);
    assert!(matches!(error, Err(FetchError::Offline { .. })));
    assert_eq!(server.seen().len(), asked);
}

#[test]
fn the_token_s_file_is_read_and_trimmed() {
    let server = Server::start(|r, s| honest(r, s, usize::MAX));
    let bench = Bench::new();
    let home = bench.path("home");
    std::fs::create_dir_all(&home).expect("makes");
    std::fs::write(home.join("token"), "hf_hunter2\n").expect("writes");
    let hub = Hub::new(&bench.path("cache"), |name| match name {
        "HF_ENDPOINT" => Some(OsString::from(&server.base)),
        "HF_HOME" => Some(home.clone().into()),
        _ => None,
    })
    .expect("reads");
    hub.fetch(&bench.context(), "org/name", None, &[])
        .expect("fetched");
    assert_eq!(
        server.seen()[0].header("authorization"),
        Some("Bearer hf_hunter2")
    );
    assert!(!format!("{hub:?}").contains("hunter2"));
    let broken = Hub::new(&bench.path("cache"), |name| match name {
        "HF_TOKEN" => Some("two\nlines".into()),
        _ => None,
    });
    assert!(matches!(broken, Err(FetchError::CredentialFile { .. })));
    let open = Hub::new(&bench.path("cache"), |name| match name {
        "HF_ENDPOINT" => Some("http://hub.example".into()),
        "HF_TOKEN" => Some(TOKEN.into()),
        _ => None,
    });
    assert!(matches!(open, Err(FetchError::Unprotected { .. })));
}
