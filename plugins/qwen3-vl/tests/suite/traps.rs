//! What others got wrong: each mistake moves a number that the tests of the right way hold.

use crate::support::{
    Expected, ask, described, difference, first_logits, folder, network, question, values,
};
use focus_nn::lm::Features;
use focus_nn::{Activation, DType, Device};
use qwen3_vl::network::Network;
use qwen3_vl::processor::{Patches, Processor};

fn looked() -> (Network, Features, Vec<f32>) {
    let network = network(DType::F32);
    let expected = Expected::open();
    let features = network
        .tower
        .forward(&expected.patches(0, "levels"))
        .unwrap();
    (network, features, expected.values("0.first_logits"))
}

#[test]
fn places_on_one_axis() {
    let (network, features, wanted) = looked();
    let mut prompt = ask(&described(), &features, &question());
    for (at, place) in prompt.places.iter_mut().enumerate() {
        *place = [at as u32; 3];
    }
    assert!(difference(&first_logits(&network, &prompt, &features), &wanted) > 0.5);
}

#[test]
fn text_that_goes_on_behind_the_number_of_image_tokens() {
    let (network, features, wanted) = looked();
    let mut prompt = ask(&described(), &features, &question());
    let span = prompt.images[0];
    let end = span.start + span.length;
    let late = end as u32 - prompt.places[end][0];
    assert!(late > 0);
    for place in &mut prompt.places[end..] {
        *place = place.map(|axis| axis + late);
    }
    assert!(difference(&first_logits(&network, &prompt, &features), &wanted) > 1e-2);
}

#[test]
fn rows_and_columns_exchanged() {
    let (network, features, wanted) = looked();
    let mut prompt = ask(&described(), &features, &question());
    for place in &mut prompt.places {
        place.swap(1, 2);
    }
    assert!(difference(&first_logits(&network, &prompt, &features), &wanted) > 1e-2);
}

#[test]
fn no_deepstack() {
    let (network, mut features, wanted) = looked();
    features.deep.clear();
    let prompt = ask(&described(), &features, &question());
    assert!(difference(&first_logits(&network, &prompt, &features), &wanted) > 0.5);
}

#[test]
fn deepstack_in_another_order() {
    let (network, mut features, wanted) = looked();
    features.deep.reverse();
    let prompt = ask(&described(), &features, &question());
    assert!(difference(&first_logits(&network, &prompt, &features), &wanted) > 1e-2);
}

#[test]
fn another_gelu_shows_in_the_features() {
    let expected = Expected::open();
    let mut config = described().config;
    config.vision.activation = Activation::Gelu;
    let network = Network::load(&folder(), &config, &Device::Cpu, DType::F32).unwrap();
    let features = network
        .tower
        .forward(&expected.patches(0, "levels"))
        .unwrap();
    let apart = difference(
        &values(&features.rows),
        &expected.values("0.image_features"),
    );
    // The tolerance of the right one is 5e-6.
    assert!(apart > 2e-5, "{apart}");
}

#[test]
fn patches_in_the_order_of_rows() {
    let expected = Expected::open();
    let patches = expected.patches(0, "levels");
    let (rows, columns) = patches.grid;
    let size = patches.values.len() / (rows * columns);
    let mut values_by_row = vec![0.0; patches.values.len()];
    for (at, patch) in patches.values.chunks(size).enumerate() {
        let (square, within) = (at / 4, at % 4);
        let (row, column) = (
            square / (columns / 2) * 2 + within / 2,
            square % (columns / 2) * 2 + within % 2,
        );
        values_by_row[(row * columns + column) * size..][..size].copy_from_slice(patch);
    }
    let wrong = Patches {
        grid: patches.grid,
        values: values_by_row,
    };
    let features = network(DType::F32).tower.forward(&wrong).unwrap();
    assert!(
        difference(
            &values(&features.rows),
            &expected.values("0.image_features")
        ) > 1e-2
    );
}

#[test]
fn halves_rounded_up() {
    // 464 / 32 = 14.5: Python's round gives 14, another's 15.
    let (width, height) = Processor::qwen3_vl().smart_resize(464, 1008).unwrap();
    assert_eq!((width, height), (448, 1024));
    let up = (464.0_f64 / 32.0).round() as usize * 32;
    assert_ne!(width, up);
}
