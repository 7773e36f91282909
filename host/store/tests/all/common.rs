//! Answers to store, and this test binary as another process.

use focus_store::{
    AnswerRow, ContentHash, DatasetIdentity, ModelIdentity, Outcome, PluginIdentity, RunManifest,
};
use std::{
    collections::BTreeMap,
    process::{Command, Stdio},
};

/// Values of an embedding in these tests.
pub const DIM: usize = 5;

/// The answer to sample `n`: every seventh is an error, one in five has a message in another script.
pub fn answer(n: u32) -> AnswerRow {
    let ok = n % 7 != 3;
    AnswerRow {
        sample: n,
        id: format!("image-{n:04}"),
        content_hash: (n % 11 != 3).then(|| ContentHash::of(&n.to_le_bytes())),
        outcome: if ok { Outcome::Ok } else { Outcome::ModelError },
        reason: (!ok).then(|| "crash".to_owned()),
        message: n.is_multiple_of(5).then(|| format!("δοκιμή {n}\n")),
        embedding: ok.then(|| {
            (0..DIM)
                .map(|i| (n as f32 + 0.1) * (i as f32 - 2.0))
                .collect()
        }),
    }
}

/// A manifest of a run on synthetic images.
pub fn manifest() -> RunManifest {
    RunManifest {
        tool_version: "0.1.0".into(),
        models: vec![ModelIdentity {
            id: "handcrafted/zones".into(),
            plugin: Some(PluginIdentity {
                name: "handcrafted".into(),
                version: "0.1.0".into(),
                digest: "blake3:00".into(),
            }),
            opened: serde_json::json!({"dim": DIM}),
            preprocessing_key: "bilinear-224".into(),
        }],
        datasets: vec![DatasetIdentity {
            id: "synthetic".into(),
            mapper_digest: None,
            tables: BTreeMap::new(),
        }],
        tasks: vec!["binary_dr".into()],
        methods: vec!["linear_probing".into()],
        device_kind: "cpu".into(),
        seeds: BTreeMap::from([("bootstrap".into(), 13)]),
        permissions: vec![],
        synthetic: true,
        options: BTreeMap::new(),
    }
}

/// Environment variable that tells a test it is the other process, and where to work.
pub const CHILD: &str = "FOCUS_STORE_TEST_CHILD";

/// This binary again, running only `test`, as the other process.
pub fn child(test: &str, work: &std::path::Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("has a path"));
    command
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, work)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command
}
