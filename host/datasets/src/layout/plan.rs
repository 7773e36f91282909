//! Where everything that a descriptor asks for lies below a data folder, or an error that says what was looked for and
//! what is there.

use crate::descriptor::{Descriptor, TableSource};
use crate::error::DatasetError;
use crate::layout::{Kind, Root};
use crate::text;

/// Paths below the data folder, in the order of the descriptor.
pub(crate) struct Plan {
    pub(crate) tables: Vec<Option<String>>,
    pub(crate) folders: Vec<Option<String>>,
    /// Optional tables and folders that are not there.
    pub(crate) absent: Vec<String>,
}

impl Plan {
    pub(crate) fn find(root: &Root, descriptor: &Descriptor) -> Result<Self, DatasetError> {
        let mut layout = Self {
            tables: Vec::new(),
            folders: Vec::new(),
            absent: Vec::new(),
        };
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
                TableSource::Listing(folder) => {
                    let place = descriptor.folders.iter().position(|f| f.id == *folder);
                    place.and_then(|place| layout.folders[place].clone())
                }
                source => {
                    let paths = source.paths().unwrap_or_default();
                    let found = root.find(paths, Kind::File)?;
                    if found.is_none() && table.required {
                        lacking.push((paths, Kind::File));
                    }
                    found
                }
            };
            if found.is_none() && !table.required {
                layout.absent.push(format!("table {}", table.id));
            }
            layout.tables.push(found);
        }
        // A descriptor with several layouts requires none of their tables; a folder with none of them is no copy of it.
        let primary = || {
            let tables = descriptor.tables.iter().zip(&layout.tables);
            tables.filter(|(table, _)| table.join.is_none())
        };
        if lacking.is_empty() && primary().all(|(_, found)| found.is_none()) {
            let paths = primary().filter_map(|(table, _)| table.source.paths());
            lacking.extend(paths.map(|paths| (paths, Kind::File)));
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
            wanted: wanted.join(", ").into(),
            found: text::list(&root.entries(), 20).into(),
            better: root.better(&lacking),
        })
    }
}
