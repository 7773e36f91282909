//! Gradients through everything, projector and tower included: five steps of the reference's training, loss by loss. The loop here is the
//! test's own; what is tested are the layers' training forms.

use crate::common::{CPU, Expected, Spelling, data, loaded, one_picture};
use focus_nn::candle::{D, DType as Kind, Result, Var};
use focus_nn::lm::Sequence;
use focus_nn::lora::{Adaptable, Module};
use focus_nn::{Checkpoint, Layout, Part, Switch, Tensor, training};
use llava_next::network::Network;
use llava_next::open::Parts;
use llava_next::tiles::Tiles;

/// A variable with the two running means of AdamW.
struct Slot {
    var: Var,
    mean: Tensor,
    square: Tensor,
}

struct Item {
    tiles: Tiles,
    ids: Vec<u32>,
    /// Positions whose next token is learnt, and that token.
    learnt: Vec<(u32, u32)>,
}

/// The adapter before training as variables in every linear layer, `alpha / r` being 2.
fn prepare(network: &mut Network) -> Vec<Slot> {
    let path = data("sft_init/adapter_model.safetensors");
    let file = Checkpoint::open_file(&path, &Layout::default()).unwrap();
    let switch = Switch::default();
    switch.select(1);
    let mut slots = Vec::new();
    network.visit(&mut |name, module| {
        let Module::Linear(linear) = module else {
            return;
        };
        // In memory as transformers 5 has it, on disk as transformers 4 had it.
        let stored = name.replace("vision_tower.", "vision_tower.vision_model.");
        let mut variable = |part: &str| {
            let key = format!("base_model.model.{stored}.{part}.weight");
            let tensor = file.get(&key).unwrap().to_tensor(&CPU, Kind::F32).unwrap();
            let var = Var::from_tensor(&tensor).unwrap();
            let zeros = tensor.zeros_like().unwrap();
            let tensor = var.as_tensor().clone();
            slots.push(Slot {
                var,
                mean: zeros.clone(),
                square: zeros,
            });
            tensor
        };
        let (a, b) = (variable("lora_A"), variable("lora_B"));
        linear.attach(&switch, 1, Part::LowRank { a, b, scale: 2.0 });
    });
    assert_eq!(slots.len(), file.len());
    slots
}

fn item(expected: &Expected, parts: &Parts, mode: &str, number: usize) -> Item {
    let ids = expected.ids(&format!("sft.{mode}.{number}.input_ids"));
    let labels = expected.ids(&format!("sft.{mode}.{number}.labels"));
    let learnt = labels[1..]
        .iter()
        .enumerate()
        .filter(|(_, label)| label.cast_signed() != -100)
        .map(|(at, &label)| (at as u32, label))
        .collect();
    Item {
        tiles: expected.tiles(number, parts, Kind::F32),
        ids,
        learnt,
    }
}

/// Mean of the negative logarithms of what is learnt.
fn loss(network: &Network, parts: &Parts, item: &Item) -> Result<Tensor> {
    let features = network.look(&item.tiles)?;
    let prompt = one_picture(item.ids.clone(), parts.config.image_token);
    let all = 0..prompt.tokens.len();
    let mut sequences = [Sequence::of_prompt(&prompt, all, &[&features], None)];
    let hidden = network.decoder().hidden(&mut sequences)?;
    let (at, labels): (Vec<u32>, Vec<u32>) = item.learnt.iter().copied().unzip();
    let count = labels.len();
    let rows = hidden.index_select(&Tensor::from_vec(at, count, &CPU)?, 0)?;
    let logits = network.decoder().logits(&rows)?;
    let all = logits.exp()?.sum_keepdim(D::Minus1)?.log()?;
    let logs = logits.broadcast_sub(&all)?;
    let labels = Tensor::from_vec(labels, (count, 1), &CPU)?;
    logs.gather(&labels, D::Minus1)?.mean_all()?.neg()
}

/// One step of AdamW without decay; the length of the whole gradient.
fn step(slots: &mut [Slot], loss: &Tensor, number: i32) -> Result<f64> {
    let gradients = loss.backward()?;
    let mut length = 0.0;
    for Slot { var, mean, square } in slots {
        // The tower's last layer is not run.
        let Some(gradient) = gradients.get(var) else {
            continue;
        };
        length += f64::from(gradient.sqr()?.sum_all()?.to_scalar::<f32>()?);
        *mean = ((&*mean * 0.9)? + (gradient * 0.1)?)?;
        *square = ((&*square * 0.999)? + (gradient.sqr()? * 0.001)?)?;
        let first = (&*mean / (1.0 - 0.9_f64.powi(number)))?;
        let second = (&*square / (1.0 - 0.999_f64.powi(number)))?;
        let change = (first / (second.sqrt()? + 1e-8)?)?;
        var.set(&(var.as_tensor() - (change * 1e-3)?)?)?;
    }
    Ok(length.sqrt())
}

#[test]
fn five_steps_equal_the_reference() {
    let expected = Expected::open();
    let trace: serde_json::Value =
        serde_json::from_slice(&std::fs::read(data("sft_trace.json")).unwrap()).unwrap();
    for mode in ["assistant", "all_but_image_and_pad"] {
        let (parts, mut network) = loaded(Spelling::Four);
        let mut slots = prepare(&mut network);
        let items = [0, 1].map(|number| item(&expected, &parts, mode, number));
        let wanted = |field: &str, number: usize| trace[mode][field][number].as_f64().unwrap();
        let value = |loss: &Tensor| f64::from(loss.to_scalar::<f32>().unwrap());
        for number in 0..5 {
            let item = &items[number % 2];
            assert_eq!(item.learnt.len() as f64, wanted("label_tokens", number));
            let loss = training(|| loss(&network, &parts, item)).unwrap();
            let apart = (value(&loss) - wanted("loss", number)).abs();
            assert!(apart < 1e-4, "{mode} {number}: {apart}");
            let length = step(&mut slots, &loss, number as i32 + 1).unwrap();
            let apart = (length / wanted("grad_norm", number) - 1.0).abs();
            assert!(apart < 1e-3, "{mode} {number}: {apart}");
        }
        for (number, item) in items.iter().enumerate() {
            // Without the switch: tracked tensors choose the form by themselves.
            let after = value(&loss(&network, &parts, item).unwrap());
            let apart = (after - wanted("loss_after", number)).abs();
            assert!(apart < 1e-4, "{mode} {number} after: {apart}");
        }
    }
}
