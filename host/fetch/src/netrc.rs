//! netrc, read strictly: what is not understood is an error, so that no password is taken for a name. Errors hold line and rule, never text.

use crate::credential::Secret;
use std::iter::Peekable;

type Failure = (usize, &'static str);

/// User name and password of a host: its own entry, else the one under `default`.
pub(crate) fn find(text: &str, host: &str) -> Result<Option<(Secret, Secret)>, Failure> {
    let mut words = words(text)?.into_iter().peekable();
    let mut found = None;
    while let Some((line, word)) = words.next() {
        match word.as_str() {
            "machine" => {
                let name = value(&mut words, line, "`machine` must be followed by a host")?;
                let entry = entry(&mut words)?;
                // The first entry of a host counts, as with other programs.
                if found.is_none() && name.eq_ignore_ascii_case(host) {
                    found = Some(complete(entry, line)?);
                }
            }
            "default" => {
                let entry = entry(&mut words)?;
                if words.peek().is_some() {
                    return Err((line, "`default` must be the last entry"));
                }
                if found.is_none() && entry.0.is_some() {
                    found = Some(complete(entry, line)?);
                }
            }
            _ => return Err((line, "expected `machine` or `default`")),
        }
    }
    Ok(found)
}

type Word = (usize, String);

fn entry(
    words: &mut Peekable<impl Iterator<Item = Word>>,
) -> Result<(Option<String>, Option<String>), Failure> {
    let (mut login, mut password) = (None, None);
    while let Some((line, word)) = words.next_if(|(_, w)| w != "machine" && w != "default") {
        match word.as_str() {
            "login" => login = Some(value(words, line, "`login` must be followed by a name")?),
            "password" => {
                password = Some(value(words, line, "`password` must be followed by a word")?);
            }
            "account" => {
                value(words, line, "`account` must be followed by a word")?;
            }
            "macdef" => return Err((line, "`macdef` is not understood")),
            _ => return Err((line, "expected `login`, `password` or `account`")),
        }
    }
    Ok((login, password))
}

fn value(
    words: &mut impl Iterator<Item = Word>,
    line: usize,
    rule: &'static str,
) -> Result<String, Failure> {
    words.next().map(|(_, w)| w).ok_or((line, rule))
}

fn complete(
    entry: (Option<String>, Option<String>),
    line: usize,
) -> Result<(Secret, Secret), Failure> {
    match entry {
        (Some(login), Some(password)) => Ok((Secret::new(login), Secret::new(password))),
        _ => Err((line, "an entry must have `login` and `password`")),
    }
}

/// Words with their lines. `"` quotes, with `\` before a quote or backslash; `#` at the start of a word comments the rest of the line.
fn words(text: &str) -> Result<Vec<Word>, Failure> {
    let mut words = Vec::new();
    for (number, line) in text.lines().enumerate().map(|(i, l)| (i + 1, l)) {
        let mut chars = line.chars().peekable();
        while let Some(&c) = chars.peek() {
            if c.is_whitespace() {
                chars.next();
            } else if c == '#' && !expects_value(&words) {
                break;
            } else if c == '"' {
                chars.next();
                let mut word = String::new();
                loop {
                    match chars.next() {
                        Some('"') => break,
                        Some('\\') => {
                            word.push(chars.next().ok_or((number, "a quoted word must end"))?);
                        }
                        Some(c) => word.push(c),
                        None => return Err((number, "a quoted word must end on its line")),
                    }
                }
                words.push((number, word));
            } else {
                let mut word = String::new();
                while let Some(c) = chars.next_if(|c| !c.is_whitespace()) {
                    word.push(c);
                }
                words.push((number, word));
            }
        }
    }
    Ok(words)
}

/// A password may begin with `#`.
fn expects_value(words: &[Word]) -> bool {
    words.last().is_some_and(|(_, w)| w == "password")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pair(text: &str, host: &str) -> Option<(String, String)> {
        find(text, host)
            .expect("well-formed")
            .map(|(l, p)| (l.reveal().to_owned(), p.reveal().to_owned()))
    }

    fn both(login: &str, password: &str) -> (String, String) {
        (login.into(), password.into())
    }

    #[test]
    fn entries_in_the_shapes_met() {
        let text = "# mine\nmachine a.org\n  login ann\n  password #x\"y\nmachine b.org login bo password \"two \\\" words\" # end\ndefault login any password d\n";
        assert_eq!(pair(text, "a.org"), Some(both("ann", "#x\"y")));
        assert_eq!(pair(text, "B.ORG"), Some(both("bo", "two \" words")));
        assert_eq!(pair(text, "c.org"), Some(both("any", "d")));
        assert_eq!(pair("machine a.org login x password y", "xa.org"), None);
        assert_eq!(pair("", "a.org"), None);
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        for (text, line) in [
            ("login x", 1),
            ("machine a.org\nlogin", 2),
            ("machine a.org\nlogin x", 1),
            ("machine a.org login x password y\nmacdef init\n", 2),
            ("machine a.org login x password y z", 1),
            ("machine a.org login \"x", 1),
            (
                "default login x password y\nmachine b.org login x password y",
                1,
            ),
        ] {
            assert_eq!(
                find(text, "a.org").expect_err("malformed").0,
                line,
                "{text:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(machine|login|password|default|a\\.org|#|\"|\\\\|\n| ){0,20}") {
            let _ = find(&text, "a.org");
        }
    }
}
