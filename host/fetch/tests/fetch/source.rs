//! Lists of files as the services give them, honest and not.

use crate::{
    server::{Server, file, whole},
    support::{Bench, body, limits, md5_hex, sha256},
};
use focus_fetch::{
    FetchError, Keyring, Limits, Registry, Summary, fetch_dataset, fetch_file, list_files,
};
use std::ffi::OsString;

/// A registry whose services are all at one address, and one dataset `x`.
fn registry(bench: &Bench, base: &str, source: &str, access: &str) -> Registry {
    let path = bench.path("registry.toml");
    let text = format!(
        "[base]\nphysionet = \"{base}\"\nzenodo = \"{base}\"\nfigshare = \"{base}\"\nkaggle = \"{base}\"\n\
         [[dataset]]\nid = \"x\"\nname = \"X\"\nlicence = \"?\"\naccess = \"{access}\"\nsign = [\"sign the agreement\"]\nsource = {source}\n"
    );
    std::fs::write(&path, text).expect("writes");
    let mut registry = Registry::built_in();
    registry.extend(&path).expect("well-formed");
    std::fs::remove_file(path).expect("removes");
    registry
}

fn keyring() -> Keyring {
    Keyring::new(|name| match name {
        "PHYSIONET_USERNAME" | "KAGGLE_USERNAME" => Some(OsString::from("ann")),
        "PHYSIONET_PASSWORD" | "KAGGLE_KEY" => Some(OsString::from("hunter2")),
        _ => None,
    })
}

fn fetch(bench: &Bench, registry: &Registry, keyring: &Keyring) -> Result<Summary, FetchError> {
    let dataset = registry.get("x").expect("known");
    fetch_dataset(
        &bench.context(),
        dataset,
        registry.bases(),
        keyring,
        bench.dir.path(),
    )
}

const LOGIN: Option<&str> = Some("Basic YW5uOmh1bnRlcjI=");

#[test]
fn physionet_by_its_sums() {
    let server = Server::start(|r, s| {
        if r.header("authorization") != LOGIN {
            return whole(s, "401 Unauthorized", &[], b"");
        }
        let sum = |bytes: &[u8]| sha256(bytes).hex().to_owned();
        match &*r.path {
            "/files/proj/1.0.1/SHA256SUMS.txt" if r.number == 0 => {
                whole(s, "502 Bad Gateway", &[], b"");
            }
            "/files/proj/1.0.1/SHA256SUMS.txt" => {
                let text = format!(
                    "{} labels.csv\n{} fundus photos/img 1.jpg\n",
                    sum(b"a,b"),
                    sum(&body(9))
                );
                whole(s, "200 OK", &[], text.as_bytes());
            }
            "/files/proj/1.0.1/labels.csv" => file(r, s, b"a,b", "\"l\"", 9),
            "/files/proj/1.0.1/fundus%20photos/img%201.jpg" => file(r, s, &body(9), "\"i\"", 9),
            _ => whole(s, "404 Not Found", &[], b""),
        }
    });
    let bench = Bench::new();
    let source = "{ kind = \"physionet\", project = \"proj\", version = \"1.0.1\" }";
    let registry = registry(&bench, &server.base, source, "credentialed");
    let none = Keyring::new(|_| None);
    let error = fetch(&bench, &registry, &none).expect_err("no credentials");
    let hint = error.hint().expect("advice");
    assert!(
        hint.contains("PHYSIONET_USERNAME") && hint.contains("sign the agreement"),
        "{hint}"
    );
    assert!(server.seen().is_empty(), "not even asked");
    let summary = fetch(&bench, &registry, &keyring()).expect("fetches");
    assert!(summary.is_complete(), "{summary:?}");
    assert_eq!(bench.read("fundus photos/img 1.jpg"), body(9));
    assert_eq!(bench.names(), ["fundus photos", "labels.csv"]);
}

#[test]
fn physionet_without_the_agreement_says_what_to_sign() {
    let server = Server::start(|_, s| whole(s, "403 Forbidden", &[], b""));
    let bench = Bench::new();
    let source = "{ kind = \"physionet\", project = \"proj\", version = \"1\" }";
    let registry = registry(&bench, &server.base, source, "credentialed");
    let error = fetch(&bench, &registry, &keyring()).expect_err("refused");
    assert!(
        error.to_string().contains("403 (with credentials)"),
        "{error}"
    );
    assert!(error.hint().expect("advice").contains("sign the agreement"));
    assert_eq!(server.seen().len(), 1);
}

