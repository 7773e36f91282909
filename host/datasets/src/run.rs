//! The state of one mapping run. `feed` pushes rows into the mapper, `outcome` takes what comes back.

use std::collections::HashMap;
use std::path::Path;

use crate::accounts::Accounts;
use crate::contract::wit;
use crate::descriptor::Descriptor;
use crate::error::{DatasetError, Place};
use crate::layout::ImageFolder;
use crate::limits::Limits;
use crate::map::Sink;
use crate::record::{Dropped, Missing, TableReport, Unusable};
use crate::runtime::Session;
use crate::text;

pub(crate) struct Run<'a, 'b> {
    pub(crate) limits: &'a Limits,
    pub(crate) descriptor: &'a Descriptor,
    pub(crate) session: Session,
    pub(crate) accounts: Accounts,
    pub(crate) folders: Vec<Option<ImageFolder>>,
    /// Hash of each record's path, and the row that took it.
    pub(crate) taken: HashMap<[u8; 16], (u32, u32)>,
    pub(crate) mapped: u64,
    pub(crate) used_rows: u64,
    pub(crate) dropped: Vec<Dropped>,
    pub(crate) missing: Vec<Missing>,
    pub(crate) unusable: Vec<Unusable>,
    /// The data folder, symbolic links resolved.
    pub(crate) root: &'a Path,
    pub(crate) tables: Vec<TableReport>,
    pub(crate) sink: &'a mut Sink<'b>,
}

impl Run<'_, '_> {
    /// The error for a table that the mapper does not know how to read.
    pub(crate) fn refused(&self, file: Option<&str>, failure: &wit::Failure) -> DatasetError {
        let place = failure
            .row
            .and_then(|row| self.accounts.place(row.table, row.row));
        let place = match (place, file) {
            (Some((file, line)), _) => Place {
                file: file.into(),
                line: Some(line.into()),
            },
            (None, Some(file)) => Place {
                file: file.into(),
                line: None,
            },
            (None, None) => Place {
                file: "the tables".into(),
                line: None,
            },
        };
        let cap = |text: &str| text::quote(text, self.limits.message_chars);
        DatasetError::Refused {
            mapper: Box::new(self.session.name().clone()),
            place: Box::new(place),
            column: failure.column.as_deref().map(cap),
            rule: cap(&failure.rule),
            found: format!("`{}`", cap(&failure.found)),
        }
    }
}
