//! What a plugin exports, called as the host would call it but without a library in between.

use arrow_array::{Array as _, FixedSizeBinaryArray, FixedSizeListArray, Float32Array};
use focus_plugin_abi::v1::export::ServedModel;
use focus_plugin_abi::v1::{
    Array, ErrorKind, HostCallbacks, HostEvents, Interface, Message, PluginError,
};
use focus_plugin_sdk::__private::{PluginInfo, describe, open};
use focus_plugin_sdk::{
    Embeddings, Error, Host, ImageBatch, ImageEncoder, Model, ModelDescriptor, OpenOptions,
    OpenedModel, PluginDescriptor,
};
use std::cell::Cell;
use std::sync::{Arc, Mutex};

thread_local! {
    /// Makes the card of the model `b` panic on this thread.
    static CARD_PANICS: Cell<bool> = const { Cell::new(false) };
}

fn card(id: &str, weight_files: &[&str]) -> ModelDescriptor {
    serde_json::from_value(serde_json::json!({
        "id": id, "title": "Test", "family": "vm", "group": "baseline", "interfaces": ["image_encoder"], "embedding_dim": 2,
        "preprocessing": {"mode": "resized", "width": 1, "height": 1, "geometry": {"kind": "squash"}, "filter": "box"},
        "dtypes": ["f32", "bf16"], "devices": ["cpu"], "batch_size": 3, "weight_files": weight_files
    }))
    .expect("a card")
}

/// First pixel's red, and how many images were used. Red 255 panics.
struct Red(OpenedModel, Host);

impl Model for Red {
    fn opened(&self) -> OpenedModel {
        self.0.clone()
    }
    fn image_encoder(&mut self) -> Option<&mut dyn ImageEncoder> {
        Some(self)
    }
}

impl ImageEncoder for Red {
    fn encode(&mut self, images: &ImageBatch<'_>, _host: &Host) -> Result<Embeddings, Error> {
        let used = images.used() as f32;
        let values = images.iter().flat_map(|rgb| {
            assert_ne!(rgb[0], 255, "too red");
            [f32::from(rgb[0]), used]
        });
        Embeddings::new(2, values.collect())
    }
}

impl Drop for Red {
    fn drop(&mut self) {
        self.1.info("closed");
        assert_ne!(self.0.dtype, "bf16", "closing badly");
    }
}

/// A model that offers no interface.
struct Mute(OpenedModel);

impl Model for Mute {
    fn opened(&self) -> OpenedModel {
        self.0.clone()
    }
}

focus_plugin_sdk::register_model! {
    describe: || { assert!(!CARD_PANICS.get(), "no card today"); card("b", &[]) },
    open: |options: &OpenOptions, host: &Host| Ok(Box::new(Red(focus_plugin_sdk::opened(&card("b", &[]), options), host.clone())) as _)
}
focus_plugin_sdk::register_model! {
    describe: || card("a", &["model.safetensors"]),
    open: |options: &OpenOptions, _host: &Host| Ok(Box::new(Mute(focus_plugin_sdk::opened(&card("a", &[]), options))) as _)
}

#[derive(Default)]
struct Events(Mutex<Vec<String>>);

impl HostEvents for Events {
    fn log(&self, level: u32, message: &str) {
        self.0
            .lock()
            .expect("free")
            .push(format!("{level} {message}"));
    }
    fn progress(&self, _stage: &str, _done: u64, _total: u64) {}
    fn cancelled(&self) -> bool {
        false
    }
}

fn opened(options: &str) -> (Result<Box<dyn ServedModel>, PluginError>, Arc<Events>) {
    let events = Arc::new(Events::default());
    (
        open(options, HostCallbacks::new(Arc::clone(&events) as _)),
        events,
    )
}

