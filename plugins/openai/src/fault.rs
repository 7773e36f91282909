//! What can go wrong between this machine and the server. Holds no key and no whole body.

use crate::score::TOKENS_BY_ID;
use focus_plugin_sdk::{Error, ErrorKind};
use std::time::Duration;

/// A request that brought no answer. Texts of the server in it are cut and free of keys.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// No connection, or it broke.
    #[error("Connection to `{server}` failed: {reason}")]
    Connection {
        /// Host and port.
        server: String,
        /// Why.
        reason: String,
    },
    /// The connection cannot be trusted.
    #[error("Secure connection to `{server}` failed: {reason}")]
    Tls {
        /// Host and port.
        server: String,
        /// Why.
        reason: String,
    },
    /// No whole answer in time.
    #[error("`{server}` is too slow: expected a whole answer within {} s", limit.as_secs_f64())]
    Slow {
        /// Host and port.
        server: String,
        /// Setting `timeout`.
        limit: Duration,
    },
    /// It answered with an error, in the status or inside an answer of status 200.
    #[error("`{server}` {}: {said}", if *inside { "put an error inside a good answer".to_owned() } else { format!("answered with status {status}") })]
    Refused {
        /// Host and port.
        server: String,
        /// HTTP status; of an error inside an answer its code, where that is a status, else 200.
        status: u16,
        /// Whether the HTTP status was good and the error inside.
        inside: bool,
        /// Its words.
        said: String,
        /// When it wants to be asked again, from now.
        retry_after: Option<Duration>,
        /// The account is used up: waiting does not help.
        exhausted: bool,
    },
    /// It points elsewhere. Never followed: the key and the picture are for the granted host only.
    #[error("`{server}` redirects to `{to}`: expected an answer")]
    Redirect {
        /// Host and port.
        server: String,
        /// The other host.
        to: String,
    },
    /// More bytes than an answer can have.
    #[error("Answer of `{server}` is too long: expected at most {limit} bytes")]
    TooLong {
        /// Host and port.
        server: String,
        /// The limit.
        limit: u64,
    },
    /// It answered, but not with what was asked for.
    #[error("Answer of `{server}` cannot be understood: expected {expected}, found {found}")]
    Malformed {
        /// Host and port.
        server: String,
        /// What should be there.
        expected: String,
        /// What is there.
        found: String,
    },
    /// It asked, in an answer to another request, to be left alone, and so this one had no time.
    #[error("`{server}` is busy: it asked to be left alone for {} s", wait.as_secs())]
    Paused {
        /// Host and port.
        server: String,
        /// How long.
        wait: Duration,
    },
    /// Every attempt failed, or there was no time for another.
    #[error("Gave up after {attempts} attempts: {last}")]
    GaveUp {
        /// How many.
        attempts: u32,
        /// The last one's; of attempts at a server that was busy, the last that met it busy.
        last: Box<Self>,
    },
    /// The host wants no answer any more.
    #[error("Cancelled by the host")]
    Cancelled,
}

/// Statuses that may pass: too slow, too many requests, and servers that are broken just now. From 520 on they are those of proxies whose
/// server fails, and of services that have too much to do.
const PASSING: [u16; 12] = [
    408, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, OVERLOADED,
];

const OVERLOADED: u16 = 529;

