//! One request: time limits, redirects followed by hand, statuses turned into errors. Credentials go to their own origin only, and never again once a redirect has left it.

use crate::{
    address,
    address::Origin,
    credential::Login,
    error::{FetchError, Result},
    limits::Limits,
    machine::Machine,
    retry::{Pauses, retry_after},
};
use std::{io::Read as _, path::Path, sync::Arc};
use ureq::{
    Agent, BodyReader,
    http::HeaderMap,
    tls::{RootCerts, TlsConfig, TlsProvider},
};
use url::Url;

/// Whether proxies are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proxies {
    /// As `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` say.
    FromEnvironment,
    /// Never.
    None,
}

/// Sends requests. Shared by all threads; keeps connections open between requests.
#[derive(Debug)]
pub struct Client {
    agent: Agent,
    limits: Limits,
    pauses: Pauses,
}

/// What to ask for.
pub(crate) struct Ask<'a> {
    pub(crate) url: &'a Url,
    pub(crate) login: Option<&'a Login>,
    /// Value of `Range`, if part of the file is wanted, and of `If-Range`.
    pub(crate) range: Option<(String, Option<String>)>,
    /// Shown if the server refuses.
    pub(crate) advice: Option<&'a str>,
}

/// A good answer: 200, or 206 or 416 where a range was asked for.
pub(crate) struct Answer {
    pub(crate) url: Url,
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) length: Option<u64>,
    pub(crate) body: BodyReader<'static>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

impl Client {
    /// A client with these limits. Certificates are checked against those of the operating system.
    pub fn new(limits: Limits, proxies: Proxies) -> Self {
        let tls = TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .root_certs(RootCerts::PlatformVerifier)
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .build();
        let config = Agent::config_builder()
            .tls_config(tls)
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("focus-host/", env!("CARGO_PKG_VERSION")))
            .timeout_resolve(Some(limits.connect))
            .timeout_connect(Some(limits.connect))
            .timeout_send_request(Some(limits.headers))
            .timeout_recv_response(Some(limits.headers))
            .timeout_per_read(Some(limits.silence))
            .timeout_per_write(Some(limits.silence));
        let config = match proxies {
            Proxies::FromEnvironment => config,
            Proxies::None => config.proxy(None),
        };
        Self {
            agent: config.build().new_agent(),
            limits,
            pauses: Pauses::default(),
        }
    }

    /// Its limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn pauses(&self) -> &Pauses {
        &self.pauses
    }

    /// Ask once, following redirects.
    pub(crate) fn ask(&self, machine: &dyn Machine, ask: &Ask<'_>) -> Result<Answer> {
        address::check(ask.url)?;
        let mut url = ask.url.clone();
        let mut login = ask.login;
        for _ in 0..=self.limits.redirects {
            let origin = Origin::of(&url)?;
            login = login.filter(|l| *l.origin() == origin);
            let answer = self.once(&url, login, ask)?;
            if !matches!(answer.status, 301 | 302 | 303 | 307 | 308) {
                return judge(answer, ask, login.is_some(), machine);
            }
            url = next(&url, answer.header("location"))?;
            tracing::debug!(to = %address::shown(&url), "redirected");
        }
        Err(FetchError::TooManyRedirects {
            address: address::shown(ask.url),
            limit: self.limits.redirects,
        })
    }

    fn once(&self, url: &Url, login: Option<&Login>, ask: &Ask<'_>) -> Result<Answer> {
        // `identity`: ranges and checksums are those of the file, not of a compressed one.
        let mut request = self
            .agent
            .get(url.as_str())
            .header("Accept-Encoding", "identity");
        if let Some((range, validator)) = &ask.range {
            request = request.header("Range", range);
            if let Some(validator) = validator {
                request = request.header("If-Range", validator);
            }
        }
        if let Some(login) = login {
            request = request.header("Authorization", login.header());
        }
        let (parts, body) = request.call().map_err(|e| failure(url, &e))?.into_parts();
        Ok(Answer {
            url: url.clone(),
            status: parts.status.as_u16(),
            headers: parts.headers,
            length: body.content_length(),
            body: body.into_reader(),
        })
    }

    /// A whole small answer, once.
    pub(crate) fn text(&self, machine: &dyn Machine, ask: &Ask<'_>) -> Result<Vec<u8>> {
        let answer = self.ask(machine, ask)?;
        let (url, length) = (answer.url, answer.length);
        let limit = self.limits.listing_bytes;
        let mut bytes = Vec::new();
        answer
            .body
            .take(limit + 1)
            .read_to_end(&mut bytes)
            .map_err(|e| failure(&url, &e.into()))?;
        let found = bytes.len() as u64;
        if found > limit {
            return Err(FetchError::TooLarge {
                address: address::shown(&url),
                what: "bytes of a list",
                limit,
                found,
            });
        }
        if length.is_some_and(|n| n != found) {
            return Err(FetchError::BrokeOff {
                address: address::shown(&url),
                received: found,
                expected: length,
            });
        }
        Ok(bytes)
    }
}

