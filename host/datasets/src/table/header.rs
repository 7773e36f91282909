//! Finding the wanted columns in a header.

use std::collections::HashMap;

use crate::descriptor::Column;
use crate::error::TableFault;
use crate::text;

/// How many names an error lists.
const SHOWN: usize = 80;

/// Where each wanted column is, and what else is there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// For each wanted column its place in the file.
    pub(super) places: Vec<Option<usize>>,
    /// The file's columns, trimmed. Trailing spreadsheet columns have no name.
    pub(super) names: Vec<String>,
    /// Named columns that nobody asked for.
    pub(super) ignored: Vec<String>,
}

impl Header {
    /// Headers are compared trimmed, case-sensitively; a non-breaking space counts as a space.
    pub(super) fn read(
        cells: &[&str],
        wanted: &[Column],
        closed: bool,
    ) -> Result<Self, TableFault> {
        let names: Vec<String> = cells
            .iter()
            .map(|cell| text::trim(cell).replace('\u{a0}', " "))
            .collect();
        let mut index: HashMap<&str, usize> = HashMap::new();
        for (place, name) in names
            .iter()
            .enumerate()
            .filter(|(_, name)| !name.is_empty())
        {
            if let Some(first) = index.insert(name, place) {
                let name = format!("`{}`", text::quote(name, 120));
                return Err(TableFault::DoubledColumn {
                    name,
                    first: first + 1,
                    second: place + 1,
                });
            }
        }
        let mut places = Vec::with_capacity(wanted.len());
        let mut missing = Vec::new();
        for column in wanted {
            let spellings = std::iter::once(&column.name).chain(&column.aliases);
            let present: Vec<&String> = spellings
                .filter(|s| index.contains_key(s.as_str()))
                .collect();
            match present.as_slice() {
                [] if column.required => missing.push(&column.name),
                [] | [_] => {}
                several => {
                    let name = format!("`{}`", column.name);
                    return Err(TableFault::TwoSpellings {
                        name,
                        spellings: text::list(several, SHOWN),
                    });
                }
            }
            places.push(present.first().map(|spelling| index[spelling.as_str()]));
        }
        let seen: Vec<&String> = names.iter().filter(|name| !name.is_empty()).collect();
        if !missing.is_empty() {
            return Err(TableFault::MissingColumns {
                missing: text::list(&missing, SHOWN),
                seen: text::list(&seen, SHOWN),
            });
        }
        let taken = |place: usize| places.contains(&Some(place));
        let ignored: Vec<String> = names
            .iter()
            .enumerate()
            .filter(|(place, name)| !name.is_empty() && !taken(*place))
            .map(|(_, name)| name.clone())
            .collect();
        if closed && !ignored.is_empty() {
            let known: Vec<&String> = wanted.iter().map(|c| &c.name).collect();
            return Err(TableFault::UnknownColumns {
                unknown: text::list(&ignored, SHOWN),
                known: text::list(&known, SHOWN),
            });
        }
        Ok(Self {
            places,
            names,
            ignored,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, aliases: &[&str], required: bool) -> Column {
        Column {
            name: name.into(),
            aliases: aliases.iter().map(|a| (*a).into()).collect(),
            required,
        }
    }

    #[test]
    fn found_by_name_or_alias_whatever_the_order() {
        let wanted = [
            column("a", &[], true),
            column("b", &["B", "bb"], true),
            column("c", &[], false),
        ];
        let header = Header::read(
            &["\u{feff}bb ", "x\u{a0}y", "", " a\u{a0}", ""],
            &wanted,
            false,
        )
        .unwrap();
        assert_eq!(header.places, [Some(3), Some(0), None]);
        assert_eq!(header.ignored, ["x y"]);
    }

    #[test]
    fn what_is_wrong_is_told_with_what_was_seen() {
        let wanted = [column("a", &[], true), column("b", &["B"], true)];
        let message = |cells: &[&str], closed| {
            Header::read(cells, &wanted, closed)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            message(&["A", "c"], false),
            "lacks `a`, `b`, expected among the columns; found `A`, `c`",
            "case counts unless an alias says otherwise"
        );
        assert_eq!(
            message(&["a", "b", "a "], false),
            "has the column `a` twice, at 1 and 3"
        );
        assert_eq!(
            message(&["a", "b", "B"], false),
            "spells the column `b` in two ways at once: `b`, `B`"
        );
        assert_eq!(
            message(&["a", "b", "new"], true),
            "has columns that the mapper does not know: `new`; it knows `a`, `b`"
        );
    }
}