#[test]
fn zenodo_by_its_record() {
    let server = Server::start(|r, s| {
        let host = r.header("host").expect("sent");
        match &*r.path {
            "/api/records/42" => {
                let text = format!(
                    r#"{{"id":42,"files":[
                    {{"key":"a b.zip","size":9,"checksum":"md5:{}","links":{{"self":"http://{host}/content/1"}}}},
                    {{"key":"c.csv","size":3,"checksum":"md5:{}"}}]}}"#,
                    md5_hex(&body(9)),
                    md5_hex(b"a,b")
                );
                whole(
                    s,
                    "200 OK",
                    &[("Content-Type", "application/json")],
                    text.as_bytes(),
                );
            }
            "/content/1" => file(r, s, &body(9), "\"1\"", 9),
            "/api/records/42/files/c.csv/content" => file(r, s, b"a,b", "\"2\"", 9),
            _ => whole(s, "404 Not Found", &[], b""),
        }
    });
    let bench = Bench::new();
    let registry = registry(
        &bench,
        &server.base,
        "{ kind = \"zenodo\", record = 42 }",
        "open",
    );
    let dataset = registry.get("x").expect("known");
    let plan = list_files(
        &bench.context(),
        dataset,
        registry.bases(),
        &keyring(),
        bench.dir.path(),
    )
    .expect("lists");
    assert_eq!((plan.files.len(), plan.bytes()), (2, Some(12)));
    let summary = fetch(&bench, &registry, &keyring()).expect("fetches");
    assert!(summary.is_complete(), "{summary:?}");
    assert_eq!(bench.names(), ["a b.zip", "c.csv"]);
    assert!(
        server
            .seen()
            .iter()
            .all(|r| r.header("authorization").is_none()),
        "none is needed"
    );
}

#[test]
fn figshare_by_its_pages() {
    let server = Server::start(|r, s| {
        let host = r.header("host").expect("sent");
        let entry = |i: usize| {
            format!(
                r#"{{"id":{i},"name":"f{i}.zip","size":9,"is_link_only":false,"download_url":"http://{host}/get/{i}","supplied_md5":"","computed_md5":"{}"}}"#,
                md5_hex(&body(9))
            )
        };
        match &*r.path {
            "/v2/articles/7/files?page_size=1000&page=1" => {
                let list: Vec<_> = (0..1000).map(entry).collect();
                whole(s, "200 OK", &[], format!("[{}]", list.join(",")).as_bytes());
            }
            "/v2/articles/7/files?page_size=1000&page=2" => {
                whole(s, "200 OK", &[], format!("[{}]", entry(1000)).as_bytes());
            }
            _ => file(r, s, &body(9), "\"1\"", 9),
        }
    });
    let bench = Bench::new();
    let source = "{ kind = \"figshare\", article = 7 }";
    let registry = registry(&bench, &server.base, source, "open");
    let dataset = registry.get("x").expect("known");
    let bases = registry.bases();
    let plan = list_files(
        &bench.context(),
        dataset,
        bases,
        &keyring(),
        bench.dir.path(),
    )
    .expect("lists");
    assert_eq!((plan.files.len(), plan.bytes()), (1001, Some(9009)));
    let last = &plan.files[1000];
    assert_eq!(last.name, "f1000.zip");
    fetch_file(&bench.context(), &bench.folder(), last).expect("fetches");
    assert_eq!(bench.read("f1000.zip"), body(9));
}