fn next(from: &Url, location: Option<&str>) -> Result<Url> {
    let protocol = |what: &str| FetchError::Protocol {
        address: address::shown(from),
        what: what.into(),
    };
    let location = location.ok_or_else(|| protocol("a redirect without a readable `Location`"))?;
    let to = from
        .join(location)
        .map_err(|_| protocol("a redirect to what is no address"))?;
    address::check(&to)?;
    if from.scheme() == "https" && to.scheme() == "http" {
        return Err(FetchError::Downgrade {
            from: address::shown(from),
            to: address::shown(&to),
        });
    }
    Ok(to)
}

fn judge(answer: Answer, ask: &Ask<'_>, with_login: bool, machine: &dyn Machine) -> Result<Answer> {
    let address = address::shown(&answer.url);
    let status = answer.status;
    let ranged = ask.range.is_some();
    match status {
        200 => {}
        206 if ranged => {}
        416 if ranged => return Ok(answer),
        401 | 403 => {
            return Err(FetchError::Refused {
                address,
                status,
                with_login,
                advice: ask.advice.map(Into::into),
            });
        }
        404 | 410 => return Err(FetchError::NotFound { address, status }),
        408 | 425 | 429 | 500 | 502..=504 | 506..=510 | 520..=599 => {
            let retry_after = answer
                .header("retry-after")
                .and_then(|text| retry_after(text, machine.now()));
            return Err(FetchError::Busy {
                address,
                status,
                retry_after,
            });
        }
        _ => return Err(FetchError::Status { address, status }),
    }
    let encoding = answer
        .headers
        .get_all("content-encoding")
        .iter()
        .find(|v| !v.is_empty() && !v.as_bytes().eq_ignore_ascii_case(b"identity"));
    if encoding.is_some() {
        return Err(FetchError::Protocol {
            address,
            what: "a compressed answer, which was not asked for".into(),
        });
    }
    let is_page = answer
        .header("content-type")
        .is_some_and(|t| t.trim().to_ascii_lowercase().starts_with("text/html"));
    let wanted = Path::new(ask.url.path())
        .extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("html") || e.eq_ignore_ascii_case("htm"));
    if is_page && !wanted {
        return Err(FetchError::WebPage {
            address,
            advice: ask.advice.map(Into::into),
        });
    }
    Ok(answer)
}

/// The library's error as ours. Its own text could hold the whole address, so it is not repeated.
pub(crate) fn failure(url: &Url, error: &ureq::Error) -> FetchError {
    let address = address::shown(url);
    let connection = |reason: String| FetchError::Connection {
        address: address::shown(url),
        reason,
    };
    match error {
        ureq::Error::Timeout(which) => FetchError::Slow {
            address,
            what: format!("time limit of `{which:?}`"),
        },
        ureq::Error::Io(e) if is_tls(e) => FetchError::Tls {
            address,
            reason: e.to_string(),
        },
        ureq::Error::Io(e) => connection(e.to_string()),
        ureq::Error::Rustls(e) => FetchError::Tls {
            address,
            reason: e.to_string(),
        },
        ureq::Error::Tls(reason) => FetchError::Tls {
            address,
            reason: (*reason).into(),
        },
        ureq::Error::HostNotFound => connection("the host's name is unknown".into()),
        ureq::Error::ConnectProxyFailed(_) => connection("the proxy refused".into()),
        ureq::Error::InvalidProxyUrl => connection("the proxy's address is invalid".into()),
        ureq::Error::ConnectionFailed => connection("no connection".into()),
        ureq::Error::Protocol(e) => FetchError::Protocol {
            address,
            what: e.to_string(),
        },
        ureq::Error::LargeResponseHeader(..) => FetchError::Protocol {
            address,
            what: "headers are too long".into(),
        },
        ureq::Error::Http(_) | ureq::Error::BadUri(_) => FetchError::Address {
            address,
            rule: "must be one that HTTP can carry",
        },
        _ => FetchError::Protocol {
            address,
            what: "an answer that is not understood".into(),
        },
    }
}

fn is_tls(error: &std::io::Error) -> bool {
    error
        .get_ref()
        .is_some_and(|inner| inner.downcast_ref::<rustls::Error>().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(from: &str, location: &str) -> Result<String> {
        next(&address::parse(from).expect("address"), Some(location)).map(Into::into)
    }

    #[test]
    fn tls_is_not_given_up() {
        let error = to("https://a.org/x", "http://a.org/y?key=s3cret").expect_err("refused");
        assert!(matches!(error, FetchError::Downgrade { .. }), "{error}");
        assert!(!error.to_string().contains("s3cret"), "{error}");
        assert_eq!(
            to("https://a.org/x/y", "../z").expect("joins"),
            "https://a.org/z"
        );
        // Relative to the scheme: TLS stays.
        assert_eq!(
            to("https://a.org/", "//b.org/").expect("joins"),
            "https://b.org/"
        );
        assert_eq!(
            to("http://a.org/", "https://b.org/").expect("joins"),
            "https://b.org/"
        );
    }
}
