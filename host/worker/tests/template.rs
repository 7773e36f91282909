//! The template that authors copy: builds on its own and runs as any plugin.

use crate::host::Host;
use crate::support::{cargo_build, load_request};
use focus_plugin_abi::v1::message::{OpenedModel, PluginDescriptor};
use focus_wire::{FromWorker, Method, ToWorker};
use focus_worker::Sidecar;
use focus_worker::sidecar::Manifest;
use std::path::Path;

#[test]
fn the_template_builds_alone_and_runs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/model-plugin");
    let manifest = folder.join("Cargo.toml");
    let built = cargo_build(&[
        "--locked",
        "--manifest-path",
        manifest.to_str().expect("UTF-8"),
    ]);
    let place = tempfile::tempdir().expect("folder");
    let library = place.path().join("libmodel_plugin.so");
    std::fs::copy(built.join("libmodel_plugin.so"), &library).expect("copies");
    let author = Manifest::read(&folder.join("plugin.toml")).expect("reads");
    Sidecar::write_for(&library, &author).expect("seals");

    let sidecar = Sidecar::read_for(&library).expect("reads");
    let request = focus_wire::LoadRequest {
        digest: sidecar.digest.clone(),
        ..load_request(&library)
    };
    let mut host = Host::loaded(&request);
    let FromWorker::Described { descriptor } = host.ask(&ToWorker::Describe) else {
        panic!("describes")
    };
    let descriptor: PluginDescriptor = serde_json::from_str(&descriptor).expect("JSON");
    assert_eq!(
        (&descriptor.name, &descriptor.version),
        (&sidecar.name, &sidecar.version)
    );
    // Without a manifest the descriptor says enough, for a plugin that wants nothing.
    assert_eq!(Manifest::from_descriptor(&descriptor), author);
    let options =
        r#"{"model":"colour-moments","device":"cpu","threads":1,"settings":{"grid":"2"}}"#;
    let FromWorker::Opened { opened } = host.ask(&ToWorker::Open {
        options: options.to_owned(),
    }) else {
        panic!("opens")
    };
    let opened: OpenedModel = serde_json::from_str(&opened).expect("JSON");
    assert_eq!(opened.embedding_dim, 24);

    host.attach();
    let header = r#"{"width":8,"height":8,"rows":4,"used":2}"#;
    let mut pixels = vec![255; 8 * 8 * 3];
    pixels.resize(4 * 8 * 8 * 3, 0);
    let reply = host.call(Method::Encode, header, &pixels).expect("encodes");
    let found = reply.matrix.expect("embeddings");
    assert_eq!((found.rows, found.dim), (4, 24));
    let values = found.values;
    assert_eq!(values[..6], [1.0, 1.0, 1.0, 0.0, 0.0, 0.0], "a white image");
    assert!(
        values[24..48].iter().all(|value| *value == 0.0),
        "a black one"
    );
}
