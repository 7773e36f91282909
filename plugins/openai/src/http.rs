//! One exchange: a request out, a status and capped bytes back. No retries, no redirects, no meaning.

use crate::address::Address;
use crate::fault::Fault;
use crate::pace::retry_after;
use crate::secret::{Key, quoted};
use std::io::Read as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use ureq::Agent;
use ureq::tls::{RootCerts, TlsConfig, TlsProvider};

/// Most bytes of an answer: thousands of tokens with twenty log-probabilities each are a few megabytes.
pub(crate) const MAX_BYTES: u64 = 16 << 20;

/// Sends requests to one server. Shared by threads; keeps connections open.
#[derive(Debug)]
pub(crate) struct Http {
    agent: Agent,
    address: Address,
    key: Option<Key>,
}

/// What came back, whatever its status; redirects are faults.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) bytes: Vec<u8>,
}

impl Http {
    pub(crate) fn new(address: Address, key: Option<Key>) -> Self {
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
            .timeout_connect(Some(Duration::from_secs(20)));
        let config = if address.through_proxy() {
            config
        } else {
            config.proxy(None)
        };
        Self {
            agent: config.build().new_agent(),
            address,
            key,
        }
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// A server's text as a message may show it.
    pub(crate) fn quoted(&self, text: &str) -> String {
        quoted(text, self.key.as_ref())
    }

    /// Post `body` (JSON), or get where there is none; `limit` is for everything, to the last byte.
    pub(crate) fn exchange(
        &self,
        url: &str,
        body: Option<&[u8]>,
        limit: Duration,
    ) -> Result<Exchange, Fault> {
        let authorization = self.key.as_ref().map(Key::header);
        let accepted = ("Accept", "application/json");
        let response = if let Some(body) = body {
            let mut request = self
                .agent
                .post(url)
                .config()
                .timeout_global(Some(limit))
                .build()
                .header(accepted.0, accepted.1)
                .header("Content-Type", "application/json");
            if let Some(value) = authorization {
                request = request.header("Authorization", value);
            }
            request.send(body)
        } else {
            let mut request = self
                .agent
                .get(url)
                .config()
                .timeout_global(Some(limit))
                .build()
                .header(accepted.0, accepted.1);
            if let Some(value) = authorization {
                request = request.header("Authorization", value);
            }
            request.call()
        };
        let (parts, body) = response
            .map_err(|error| self.failure(&error, limit))?
            .into_parts();
        let status = parts.status.as_u16();
        let header = |name: &str| {
            parts
                .headers
                .get(name)
                .and_then(|value| value.to_str().ok())
        };
        if (300..400).contains(&status) {
            return Err(Fault::Redirect {
                server: self.address.shown().to_owned(),
                to: self.target(url, header("location")),
            });
        }
        let retry_after =
            header("retry-after").and_then(|text| retry_after(text, SystemTime::now()));
        let announced = body.content_length();
        let mut bytes = Vec::new();
        body.into_reader()
            .take(MAX_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| self.failure(&error.into(), limit))?;
        let found = bytes.len() as u64;
        if found > MAX_BYTES {
            return Err(Fault::TooLong {
                server: self.address.shown().to_owned(),
                limit: MAX_BYTES,
            });
        }
        if let Some(expected) = announced.filter(|&n| n != found) {
            return Err(Fault::Connection {
                server: self.address.shown().to_owned(),
                reason: format!("it broke off: expected {expected} bytes, found {found}"),
            });
        }
        Ok(Exchange {
            status,
            retry_after,
            bytes,
        })
    }

    /// The host that a redirect names; nothing more of it, for it may hold what is not to be repeated.
    fn target(&self, url: &str, location: Option<&str>) -> String {
        let to = location.and_then(|to| url::Url::parse(url).ok()?.join(to).ok());
        match to.as_ref().and_then(url::Url::host_str) {
            Some(host) => self.quoted(host),
            None => "nowhere".to_owned(),
        }
    }

    /// The library's error as ours. Its own text could hold the whole address, so only its inner causes are repeated.
    fn failure(&self, error: &ureq::Error, limit: Duration) -> Fault {
        let server = self.address.shown().to_owned();
        let connection = |reason: String| Fault::Connection {
            server: self.address.shown().to_owned(),
            reason,
        };
        match error {
            ureq::Error::Timeout(_) => Fault::Slow { server, limit },
            ureq::Error::Io(io) if is_tls(io) => Fault::Tls {
                server,
                reason: self.quoted(&io.to_string()),
            },
            ureq::Error::Io(io) => match io.get_ref().and_then(|e| e.downcast_ref()) {
                Some(inner @ ureq::Error::Timeout(_)) => self.failure(inner, limit),
                _ => connection(self.quoted(&io.to_string())),
            },
            ureq::Error::Rustls(error) => Fault::Tls {
                server,
                reason: self.quoted(&error.to_string()),
            },
            ureq::Error::Tls(reason) => Fault::Tls {
                server,
                reason: (*reason).to_owned(),
            },
            ureq::Error::HostNotFound => connection("the host's name is unknown".into()),
            ureq::Error::ConnectProxyFailed(_) => connection("the proxy refused".into()),
            ureq::Error::InvalidProxyUrl => connection("the proxy's address is invalid".into()),
            ureq::Error::ConnectionFailed => connection("no connection".into()),
            ureq::Error::Protocol(error) => {
                connection(format!("not HTTP: {}", self.quoted(&error.to_string())))
            }
            _ => connection("an answer that is not HTTP".into()),
        }
    }
}

fn is_tls(error: &std::io::Error) -> bool {
    error
        .get_ref()
        .is_some_and(|inner| inner.downcast_ref::<rustls::Error>().is_some())
}
