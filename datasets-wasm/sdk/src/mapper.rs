//! The trait a mapper implements, and the session that drives it row by row.

use crate::bindings::exports::focus::mapper::mapping as wit;
use crate::{Descriptor, Failure, Fate, Outcome, Row, RowRef};

/// The user's choices, defaults filled in.
pub struct Options(Vec<(String, String)>);

impl Options {
    /// The value of a declared option; empty if the descriptor does not declare it.
    pub fn get(&self, name: &str) -> &str {
        self.0
            .iter()
            .find(|(n, _)| n == name)
            .map_or("", |(_, value)| value)
    }
}

/// A dataset mapper. One value maps one copy of the dataset, once.
pub trait Mapper: Sized {
    /// What the mapper wants and gives. Called before anything is read; must always answer the same.
    fn describe() -> Descriptor;

    /// Starts a run.
    fn open(options: &Options) -> Result<Self, Failure>;

    /// What becomes of one row. Return `None` to answer for it later, in [`Mapper::finish`].
    fn row(&mut self, row: &Row<'_>) -> Result<Option<Fate>, Failure>;

    /// Outcomes of the rows that were held back.
    fn finish(&mut self) -> Result<Vec<Outcome>, Failure> {
        Ok(Vec::new())
    }
}

/// One run of a mapper: the state behind the exported functions.
pub struct Session<M> {
    mapper: M,
    /// Names of the columns of each table's rows: its own, then those of the tables joined onto it.
    columns: Vec<Vec<String>>,
    names: Vec<String>,
}

impl<M: Mapper> Session<M> {
    /// Starts a run.
    pub fn open(options: Vec<(String, String)>) -> Result<Self, Failure> {
        let descriptor = M::describe();
        let columns = descriptor
            .tables
            .iter()
            .map(|table| row_columns(&descriptor, table))
            .collect();
        let names = descriptor
            .tables
            .iter()
            .map(|table| table.id.clone())
            .collect();
        Ok(Self {
            mapper: M::open(&Options(options))?,
            columns,
            names,
        })
    }

    /// Maps a batch of rows.
    pub fn push(
        &mut self,
        table: u32,
        first: u32,
        rows: &[wit::Row],
    ) -> Result<Vec<Outcome>, Failure> {
        let index = table as usize;
        let mut outcomes = Vec::with_capacity(rows.len());
        for (number, row) in (first..).zip(rows) {
            let reference = RowRef { table, row: number };
            let view = Row::new(reference, &self.names[index], &self.columns[index], row);
            match self.mapper.row(&view) {
                Ok(Some(fate)) => outcomes.push(Outcome {
                    row: reference,
                    fate,
                }),
                Ok(None) => {}
                Err(failure) => {
                    return Err(Failure {
                        row: failure.row.or(Some(reference)),
                        ..failure
                    });
                }
            }
        }
        Ok(outcomes)
    }

    /// Ends the run.
    pub fn finish(&mut self) -> Result<Vec<Outcome>, Failure> {
        self.mapper.finish()
    }
}

fn row_columns(descriptor: &Descriptor, table: &wit::Table) -> Vec<String> {
    let joined = descriptor
        .tables
        .iter()
        .filter(|t| t.join.as_ref().is_some_and(|join| join.onto == table.id));
    // A joined column is named `table.column`: the key columns of both sides may share a name.
    let joined = joined.flat_map(|t| {
        t.columns
            .iter()
            .map(move |c| format!("{}.{}", t.id, c.name))
    });
    table
        .columns
        .iter()
        .map(|c| c.name.clone())
        .chain(joined)
        .collect()
}

/// Exports a type that implements [`Mapper`] as the component's mapper.
#[macro_export]
macro_rules! export_mapper {
    ($mapper:ty) => {
        mod exported {
            use ::std::cell::RefCell;
            use $crate::bindings::exports::focus::mapper::mapping as wit;

            ::std::thread_local! {
                static SESSION: RefCell<Option<$crate::Session<$mapper>>> = const { RefCell::new(None) };
            }

            struct Component;

            impl wit::Guest for Component {
                fn describe() -> wit::Descriptor {
                    <$mapper as $crate::Mapper>::describe()
                }

                fn open(options: Vec<(String, String)>) -> Result<(), wit::Failure> {
                    let session = $crate::Session::open(options)?;
                    SESSION.with(|slot| *slot.borrow_mut() = Some(session));
                    Ok(())
                }

                fn push(table: u32, first: u32, rows: Vec<wit::Row>) -> Result<Vec<wit::Outcome>, wit::Failure> {
                    SESSION.with(|slot| slot.borrow_mut().as_mut().expect("push before open").push(table, first, &rows))
                }

                fn finish() -> Result<Vec<wit::Outcome>, wit::Failure> {
                    SESSION.with(|slot| slot.borrow_mut().as_mut().expect("finish before open").finish())
                }
            }

            $crate::bindings::export_v1!(Component with_types_in $crate::bindings);
        }
    };
}
