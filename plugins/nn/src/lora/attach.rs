//! Attaching, choosing and forgetting adapters of one loaded base.

use super::plan::{Slot, SlotKind, plan};
use super::{Adaptable, LoraError, Module, Settings};
use crate::checkpoint::MappedFile;
use crate::{Checkpoint, Layout, Linear, Part, Switch};
use std::collections::BTreeMap;
use std::path::Path;

/// Largest configuration, in bytes.
const MAX_CONFIG: usize = 1 << 20;

/// What is known of an attached adapter.
#[derive(Debug, Clone, PartialEq)]
pub struct Attached {
    number: u32,
    /// Digest of both files, `blake3:hex`.
    pub digest: String,
    /// Ranks in use, ascending, each once.
    pub ranks: Vec<u32>,
    /// Factors in use, ascending, each once.
    pub scales: Vec<f64>,
    /// Linear layers with a low-rank part, sorted.
    pub targets: Vec<String>,
    /// Modules replaced whole, sorted.
    pub replaced: Vec<String>,
    /// The base that the configuration names.
    pub base: Option<String>,
    /// What a reader must know, one sentence each.
    pub notes: Vec<String>,
}

/// The adapters of one model, by name, and the switch that its layers look at.
#[derive(Debug, Default)]
pub struct Adapters {
    switch: Switch,
    attached: BTreeMap<String, Attached>,
    last: u32,
}

impl Adapters {
    /// Use an adapter from the next forward pass on; `None`: the base.
    pub fn select(&self, name: Option<&str>) -> Result<(), LoraError> {
        self.switch.select(match name {
            None => Switch::BASE,
            Some(name) => self.find(name)?.number,
        });
        Ok(())
    }

    /// The adapters, by name.
    pub fn attached(&self) -> &BTreeMap<String, Attached> {
        &self.attached
    }

    fn find(&self, name: &str) -> Result<&Attached, LoraError> {
        self.attached
            .get(name)
            .ok_or_else(|| LoraError::NoSuchAdapter {
                name: name.to_owned(),
                known: if self.attached.is_empty() {
                    "none".into()
                } else {
                    let names = self.attached.keys().map(|name| format!("`{name}`"));
                    names.collect::<Vec<_>>().join(", ")
                },
            })
    }
}

/// Read a PEFT folder and attach it as `name`. On an error nothing has changed.
pub fn attach(model: &mut dyn Adaptable, name: &str, folder: &Path) -> Result<Attached, LoraError> {
    if model.adapters().attached.contains_key(name) {
        return Err(LoraError::NameTaken(name.to_owned()));
    }
    let config = MappedFile::open(&folder.join("adapter_config.json"))?;
    if config.bytes().len() > MAX_CONFIG {
        return Err(LoraError::Settings(format!(
            "it has more than {MAX_CONFIG} bytes"
        )));
    }
    let settings = Settings::parse(config.bytes())?;
    let path = folder.join("adapter_model.safetensors");
    let tensors = Checkpoint::open_file(&path, &Layout::default())?;
    let mut modules = BTreeMap::new();
    model.visit(&mut |name, module| {
        modules.insert(name.to_owned(), slot(&module));
    });
    let plan = plan(&settings, &tensors, &modules, model.spellings())?;
    let mut digest = blake3::Hasher::new();
    digest.update(blake3::hash(config.bytes()).as_bytes());
    digest.update(blake3::hash(MappedFile::open(&path)?.bytes()).as_bytes());
    let low = |part: &Part| matches!(part, Part::LowRank { .. });
    let names = |wanted: bool| {
        let some = plan.parts.iter().filter(|(_, part)| low(part) == wanted);
        some.map(|(name, _)| name.clone()).collect()
    };
    let adapters = model.adapters();
    adapters.last += 1;
    let attached = Attached {
        number: adapters.last,
        digest: format!("blake3:{}", digest.finalize().to_hex()),
        targets: names(true),
        replaced: names(false),
        ranks: plan.ranks,
        scales: plan.scales,
        base: settings.base_model_name_or_path.clone(),
        notes: plan.notes,
    };
    let switch = adapters.switch.clone();
    adapters.attached.insert(name.to_owned(), attached.clone());
    let mut parts = plan.parts;
    let mut failed = None;
    model.visit(&mut |name, module| {
        let Some(part) = parts.remove(name) else {
            return;
        };
        match module {
            Module::Linear(linear) | Module::Head(linear) => {
                linear.attach(&switch, attached.number, part);
            }
            Module::Embedding(table) => {
                if let Err(error) = table.attach(&switch, attached.number, part) {
                    failed = Some(error);
                }
            }
        }
    });
    match failed {
        None => Ok(attached),
        Some(error) => {
            detach(model, name)?;
            Err(error.into())
        }
    }
}

/// Forget an adapter. The base is chosen if it was in use.
pub fn detach(model: &mut dyn Adaptable, name: &str) -> Result<(), LoraError> {
    let number = take(model, name)?;
    model.visit(&mut |_, module| {
        match module {
            Module::Linear(linear) | Module::Head(linear) => linear.detach(number),
            Module::Embedding(table) => table.detach(number),
        };
    });
    Ok(())
}

/// Fold an adapter into the base for good. Its whole replacements become the base's; other adapters stay, on a changed base.
pub fn merge(model: &mut dyn Adaptable, name: &str) -> Result<(), LoraError> {
    let number = take(model, name)?;
    let mut failed = None;
    model.visit(&mut |_, module| {
        let merged = match module {
            Module::Linear(linear) | Module::Head(linear) => linear.merge(number).map(|_| ()),
            Module::Embedding(table) => {
                table.merge(number);
                Ok(())
            }
        };
        if let Err(error) = merged {
            failed = Some(error);
        }
    });
    failed.map_or(Ok(()), |error| Err(error.into()))
}

fn take(model: &mut dyn Adaptable, name: &str) -> Result<u32, LoraError> {
    let adapters = model.adapters();
    let number = adapters.find(name)?.number;
    adapters.attached.remove(name);
    if adapters.switch.selected() == number {
        adapters.switch.select(Switch::BASE);
    }
    Ok(number)
}

fn slot(module: &Module<'_>) -> Slot {
    let linear = |kind, linear: &Linear| Slot {
        kind,
        shape: sides(linear.weight()),
        bias: linear.bias().is_some(),
        dtype: linear.weight().dtype(),
        device: linear.weight().device().clone(),
    };
    match module {
        Module::Linear(layer) => linear(SlotKind::Linear, layer),
        Module::Head(layer) => linear(SlotKind::Head, layer),
        Module::Embedding(table) => Slot {
            kind: SlotKind::Embedding,
            shape: sides(table.weight()),
            bias: false,
            dtype: table.weight().dtype(),
            device: table.weight().device().clone(),
        },
    }
}

fn sides(weight: &crate::Tensor) -> [usize; 2] {
    match *weight.dims() {
        [rows, columns] => [rows, columns],
        _ => [0, 0],
    }
}
