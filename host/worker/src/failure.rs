//! Errors of this crate as they go over the wire. Must not know who reads them.

use focus_plugin_abi::v1::{ErrorKind, PluginError};
use focus_wire::{FailureKind, WireError};

/// Longest message and hint, bytes.
const MAX_TEXT: usize = 4096;

/// At most `MAX_TEXT` bytes of `text`.
pub(crate) fn cap(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_TEXT)].to_owned()
}

pub(crate) fn failure(kind: FailureKind, message: impl AsRef<str>) -> WireError {
    WireError {
        kind,
        message: cap(message.as_ref()),
        hint: None,
    }
}

pub(crate) fn load(message: impl AsRef<str>, hint: impl AsRef<str>) -> WireError {
    WireError {
        hint: Some(cap(hint.as_ref())),
        ..failure(FailureKind::Load, message)
    }
}

/// What a plugin reported. A kind that this host does not know is `internal`, and the message says which it was.
pub(crate) fn from_plugin(error: &PluginError) -> WireError {
    let ErrorKind(number) = error.kind();
    let Some(kind) = FailureKind::of_plugin(number) else {
        let message = format!(
            "{} (error kind {number}, unknown to this host)",
            error.message()
        );
        return WireError {
            hint: error.hint().map(cap),
            ..failure(FailureKind::Internal, message)
        };
    };
    WireError {
        hint: error.hint().map(cap),
        ..failure(kind, error.message())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_keep_their_numbers() {
        for number in 1..=9 {
            let crossed = from_plugin(&PluginError::new(ErrorKind(number), "x").with_hint("y"));
            assert_eq!(
                (crossed.kind as u32, crossed.hint.as_deref()),
                (number, Some("y"))
            );
        }
    }

    #[test]
    fn an_unknown_kind_is_kept_in_words_and_cannot_pose_as_the_hosts() {
        for number in [0, 10, FailureKind::Crash as u32] {
            let crossed = from_plugin(&PluginError::new(ErrorKind(number), "x"));
            assert_eq!(crossed.kind, FailureKind::Internal);
            assert!(crossed.message.contains(&number.to_string()));
        }
    }

    #[test]
    fn texts_are_cut_at_a_character() {
        let text = format!("x{}", "é".repeat(MAX_TEXT));
        assert_eq!(
            failure(FailureKind::Internal, text).message.len(),
            MAX_TEXT - 1
        );
    }
}