#[test]
fn kaggle_leads_to_another_host_without_the_key() {
    let store = Server::start(|r, s| file(r, s, &body(5000), "\"z\"", 3000));
    let away = store.url("/bucket/archive.zip?X-Goog-Signature=s1gned");
    let server = Server::start(move |r, s| {
        let good = r.path == "/api/v1/datasets/download/someone/eyes"
            && r.header("authorization") == LOGIN;
        if good {
            whole(s, "302 Found", &[("Location", &away)], b"");
        } else {
            whole(s, "401 Unauthorized", &[], b"");
        }
    });
    let bench = Bench::new();
    let registry = registry(
        &bench,
        &server.base,
        "{ kind = \"kaggle\", dataset = \"someone/eyes\" }",
        "account",
    );
    let summary = fetch(&bench, &registry, &keyring()).expect("fetches");
    assert!(summary.is_complete(), "{summary:?}");
    assert_eq!(bench.read("eyes.zip"), body(5000));
    assert_eq!(store.seen().len(), 2, "resumed");
    assert!(
        store
            .seen()
            .iter()
            .all(|r| r.header("authorization").is_none())
    );
    let none = Keyring::new(|_| None);
    let error = fetch(&bench, &registry, &none).expect_err("no key");
    assert!(
        error.hint().expect("advice").contains("kaggle.json"),
        "{error}"
    );
}

#[test]
fn hostile_lists_are_refused_and_nothing_is_written() {
    let md5 = "0".repeat(32);
    let entry = |key: &str, sum: &str, link: &str| {
        format!(
            r#"{{"files":[{{"key":"{key}","size":1,"checksum":"{sum}","links":{{"self":"{link}"}}}}]}}"#
        )
    };
    let good = format!("md5:{md5}");
    for (list, word) in [
        (
            entry("../../.ssh/authorized_keys", &good, "http://127.0.0.1:1/"),
            "Unsafe file name",
        ),
        (
            entry("/etc/cron.d/x", &good, "http://127.0.0.1:1/"),
            "Unsafe file name",
        ),
        (
            entry("a", "crc32:00", "http://127.0.0.1:1/"),
            "unknown checksum",
        ),
        (
            entry("a", "md5:00", "http://127.0.0.1:1/"),
            "32 hexadecimal digits",
        ),
        (
            entry("a", &good, "file:///etc/passwd"),
            "must begin with http",
        ),
        (
            entry("a", &good, "http://u:s3cret@127.0.0.1:1/"),
            "no user name",
        ),
        (r#"{"files":[]}"#.into(), "restricted"),
        (r#"{"files":[{"key":1}]}"#.into(), "malformed"),
        ("[".repeat(10_000), "malformed"),
        ("not json".into(), "malformed"),
        (" ".repeat(5000), "bytes of a list"),
    ] {
        let server = Server::start(move |_, s| whole(s, "200 OK", &[], list.as_bytes()));
        let bench = Bench::with(Limits {
            listing_bytes: if word == "bytes of a list" {
                4000
            } else {
                1 << 20
            },
            ..limits()
        });
        let registry = registry(
            &bench,
            &server.base,
            "{ kind = \"zenodo\", record = 1 }",
            "open",
        );
        let error = fetch(&bench, &registry, &keyring()).expect_err(word);
        let text = error.to_string();
        assert!(text.contains(word), "{text}");
        assert!(!text.contains("s3cret"), "{text}");
        assert!(bench.names().is_empty());
        assert_eq!(server.seen().len(), 1);
    }
}

#[test]
fn plain_addresses_with_sums() {
    let server = Server::start(|r, s| file(r, s, &body(9), "\"1\"", 9));
    let bench = Bench::new();
    let source = format!(
        "{{ kind = \"web\", files = [{{ name = \"w/model.bin\", url = \"{}\", size = 9, checksums = [\"{}\", \"md5:{}\"] }}] }}",
        server.url("/m"),
        sha256(&body(9)),
        md5_hex(&body(9))
    );
    let registry = registry(&bench, &server.base, &source, "open");
    assert!(
        fetch(&bench, &registry, &keyring())
            .expect("fetches")
            .is_complete()
    );
    assert_eq!(bench.read("w/model.bin"), body(9));
    assert_eq!(
        server.seen()[0].header("authorization"),
        None,
        "the services' variables are not for it"
    );
}

#[test]
fn by_hand_says_what_to_do_and_where_to_put_it() {
    let bench = Bench::new();
    let registry = Registry::built_in();
    for id in ["messidor_2", "refuge", "rfmid"] {
        let dataset = registry.get(id).expect("known");
        let to = bench.dir.path();
        let error = fetch_dataset(&bench.context(), dataset, registry.bases(), &keyring(), to)
            .expect_err("by hand");
        let hint = error.hint().expect("steps");
        assert!(
            hint.starts_with("1. ") && hint.contains(&*to.to_string_lossy()),
            "{hint}"
        );
    }
}
