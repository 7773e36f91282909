//! The account of rows: every row that was pushed is answered exactly once. Four bytes and a bit a row.

use crate::error::{MapperFault, Place};

/// Rows of one table: their lines, and which are answered.
pub(crate) struct TableAccount {
    /// Path of the file, for messages.
    file: String,
    lines: Vec<u32>,
    answered: Vec<u64>,
}

/// Rows of every table of a descriptor, in its order; nothing for a table whose rows are not pushed.
#[derive(Default)]
pub(crate) struct Accounts {
    tables: Vec<TableAccount>,
}

impl Accounts {
    /// Adds the next table.
    pub(crate) fn table(&mut self, file: &str) {
        self.tables.push(TableAccount {
            file: file.into(),
            lines: Vec::new(),
            answered: Vec::new(),
        });
    }

    /// Notes a row about to be pushed.
    pub(crate) fn pushed(&mut self, table: usize, line: u32) {
        let account = &mut self.tables[table];
        if account.lines.len().is_multiple_of(64) {
            account.answered.push(0);
        }
        account.lines.push(line);
    }

    /// Rows of a table that were pushed.
    pub(crate) fn rows(&self, table: usize) -> u32 {
        self.tables[table].lines.len() as u32
    }

    /// Rows pushed in all.
    pub(crate) fn total(&self) -> u64 {
        self.tables
            .iter()
            .map(|account| account.lines.len() as u64)
            .sum()
    }

    /// File and line of a row, if there is such a row.
    pub(crate) fn place(&self, table: u32, row: u32) -> Option<(&str, u32)> {
        let account = self.tables.get(table as usize)?;
        account
            .lines
            .get(row as usize)
            .map(|line| (account.file.as_str(), *line))
    }

    /// Notes that a row is answered; gives its file and line.
    pub(crate) fn answer(&mut self, table: u32, row: u32) -> Result<(&str, u32), MapperFault> {
        if self.place(table, row).is_none() {
            return Err(MapperFault::UnknownRow { table, row });
        }
        let account = &mut self.tables[table as usize];
        let (word, bit) = (row as usize / 64, 1u64 << (row % 64));
        let line = account.lines[row as usize];
        if account.answered[word] & bit != 0 {
            let place = Place {
                file: account.file.clone(),
                line: Some(line.into()),
            };
            return Err(MapperFault::RowTwice { place });
        }
        account.answered[word] |= bit;
        Ok((&account.file, line))
    }

    /// After `finish`: is any row without an answer?
    pub(crate) fn settle(&self) -> Result<(), MapperFault> {
        for account in &self.tables {
            let rows = account.lines.len() as u64;
            let answered: u64 = account
                .answered
                .iter()
                .map(|word| u64::from(word.count_ones()))
                .sum();
            if answered < rows {
                let open = |row: &usize| account.answered[row / 64] & (1 << (row % 64)) == 0;
                let first = (0..account.lines.len())
                    .find(open)
                    .map(|row| u64::from(account.lines[row]));
                let place = Place {
                    file: account.file.clone(),
                    line: first,
                };
                return Err(MapperFault::RowsLost {
                    lost: rows - answered,
                    rows,
                    place,
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_once() {
        let mut accounts = Accounts::default();
        accounts.table("a.csv");
        accounts.table("b.csv");
        for line in 2..202 {
            accounts.pushed(1, line);
        }
        for row in (0..200).rev().filter(|row| *row != 130) {
            assert_eq!(accounts.answer(1, row).unwrap(), ("b.csv", row + 2));
        }
        assert_eq!(
            accounts.answer(1, 64).unwrap_err().to_string(),
            "answered `b.csv` line 66 twice"
        );
        assert_eq!(
            accounts.settle().unwrap_err().to_string(),
            "gave no answer for 1 of 200 rows; the first is `b.csv` line 132"
        );
        assert!(matches!(
            accounts.answer(1, 200),
            Err(MapperFault::UnknownRow { table: 1, row: 200 })
        ));
        assert!(matches!(
            accounts.answer(0, 0),
            Err(MapperFault::UnknownRow { .. })
        ));
        assert!(matches!(
            accounts.answer(2, 0),
            Err(MapperFault::UnknownRow { .. })
        ));
        accounts.answer(1, 130).unwrap();
        accounts.settle().unwrap();
    }
}
