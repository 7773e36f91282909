//! Jinja as transformers sets it up for chat templates: blocks trimmed, Python's string methods, `raise_exception`, `tojson` as Python's
//! `json.dumps` writes, `strftime_now` with a clock that stands still. Knows no conversation.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Kwargs;
use minijinja::{Environment, Error, ErrorKind, State, Value};
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter};
use std::io::{self, Write};

/// The day that templates are told it is, at noon: a prompt must not depend on when it is made.
pub const FROZEN_DATE: &str = "2024-07-26";

/// The template's name in the environment.
pub(super) const NAME: &str = "chat_template";

/// Steps a template may take: a thousand times what the longest published one takes.
const FUEL: u64 = 10_000_000;

/// The environment without a template.
pub(super) fn new() -> Environment<'static> {
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build()
        .expect("the usual delimiters do not clash");
    let mut environment = Environment::new();
    environment.set_syntax(syntax);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.set_fuel(Some(FUEL));
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.add_function("raise_exception", raise_exception);
    environment.add_function("strftime_now", strftime_now);
    environment.add_filter("tojson", tojson);
    environment
}

fn raise_exception(message: String) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message))
}

/// The parts of Python's `strftime` for [`FROZEN_DATE`], a Friday.
fn strftime_now(format: String) -> Result<String, Error> {
    let mut out = String::new();
    let mut rest = format.chars();
    while let Some(c) = rest.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let code = rest.next();
        out.push_str(match code {
            Some('Y') => "2024",
            Some('y') => "24",
            Some('m') => "07",
            Some('d') => "26",
            Some('B') => "July",
            Some('b') => "Jul",
            Some('A') => "Friday",
            Some('a') => "Fri",
            Some('j') => "208",
            Some('H' | 'I') => "12",
            Some('M' | 'S') => "00",
            Some('p') => "PM",
            Some('F') => FROZEN_DATE,
            Some('T') => "12:00:00",
            Some('%') => "%",
            _ => {
                return Err(Error::new(
                    ErrorKind::InvalidOperation,
                    format!("strftime_now does not know `{format}`"),
                ));
            }
        });
    }
    Ok(out)
}

fn tojson(_state: &State, value: &Value, options: Kwargs) -> Result<String, Error> {
    let indent: Option<usize> = options.get("indent")?;
    // Python's default leaves other alphabets as they are here; transformers asks for it.
    let _: Option<bool> = options.get("ensure_ascii")?;
    options.assert_all_used()?;
    let mut bytes = Vec::new();
    let written = match indent {
        Some(width) => {
            let blanks = " ".repeat(width.min(16));
            let pretty = PrettyFormatter::with_indent(blanks.as_bytes());
            value.serialize(&mut serde_json::Serializer::with_formatter(
                &mut bytes, pretty,
            ))
        }
        None => value.serialize(&mut serde_json::Serializer::with_formatter(
            &mut bytes, Python,
        )),
    };
    written.map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))?;
    String::from_utf8(bytes)
        .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))
}

/// A blank after each comma and colon, as `json.dumps` has them.
struct Python;

impl Formatter for Python {
    fn begin_array_value<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first {
            Ok(())
        } else {
            writer.write_all(b", ")
        }
    }

    fn begin_object_key<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.begin_array_value(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}