impl Fault {
    /// Whether the same request may succeed when it is sent again.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Connection { .. } | Self::Slow { .. } => true,
            Self::Refused {
                status, exhausted, ..
            } => PASSING.contains(status) && !exhausted,
            Self::Tls { .. }
            | Self::Redirect { .. }
            | Self::TooLong { .. }
            | Self::Malformed { .. }
            | Self::Paused { .. }
            | Self::GaveUp { .. }
            | Self::Cancelled => false,
        }
    }

    /// Whether no other request of this run can succeed: the key, the account or the model is refused, or tokens have no ids although
    /// ids were asked for. (403 is not among these: some services refuse single pictures so.)
    pub fn ends_the_run(&self) -> bool {
        match self {
            Self::Refused {
                status, exhausted, ..
            } => *exhausted || matches!(status, 401 | 402 | 404),
            Self::Redirect { .. } | Self::Tls { .. } => true,
            Self::Malformed { expected, .. } => expected == TOKENS_BY_ID,
            _ => false,
        }
    }

    /// Whether the server has too much to do for whoever asks: nothing that a picture could be blamed for.
    pub fn is_busy(&self) -> bool {
        match self {
            Self::Refused {
                status,
                retry_after,
                ..
            } => matches!(*status, 429 | OVERLOADED) || retry_after.is_some(),
            Self::Paused { .. } => true,
            Self::GaveUp { last, .. } => last.is_busy(),
            _ => false,
        }
    }

    /// As the error of a whole call, which ends the run and blames no picture, so that a later run asks again. (Of the contract's kinds
    /// only `UNSUPPORTED` says so; after `DEVICE` the host would look for the group to blame.)
    pub fn into_end(self) -> Error {
        if self == Self::Cancelled {
            return self.into();
        }
        let advice = self
            .hint()
            .map_or(String::new(), |hint| format!("{hint}. "));
        Error::unsupported(&self).with_hint(format!(
            "{advice}Then run the same command again: it goes on where this run stopped"
        ))
    }

    /// How long the server wants to be left alone.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Advice.
    pub fn hint(&self) -> Option<String> {
        Some(
            match self {
                Self::Connection { .. } => "Check `base_url`, and that the server runs",
                Self::Tls { .. } => {
                    "Certificates are those of the operating system; the sidecar can pass on `SSL_CERT_FILE`"
                }
                Self::Slow { .. } => {
                    "Raise `--set timeout=SECONDS`, or lower `--set concurrency=N`"
                }
                Self::Refused {
                    exhausted: true, ..
                } => "The account at the service is used up: see its billing page",
                Self::Refused { status, said, .. } => match status {
                    401 | 403 => {
                        "Check the key: `OPENAI_API_KEY`, or the variable that `--set api_key_env=NAME` names, passed on by the sidecar (over plain http to other machines a key is sent only if `api_key_env` names it)"
                    }
                    402 => "The service wants to be paid: see its billing page",
                    404 => {
                        "Check `base_url` (it ends in `/v1` for most servers) and `served_model`"
                    }
                    413 => {
                        "Send smaller pictures: `--set max_image_side=1024` or `--set image_format=jpeg:95`"
                    }
                    429 => {
                        "Wait, or ask less at once: `--set requests_per_minute=N` or a lower `--set concurrency=N`"
                    }
                    400 | 422 if said.contains("logprob") => {
                        "The server may not give log-probabilities so: try `--set token_scores=top_logprobs` or a smaller `--set top_logprobs=N`"
                    }
                    400 | 422 if said.contains("max_completion_tokens") => {
                        "`--set max_tokens_field=max_completion_tokens`"
                    }
                    _ => return None,
                },
                Self::Redirect { .. } => {
                    "Give the final address as `base_url`, and grant its host if you trust it"
                }
                Self::Malformed { expected, .. } if expected == TOKENS_BY_ID => {
                    "The server tells texts instead of ids: `--set token_scores=top_logprobs`"
                }
                Self::Malformed { .. } => "Check that `base_url` is one of chat completions",
                Self::Paused { .. } => {
                    "Wait, or ask less at once: `--set requests_per_minute=N` or a lower `--set concurrency=N`"
                }
                Self::GaveUp { last, .. } => return last.hint(),
                Self::TooLong { .. } | Self::Cancelled => return None,
            }
            .to_owned(),
        )
    }

    fn kind(&self) -> ErrorKind {
        match self {
            Self::Connection { .. }
            | Self::Slow { .. }
            | Self::Tls { .. }
            | Self::Paused { .. } => ErrorKind::DEVICE,
            Self::Refused { status, .. } => match status {
                413 => ErrorKind::IMAGE,
                400..500 if *status != 408 && *status != 429 => ErrorKind::INVALID_REQUEST,
                _ => ErrorKind::DEVICE,
            },
            Self::GaveUp { last, .. } => last.kind(),
            Self::Cancelled => ErrorKind::CANCELLED,
            Self::Redirect { .. } | Self::TooLong { .. } | Self::Malformed { .. } => {
                ErrorKind::INTERNAL
            }
        }
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        let error = Self::new(fault.kind(), &fault);
        match fault.hint() {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, exhausted: bool) -> Fault {
        Fault::Refused {
            server: "h".into(),
            status,
            inside: false,
            said: "no".into(),
            retry_after: None,
            exhausted,
        }
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        for status in 100..600 {
            let wanted = [408, 429, 500, 502, 503, 504, 529].contains(&status)
                || (520..525).contains(&status);
            assert_eq!(refused(status, false).is_passing(), wanted, "{status}");
            assert!(!refused(status, true).is_passing(), "{status}");
        }
    }

    #[test]
    fn the_run_ends_with_what_no_picture_can_help() {
        for status in 100..600 {
            let wanted = [401, 402, 404].contains(&status);
            assert_eq!(refused(status, false).ends_the_run(), wanted, "{status}");
            assert!(refused(status, true).ends_the_run(), "{status}");
            let busy = [429, 529].contains(&status);
            assert_eq!(refused(status, false).is_busy(), busy, "{status}");
        }
        let misread = |expected: &str| Fault::Malformed {
            server: "h".into(),
            expected: expected.into(),
            found: "`yes`".into(),
        };
        assert!(misread(TOKENS_BY_ID).ends_the_run());
        assert!(!misread("JSON").ends_the_run());
    }

    #[test]
    fn kinds_tell_requests_from_servers() {
        for (status, kind) in [
            (400, ErrorKind::INVALID_REQUEST),
            (401, ErrorKind::INVALID_REQUEST),
            (413, ErrorKind::IMAGE),
            (429, ErrorKind::DEVICE),
            (503, ErrorKind::DEVICE),
        ] {
            assert_eq!(Error::from(refused(status, false)).kind(), kind, "{status}");
        }
    }
}
