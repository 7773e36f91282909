//! The network on the reference's own pixel values, tightly.

use crate::common::{
    CPU, Expected, Spelling, close, cosine, edit, first_logits, folder, loaded, logits_of,
    network_of, one_picture, parts, worst,
};
use focus_nn::lm::{Prompt, Sequence};
use focus_nn::{Activation, DType, Tensor};
use llava_next::config::Config;
use llava_next::grid::Size;

fn values(t: &Tensor) -> Vec<f32> {
    let wide = t.to_dtype(DType::F32).unwrap();
    wide.flatten_all().unwrap().to_vec1().unwrap()
}

/// Features of the first picture with other numbers than the file's.
fn features_with(change: impl FnOnce(&mut Config)) -> Vec<f32> {
    let folder = folder(Spelling::Four);
    let mut parts = parts(folder.path());
    change(&mut parts.config);
    let network = network_of(folder.path(), &parts.config, DType::F32);
    let tiles = Expected::open().tiles(0, &parts, DType::F32);
    values(&network.look(&tiles).unwrap().rows)
}

#[test]
fn image_features_equal_the_reference_in_both_spellings() {
    let expected = Expected::open();
    let wanted = expected.floats("0.image_features");
    for spelling in [Spelling::Four, Spelling::Five] {
        let (parts, network) = loaded(spelling);
        let features = network
            .look(&expected.tiles(0, &parts, DType::F32))
            .unwrap();
        assert_eq!(features.rows.dims(), [70, 32]);
        for (a, b) in values(&features.rows).iter().zip(&wanted) {
            assert!((a - b).abs() <= 1e-5 * b.abs() + 5e-6, "{a} {b}");
        }
    }
}

#[test]
fn what_is_easily_got_wrong_is_seen_in_the_features() {
    let wanted = Expected::open().floats("0.image_features");
    assert!(worst(&features_with(|_| {}), &wanted) < 1e-5);
    assert!(worst(&features_with(|c| c.layer = -1), &wanted) > 0.5);
    for wrong in [Activation::Gelu, Activation::GeluTanh] {
        let moved = worst(&features_with(|c| c.vision.activation = wrong), &wanted);
        assert!(moved > 1e-3, "{wrong:?}: {moved}");
    }
    for wrong in [Activation::GeluTanh, Activation::QuickGelu] {
        let moved = worst(&features_with(|c| c.projector = wrong), &wanted);
        assert!(moved > 2e-5, "{wrong:?}: {moved}");
    }
}

#[test]
fn height_and_width_cannot_change_places() {
    let (parts, network) = loaded(Spelling::Four);
    let expected = Expected::open();
    let swap = |size: Size| Size::new(size.width, size.height);
    let wanted = expected.floats("0.image_features");
    let mut tiles = expected.tiles(0, &parts, DType::F32);
    tiles.original = swap(tiles.original);
    let rows = network.look(&tiles).unwrap().rows;
    // 8 rows of 6 and a newline in place of 6 of 8.
    assert_eq!(rows.dims(), [16 + 8 * 7, 32]);
    assert_ne!(wanted.len(), values(&rows).len());
    // A wide tiling taken for an upright one has as many tiles, and other rows.
    let right = expected.tiles(2, &parts, DType::F32);
    let mut tiles = right.clone();
    tiles.resolution = swap(tiles.resolution);
    let found = network.look(&tiles).unwrap().rows;
    assert_ne!(found.dims(), network.look(&right).unwrap().rows.dims());
}

#[test]
fn newlines_reach_the_logits() {
    let folder = folder(Spelling::Four);
    let parts = parts(folder.path());
    let path = folder.path().join("model.safetensors");
    edit(&path, &path, |tensors| {
        let newline = tensors
            .iter_mut()
            .find(|(name, ..)| name == "image_newline");
        newline.unwrap().2.fill(0);
    });
    let network = network_of(folder.path(), &parts.config, DType::F32);
    let expected = Expected::open();
    let found = logits_of(&network, &parts, &expected, 0);
    assert!(worst(&found, &expected.floats("0.first_logits")) > 0.05);
}

#[test]
fn first_logits_equal_the_reference_in_both_spellings() {
    let expected = Expected::open();
    for spelling in [Spelling::Four, Spelling::Five] {
        let (parts, network) = loaded(spelling);
        for number in 0..3 {
            let found = logits_of(&network, &parts, &expected, number);
            close(&found, &expected.floats(&format!("{number}.first_logits")));
        }
    }
}

#[test]
fn every_step_of_a_generation_equals_the_reference() {
    let (parts, network) = loaded(Spelling::Four);
    let expected = Expected::open();
    for number in 0..3 {
        let features = network
            .look(&expected.tiles(number, &parts, DType::F32))
            .unwrap();
        let prompt = expected.prompt(number, &parts);
        let chosen = expected.ids(&format!("{number}.generated"));
        let steps = expected.rows(&format!("{number}.step_logits"));
        for (step, wanted) in steps.iter().enumerate() {
            let mut tokens = prompt.tokens.clone();
            tokens.extend(&chosen[..step]);
            let longer = one_picture(tokens, parts.config.image_token);
            close(&first_logits(&network, &longer, &features), wanted);
        }
    }
}

#[test]
fn a_padded_batch_equals_its_prompts_packed() {
    let (parts, network) = loaded(Spelling::Four);
    let expected = Expected::open();
    let mask = expected.ids("batch.attention_mask");
    let ids = expected.ids("batch.input_ids");
    let width = ids.len() / 3;
    let prompts: Vec<Prompt> = ids
        .chunks(width)
        .zip(mask.chunks(width))
        .map(|(ids, mask)| {
            let real = ids.iter().zip(mask).filter(|(_, mask)| **mask == 1);
            one_picture(real.map(|(id, _)| *id).collect(), parts.config.image_token)
        })
        .collect();
    assert!(prompts[2].tokens.len() < width);
    // Pictures of five tiles and of four.
    let features: Vec<_> = (0..3)
        .map(|number| {
            network
                .look(&expected.tiles(number, &parts, DType::F32))
                .unwrap()
        })
        .collect();
    let pictures: Vec<_> = features.iter().map(|features| [features]).collect();
    let mut sequences: Vec<_> = prompts
        .iter()
        .zip(&pictures)
        .map(|(prompt, picture)| Sequence::of_prompt(prompt, 0..prompt.tokens.len(), picture, None))
        .collect();
    let found = values(&network.decoder().forward(&mut sequences).unwrap());
    close(&found, &expected.floats("batch.first_logits"));
}

#[test]
fn half_the_width_stays_near() {
    let folder = folder(Spelling::Four);
    let parts = parts(folder.path());
    let network = network_of(folder.path(), &parts.config, DType::BF16);
    let expected = Expected::open();
    let features = network
        .look(&expected.tiles(0, &parts, DType::BF16))
        .unwrap();
    let near = cosine(
        &values(&features.rows),
        &expected.floats("0.image_features"),
    );
    assert!(near > 0.9998, "{near}");
    for number in 0..3 {
        let found = logits_of(&network, &parts, &expected, number);
        let near = cosine(&found, &expected.floats(&format!("{number}.first_logits")));
        assert!(near > 0.9998, "{number}: {near}");
    }
    assert_eq!(features.rows.device().location(), CPU.location());
}
