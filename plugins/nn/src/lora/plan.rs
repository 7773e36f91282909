//! Settings and tensors against a model's modules: what goes where, with every key and every target accounted for.

use super::name::{Role, newest, parse, spelt};
use super::{LoraError, Settings, Spelling};
use crate::layer::Part;
use crate::{Checkpoint, checkpoint::RawTensor};
use candle_core::{DType, Device};
use std::collections::BTreeMap;

/// Faults shown before a message says how many more there are.
const SHOWN: usize = 8;

/// A module as a plan sees it.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    pub(super) kind: SlotKind,
    /// (out, in) of a linear layer; (vocab, hidden) of an embedding.
    pub(super) shape: [usize; 2],
    pub(super) bias: bool,
    pub(super) dtype: DType,
    pub(super) device: Device,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotKind {
    Linear,
    Head,
    Embedding,
}

/// What will be attached.
#[derive(Debug)]
pub(super) struct Plan {
    /// By name.
    pub(super) parts: BTreeMap<String, Part>,
    pub(super) ranks: Vec<u32>,
    pub(super) scales: Vec<f64>,
    pub(super) notes: Vec<String>,
}

#[derive(Default)]
struct Found<'a> {
    a: Option<&'a RawTensor>,
    b: Option<&'a RawTensor>,
    weight: Option<&'a RawTensor>,
    bias: Option<&'a RawTensor>,
}

pub(super) fn plan(
    settings: &Settings,
    tensors: &Checkpoint,
    modules: &BTreeMap<String, Slot>,
    spellings: &[Spelling],
) -> Result<Plan, LoraError> {
    let mut faults = Vec::new();
    let mut found: BTreeMap<String, Found<'_>> = BTreeMap::new();
    for key in tensors.names() {
        let tensor = tensors.get(key).expect("named by the file itself");
        let Some((module, role)) = parse(key) else {
            faults.push(format!("key `{key}` is not understood"));
            continue;
        };
        let name = newest(module, spellings);
        if !modules.contains_key(&name) {
            faults.push(format!("key `{key}` belongs to no module"));
            continue;
        }
        let place = found.entry(name).or_default();
        let place = match role {
            Role::A => &mut place.a,
            Role::B => &mut place.b,
            Role::Weight => &mut place.weight,
            Role::Bias => &mut place.bias,
        };
        if place.replace(tensor).is_some() {
            faults.push(format!("key `{key}` comes in two spellings"));
        }
    }
    let targets = targets(settings, modules, spellings)?;
    for name in &targets {
        if !found
            .get(name)
            .is_some_and(|f| f.a.is_some() && f.b.is_some())
        {
            faults.push(format!("no `lora_A` and `lora_B` for target `{name}`"));
        }
    }
    let saved = settings.modules_to_save.as_deref().unwrap_or_default();
    let is_saved = |name: &str, entry: &str| name == entry || name.ends_with(&format!(".{entry}"));
    for entry in saved {
        if !found
            .iter()
            .any(|(name, f)| is_saved(name, entry) && f.weight.is_some())
        {
            faults.push(format!("no tensor for `{entry}` of `modules_to_save`"));
        }
    }
    let mut plan = Plan {
        parts: BTreeMap::new(),
        ranks: Vec::new(),
        scales: Vec::new(),
        notes: Vec::new(),
    };
    for (name, found) in &found {
        let slot = &modules[name];
        let names = spelt(name, spellings);
        let part = match found {
            Found {
                a: Some(a),
                b: Some(b),
                weight: None,
                bias: None,
            } => {
                if !targets.contains(name) {
                    faults.push(format!("`{name}` has low-rank tensors but is no target"));
                    continue;
                }
                if slot.kind == SlotKind::Embedding {
                    faults.push(format!(
                        "`{name}` is an embedding: low-rank parts of those are not supported"
                    ));
                    continue;
                }
                let (rank, scale) = (settings.rank(&names)?, settings.scale(&names)?);
                plan.ranks.push(rank);
                plan.scales.push(scale);
                let [outputs, inputs] = slot.shape;
                let fits = fits(
                    &mut faults,
                    &format!("{name}.lora_A"),
                    a,
                    &[rank as usize, inputs],
                ) & fits(
                    &mut faults,
                    &format!("{name}.lora_B"),
                    b,
                    &[outputs, rank as usize],
                );
                if !fits {
                    continue;
                }
                Part::LowRank {
                    a: a.to_tensor(&slot.device, DType::F32)?,
                    b: b.to_tensor(&slot.device, DType::F32)?,
                    scale,
                }
            }
            Found {
                a: None,
                b: None,
                weight: Some(weight),
                bias,
            } => {
                // PEFT saves embeddings by itself when it thinks that they changed.
                let by_itself = slot.kind != SlotKind::Linear;
                if !saved.iter().any(|entry| is_saved(name, entry)) {
                    if !by_itself {
                        faults.push(format!("`{name}` is not in `modules_to_save`"));
                        continue;
                    }
                    plan.notes.push(format!(
                        "`{name}` is replaced though `modules_to_save` does not name it"
                    ));
                }
                if bias.is_some() != slot.bias {
                    faults.push(format!(
                        "bias of `{name}`: expected {}, found {}",
                        slot.bias,
                        bias.is_some()
                    ));
                    continue;
                }
                let mut whole = fits(&mut faults, name, weight, &slot.shape);
                if let Some(bias) = bias {
                    whole &= fits(&mut faults, &format!("{name}.bias"), bias, &slot.shape[..1]);
                }
                if !whole {
                    continue;
                }
                let place = |t: &RawTensor| t.to_tensor(&slot.device, slot.dtype);
                Part::Whole {
                    weight: place(weight)?,
                    bias: bias.map(place).transpose()?,
                }
            }
            _ => {
                faults.push(format!(
                    "tensors of `{name}` are incomplete or contradict each other"
                ));
                continue;
            }
        };
        plan.parts.insert(name.clone(), part);
    }
    if plan.parts.is_empty() && faults.is_empty() {
        faults.push("it has no tensors".into());
    }
    if !faults.is_empty() {
        faults.sort();
        faults.dedup();
        let more = faults.len().saturating_sub(SHOWN);
        faults.truncate(SHOWN);
        if more > 0 {
            faults.push(format!("and {more} more"));
        }
        return Err(LoraError::Mismatch(faults));
    }
    plan.ranks.sort_unstable();
    plan.ranks.dedup();
    plan.scales.sort_unstable_by(f64::total_cmp);
    plan.scales.dedup();
    Ok(plan)
}

