//! A mapping run from end to end: find, read, join, push, check, resolve.

use std::collections::HashMap;
use std::path::Path;

use crate::accounts::Accounts;
use crate::descriptor::OptionSpec;
use crate::error::{DatasetError, MapperName};
use crate::layout::{ImageFolder, Plan, Root};
use crate::limits::Limits;
use crate::record::{Mapped, Record, Summary};
use crate::registry::MapperSource;
use crate::run::Run;
use crate::text;

/// What to map, and how.
#[derive(Debug, Clone)]
pub struct Job<'a> {
    /// The mapper.
    pub mapper: &'a MapperSource,
    /// The data folder, as downloaded.
    pub data: &'a Path,
    /// Options of the mapper that the user set.
    pub options: &'a [(String, String)],
    /// Bounds.
    pub limits: &'a Limits,
    /// Where compiled mappers are kept. What lies there is trusted as machine code.
    pub cache: Option<&'a Path>,
}

/// Maps a dataset with the mapper's default options and keeps all records in memory.
pub fn map_dataset(
    mapper: &MapperSource,
    data: &Path,
    limits: &Limits,
    cache: Option<&Path>,
) -> Result<Mapped, DatasetError> {
    let mut records = Vec::new();
    let summary = map_stream(
        &Job {
            mapper,
            data,
            options: &[],
            limits,
            cache,
        },
        &mut |batch| {
            records.extend(batch);
            Ok(())
        },
    )?;
    Ok(Mapped { summary, records })
}

/// Takes a batch of records; its error ends the run.
pub type Sink<'a> =
    dyn FnMut(Vec<Record>) -> Result<(), Box<dyn std::error::Error + Send + Sync>> + 'a;

/// Maps a dataset and hands the records on, batch by batch. Some checks (joins, rows without an answer) can only be made
/// at the end: what the sink was given counts for nothing if this returns an error.
pub fn map_stream(job: &Job<'_>, sink: &mut Sink<'_>) -> Result<Summary, DatasetError> {
    let module = job.mapper.load(job.limits, job.cache)?;
    let (mut session, descriptor) = module.start()?;
    let options = options(&descriptor.options, job.options, session.name())?;
    let root = Root::open(job.data)?;
    let plan = Plan::find(&root, &descriptor)?;
    if let Err(failure) = session.open(&options)? {
        let cap = |text: &str| text::quote(text, job.limits.message_chars);
        let (rule, found) = (cap(&failure.rule), cap(&failure.found));
        return Err(DatasetError::RefusedOptions {
            mapper: Box::new(session.name().clone()),
            rule,
            found,
        });
    }
    let mut budget = job.limits.images;
    let mut folders = Vec::new();
    for (spec, path) in descriptor.folders.iter().zip(&plan.folders) {
        folders.push(match path {
            Some(path) => Some(ImageFolder::read(
                &root,
                path.clone(),
                spec,
                job.limits,
                &mut budget,
            )?),
            None => None,
        });
    }
    let mut run = Run {
        limits: job.limits,
        descriptor: &descriptor,
        session,
        accounts: Accounts::default(),
        folders,
        taken: HashMap::new(),
        mapped: 0,
        used_rows: 0,
        dropped: Vec::new(),
        missing: Vec::new(),
        unusable: Vec::new(),
        root: root.real(),
        tables: Vec::new(),
        sink,
    };
    run.tables(&root, &plan)?;
    let outcomes = run.session.finish()?;
    let outcomes = outcomes.map_err(|failure| run.refused(None, &failure))?;
    run.outcomes(outcomes)?;
    run.accounts
        .settle()
        .map_err(|fault| run.session.fault(fault))?;
    let unmatched: Vec<String> = run
        .folders
        .iter()
        .flatten()
        .flat_map(ImageFolder::unused)
        .collect();
    if run.mapped == 0 {
        return Err(DatasetError::NothingMapped {
            title: descriptor.title.clone(),
            rows: run.accounts.total(),
            dropped: run.dropped.len() as u64,
            missing: run.missing.len() as u64,
            example: run.missing.first().map(|missing| missing.image.clone()),
        });
    }
    let (mapped, used_rows, dropped) = (run.mapped, run.used_rows, run.dropped);
    let (missing, unusable, tables) = (run.missing, run.unusable, run.tables);
    Ok(Summary {
        mapper_digest: module.digest().to_owned(),
        options,
        mapped,
        used_rows,
        dropped,
        missing,
        unusable,
        unmatched,
        tables,
        absent: plan.absent,
        root: root.real().into(),
        descriptor,
    })
}

/// The options in force: what the user set, checked, and the defaults of the rest.
fn options(
    specs: &[OptionSpec],
    given: &[(String, String)],
    mapper: &MapperName,
) -> Result<Vec<(String, String)>, DatasetError> {
    for (option, value) in given {
        let Some(spec) = specs.iter().find(|spec| spec.name == *option) else {
            let names: Vec<&String> = specs.iter().map(|spec| &spec.name).collect();
            let (mapper, option) = (Box::new(mapper.clone()), text::quote(option, 80));
            return Err(DatasetError::UnknownOption {
                mapper,
                option,
                known: text::list(&names, 64),
            });
        };
        if !spec.values.is_empty() && !spec.values.contains(value) {
            let (mapper, option, value) = (
                Box::new(mapper.clone()),
                option.clone(),
                text::quote(value, 80),
            );
            return Err(DatasetError::OptionValue {
                mapper,
                option,
                value,
                allowed: text::list(&spec.values, 64),
            });
        }
    }
    let value = |spec: &OptionSpec| {
        let set = given
            .iter()
            .rev()
            .find(|(name, _)| *name == spec.name)
            .map(|(_, value)| value);
        set.or(spec.values.first()).cloned().unwrap_or_default()
    };
    Ok(specs
        .iter()
        .map(|spec| (spec.name.clone(), value(spec)))
        .collect())
}
