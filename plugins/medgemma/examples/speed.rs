//! How long three prompts on one picture take in one group, against three calls, and how fast tokens come, on a drawn model of the given
//! width. Usage: `cargo run --release -p medgemma --example speed`.

#![expect(clippy::print_stdout, reason = "a program that prints")]

use focus_nn::lm::Features;
use focus_nn::lm::{Cache, ImageSpan, common_prefix};
use focus_nn::lm::{Decoder, DecoderConfig, LayerKind, NormStyle, Prompt, Rope, Sequence};
use focus_nn::vision::VisionConfig;
use focus_nn::{Activation, DType, Device, Tensor, weights};
use medgemma::config::Config;
use medgemma::network::Network;
use std::time::Instant;

const IMAGE: u32 = 7;
const ROWS: usize = 256;
const TOKENS: usize = 16;

fn config() -> Config {
    let mut layers = vec![LayerKind::Sliding; 6];
    layers[5] = LayerKind::Full;
    Config {
        decoder: DecoderConfig {
            vocab: 32_000,
            hidden: 512,
            intermediate: 2048,
            heads: 8,
            kv_heads: 4,
            head_dim: 64,
            activation: Activation::GeluTanh,
            norm: NormStyle::Sandwich,
            norm_eps: 1e-6,
            qk_norm: true,
            attention_bias: false,
            scale: 0.125,
            embedding_scale: Some(512.0_f64.sqrt()),
            layers,
            rope: Rope::plain(1e6),
            sliding_rope: Rope::plain(1e4),
            window: 1024,
            tied: true,
            bidirectional_images: true,
        },
        vision: VisionConfig {
            dim: 384,
            depth: 6,
            heads: 6,
            hidden: 1536,
            size: 448,
            ..VisionConfig::siglip_so400m_896()
        },
        image_tokens: ROWS,
        image_id: IMAGE,
        end_ids: Vec::new(),
    }
}

/// The picture, then a question of its own of 60 tokens.
fn prompt(number: u32) -> Prompt {
    let mut tokens = vec![2, 3, 4, 5];
    tokens.extend([IMAGE; ROWS]);
    tokens.extend((0..10).map(|i| 100 + i));
    tokens.extend((0..50).map(|i| 1000 * (number + 1) + i));
    let span = ImageSpan {
        start: 4,
        length: ROWS,
        picture: 0,
    };
    Prompt::on_one_axis(tokens, vec![span])
}

fn prefill(decoder: &Decoder, prompts: &[Prompt], picture: &Features) -> (Vec<Cache>, f64) {
    let start = Instant::now();
    let prefix = if prompts.len() > 1 {
        common_prefix(prompts)
    } else {
        0
    };
    let mut trunk = decoder.cache(prefix.max(1)).expect("memory");
    if prefix > 0 {
        let shared = Sequence::of_prompt(&prompts[0], 0..prefix, &[picture], Some(&mut trunk));
        decoder.fill(&mut [shared]).expect("a valid prompt");
    }
    let room = |prompt: &Prompt| prompt.tokens.len() + TOKENS;
    let mut caches: Vec<Cache> = prompts
        .iter()
        .map(|prompt| trunk.branch(room(prompt)).expect("memory"))
        .collect();
    let mut sequences: Vec<_> = prompts
        .iter()
        .zip(&mut caches)
        .map(|(prompt, cache)| {
            Sequence::of_prompt(prompt, prefix..prompt.tokens.len(), &[picture], Some(cache))
        })
        .collect();
    decoder.forward(&mut sequences).expect("a valid prompt");
    (caches, start.elapsed().as_secs_f64())
}

fn decode(decoder: &Decoder, caches: &mut [Cache], place: u32) -> f64 {
    let start = Instant::now();
    for step in 0..TOKENS as u32 {
        let places = [[place + step; 3]];
        let mut sequences: Vec<_> = caches
            .iter_mut()
            .map(|cache| Sequence {
                tokens: &[9],
                places: &places,
                images: Vec::new(),
                cache: Some(cache),
            })
            .collect();
        decoder.forward(&mut sequences).expect("room in the cache");
    }
    start.elapsed().as_secs_f64()
}

fn main() {
    let config = config();
    let build = |at: &focus_nn::Weights| Network::load(&config, at);
    let network = weights::random(1, &Device::Cpu, DType::F32, build).expect("random weights");
    let decoder = network.decoder();
    let pixels = Tensor::ones((1, 3, 448, 448), DType::F32, &Device::Cpu).expect("memory");
    let prompts: Vec<Prompt> = (0..3).map(prompt).collect();
    let place = prompts[0].next_place();
    for _ in 0..3 {
        let start = Instant::now();
        let picture = network.look(&pixels).expect("a picture");
        let vision = start.elapsed().as_secs_f64();
        let (mut one, alone) = prefill(decoder, &prompts[..1], &picture);
        let (mut three, together) = prefill(decoder, &prompts, &picture);
        let (one_decode, three_decode) = (
            decode(decoder, &mut one, place),
            decode(decoder, &mut three, place),
        );
        let single = vision + alone;
        // Each prompt by itself: the picture and all of the prompt again.
        let start = Instant::now();
        for prompt in &prompts {
            let picture = network.look(&pixels).expect("a picture");
            prefill(decoder, std::slice::from_ref(prompt), &picture);
        }
        let apart = start.elapsed().as_secs_f64();
        let group = vision + together;
        println!(
            "vision {:.0} ms, prompt {:.0} ms, three prompts {:.0} ms: a group of three costs {:.2} of one, three calls {:.2}",
            vision * 1e3,
            alone * 1e3,
            together * 1e3,
            group / single,
            apart / single
        );
        println!(
            "decoding {TOKENS} tokens: one answer {:.0} tokens/s, three together {:.0} tokens/s",
            TOKENS as f64 / one_decode,
            3.0 * TOKENS as f64 / three_decode
        );
    }
}
