//! Joining a secondary table onto the rows of a primary one, by the text of key columns, with every row accounted for.

use std::collections::HashMap;

use crate::descriptor::{Column, Join, Table};
use crate::error::{DatasetError, Place, TableFault};
use crate::record::{JoinReport, TableReport};
use crate::table::Reader;

/// The rows of a secondary table by key. An optional table that is absent has none.
pub(crate) struct Partners {
    id: String,
    join: Join,
    /// Number of columns it adds.
    width: usize,
    /// Places of the key columns in the primary table.
    keys: Vec<usize>,
    rows: HashMap<String, Partner>,
    present: bool,
    primary: Tally,
    without: Tally,
    doubled: Tally,
}

/// One secondary row.
struct Partner {
    cells: Vec<Option<String>>,
    line: u64,
    used: bool,
}

/// How many, and where the first was.
#[derive(Default, Clone, Copy)]
struct Tally {
    count: u64,
    first: u64,
}

impl Tally {
    fn add(&mut self, line: u64) {
        if self.count == 0 {
            self.first = line;
        }
        self.count += 1;
    }
}

/// Places of a join's key columns among a table's. The descriptor was checked: they are there.
fn places<'a>(columns: &'a [Column], keys: impl Iterator<Item = &'a String> + 'a) -> Vec<usize> {
    let place = |key: &String| {
        columns
            .iter()
            .position(|c| c.name == *key)
            .expect("a join's key is a column")
    };
    keys.map(place).collect()
}

/// Cells never hold a control character of this kind that matters, and lengths keep `a|b, c` and `a, b|c` apart.
fn key<'a>(cells: impl Iterator<Item = Option<&'a str>>) -> Option<String> {
    let mut key = String::new();
    for cell in cells {
        let cell = cell?;
        key.push_str(&cell.len().to_string());
        key.push(':');
        key.push_str(cell);
    }
    Some(key)
}

impl Partners {
    /// A joined table that is not there: every primary row gets blanks.
    pub(crate) fn absent(table: &Table, join: &Join) -> Self {
        Self {
            id: table.id.clone(),
            join: join.clone(),
            width: table.columns.len(),
            keys: Vec::new(),
            rows: HashMap::new(),
            present: false,
            primary: Tally::default(),
            without: Tally::default(),
            doubled: Tally::default(),
        }
    }

    /// Reads the whole table. `budget` is what is left of the bytes that joined tables may take.
    pub(crate) fn read(
        table: &Table,
        join: &Join,
        primary: &Table,
        mut reader: Reader,
        file: &str,
        budget: &mut usize,
        limit: usize,
    ) -> Result<(Self, TableReport), DatasetError> {
        let own = places(&table.columns, join.keys.iter().map(|(here, _)| here));
        let mut partners = Self::absent(table, join);
        partners.keys = places(&primary.columns, join.keys.iter().map(|(_, there)| there));
        partners.present = true;
        let mut twice = Tally::default();
        while let Some(row) = reader.next_row()? {
            let Some(key) = key(own.iter().map(|place| row.cells[*place].as_deref())) else {
                let blank = own.iter().find(|place| row.cells[**place].is_none());
                let name = blank.map_or(String::new(), |place| {
                    format!("`{}`", table.columns[*place].name)
                });
                let place = Place {
                    file: file.into(),
                    line: Some(row.line),
                };
                return Err(DatasetError::Table {
                    place,
                    fault: TableFault::BlankKey(name),
                });
            };
            let bytes = key.len() + row.cells.iter().flatten().map(String::len).sum::<usize>() + 64;
            *budget = budget
                .checked_sub(bytes)
                .ok_or_else(|| DatasetError::JoinTooLarge {
                    table: join.onto.clone(),
                    limit,
                })?;
            let line = row.line;
            let partner = Partner {
                cells: row.cells,
                line,
                used: false,
            };
            if partners.rows.insert(key, partner).is_some() {
                twice.add(line);
            }
        }
        if twice.count > 0 {
            return Err(DatasetError::JoinKeyTwice {
                table: file.into(),
                onto: join.onto.clone(),
                rows: twice.count,
                line: twice.first,
            });
        }
        Ok((partners, reader.report(&table.id, file, None)))
    }

    /// Adds this table's cells to a primary row.
    pub(crate) fn extend(&mut self, cells: &mut Vec<Option<String>>, line: u64) {
        let mut partner = None;
        if self.present {
            self.primary.add(line);
            let key = key(self.keys.iter().map(|place| cells[*place].as_deref()));
            partner = key.and_then(|key| self.rows.get_mut(&key));
            match &mut partner {
                None => self.without.add(line),
                Some(partner) => {
                    if partner.used && !self.join.many_to_one {
                        self.doubled.add(line);
                    }
                    partner.used = true;
                }
            }
        }
        match partner {
            Some(partner) => cells.extend(partner.cells.iter().cloned()),
            None => cells.extend(std::iter::repeat_n(None, self.width)),
        }
    }

