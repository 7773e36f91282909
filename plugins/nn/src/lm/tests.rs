//! A drawn decoder against itself: packed and alone, cached and whole, branched and not.

use super::*;
use crate::{Activation, DType, Device, Tensor, weights};

fn config(norm: NormStyle) -> DecoderConfig {
    let gemma = norm == NormStyle::Sandwich;
    DecoderConfig {
        vocab: 40,
        hidden: 24,
        intermediate: 32,
        heads: 4,
        kv_heads: 2,
        head_dim: 8,
        activation: Activation::Silu,
        norm,
        norm_eps: 1e-6,
        qk_norm: gemma,
        attention_bias: false,
        scale: 8.0_f64.powf(-0.5),
        embedding_scale: gemma.then(|| 24.0_f64.sqrt()),
        layers: if gemma {
            vec![LayerKind::Sliding, LayerKind::Full, LayerKind::Sliding]
        } else {
            vec![LayerKind::Full; 3]
        },
        rope: Rope::plain(1e4),
        sliding_rope: Rope::plain(1e2),
        window: 4,
        tied: gemma,
        bidirectional_images: gemma,
    }
}

fn decoder(config: &DecoderConfig) -> Decoder {
    let loud = |w: &crate::Weights| Decoder::load(&w.at("model"), w, config);
    weights::random(5, &Device::Cpu, DType::F32, loud).unwrap()
}

fn features(seed: u64, tokens: usize) -> Features {
    let rows = weights::random(seed, &Device::Cpu, DType::F32, |w| {
        w.get("rows", &[tokens, 24], crate::Init::Normal(1.0))
    });
    Features {
        rows: rows.unwrap(),
        deep: Vec::new(),
        grid: (tokens, 1),
    }
}

fn prompt(seed: u32, length: usize) -> Prompt {
    let tokens = (0..length as u32)
        .map(|i| (i * 7 + seed * i * i + 3) % 40)
        .collect();
    let span = ImageSpan {
        start: 2,
        length: 3,
        picture: 0,
    };
    Prompt::on_one_axis(tokens, vec![span])
}

fn whole(decoder: &Decoder, prompt: &Prompt, picture: &Features) -> Vec<f32> {
    let range = 0..prompt.tokens.len();
    let sequence = Sequence::of_prompt(prompt, range, &[picture], None);
    let logits = decoder.forward(&mut [sequence]).unwrap();
    logits.squeeze(0).unwrap().to_vec1().unwrap()
}

fn close(a: &[f32], b: &[f32]) {
    let largest = a.iter().fold(0.0_f32, |m, v| m.max(v.abs()));
    assert!(largest > 1e-4);
    for (x, y) in a.iter().zip(b) {
        assert!((x - y).abs() <= 1e-5 * largest.max(1.0), "{x} {y}");
    }
}

#[test]
fn packed_cached_and_branched_agree_with_the_whole() {
    for norm in [NormStyle::Sandwich, NormStyle::Pre] {
        let decoder = decoder(&config(norm));
        let picture = features(1, 3);
        let mut other = prompt(1, 17);
        other.tokens[..9].copy_from_slice(&prompt(0, 17).tokens[..9]);
        let prompts = [prompt(0, 12), other];
        let wanted: Vec<_> = prompts
            .iter()
            .map(|prompt| whole(&decoder, prompt, &picture))
            .collect();
        let prefix = common_prefix(&prompts);
        assert!(prefix >= 9);
        let mut trunk = decoder.cache(prefix).unwrap();
        decoder
            .fill(&mut [Sequence::of_prompt(
                &prompts[0],
                0..prefix,
                &[&picture],
                Some(&mut trunk),
            )])
            .unwrap();
        let mut caches: Vec<_> = prompts
            .iter()
            .map(|prompt| trunk.branch(prompt.tokens.len() + 1).unwrap())
            .collect();
        let mut sequences: Vec<_> = prompts
            .iter()
            .zip(&mut caches)
            .map(|(prompt, cache)| {
                let range = prefix..prompt.tokens.len();
                Sequence::of_prompt(prompt, range, &[&picture], Some(cache))
            })
            .collect();
        let packed = decoder.forward(&mut sequences).unwrap();
        for (row, wanted) in packed.to_vec2::<f32>().unwrap().iter().zip(&wanted) {
            close(wanted, row);
        }
        // One more token, by the cache and as a longer prompt.
        let next = prompts[1].next_place();
        let mut longer = prompts[1].clone();
        longer.tokens.push(7);
        longer.places.push([next; 3]);
        let step = Sequence {
            tokens: &[7],
            places: &[[next; 3]],
            images: Vec::new(),
            cache: Some(&mut caches[1]),
        };
        let stepped = decoder.forward(&mut [step]).unwrap();
        close(
            &whole(&decoder, &longer, &picture),
            &stepped.squeeze(0).unwrap().to_vec1::<f32>().unwrap(),
        );
        assert_eq!((caches[1].length(), caches[1].capacity()), (18, 18));
        let full = Sequence {
            tokens: &[7],
            places: &[[next + 1; 3]],
            images: Vec::new(),
            cache: Some(&mut caches[1]),
        };
        assert!(decoder.forward(&mut [full]).is_err());
    }
}

