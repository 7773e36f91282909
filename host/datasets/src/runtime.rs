//! The sandbox: loads a component that imports nothing, and calls it under fuel, time and memory limits. It decides how
//! a guest is stopped and how that is told; it knows nothing of tables or records.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use wasmtime::component::{Component, Linker};
use wasmtime::{Cache, CacheConfig, Config, Engine, ResourceLimiter, Store, Trap};

use crate::contract::{Mapper, wit};
use crate::descriptor::Descriptor;
use crate::error::{DatasetError, MapperFault, MapperName};
use crate::limits::Limits;
use crate::{check, contract, text};

/// How often a running guest is asked to look at the clock.
const TICK: Duration = Duration::from_millis(50);

/// A compiled mapper.
pub(crate) struct Module {
    engine: Engine,
    component: Component,
    name: MapperName,
    digest: String,
    limits: Arc<Limits>,
}

impl Module {
    /// Compiles a mapper, or takes it from the cache folder. Runs nothing of it.
    pub(crate) fn load(
        name: &str,
        bytes: &[u8],
        limits: &Limits,
        cache: Option<&Path>,
    ) -> Result<Self, DatasetError> {
        let name = MapperName {
            name: name.into(),
            version: None,
        };
        let fault = |fault| DatasetError::Mapper {
            mapper: Box::new(name.clone()),
            fault,
        };
        let size = bytes.len() as u64;
        if size > limits.module_bytes {
            return Err(fault(MapperFault::TooLarge {
                bytes: size,
                limit: limits.module_bytes,
            }));
        }
        let engine = engine(cache)?;
        let component = Component::from_binary(&engine, bytes).map_err(|e| {
            fault(MapperFault::NotAComponent(text::quote(
                &format!("{e:#}"),
                limits.message_chars,
            )))
        })?;
        let imports: Vec<String> = component
            .component_type()
            .imports(&engine)
            .map(|(name, _)| name.to_owned())
            .collect();
        if !imports.is_empty() {
            return Err(fault(MapperFault::Imports(text::list(&imports, 8))));
        }
        tick(&engine);
        let digest = blake3::hash(bytes).to_hex().to_string();
        Ok(Self {
            engine,
            component,
            name,
            digest,
            limits: Arc::new(limits.clone()),
        })
    }

    /// BLAKE3 of the mapper's file.
    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }

    /// Makes an instance and asks it to describe itself.
    pub(crate) fn start(&self) -> Result<(Session, Descriptor), DatasetError> {
        let limiter = Limiter::new(&self.limits);
        let mut store = Store::new(&self.engine, limiter);
        store.limiter(|limiter| limiter);
        store.set_hostcall_fuel(self.limits.returned_bytes);
        store.epoch_deadline_trap();
        let mut session = Session {
            store,
            guest: None,
            name: self.name.clone(),
            limits: Arc::clone(&self.limits),
            dead: false,
        };
        // A start function is the guest's code too: it runs under the same limits.
        session.refuel()?;
        let linker = Linker::new(&self.engine);
        let guest = Mapper::instantiate(&mut session.store, &self.component, &linker);
        match guest {
            Ok(guest) => session.guest = Some(guest),
            // Neither the guest nor a limit: the component lacks what the contract asks of it.
            Err(error)
                if error.downcast_ref::<Trap>().is_none()
                    && session.store.data().denied.is_none()
                    && !format!("{error:#}").contains("resource limit exceeded") =>
            {
                let text = text::quote(&format!("{error:#}"), self.limits.message_chars);
                return Err(session.fault(MapperFault::Contract(text)));
            }
            Err(error) => return Err(session.stopped(&error, "instantiation".into())),
        }
        let described = session.call("describe", |guest, store| {
            guest.focus_mapper_mapping().call_describe(store)
        })?;
        let descriptor = contract::descriptor(described);
        check::descriptor(&descriptor, &self.limits)
            .map_err(|what| session.fault(MapperFault::Descriptor(what)))?;
        session.name.version = Some(text::quote(&descriptor.version, 40));
        Ok((session, descriptor))
    }
}

