//! What others got wrong, one at a time: each must move the logits away from the reference's.

use crate::data::*;
use focus_nn::candle::DType;
use focus_nn::lm::{DecoderConfig, LayerKind};
use focus_nn::{Activation, Checkpoint, Layout, weights};
use medgemma::config::Config;
use medgemma::network::Network;

fn config() -> Config {
    Config::parse(&std::fs::read_to_string(data().join("config.json")).unwrap()).unwrap()
}

fn network(config: &Config) -> Network {
    let checkpoint = Checkpoint::open_folder(&data(), &[], &Layout::default()).unwrap();
    let build = |at: &focus_nn::Weights| Network::load(config, at);
    weights::load(checkpoint, &CPU, DType::F32, &[], build).unwrap()
}

/// How far the first logits move.
fn moved(spoil: impl Fn(&mut DecoderConfig)) -> f32 {
    let mut config = config();
    spoil(&mut config.decoder);
    let network = network(&config);
    let prompt = model(DType::F32).talk.prompt(1, &question()).unwrap();
    let found = first_logits(&network, &prompt, &look(&network, 0));
    apart(&found, &floats("0.first_logits"))
}

#[test]
fn nothing_spoilt_moves_nothing() {
    assert!(moved(|_| ()) < 1e-4);
}

#[test]
fn a_window_of_one_more_or_less() {
    assert!(moved(|c| c.window += 1) > 1e-2);
    assert!(moved(|c| c.window -= 1) > 1e-2);
}

#[test]
fn pictures_that_do_not_see_themselves() {
    assert!(moved(|c| c.bidirectional_images = false) > 1e-2);
}

#[test]
fn scores_by_the_head_s_width() {
    assert!(moved(|c| c.scale = (c.head_dim as f64).powf(-0.5)) > 1e-2);
}

#[test]
fn places_without_their_factor_or_with_one_base() {
    assert!(moved(|c| c.rope.factor = 1.0) > 1e-2);
    assert!(moved(|c| c.sliding_rope = c.rope.clone()) > 1e-2);
    assert!(moved(|c| c.rope.theta = 1e4) > 1e-2);
}

#[test]
fn layers_of_the_wrong_kind_or_norms_without_their_one() {
    assert!(moved(|c| c.layers[0] = LayerKind::Full) > 1e-2);
    assert!(moved(|c| c.layers[5] = LayerKind::Sliding) > 1e-2);
    assert!(moved(|c| c.embedding_scale = None) > 1e-2);
}

#[test]
fn a_second_beginning() {
    let model = model(DType::F32);
    let good = model.talk.prompt(1, &question()).unwrap();
    let mut tokens = good.tokens.clone();
    tokens.insert(0, 2);
    let mut span = good.images[0];
    span.start += 1;
    let double = focus_nn::lm::Prompt::on_one_axis(tokens, vec![span]);
    let found = first_logits(&model.network, &double, &look(&model.network, 0));
    assert!(apart(&found, &floats("0.first_logits")) > 1e-2);
    // A template that prints it and a tokenizer that adds it still make one.
    let folder = copy();
    let path = folder.path().join("tokenizer_config.json");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen('{', "{\"add_bos_token\": true,", 1)).unwrap();
    let opened = medgemma::open::folder(folder.path(), &CPU, DType::F32).unwrap();
    assert_eq!(opened.talk.prompt(1, &question()).unwrap(), good);
}

#[test]
fn the_other_gelu_shows_in_the_features_alone() {
    let mut config = config();
    config.vision.activation = Activation::Gelu;
    let rows = flat(&look(&network(&config), 0).rows);
    let wanted = floats("0.image_features");
    let beyond = rows
        .iter()
        .zip(&wanted)
        .filter(|(a, b)| (**a - **b).abs() > TIGHT.1 + TIGHT.0 * b.abs());
    assert!(beyond.count() > 0);
}
