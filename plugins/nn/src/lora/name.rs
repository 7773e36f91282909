//! Names of modules across versions of `transformers` and PEFT. Knows no model: each brings its table.

/// An older beginning of module names, and the newest: `("language_model.model.", "model.language_model.")`.
pub type Spelling = (&'static str, &'static str);

/// What PEFT puts before every name.
const WRAPPER: &str = "base_model.model.";

/// `part` behind `at` and a dot; `part` alone where `at` is empty.
pub fn join(at: &str, part: &str) -> String {
    if at.is_empty() {
        part.to_owned()
    } else {
        format!("{at}.{part}")
    }
}

/// The newest spelling of a module's name. The first entry that fits is applied, once.
pub(super) fn newest(name: &str, spellings: &[Spelling]) -> String {
    spellings
        .iter()
        .find_map(|(old, new)| Some(format!("{new}{}", name.strip_prefix(old)?)))
        .unwrap_or_else(|| name.to_owned())
}

/// Every spelling of a module's name, the newest first.
pub(super) fn spelt(name: &str, spellings: &[Spelling]) -> Vec<String> {
    let mut all = vec![name.to_owned()];
    for (old, new) in spellings {
        if let Some(rest) = name.strip_prefix(new) {
            all.push(format!("{old}{rest}"));
        }
    }
    all
}

/// What a tensor of an adapter file is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// `lora_A`.
    A,
    /// `lora_B`.
    B,
    /// A weight in place of the base's.
    Weight,
    /// A bias in place of the base's.
    Bias,
}

/// A key's module, as spelt, and its role; `None` for keys that are neither.
pub(super) fn parse(key: &str) -> Option<(&str, Role)> {
    let rest = key.strip_prefix(WRAPPER)?;
    for (mark, role) in [(".lora_A.", Role::A), (".lora_B.", Role::B)] {
        if let Some((module, tail)) = rest.split_once(mark) {
            // `weight`, or `default.weight` in files that were not saved by PEFT itself.
            let plain = tail == "weight"
                || tail
                    .strip_suffix(".weight")
                    .is_some_and(|name| !name.is_empty() && !name.contains('.'));
            return plain.then_some((module, role));
        }
    }
    let (module, role) = match rest.strip_suffix(".weight") {
        Some(module) => (module, Role::Weight),
        None => (rest.strip_suffix(".bias")?, Role::Bias),
    };
    let module = match module.split_once(".modules_to_save") {
        None => module,
        Some((module, tail)) if !tail.trim_start_matches('.').contains('.') => module,
        Some(_) => return None,
    };
    (!module.contains("lora_")).then_some((module, role))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[Spelling] = &[
        ("language_model.lm_head", "lm_head"),
        ("language_model.model.", "model.language_model."),
    ];

    #[test]
    fn spellings_go_both_ways() {
        let new = "model.language_model.layers.0.mlp.up_proj";
        let old = "language_model.model.layers.0.mlp.up_proj";
        assert_eq!(newest(old, TABLE), new);
        assert_eq!(newest(new, TABLE), new);
        assert_eq!(newest("language_model.lm_head", TABLE), "lm_head");
        assert_eq!(spelt(new, TABLE), [new, old]);
    }

    #[test]
    fn keys_are_taken_apart() {
        let base = |tail: &str| format!("base_model.model.{tail}");
        for (tail, wanted) in [
            ("a.q.lora_A.weight", Some(("a.q", Role::A))),
            ("a.q.lora_B.default.weight", Some(("a.q", Role::B))),
            ("lm_head.weight", Some(("lm_head", Role::Weight))),
            (
                "lm_head.modules_to_save.weight",
                Some(("lm_head", Role::Weight)),
            ),
            (
                "lm_head.modules_to_save.default.weight",
                Some(("lm_head", Role::Weight)),
            ),
            ("head.bias", Some(("head", Role::Bias))),
            ("a.q.lora_A.x.y.weight", None),
            ("a.q.lora_A.bias", None),
            ("a.q.lora_magnitude_vector.weight", None),
            ("e.lora_embedding_A", None),
            ("a.q", None),
        ] {
            assert_eq!(parse(&base(tail)), wanted, "{tail}");
        }
        assert_eq!(parse("a.q.lora_A.weight"), None);
    }
}
