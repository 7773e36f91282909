//! JSON as rows of text: an array of objects, or an object of objects whose own names are not read. Numbers keep the text
//! that the file has.

use std::collections::HashMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::descriptor::Column;
use crate::error::TableFault;
use crate::limits::Limits;
use crate::table::Encoding;
use crate::table::whole::Found;
use crate::text;

type Fault = (TableFault, Option<u64>);

/// The values of an array or an object, unread.
struct Values<'a>(Vec<&'a RawValue>);

/// Members in the order of the file, doubled ones too.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Values<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Values<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array or an object of objects")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Values<'de>, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = seq.next_element()? {
                    values.push(value);
                }
                Ok(Values(values))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Values<'de>, A::Error> {
                let mut values = Vec::new();
                while let Some((_, value)) = map.next_entry::<String, &RawValue>()? {
                    values.push(value);
                }
                Ok(Values(values))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    members.push(entry);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

pub(super) fn read(bytes: &[u8], wanted: &[Column], limits: &Limits) -> Result<Found, Fault> {
    let (body, encoding) = match bytes.strip_prefix(b"\xef\xbb\xbf") {
        Some(body) => (body, Encoding::Utf8Bom),
        None => (bytes, Encoding::Utf8),
    };
    let source = std::str::from_utf8(body).map_err(|error| {
        let offset = (bytes.len() - body.len() + error.valid_up_to()) as u64;
        let encoding = "UTF-8";
        (TableFault::Encoding { encoding, offset }, None)
    })?;
    let Values(objects) = serde_json::from_str(source).map_err(|error| {
        let line = error.line() as u64;
        (broken(&error, limits), Some(line))
    })?;
    let asked = |name: &str| {
        wanted
            .iter()
            .any(|c| c.name == name || c.aliases.iter().any(|alias| alias == name))
    };
    let mut names: Vec<String> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut rows = Vec::with_capacity(objects.len());
    // Each object is a part of `source`: its line is the line of its first byte.
    let (mut seen, mut line) = (0, 1);
    for object in objects {
        let start = object.get().as_ptr() as usize - source.as_ptr() as usize;
        line += source[seen..start].matches('\n').count() as u64;
        seen = start;
        let fault = |fault| (fault, Some(line));
        let Members(members) =
            serde_json::from_str(object.get()).map_err(|error| fault(broken(&error, limits)))?;
        let mut row: Vec<Option<String>> = vec![None; names.len()];
        for (name, value) in members {
            let name = text::trim(&name).to_owned();
            let place = *places.entry(name.clone()).or_insert_with(|| {
                names.push(name.clone());
                names.len() - 1
            });
            if place >= limits.columns {
                let limit = limits.columns;
                return Err(fault(TableFault::TooManyColumns { limit }));
            }
            row.resize(row.len().max(place + 1), None);
            if row[place].is_some() {
                let name = format!("`{}`", text::quote(&name, 120));
                return Err(fault(TableFault::DoubledMember(name)));
            }
            let cell = match cell(value.get()) {
                Some(cell) => cell,
                None if asked(&name) => {
                    let name = format!("`{}`", text::quote(&name, 120));
                    return Err(fault(TableFault::Nested(name)));
                }
                None => String::new(),
            };
            row[place] = Some(cell);
        }
        rows.push((
            line,
            row.into_iter().map(Option::unwrap_or_default).collect(),
        ));
    }
    if rows.is_empty() {
        return Err((TableFault::Empty, None));
    }
    Ok(Found {
        names,
        header_line: 1,
        rows,
        encoding: Some(encoding),
    })
}

/// The text of a value; `None` for an object or an array.
fn cell(raw: &str) -> Option<String> {
    match raw.as_bytes().first() {
        Some(b'"') => Some(serde_json::from_str(raw).expect("the parser took it for a string")),
        Some(b'n') => Some(String::new()),
        Some(b'{' | b'[') => None,
        _ => Some(raw.to_owned()),
    }
}

fn broken(error: &serde_json::Error, limits: &Limits) -> TableFault {
    TableFault::Json(text::quote(&error.to_string(), limits.message_chars))
}