/// Names of the modules that the settings target.
fn targets(
    settings: &Settings,
    modules: &BTreeMap<String, Slot>,
    spellings: &[Spelling],
) -> Result<Vec<String>, LoraError> {
    let Some(wanted) = &settings.target_modules else {
        return Ok(Vec::new());
    };
    let linear: Vec<_> = modules
        .iter()
        .filter(|(_, slot)| slot.kind != SlotKind::Embedding)
        .collect();
    let names: Vec<_> = linear
        .iter()
        .map(|(name, slot)| (spelt(name, spellings), slot.kind == SlotKind::Head))
        .collect();
    let mut chosen = wanted.expand(&names)?;
    if let Some(excluded) = &settings.exclude_modules {
        let out = excluded.matching(&names)?;
        chosen.retain(|at| !out.contains(at));
    }
    let names = chosen.into_iter().map(|at| linear[at].0.clone());
    Ok(names
        .filter(|name| settings.trains_layer_of(name))
        .collect())
}

fn fits(faults: &mut Vec<String>, name: &str, tensor: &RawTensor, shape: &[usize]) -> bool {
    if tensor.shape() != shape {
        faults.push(format!(
            "shape of `{name}`: expected {shape:?}, found {:?}",
            tensor.shape()
        ));
        return false;
    }
    if !tensor.kind().is_float() {
        faults.push(format!(
            "values of `{name}`: expected floats, found {:?}",
            tensor.kind()
        ));
        return false;
    }
    true
}
