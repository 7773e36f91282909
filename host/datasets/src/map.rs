//! A mapping run from end to end: find, read, join, push, check, resolve.

use std::collections::HashMap;
use std::path::Path;

use crate::accounts::Accounts;
use crate::check;
use crate::contract::wit;
use crate::descriptor::{Descriptor, OptionSpec, Table, TableSource};
use crate::error::{DatasetError, MapperFault, MapperName, Place};
use crate::layout::{ImageFolder, Kind, Lookup, Root};
use crate::limits::Limits;
use crate::record::{
    Age, Box, Dropped, Finding, Landmark, Mapped, Mask, Missing, Record, SampleId, Summary, TableReport, TaskLabel,
};
use crate::registry::MapperSource;
use crate::runtime::Session;
use crate::table::{CsvTable, Partners};
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
    let summary = map_stream(&Job { mapper, data, options: &[], limits, cache }, &mut |batch| {
        records.extend(batch);
        Ok(())
    })?;
    Ok(Mapped { summary, records })
}

/// Takes a batch of records; its error ends the run.
pub type Sink<'a> = dyn FnMut(Vec<Record>) -> Result<(), std::boxed::Box<dyn std::error::Error + Send + Sync>> + 'a;

/// Maps a dataset and hands the records on, batch by batch. Some checks (joins, rows without an answer) can only be made
/// at the end: what the sink was given counts for nothing if this returns an error.
pub fn map_stream(job: &Job<'_>, sink: &mut Sink<'_>) -> Result<Summary, DatasetError> {
    let module = job.mapper.load(job.limits, job.cache)?;
    let (mut session, descriptor) = module.start()?;
    let options = options(&descriptor.options, job.options, session.name())?;
    let root = Root::open(job.data)?;
    let layout = Layout::find(&root, &descriptor)?;
    if let Err(failure) = session.open(&options)? {
        let cap = |text: &str| text::quote(text, job.limits.message_chars);
        let (rule, found) = (cap(&failure.rule), cap(&failure.found));
        return Err(DatasetError::RefusedOptions { mapper: session.name().clone(), rule, found });
    }
    let mut budget = job.limits.images;
    let mut folders = Vec::new();
    for (spec, path) in descriptor.folders.iter().zip(&layout.folders) {
        folders.push(match path {
            Some(path) => Some(ImageFolder::read(&root, path.clone(), spec, job.limits, &mut budget)?),
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
        tables: Vec::new(),
        sink,
    };
    run.tables(&root, &layout)?;
    let outcomes = run.session.finish()?;
    let outcomes = outcomes.map_err(|failure| run.refused(None, &failure))?;
    run.outcomes(outcomes)?;
    run.accounts.settle().map_err(|fault| run.session.fault(fault))?;
    let unmatched: Vec<String> = run.folders.iter().flatten().flat_map(ImageFolder::unused).collect();
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
    let (missing, tables) = (run.missing, run.tables);
    Ok(Summary {
        mapper_digest: module.digest().to_owned(),
        options,
        mapped,
        used_rows,
        dropped,
        missing,
        unmatched,
        tables,
        absent: layout.absent,
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
            let (mapper, option) = (mapper.clone(), text::quote(option, 80));
            return Err(DatasetError::UnknownOption { mapper, option, known: text::list(&names, 64) });
        };
        if !spec.values.is_empty() && !spec.values.contains(value) {
            let (mapper, option, value) = (mapper.clone(), option.clone(), text::quote(value, 80));
            return Err(DatasetError::OptionValue { mapper, option, value, allowed: text::list(&spec.values, 64) });
        }
    }
    let value = |spec: &OptionSpec| {
        let set = given.iter().rev().find(|(name, _)| *name == spec.name).map(|(_, value)| value);
        set.or(spec.values.first()).cloned().unwrap_or_default()
    };
    Ok(specs.iter().map(|spec| (spec.name.clone(), value(spec))).collect())
}

/// Where the tables and folders of a descriptor are.
struct Layout {
    tables: Vec<Option<String>>,
    folders: Vec<Option<String>>,
    absent: Vec<String>,
}

impl Layout {
    fn find(root: &Root, descriptor: &Descriptor) -> Result<Self, DatasetError> {
        let mut layout = Self { tables: Vec::new(), folders: Vec::new(), absent: Vec::new() };
        let mut lacking: Vec<(&[String], Kind)> = Vec::new();
        for folder in &descriptor.folders {
            let found = root.find(&folder.paths, Kind::Folder)?;
            if found.is_none() {
                if folder.required {
                    lacking.push((&folder.paths, Kind::Folder));
                } else {
                    layout.absent.push(format!("folder {}", folder.id));
                }
            }
            layout.folders.push(found);
        }
        for table in &descriptor.tables {
            let found = match &table.source {
                TableSource::Csv(paths) => {
                    let found = root.find(paths, Kind::File)?;
                    if found.is_none() && table.required {
                        lacking.push((paths, Kind::File));
                    }
                    found
                }
                TableSource::Listing(folder) => {
                    let place = descriptor.folders.iter().position(|f| f.id == *folder);
                    place.and_then(|place| layout.folders[place].clone())
                }
            };
            if found.is_none() && !table.required {
                layout.absent.push(format!("table {}", table.id));
            }
            layout.tables.push(found);
        }
        if lacking.is_empty() {
            return Ok(layout);
        }
        let wanted: Vec<String> = lacking
            .iter()
            .map(|(paths, _)| match paths {
                [one] => format!("`{one}`"),
                [first, rest @ ..] => format!("`{first}` ({} other spellings)", rest.len()),
                [] => String::new(),
            })
            .collect();
        Err(DatasetError::Layout {
            path: root.given().into(),
            title: descriptor.title.clone(),
            wanted: wanted.join(", "),
            found: text::list(&root.entries(), 20),
            better: root.better(&lacking),
        })
    }
}

struct Run<'a, 'b> {
    limits: &'a Limits,
    descriptor: &'a Descriptor,
    session: Session,
    accounts: Accounts,
    folders: Vec<Option<ImageFolder>>,
    /// Hash of each record's path, and the row that took it.
    taken: HashMap<[u8; 16], (u32, u32)>,
    mapped: u64,
    used_rows: u64,
    dropped: Vec<Dropped>,
    missing: Vec<Missing>,
    tables: Vec<TableReport>,
    sink: &'a mut Sink<'b>,
}

/// Rows on their way to the guest.
#[derive(Default)]
struct Batch {
    rows: Vec<wit::Row>,
    bytes: usize,
}

impl Run<'_, '_> {
    fn tables(&mut self, root: &Root, layout: &Layout) -> Result<(), DatasetError> {
        let descriptor = self.descriptor;
        for file in &layout.tables {
            self.accounts.table(file.as_deref().unwrap_or(""));
        }
        for (index, (table, file)) in descriptor.tables.iter().zip(&layout.tables).enumerate() {
            let Some(file) = file.as_deref().filter(|_| table.join.is_none()) else { continue };
            match &table.source {
                TableSource::Csv(_) => self.csv(root, layout, index, table, file)?,
                TableSource::Listing(folder) => self.listing(index, table, folder, file)?,
            }
        }
        Ok(())
    }

    fn csv(
        &mut self,
        root: &Root,
        layout: &Layout,
        index: usize,
        table: &Table,
        file: &str,
    ) -> Result<(), DatasetError> {
        let mut budget = self.limits.join_bytes;
        let mut partners = Vec::new();
        for (other, path) in self.descriptor.tables.iter().zip(&layout.tables) {
            let Some(join) = other.join.as_ref().filter(|join| join.onto == table.id) else { continue };
            let Some(path) = path else {
                partners.push((Partners::absent(other, join), None));
                continue;
            };
            let csv = CsvTable::open(&root.real().join(path), path, &other.columns, other.closed, self.limits)?;
            let limit = self.limits.join_bytes;
            let (read, report) = Partners::read(other, join, table, csv, path, &mut budget, limit)?;
            partners.push((read, Some(report)));
        }
        let mut csv = CsvTable::open(&root.real().join(file), file, &table.columns, table.closed, self.limits)?;
        let mut batch = Batch::default();
        while let Some(row) = csv.next_row()? {
            let mut cells = row.cells;
            for (partner, _) in &mut partners {
                partner.extend(&mut cells, row.line);
            }
            self.queue(&mut batch, index, u32::try_from(row.line).unwrap_or(u32::MAX), cells)?;
        }
        self.flush(&mut batch, index)?;
        self.tables.push(TableReport {
            id: table.id.clone(),
            path: file.into(),
            rows: csv.rows(),
            blank_rows: csv.blank_rows(),
            digest: csv.digest(),
            encoding: Some(csv.encoding()),
            separator: Some(csv.separator()),
            ignored_columns: csv.ignored_columns().to_vec(),
            join: None,
        });
        for (partner, report) in partners {
            let settled = partner.settle(file)?;
            self.tables.extend(report.map(|report| TableReport { join: settled, ..report }));
        }
        Ok(())
    }

    fn listing(&mut self, index: usize, table: &Table, folder: &str, file: &str) -> Result<(), DatasetError> {
        let place = self.descriptor.folders.iter().position(|f| f.id == *folder);
        let names = place.and_then(|place| self.folders[place].as_ref()).map(ImageFolder::names);
        let names: Vec<String> = names.unwrap_or_default().to_vec();
        let mut hasher = blake3::Hasher::new();
        let mut batch = Batch::default();
        for (number, path) in names.iter().enumerate() {
            hasher.update(path.as_bytes());
            hasher.update(b"\n");
            let cells = table.columns.iter().map(|column| listing_cell(path, &column.name)).collect();
            self.queue(&mut batch, index, number as u32 + 1, cells)?;
        }
        self.flush(&mut batch, index)?;
        self.tables.push(TableReport {
            id: table.id.clone(),
            path: file.into(),
            rows: names.len() as u64,
            blank_rows: 0,
            digest: hasher.finalize().to_hex().to_string(),
            encoding: None,
            separator: None,
            ignored_columns: Vec::new(),
            join: None,
        });
        Ok(())
    }

    fn queue(
        &mut self,
        batch: &mut Batch,
        table: usize,
        line: u32,
        cells: Vec<Option<String>>,
    ) -> Result<(), DatasetError> {
        batch.bytes += cells.iter().flatten().map(String::len).sum::<usize>();
        batch.rows.push(wit::Row { line, cells });
        if batch.rows.len() >= self.limits.batch_rows || batch.bytes >= self.limits.batch_bytes {
            self.flush(batch, table)?;
        }
        Ok(())
    }

    fn flush(&mut self, batch: &mut Batch, table: usize) -> Result<(), DatasetError> {
        if batch.rows.is_empty() {
            return Ok(());
        }
        let first = self.accounts.rows(table);
        for row in &batch.rows {
            self.accounts.pushed(table, row.line);
        }
        let file = self.accounts.place(table as u32, first).map_or(String::new(), |(file, _)| file.to_owned());
        let pushed = self.session.push(table as u32, first, &batch.rows, &file)?;
        let outcomes = pushed.map_err(|failure| self.refused(Some(&file), &failure))?;
        batch.rows.clear();
        batch.bytes = 0;
        self.outcomes(outcomes)
    }

    /// The error for a table that the mapper does not know how to read.
    fn refused(&self, file: Option<&str>, failure: &wit::Failure) -> DatasetError {
        let place = failure.row.and_then(|row| self.accounts.place(row.table, row.row));
        let place = match (place, file) {
            (Some((file, line)), _) => Place { file: file.into(), line: Some(line.into()) },
            (None, Some(file)) => Place { file: file.into(), line: None },
            (None, None) => Place { file: "the tables".into(), line: None },
        };
        let cap = |text: &str| text::quote(text, self.limits.message_chars);
        DatasetError::Refused {
            mapper: self.session.name().clone(),
            place,
            column: failure.column.as_deref().map(cap),
            rule: cap(&failure.rule),
            found: format!("`{}`", cap(&failure.found)),
        }
    }

    fn outcomes(&mut self, outcomes: Vec<wit::Outcome>) -> Result<(), DatasetError> {
        let mut records = Vec::with_capacity(outcomes.len());
        for outcome in outcomes {
            let reference = (outcome.row.table, outcome.row.row);
            let (file, line) = match self.accounts.answer(reference.0, reference.1) {
                Ok((file, line)) => (file.to_owned(), line),
                Err(fault) => return Err(self.session.fault(fault)),
            };
            let place = || Place { file: file.clone(), line: Some(line.into()) };
            match outcome.fate {
                wit::Fate::Used => self.used_rows += 1,
                wit::Fate::Dropped(drop) => {
                    let long = drop.reason.len().max(drop.detail.as_ref().map_or(0, String::len));
                    if long > self.limits.text_bytes || drop.reason.is_empty() {
                        let limit = self.limits.text_bytes;
                        let what = format!("expected a reason of 1 to {limit} bytes, found one of {long}");
                        return Err(self.session.fault(MapperFault::Outcome { place: place(), what }));
                    }
                    let clean = |text: String| text::quote(&text, self.limits.text_bytes);
                    let (reason, detail) = (clean(drop.reason), drop.detail.map(clean));
                    self.dropped.push(Dropped { table: file, line, reason, detail });
                }
                wit::Fate::Mapped(samples) => {
                    let (found, limit) = (samples.len(), self.limits.samples_per_row);
                    if !(1..=limit).contains(&found) {
                        let what = format!("expected 1 to {limit} samples, found {found}");
                        return Err(self.session.fault(MapperFault::Outcome { place: place(), what }));
                    }
                    for sample in samples {
                        check::sample(&sample, self.descriptor, self.limits)
                            .map_err(|what| self.session.fault(MapperFault::Sample { place: place(), what }))?;
                        records.extend(self.record(sample, reference, &file, line)?);
                    }
                }
            }
        }
        self.mapped += records.len() as u64;
        if records.is_empty() { Ok(()) } else { (self.sink)(records).map_err(DatasetError::Sink) }
    }

    /// The record of a checked sample; `None`, and noted, where its image is missing.
    fn record(
        &mut self,
        sample: wit::Sample,
        row: (u32, u32),
        file: &str,
        line: u32,
    ) -> Result<Option<Record>, DatasetError> {
        let place = || Place { file: file.into(), line: Some(line.into()) };
        let Some(path) = self.resolve(&sample.image, place)? else {
            let folder = self.folders[sample.image.folder as usize].as_ref().map(|folder| folder.path.as_str());
            let spec = &self.descriptor.folders[sample.image.folder as usize];
            let image = format!("{}/{}", folder.unwrap_or(&spec.id), sample.image.name);
            self.missing.push(Missing { table: file.into(), line, image });
            return Ok(None);
        };
        let hash = blake3::hash(path.as_bytes());
        let key: [u8; 16] = hash.as_bytes()[..16].try_into().expect("16 of 32 bytes");
        if let Some((table, number)) = self.taken.insert(key, row) {
            let first = self.accounts.place(table, number);
            let first = first.map_or_else(place, |(file, line)| Place { file: file.into(), line: Some(line.into()) });
            return Err(DatasetError::ImageTwice { image: path, first, second: place() });
        }
        let mut masks = Vec::with_capacity(sample.masks.len());
        for mask in sample.masks {
            match self.resolve(&mask.image, place)? {
                Some(path) => masks.push(Mask { what: mask.what, path }),
                None => {
                    let image = format!("{} (mask)", mask.image.name);
                    self.missing.push(Missing { table: file.into(), line, image });
                }
            }
        }
        let task = |index: u32| self.descriptor.tasks[index as usize].id.clone();
        let label = |l: wit::Label| TaskLabel {
            task: task(l.task),
            as_published: l.as_published.into(),
            corrected: l.corrected.into(),
        };
        Ok(Some(Record {
            sample: SampleId {
                dataset: self.descriptor.id.clone(),
                split: sample.split.map(Into::into),
                path,
            },
            table: file.into(),
            line,
            patient: sample.patient,
            eye: sample.eye.map(Into::into),
            view: sample.view.map(Into::into),
            labels: sample.labels.into_iter().map(label).collect(),
            grade: sample.grade,
            edema: sample.edema,
            age: sample.age.map(|age| Age { years: age.years, at_least: age.at_least }),
            sex: sample.sex.map(Into::into),
            quality: sample.quality.map(Into::into),
            vcdr: sample.vcdr,
            camera: sample.camera,
            findings: sample.findings.into_iter().map(|f| Finding { name: f.name, state: f.state.into() }).collect(),
            landmarks: sample
                .landmarks
                .into_iter()
                .map(|l| Landmark { kind: l.kind.into(), x: l.x, y: l.y, frame: l.frame.into() })
                .collect(),
            boxes: sample
                .boxes
                .into_iter()
                .map(|b| Box { what: b.what, x1: b.x1, y1: b.y1, x2: b.x2, y2: b.y2, frame: b.frame.into() })
                .collect(),
            masks,
        }))
    }

    /// The file of an image, below the data folder; `None` where it is not there.
    fn resolve(&mut self, image: &wit::ImageRef, place: impl Fn() -> Place) -> Result<Option<String>, DatasetError> {
        let Some(folder) = &mut self.folders[image.folder as usize] else { return Ok(None) };
        match folder.take(&image.name) {
            Lookup::Found(path) => Ok(Some(path)),
            Lookup::Missing => Ok(None),
            Lookup::Ambiguous(paths) => Err(DatasetError::AmbiguousImage {
                place: place(),
                name: image.name.clone(),
                matches: text::list(&paths, 4),
            }),
        }
    }
}

fn listing_cell(path: &str, column: &str) -> Option<String> {
    let (folders, name) = path.rsplit_once('/').map_or(("", path), |(folders, name)| (folders, name));
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    let cell = match column {
        "path" => path,
        "folder" => folders.rsplit('/').next().unwrap_or(""),
        "name" => name,
        "stem" => stem,
        "extension" => extension,
        _ => "",
    };
    Some(cell).filter(|cell| !cell.is_empty()).map(Into::into)
}