/// A running mapper. After a trap the instance is dead and every call says so.
pub(crate) struct Session {
    store: Store<Limiter>,
    guest: Option<Mapper>,
    name: MapperName,
    limits: Arc<Limits>,
    dead: bool,
}

impl Session {
    /// The mapper's name and version.
    pub(crate) fn name(&self) -> &MapperName {
        &self.name
    }

    /// An error that names the mapper.
    pub(crate) fn fault(&self, fault: MapperFault) -> DatasetError {
        DatasetError::Mapper {
            mapper: Box::new(self.name.clone()),
            fault,
        }
    }

    /// `open` of the contract.
    pub(crate) fn open(
        &mut self,
        options: &[(String, String)],
    ) -> Result<Result<(), wit::Failure>, DatasetError> {
        self.call("open", |guest, store| {
            guest.focus_mapper_mapping().call_open(store, options)
        })
    }

    /// `push` of the contract. `file` and the lines are for messages.
    pub(crate) fn push(
        &mut self,
        table: u32,
        first: u32,
        rows: &[wit::Row],
        file: &str,
    ) -> Result<Result<Vec<wit::Outcome>, wit::Failure>, DatasetError> {
        let line = |row: Option<&wit::Row>| row.map_or(0, |row| row.line);
        let during = format!(
            "`push` of `{file}` lines {} to {}",
            line(rows.first()),
            line(rows.last())
        );
        self.call(&during, |guest, store| {
            guest
                .focus_mapper_mapping()
                .call_push(store, table, first, rows)
        })
    }

    /// `finish` of the contract.
    pub(crate) fn finish(
        &mut self,
    ) -> Result<Result<Vec<wit::Outcome>, wit::Failure>, DatasetError> {
        self.call("finish", |guest, store| {
            guest.focus_mapper_mapping().call_finish(store)
        })
    }

    fn call<T>(
        &mut self,
        during: &str,
        body: impl FnOnce(&Mapper, &mut Store<Limiter>) -> wasmtime::Result<T>,
    ) -> Result<T, DatasetError> {
        let Some(guest) = self.guest.take().filter(|_| !self.dead) else {
            return Err(self.fault(MapperFault::Dead));
        };
        self.refuel()?;
        let result = body(&guest, &mut self.store);
        self.guest = Some(guest);
        result.map_err(|error| {
            let during = if during.starts_with('`') {
                during.to_owned()
            } else {
                format!("`{during}`")
            };
            self.stopped(&error, during)
        })
    }

    fn refuel(&mut self) -> Result<(), DatasetError> {
        self.store
            .set_fuel(self.limits.fuel_per_call)
            .map_err(|e| DatasetError::Engine(format!("{e:#}")))?;
        // One tick more than the time asks for: the first may come at once.
        let ticks = self.limits.time_per_call.as_millis() / TICK.as_millis() + 1;
        self.store
            .set_epoch_deadline(u64::try_from(ticks).unwrap_or(u64::MAX / 2));
        Ok(())
    }

    fn stopped(&mut self, error: &wasmtime::Error, during: String) -> DatasetError {
        self.dead = true;
        let limits = &self.limits;
        let fault = match (error.downcast_ref::<Trap>(), self.store.data().denied) {
            // A refused allocation makes the guest's allocator abort, which looks like any panic: the limiter knows.
            (_, Some(Denied::Memory(wanted))) => MapperFault::Memory {
                during,
                wanted,
                limit: limits.memory_bytes,
            },
            (_, Some(Denied::Table(wanted))) => MapperFault::TableElements {
                during,
                wanted,
                limit: limits.table_elements,
            },
            (Some(Trap::OutOfFuel), _) => MapperFault::Fuel {
                during,
                limit: limits.fuel_per_call,
            },
            (Some(Trap::Interrupt), _) => MapperFault::Time {
                during,
                limit: limits.time_per_call,
            },
            (Some(Trap::UnreachableCodeReached), _) => MapperFault::Trap {
                during,
                text: "it panicked or reached unreachable code".into(),
            },
            (Some(trap), _) => MapperFault::Trap {
                during,
                text: trap.to_string(),
            },
            // Wasmtime has no public type for it.
            (None, _) if format!("{error:#}").contains("too much data") => MapperFault::Returned {
                during,
                limit: limits.returned_bytes,
            },
            (None, _) => MapperFault::Trap {
                during,
                text: text::quote(&format!("{error:#}"), limits.message_chars),
            },
        };
        self.fault(fault)
    }
}

