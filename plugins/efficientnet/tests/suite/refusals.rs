//! Damaged checkpoints and senseless requests: each is a clear error.

use crate::support::*;
use efficientnet::card::FILE;
use efficientnet::encoder::{Encoder, load};
use focus_plugin_sdk::{ErrorKind, Host, ImageBatch, ImageEncoder as _};

fn refused(options: &focus_plugin_sdk::OpenOptions) -> focus_plugin_sdk::Error {
    Encoder::open(options, &Host::detached()).unwrap_err()
}

#[test]
fn missing_and_unexpected_tensors_are_named() {
    let mut checkpoint = tiny_checkpoint();
    let norm = checkpoint.remove("_blocks.3._bn1.running_var").unwrap();
    checkpoint.insert("_blocks.3._bn1.variance", norm);
    let error = load(&tiny(), checkpoint).unwrap_err().to_string();
    assert!(
        error.contains("missing 1 of") && error.contains("`_blocks.3._bn1.running_var`"),
        "{error}"
    );
    assert!(
        error.contains("unexpected 1: `_blocks.3._bn1.variance`"),
        "{error}"
    );
}

#[test]
fn a_reshaped_tensor_is_named() {
    let mut checkpoint = tiny_checkpoint();
    let stem = checkpoint.get("_conv_stem.weight").unwrap().clone();
    checkpoint.insert("_conv_head.weight", stem);
    let error = load(&tiny(), checkpoint).unwrap_err().to_string();
    assert!(
        error.contains("shape of `_conv_head.weight`: expected [32, 24, 1, 1], found [4, 3, 3, 3]"),
        "{error}"
    );
}

#[test]
fn another_network_s_checkpoint_is_refused_by_shape() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(data("tiny.pth"), folder.path().join(FILE)).unwrap();
    let error = refused(&options(Some(folder.path()), &[]));
    assert_eq!(error.kind(), ErrorKind::WEIGHTS);
    assert!(
        error.to_string().contains("shape of `_conv_stem.weight`"),
        "{error}"
    );
}

#[test]
fn without_weights_the_hint_says_how_to_get_them() {
    let error = refused(&options(None, &[]));
    assert_eq!(error.kind(), ErrorKind::WEIGHTS);
    assert!(format!("{error:?}").contains("weights fetch"), "{error:?}");
}

#[test]
fn senseless_requests_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for settings in [
        &[("weights", "random:x")][..],
        &[("weights", "7")],
        &[("pool", "cls")],
    ] {
        let error = refused(&options(None, settings));
        assert_eq!(error.kind(), ErrorKind::INVALID_REQUEST, "{settings:?}");
    }
    let both = options(Some(folder.path()), &[("weights", "random:1")]);
    assert_eq!(refused(&both).kind(), ErrorKind::INVALID_REQUEST);
    let mut elsewhere = options(None, &[("weights", "random:1")]);
    elsewhere.device = "cuda:0".into();
    assert_eq!(refused(&elsewhere).kind(), ErrorKind::UNSUPPORTED);
}

#[test]
fn images_of_another_size_are_refused() {
    let random = options(None, &[("weights", "random:1")]);
    let mut encoder = Encoder::open(&random, &Host::detached()).unwrap();
    let rgb = picture(0, 32);
    let batch = ImageBatch::new(&rgb, 32, 32, 1).unwrap();
    let error = encoder.encode(&batch, &Host::detached()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::INVALID_REQUEST);
    assert!(
        error
            .to_string()
            .contains("expected 224 x 224, found 32 x 32"),
        "{error}"
    );
}
