//! Addresses: what may be asked for, and whose they are. Errors and logs see them without query and user part.

use crate::error::{FetchError, Result};
use std::fmt;
use url::Url;

/// Scheme, host and port: who may see a credential.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    scheme: String,
    host: String,
    port: u16,
}

impl Origin {
    /// The origin of an http or https address.
    pub fn of(url: &Url) -> Result<Self> {
        check(url)?;
        Ok(Self {
            scheme: url.scheme().into(),
            host: url.host_str().unwrap_or_default().into(),
            port: url.port_or_known_default().unwrap_or_default(),
        })
    }

    /// The host's name, lower case.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Whether a credential may be sent there at all: over TLS, or within this computer.
    pub(crate) fn is_private(&self) -> bool {
        self.scheme == "https" || self.is_loopback()
    }

    pub(crate) fn is_loopback(&self) -> bool {
        is_loopback_name(&self.host)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}:{}", self.scheme, self.host, self.port)
    }
}

/// Read an address and check it.
pub(crate) fn parse(text: &str) -> Result<Url> {
    // A text that does not parse may hold anything, a password included: it is not repeated.
    let url = Url::parse(text).map_err(|_| FetchError::Address {
        address: "(withheld)".into(),
        rule: "must be an absolute http or https address",
    })?;
    check(&url)?;
    Ok(url)
}

/// http or https, a host, and no user name or password.
pub(crate) fn check(url: &Url) -> Result<()> {
    let rule = if !matches!(url.scheme(), "http" | "https") {
        "must begin with http:// or https://"
    } else if url.host().is_none() {
        "must name a host"
    } else if !url.username().is_empty() || url.password().is_some() {
        "must hold no user name or password"
    } else {
        return Ok(());
    };
    Err(FetchError::Address {
        // Without a host the text has no user part that could be told from the rest.
        address: if url.has_host() {
            shown(url)
        } else {
            "(withheld)".into()
        },
        rule,
    })
}

/// For messages: no query (signed links carry their key there), no user part, no fragment.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.into()
}

/// `base` with the parts appended, each percent-encoded.
pub(crate) fn join<'a>(base: &Url, parts: impl IntoIterator<Item = &'a str>) -> Result<Url> {
    check(base)?;
    let mut url = base.clone();
    url.set_query(None);
    url.set_fragment(None);
    url.path_segments_mut()
        .expect("http addresses have a path")
        .pop_if_empty()
        .extend(parts);
    Ok(url)
}

pub(crate) fn is_loopback(url: &Url) -> bool {
    url.host_str().is_some_and(is_loopback_name)
}

fn is_loopback_name(host: &str) -> bool {
    host == "localhost"
        || host
            .trim_matches(['[', ']'])
            .parse::<std::net::IpAddr>()
            .is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_differ_by_scheme_host_and_port() {
        let origin = |text: &str| Origin::of(&parse(text).expect("address")).expect("origin");
        assert_eq!(origin("https://A.org/x"), origin("https://a.org:443/y?z"));
        for other in [
            "http://a.org/",
            "https://b.a.org/",
            "https://a.org:8443/",
            "https://a.org.evil.net/",
        ] {
            assert_ne!(origin("https://a.org/"), origin(other), "{other}");
        }
    }

    #[test]
    fn messages_hold_no_query_and_no_password() {
        let url = Url::parse("https://a.org/b?X-Signature=s3cret#f").expect("address");
        assert_eq!(shown(&url), "https://a.org/b");
        let error = parse("https://user:s3cret@a.org/").expect_err("refused");
        assert!(!error.to_string().contains("s3cret"), "{error}");
        let error = parse("user:s3cret@@").expect_err("refused");
        assert!(!error.to_string().contains("s3cret"), "{error}");
        assert!(parse("file:///etc/passwd").is_err());
    }

    #[test]
    fn joined_parts_cannot_climb() {
        let base = parse("http://localhost/files/").expect("address");
        let url = join(&base, ["a b", "c/d", "é?#.jpg"]).expect("joins");
        assert_eq!(
            url.as_str(),
            "http://localhost/files/a%20b/c%2Fd/%C3%A9%3F%23.jpg"
        );
    }

    #[test]
    fn credentials_go_over_tls_or_stay_on_this_computer() {
        let private = |text: &str| {
            Origin::of(&parse(text).expect("address"))
                .expect("origin")
                .is_private()
        };
        assert!(private("https://a.org/"));
        assert!(private("http://127.0.0.1:8000/"));
        assert!(private("http://[::1]:8000/"));
        assert!(!private("http://a.org/"));
        assert!(!private("http://localhost.a.org/"));
    }
}
