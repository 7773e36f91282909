//! Features equal to the reference's.

use crate::support::*;
use efficientnet::config::Lite;
use efficientnet::encoder::{Encoder, drawn, load};
use efficientnet::network::Network;
use focus_plugin_sdk::{Host, ImageBatch, ImageEncoder as _, Model as _};

#[test]
fn the_toy_agrees_with_the_python_graph() {
    let network = load(&tiny(), tiny_checkpoint()).unwrap();
    assert_close(&features(&network, TINY_SIDE), &expected("tiny.f32"));
}

#[test]
fn the_published_weights_agree_with_the_python_graph() {
    let Some(folder) = published() else { return };
    let mut encoder = Encoder::open(&options(Some(&folder), &[]), &Host::detached()).unwrap();
    let rgb: Vec<u8> = (0..2).flat_map(|number| picture(number, 224)).collect();
    let batch = ImageBatch::new(&rgb, 224, 224, 2).unwrap();
    let rows = encoder.encode(&batch, &Host::detached()).unwrap();
    assert_eq!((rows.rows(), rows.dim()), (2, 1280));
    assert_close(rows.values(), &expected("lite0.f32"));
    assert_eq!(encoder.opened().notes, Vec::<String>::new());
}

#[test]
fn pictures_do_not_see_their_neighbours() {
    let network = load(&tiny(), tiny_checkpoint()).unwrap();
    let (first, second) = (picture(0, TINY_SIDE), picture(1, TINY_SIDE));
    let together = [first.clone(), second.clone(), first.clone()].concat();
    let rows: Vec<Vec<f32>> = network
        .forward(&planes(&together, TINY_SIDE))
        .unwrap()
        .to_vec2()
        .unwrap();
    let alone: Vec<Vec<f32>> = network
        .forward(&planes(&second, TINY_SIDE))
        .unwrap()
        .to_vec2()
        .unwrap();
    assert_eq!(rows[0], rows[2]);
    assert_close(&rows[1], &alone[0]);
}

#[test]
fn drawn_weights_give_features_that_tell_pictures_apart() {
    let network = drawn(&Lite::lite0(), 3).unwrap();
    let values = features(&network, 64);
    assert!(values.iter().all(|value| value.is_finite()));
    let (first, second) = values.split_at(1280);
    let spread = |row: &[f32]| row.iter().copied().fold(f32::MIN, f32::max);
    assert!(
        spread(first) > 0.01 && spread(second) > 0.01,
        "{}",
        spread(first)
    );
    let apart = first.iter().zip(second).filter(|(a, b)| a != b).count();
    assert!(apart > 500, "{apart}");
    assert_ne!(values, features(&drawn(&Lite::lite0(), 4).unwrap(), 64));
}

#[test]
fn every_unused_name_is_in_the_checkpoint() {
    let checkpoint = tiny_checkpoint();
    let unused = Network::unused(&tiny());
    for name in &unused {
        assert!(checkpoint.get(name).is_some(), "{name}");
    }
    // 2 of the classifier; 1 norm of stem and head each; 3 of every block, 2 of the first.
    assert_eq!(unused.len(), 2 + 2 + 3 * 16 - 1);
}
