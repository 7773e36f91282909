//! The server's address: whether it is one to ask, and whether its host was granted. Asks nothing itself.

use focus_plugin_sdk::Error;
use url::{Host, Url};

/// A server that may be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Without a slash at the end: `https://host/v1`.
    base: String,
    /// `host` or `host:port`, for messages.
    shown: String,
    encrypted: bool,
    loopback: bool,
}

impl Address {
    /// Check `base_url` against the hosts that were granted (names or addresses, without ports).
    pub fn check(base_url: &str, granted: &[String]) -> Result<Self, Error> {
        let bad = |rule: &str| {
            // The text may hold a password; it is not repeated.
            Error::invalid_request(format!("Setting `base_url`: expected {rule}"))
                .with_hint("For example `--set base_url=http://localhost:8000/v1`")
        };
        let url = Url::parse(base_url).map_err(|_| bad("an address such as `https://HOST/v1`"))?;
        if !matches!(url.scheme(), "https" | "http") {
            return Err(bad("an address that starts with `https://` or `http://`"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(
                bad("an address without user name and password").with_hint(
                    "Keys come from the environment: `OPENAI_API_KEY`, or the variable that `api_key_env` names",
                ),
            );
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(bad("an address without `?` and `#`"));
        }
        let base = url.as_str().trim_end_matches('/').to_owned();
        if base.ends_with("/chat/completions") {
            return Err(bad("the address before `/chat/completions`"));
        }
        let host = url.host().ok_or_else(|| bad("an address with a host"))?;
        let loopback = match &host {
            Host::Domain(name) => {
                let name = name.trim_end_matches('.');
                name == "localhost" || name.ends_with(".localhost")
            }
            Host::Ipv4(ip) => ip.is_loopback(),
            Host::Ipv6(ip) => ip.is_loopback(),
        };
        let host = host.to_string();
        if !granted.iter().any(|name| same_host(name, &host)) {
            return Err(Error::unsupported(format!(
                "Network host `{host}` was not granted: found {}",
                if granted.is_empty() {
                    "none".to_owned()
                } else {
                    granted.join(", ")
                }
            ))
            .with_hint(format!(
                "Name it in the sidecar (`permissions.network = [\"{host}\"]` in libopenai.toml) and grant it: `--allow-network {host}`"
            )));
        }
        let shown = url
            .port()
            .map_or_else(|| host.clone(), |port| format!("{host}:{port}"));
        Ok(Self {
            base,
            shown,
            encrypted: url.scheme() == "https",
            loopback,
        })
    }

    /// `base_url` without a slash at the end.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Of a path below the base: `/chat/completions`.
    pub fn below(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Of a path beside `/v1`, where vLLM keeps what is not OpenAI's: `/tokenize`.
    pub fn beside(&self, path: &str) -> String {
        let root = self.base.strip_suffix("/v1").unwrap_or(&self.base);
        format!("{root}{path}")
    }

    /// Host and port, for messages.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Whether what is sent can be read on the way: plain http that leaves this machine.
    pub fn readable_on_the_way(&self) -> bool {
        !self.encrypted && !self.loopback
    }

    /// Whether a proxy of the environment may be used: for encrypted connections to other machines only, since a proxy reads the rest.
    pub fn through_proxy(&self) -> bool {
        self.encrypted && !self.loopback
    }
}

fn same_host(granted: &str, host: &str) -> bool {
    let bare = |text: &str| {
        text.trim_start_matches('[')
            .trim_end_matches(']')
            .trim_end_matches('.')
            .to_ascii_lowercase()
    };
    bare(granted) == bare(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, granted: &[&str]) -> Result<Address, Error> {
        let granted: Vec<String> = granted.iter().map(|&name| name.to_owned()).collect();
        Address::check(url, &granted)
    }

    #[test]
    fn granted_hosts_are_asked_and_no_others() {
        let address = check("https://API.example.org/v1/", &["api.example.org"]).expect("granted");
        assert_eq!(
            address.below("/chat/completions"),
            "https://api.example.org/v1/chat/completions"
        );
        assert_eq!(
            address.beside("/tokenize"),
            "https://api.example.org/tokenize"
        );
        assert!(!address.readable_on_the_way() && address.through_proxy());
        for granted in [
            &[][..],
            &["example.org"],
            &["api.example.org.evil.org"],
            &["pi.example.org"],
        ] {
            let error = check("https://api.example.org/v1", granted).expect_err("not granted");
            assert!(error.to_string().contains("was not granted"), "{error}");
            assert!(
                error
                    .hint()
                    .expect("hint")
                    .contains("--allow-network api.example.org")
            );
        }
        // The host is what comes after the `@`, whatever stands before it.
        assert!(check("https://api.example.org@evil.org/v1", &["api.example.org"]).is_err());
        assert!(
            check(
                "https://evil.org/?https://api.example.org/v1",
                &["api.example.org"]
            )
            .is_err()
        );
    }

    #[test]
    fn plain_http_is_marked_unless_it_stays_here() {
        for (url, host, readable) in [
            ("http://localhost:8000/v1", "localhost", false),
            ("http://127.0.0.1:8000/v1", "127.0.0.1", false),
            ("http://[::1]:8000/v1", "::1", false),
            ("http://gpu7:8000/v1", "gpu7", true),
            ("http://10.0.0.7:8000/v1", "10.0.0.7", true),
        ] {
            let address = check(url, &[host]).expect("granted");
            assert_eq!(address.readable_on_the_way(), readable, "{url}");
            assert!(address.shown().ends_with(":8000"));
        }
    }

    #[test]
    fn senseless_addresses_are_refused_and_not_repeated() {
        for url in [
            "localhost:8000",
            "ftp://h/v1",
            "file:///etc/passwd",
            "https://user:s3cret@h/v1",
            "https://h/v1?key=s3cret",
            "https://h/v1#s3cret",
            "https://h/v1/chat/completions",
            "",
        ] {
            let error = check(url, &["h", "localhost"]).expect_err(url).to_string();
            assert!(
                error.contains("`base_url`") && !error.contains("s3cret"),
                "{error}"
            );
        }
    }
}