#[derive(Clone, Copy)]
enum Denied {
    Memory(usize),
    Table(usize),
}

/// Refuses growth over the limits and remembers that it did.
struct Limiter {
    memory: usize,
    memory_limit: usize,
    elements: usize,
    element_limit: usize,
    instances: usize,
    denied: Option<Denied>,
}

impl Limiter {
    fn new(limits: &Limits) -> Self {
        Self {
            memory: 0,
            memory_limit: limits.memory_bytes,
            elements: 0,
            element_limit: limits.table_elements,
            instances: limits.instances,
            denied: None,
        }
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let total = self.memory.saturating_add(desired.saturating_sub(current));
        if total > self.memory_limit {
            self.denied = Some(Denied::Memory(total));
            return Ok(false);
        }
        self.memory = total;
        Ok(true)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let total = self
            .elements
            .saturating_add(desired.saturating_sub(current));
        if total > self.element_limit {
            self.denied = Some(Denied::Table(total));
            return Ok(false);
        }
        self.elements = total;
        Ok(true)
    }

    fn instances(&self) -> usize {
        self.instances
    }

    fn tables(&self) -> usize {
        self.instances
    }

    fn memories(&self) -> usize {
        self.instances
    }
}

fn engine(cache: Option<&Path>) -> Result<Engine, DatasetError> {
    let mut config = Config::new();
    config
        .wasm_component_model(true)
        .consume_fuel(true)
        .epoch_interruption(true);
    // The same table must give the same records on every machine.
    config.cranelift_nan_canonicalization(true);
    config.max_wasm_stack(512 << 10);
    if let Some(folder) = cache {
        match open_cache(folder) {
            Ok(cache) => {
                config.cache(Some(cache));
            }
            // Only speed is lost.
            Err(error) => {
                tracing::warn!(folder = %folder.display(), "no cache of compiled mappers: {error}");
            }
        }
    }
    Engine::new(&config).map_err(|e| DatasetError::Engine(format!("{e:#}")))
}

/// Wasmtime's own cache. What lies in it is machine code: the folder must be the user's alone.
fn open_cache(folder: &Path) -> Result<Cache, String> {
    std::fs::create_dir_all(folder).map_err(|e| e.to_string())?;
    let folder = folder.canonicalize().map_err(|e| e.to_string())?;
    let mut config = CacheConfig::new();
    config.with_directory(folder);
    Cache::new(config).map_err(|e| format!("{e:#}"))
}

/// Advances the engine's clock until the engine is gone.
fn tick(engine: &Engine) {
    let engine = engine.weak();
    let beat = move || {
        while let Some(engine) = engine.upgrade() {
            engine.increment_epoch();
            drop(engine);
            std::thread::sleep(TICK);
        }
    };
    let spawned = std::thread::Builder::new()
        .name("mapper-clock".into())
        .spawn(beat);
    if let Err(error) = spawned {
        // Fuel still bounds every call.
        tracing::warn!("no clock for mappers: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_trap_the_instance_is_dead() {
        let bytes = include_bytes!("../../../datasets-wasm/dist/test/hostile.wasm");
        let limits = Limits {
            fuel_per_call: 20_000_000,
            ..Limits::default()
        };
        let module = Module::load("hostile", bytes, &limits, None).unwrap();
        let (mut session, _) = module.start().unwrap();
        let error = session
            .open(&[("misdeed".into(), "loop-open".into())])
            .unwrap_err();
        assert!(
            matches!(
                error,
                DatasetError::Mapper {
                    fault: MapperFault::Fuel { .. },
                    ..
                }
            ),
            "{error}"
        );
        for _ in 0..2 {
            let error = session.finish().unwrap_err();
            assert_eq!(
                error.to_string(),
                "Mapper `hostile` 6.6.6 is dead: an earlier call ended it"
            );
        }
        let (mut fresh, _) = module.start().unwrap();
        fresh.open(&[]).unwrap().unwrap();
        fresh.finish().unwrap().unwrap();
    }
}