    /// After the last primary row: is every row where the join says it must be?
    pub(crate) fn settle(&self, primary_file: &str) -> Result<Option<JoinReport>, DatasetError> {
        if !self.present {
            return Ok(None);
        }
        let (table, onto) = (self.id.clone(), primary_file.to_owned());
        if self.doubled.count > 0 {
            return Err(DatasetError::JoinDoubles {
                table,
                onto,
                rows: self.doubled.count,
                line: self.doubled.first,
            });
        }
        if self.join.every_primary && self.without.count > 0 {
            let (lost, rows, line) = (self.without.count, self.primary.count, self.without.first);
            return Err(DatasetError::JoinLosesPrimary {
                table,
                onto,
                lost,
                rows,
                line,
            });
        }
        let unused = self.rows.values().filter(|partner| !partner.used);
        let (unused, line) = unused.fold((0u64, u64::MAX), |(n, line), partner| {
            (n + 1, line.min(partner.line))
        });
        if self.join.every_secondary && unused > 0 {
            let rows = self.rows.len() as u64;
            return Err(DatasetError::JoinLosesSecondary {
                table,
                onto,
                lost: unused,
                rows,
                line,
            });
        }
        Ok(Some(JoinReport {
            onto: self.join.onto.clone(),
            matched: self.primary.count - self.without.count,
            without_partner: self.without.count,
            unused,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptor::TableSource;
    use crate::limits::Limits;

    fn table(id: &str, columns: &[&str], join: Option<Join>) -> Table {
        let column = |name: &&str| Column {
            name: (*name).into(),
            aliases: Vec::new(),
            required: true,
        };
        Table {
            id: id.into(),
            source: TableSource::Csv(vec!["x.csv".into()]),
            required: true,
            closed: false,
            columns: columns.iter().map(column).collect(),
            join,
        }
    }

    fn join(many_to_one: bool, every_primary: bool, every_secondary: bool) -> Join {
        let keys = vec![("k1".into(), "a".into()), ("k2".into(), "b".into())];
        Join {
            onto: "main".into(),
            keys,
            many_to_one,
            every_primary,
            every_secondary,
        }
    }

    fn partners(text: &str, join: &Join, mut budget: usize) -> Result<Partners, DatasetError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.csv");
        std::fs::write(&path, text).unwrap();
        let secondary = table("side", &["v", "k1", "k2"], Some(join.clone()));
        let primary = table("main", &["b", "a"], None);
        let reader = Reader::open(&path, "x.csv", &secondary, &Limits::default())?;
        let limit = budget;
        Partners::read(
            &secondary,
            join,
            &primary,
            reader,
            "x.csv",
            &mut budget,
            limit,
        )
        .map(|(partners, _)| partners)
    }

    /// Joins primary rows of columns `b`, `a` at lines 2, 3, ...
    fn extend(partners: &mut Partners, rows: &[(&str, &str)]) -> Vec<Option<String>> {
        let mut values = Vec::new();
        for (line, (b, a)) in (2..).zip(rows) {
            let cell = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
            let mut cells = vec![cell(b), cell(a)];
            partners.extend(&mut cells, line);
            assert_eq!(cells.len(), 5);
            values.push(cells[2].clone());
        }
        values
    }

    const SIDE: &str = "k1,k2,v\n1,2,x\n12,3,y\n1,23,z\n";

    #[test]
    fn keys_of_several_columns_do_not_run_together() {
        let mut side = partners(SIDE, &join(false, true, true), 9999).unwrap();
        let values = extend(&mut side, &[("23", "1"), ("3", "12"), ("2", "1")]);
        assert_eq!(
            values,
            [Some("z".into()), Some("y".into()), Some("x".into())]
        );
        let report = side.settle("main.csv").unwrap().unwrap();
        assert_eq!(
            (report.matched, report.without_partner, report.unused),
            (3, 0, 0)
        );
    }

    #[test]
    fn what_is_lost_or_doubled_is_counted() {
        let settle = |join: Join, rows: &[(&str, &str)]| {
            let mut side = partners(SIDE, &join, 9999).unwrap();
            extend(&mut side, rows);
            side.settle("main.csv").map(|report| report.unwrap())
        };
        let rows = [("2", "1"), ("2", "1"), ("2", ""), ("9", "9")];
        assert_eq!(
            settle(join(false, false, false), &rows)
                .unwrap_err()
                .to_string(),
            "Joining `side` would give 1 rows of `main.csv` a partner that another row has; the first is at line 3"
        );
        assert_eq!(
            settle(join(true, true, false), &rows)
                .unwrap_err()
                .to_string(),
            "Joining `side` would lose 2 of 4 rows of `main.csv`, which have no partner; the first is at line 4"
        );
        assert_eq!(
            settle(join(true, false, true), &rows)
                .unwrap_err()
                .to_string(),
            "Joining `side` would lose 2 of its 3 rows, which no row of `main.csv` asks for; the first is at line 3"
        );
        let report = settle(join(true, false, false), &rows).unwrap();
        assert_eq!(
            (report.matched, report.without_partner, report.unused),
            (2, 2, 2)
        );
    }

    #[test]
    fn doubled_keys_blank_keys_and_bounds() {
        let message = |text: &str, budget| {
            partners(text, &join(true, false, false), budget)
                .err()
                .expect("expected an error")
                .to_string()
        };
        assert_eq!(
            message("k1,k2,v\n1,2,x\n1,2,x\n1,2,z\n", 9999),
            "Cannot join `x.csv` onto `main`: 2 rows of it share their key with another, which would double rows; the \
             first is at line 3"
        );
        assert_eq!(
            message("k1,k2,v\n1,,x\n", 9999),
            "`x.csv` line 2 has no value in the key column `k2`"
        );
        assert_eq!(
            message(SIDE, 100),
            "The tables to join onto `main` are too large: over 100 bytes"
        );
    }

    #[test]
    fn an_absent_table_gives_blanks_and_no_report() {
        let join = join(false, true, true);
        let mut side = Partners::absent(
            &table("side", &["v", "k1", "k2"], Some(join.clone())),
            &join,
        );
        assert_eq!(extend(&mut side, &[("2", "1")]), [None]);
        assert_eq!(side.settle("main.csv").unwrap(), None);
    }
}