fn red() -> Box<dyn ServedModel> {
    opened(r#"{"model":"b","device":"cpu","threads":1}"#)
        .0
        .expect("opens")
}

fn refusal(options: &str) -> PluginError {
    opened(options).0.err().expect("refused")
}

fn info() -> PluginInfo {
    PluginInfo {
        name: "test",
        version: "1.2.3",
        license: "MIT",
    }
}

/// Three images of one pixel each.
fn pixels(reds: [u8; 3]) -> Array {
    let bytes: Vec<u8> = reds.iter().flat_map(|red| [*red, 0, 0]).collect();
    Array::export(&FixedSizeBinaryArray::new(3, bytes.into(), None)).expect("exports")
}

fn header(width: u32, rows: u32, used: u32) -> String {
    format!(r#"{{"width":{width},"height":1,"rows":{rows},"used":{used}}}"#)
}

fn encode(
    model: &mut dyn ServedModel,
    header: String,
    arrays: Vec<Array>,
) -> Result<Message, PluginError> {
    model.call(
        Interface::IMAGE_ENCODER,
        "encode",
        Message::new(header, arrays),
    )
}

#[test]
fn the_descriptor_lists_models_by_id() {
    let json = describe(info()).expect("describes");
    let found: PluginDescriptor = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        (
            found.name.as_str(),
            found.version.as_str(),
            found.license.as_str()
        ),
        ("test", "1.2.3", "MIT")
    );
    let ids: Vec<_> = found.models.iter().map(|model| model.id.as_str()).collect();
    assert_eq!(ids, ["a", "b"]);
}

#[test]
fn a_card_that_panics_is_an_error() {
    CARD_PANICS.set(true);
    let error = describe(info()).expect_err("panics");
    CARD_PANICS.set(false);
    assert_eq!(error.kind(), ErrorKind::PANIC);
    assert!(error.message().contains("no card today"), "{error}");
}

#[test]
fn padding_gets_rows_that_count_for_nothing() {
    let mut model = red();
    let reply = encode(&mut *model, header(1, 3, 2), vec![pixels([7, 9, 255])]).expect("encodes");
    assert_eq!(reply.header(), r#"{"rows":3,"dim":2}"#);
    let (_, mut arrays) = reply.into_parts();
    let array = arrays.pop().expect("one").import().expect("imports");
    let list = array
        .as_any()
        .downcast_ref::<FixedSizeListArray>()
        .expect("a list");
    let values = list
        .values()
        .as_any()
        .downcast_ref::<Float32Array>()
        .expect("floats");
    assert_eq!(values.values()[..], [7.0, 2.0, 9.0, 2.0, 0.0, 0.0]);
}

#[test]
fn requests_that_do_not_fit_are_refused_and_the_model_goes_on() {
    let mut model = red();
    let wrong = [
        (header(2, 3, 1), vec![pixels([1; 3])]),
        (header(1, 2, 1), vec![pixels([1; 3])]),
        (header(1, 3, 4), vec![pixels([1; 3])]),
        (header(u32::MAX, 3, 1), vec![pixels([1; 3])]),
        (header(1, 3, 1), vec![]),
        (header(1, 3, 1), vec![pixels([1; 3]), pixels([1; 3])]),
        (
            header(1, 3, 1),
            vec![Array::export(&Float32Array::from(vec![1.0; 3])).expect("exports")],
        ),
        ("{".to_owned(), vec![pixels([1; 3])]),
    ];
    for (number, (header, arrays)) in wrong.into_iter().enumerate() {
        let error = encode(&mut *model, header, arrays).expect_err("refused");
        assert_eq!(
            error.kind(),
            ErrorKind::INVALID_REQUEST,
            "{number}: {error}"
        );
    }
    encode(&mut *model, header(1, 3, 3), vec![pixels([1; 3])]).expect("goes on");
}

#[test]
fn unknown_interfaces_and_methods_are_unsupported() {
    let mut model = red();
    for (interface, method) in [
        (Interface(77), "encode"),
        (Interface::GENERATOR, "score"),
        (Interface::IMAGE_ENCODER, "decode"),
    ] {
        let error = model
            .call(interface, method, Message::new(String::new(), Vec::new()))
            .expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::UNSUPPORTED);
        assert!(error.message().contains(method), "{error}");
    }
}

#[test]
fn a_panic_poisons_this_model_alone() {
    let (mut model, mut other) = (red(), red());
    let error =
        encode(&mut *model, header(1, 3, 3), vec![pixels([1, 255, 1])]).expect_err("panics");
    assert_eq!(error.kind(), ErrorKind::PANIC);
    assert!(
        error.message().contains("too red") && error.message().contains("export.rs:"),
        "{error}"
    );
    let error = encode(&mut *model, header(1, 3, 3), vec![pixels([1; 3])]).expect_err("poisoned");
    assert!(
        error.kind() == ErrorKind::PANIC && error.message().contains("earlier call"),
        "{error}"
    );
    encode(&mut *other, header(1, 3, 3), vec![pixels([1; 3])]).expect("is another");
}

#[test]
fn a_panic_while_closing_is_a_log_line() {
    let (model, events) = opened(r#"{"model":"b","device":"cpu","threads":1,"dtype":"bf16"}"#);
    drop(model.expect("opens"));
    let log = events.0.lock().expect("free").clone();
    assert_eq!(log[0], "3 closed");
    assert!(
        log[1].starts_with("2 Model panicked while being closed")
            && log[1].contains("closing badly"),
        "{log:?}"
    );
    assert_eq!(
        Arc::strong_count(&events),
        1,
        "the callbacks came back all the same"
    );
}

#[test]
fn options_are_checked_against_the_card() {
    let cases = [
        (
            r#"{"model":"c","device":"cpu","threads":1}"#,
            ErrorKind::INVALID_REQUEST,
            "Models of this plugin: a, b",
        ),
        (
            r#"{"model":"b","device":"cuda:0","threads":1}"#,
            ErrorKind::UNSUPPORTED,
            "separate files",
        ),
        (
            r#"{"model":"b","device":"cpu","threads":1,"dtype":"f16"}"#,
            ErrorKind::UNSUPPORTED,
            "",
        ),
        (
            r#"{"model":"a","device":"cpu","threads":1}"#,
            ErrorKind::WEIGHTS,
            "",
        ),
        ("[]", ErrorKind::INVALID_REQUEST, ""),
    ];
    for (options, kind, hint) in cases {
        let error = refusal(options);
        assert_eq!(error.kind(), kind, "{error}");
        assert!(
            error.hint().unwrap_or_default().contains(hint),
            "{:?}",
            error.hint()
        );
    }
    let (mute, _) = opened(r#"{"model":"a","device":"cpu","threads":1,"weights":"/w"}"#);
    let mut mute = mute.expect("opens");
    let error = encode(&mut *mute, header(1, 3, 1), vec![pixels([1; 3])]).expect_err("mute");
    assert_eq!(error.kind(), ErrorKind::UNSUPPORTED);
    let opened: OpenedModel = serde_json::from_str(&mute.opened()).expect("JSON");
    assert_eq!((opened.dtype.as_str(), opened.batch_size), ("f32", 3));
}