#[test]
fn deep_rows_are_added_after_their_layer_at_the_picture() {
    let decoder = decoder(&config(NormStyle::Pre));
    let plain = features(1, 3);
    let mut deep = plain.clone();
    deep.deep = vec![features(2, 3).rows, features(3, 3).rows];
    let prompt = prompt(0, 12);
    let (a, b) = (
        whole(&decoder, &prompt, &plain),
        whole(&decoder, &prompt, &deep),
    );
    assert!(a.iter().zip(&b).any(|(a, b)| (a - b).abs() > 1e-5));
    // Rows of zeros are nothing.
    deep.deep = vec![Tensor::zeros((3, 24), DType::F32, &Device::Cpu).unwrap(); 2];
    assert_eq!(a, whole(&decoder, &prompt, &deep));
}

#[test]
fn the_stack_has_gradients() {
    let decoder = decoder(&config(NormStyle::Sandwich));
    let var = candle_core::Var::from_tensor(&features(1, 3).rows).unwrap();
    let picture = Features {
        rows: var.as_tensor().clone(),
        deep: Vec::new(),
        grid: (3, 1),
    };
    let prompt = prompt(0, 12);
    let loss = |picture: &Features| {
        let sequence = Sequence::of_prompt(&prompt, 0..12, &[picture], None);
        let logits = decoder.forward(&mut [sequence]).unwrap();
        logits.sqr().unwrap().sum_all().unwrap()
    };
    let gradients = loss(&picture).backward().unwrap();
    let gradient = gradients.get(&var).unwrap().to_vec2::<f32>().unwrap();
    let values = var.to_vec2::<f32>().unwrap();
    for (row, column) in [(0, 0), (1, 5), (2, 23)] {
        let moved = |by: f32| {
            let mut values = values.clone();
            values[row][column] += by;
            let rows = Tensor::new(values, &Device::Cpu).unwrap();
            let moved = Features {
                rows,
                ..picture.clone()
            };
            loss(&moved).to_scalar::<f32>().unwrap()
        };
        let difference = (moved(0.02) - moved(-0.02)) / 0.04;
        let found = gradient[row][column];
        assert!(
            (difference - found).abs() <= 2e-2 * (found.abs() + 1e-4),
            "{difference} {found}"
        );
    }
}

#[test]
fn senseless_calls_and_numbers_are_refused() {
    let good = config(NormStyle::Pre);
    let decoder = decoder(&good);
    assert!(decoder.forward(&mut []).is_err());
    let sequence = |tokens, places| Sequence {
        tokens,
        places,
        images: Vec::new(),
        cache: None,
    };
    assert!(decoder.forward(&mut [sequence(&[], &[])]).is_err());
    assert!(decoder.forward(&mut [sequence(&[1], &[])]).is_err());
    let error = decoder
        .forward(&mut [sequence(&[40], &[[0; 3]])])
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("token 40 is beyond the vocabulary of 40")
    );
    assert!(good.check("config.json").is_ok());
    for spoil in [
        (|c: &mut DecoderConfig| c.kv_heads = 3) as fn(&mut DecoderConfig),
        |c| c.heads = 0,
        |c| c.head_dim = 7,
        |c| c.layers.clear(),
        |c| c.layers = vec![LayerKind::Full; 5000],
        |c| c.vocab = usize::MAX,
        |c| c.intermediate = (1 << 24) + 1,
        |c| c.rope.theta = 0.0,
        |c| c.rope.sections = Some([1, 2, 2]),
        |c| c.scale = f64::NAN,
        |c| {
            c.layers = vec![LayerKind::Sliding];
            c.window = 0;
        },
    ] {
        let mut config = good.clone();
        spoil(&mut config);
        assert!(config.check("config.json").is_err(), "{config:?}");
    }
}
