//! Rows into the mapper: tables in the descriptor's order, joined, in batches.

use crate::contract::wit;
use crate::descriptor::{Table, TableSource};
use crate::error::DatasetError;
use crate::layout::{ImageFolder, Plan, Root};
use crate::record::TableReport;
use crate::run::Run;
use crate::table::{Partners, Reader};

/// Rows on their way to the guest.
#[derive(Default)]
struct Batch {
    rows: Vec<wit::Row>,
    bytes: usize,
}

impl Run<'_, '_> {
    /// Pushes the rows of every primary table.
    pub(crate) fn tables(&mut self, root: &Root, plan: &Plan) -> Result<(), DatasetError> {
        let descriptor = self.descriptor;
        for file in &plan.tables {
            self.accounts.table(file.as_deref().unwrap_or(""));
        }
        for (index, (table, file)) in descriptor.tables.iter().zip(&plan.tables).enumerate() {
            let Some(file) = file.as_deref().filter(|_| table.join.is_none()) else {
                continue;
            };
            match &table.source {
                TableSource::Listing(folder) => self.listing(index, table, folder, file)?,
                _ => self.file(root, plan, index, table, file)?,
            }
        }
        Ok(())
    }

    fn file(
        &mut self,
        root: &Root,
        plan: &Plan,
        index: usize,
        table: &Table,
        file: &str,
    ) -> Result<(), DatasetError> {
        let mut budget = self.limits.join_bytes;
        let mut partners = Vec::new();
        for (other, path) in self.descriptor.tables.iter().zip(&plan.tables) {
            let Some(join) = other.join.as_ref().filter(|join| join.onto == table.id) else {
                continue;
            };
            let Some(path) = path else {
                partners.push((Partners::absent(other, join), None));
                continue;
            };
            let reader = Reader::open(&root.real().join(path), path, other, self.limits)?;
            let limit = self.limits.join_bytes;
            let (read, report) =
                Partners::read(other, join, table, reader, path, &mut budget, limit)?;
            partners.push((read, Some(report)));
        }
        let mut reader = Reader::open(&root.real().join(file), file, table, self.limits)?;
        let mut batch = Batch::default();
        while let Some(row) = reader.next_row()? {
            let mut cells = row.cells;
            for (partner, _) in &mut partners {
                partner.extend(&mut cells, row.line);
            }
            self.queue(
                &mut batch,
                index,
                u32::try_from(row.line).unwrap_or(u32::MAX),
                cells,
            )?;
        }
        self.flush(&mut batch, index)?;
        self.tables.push(reader.report(&table.id, file, None));
        for (partner, report) in partners {
            let settled = partner.settle(file)?;
            self.tables.extend(report.map(|report| TableReport {
                join: settled,
                ..report
            }));
        }
        Ok(())
    }

    fn listing(
        &mut self,
        index: usize,
        table: &Table,
        folder: &str,
        file: &str,
    ) -> Result<(), DatasetError> {
        let place = self.descriptor.folders.iter().position(|f| f.id == *folder);
        let names = place
            .and_then(|place| self.folders[place].as_ref())
            .map(ImageFolder::names);
        let names: Vec<String> = names.unwrap_or_default().to_vec();
        let mut hasher = blake3::Hasher::new();
        let mut batch = Batch::default();
        for (number, path) in names.iter().enumerate() {
            hasher.update(path.as_bytes());
            hasher.update(b"\n");
            let cells = table
                .columns
                .iter()
                .map(|column| listing_cell(path, &column.name))
                .collect();
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
        let file = self
            .accounts
            .place(table as u32, first)
            .map_or(String::new(), |(file, _)| file.to_owned());
        let pushed = self.session.push(table as u32, first, &batch.rows, &file)?;
        let outcomes = pushed.map_err(|failure| self.refused(Some(&file), &failure))?;
        batch.rows.clear();
        batch.bytes = 0;
        self.outcomes(outcomes)
    }
}

fn listing_cell(path: &str, column: &str) -> Option<String> {
    let (folders, name) = path
        .rsplit_once('/')
        .map_or(("", path), |(folders, name)| (folders, name));
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
