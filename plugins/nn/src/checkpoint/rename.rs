//! Where in a file the tensors are and which prefixes their names carry. Knows no files.

/// How a checkpoint is laid out. The default suits most: the dictionary is found by the usual keys, no prefix is taken off.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    /// Keys that may hold the dictionary of tensors, best first; empty: [`Layout::NESTED`].
    pub nested: Vec<String>,
    /// Prefixes taken off the front of names, again and again, in any order.
    pub prefixes: Vec<String>,
}

impl Layout {
    /// Keys under which training programs keep the weights.
    pub const NESTED: [&'static str; 4] = ["teacher", "model", "state_dict", "model_state_dict"];

    /// Prefixes that wrappers of PyTorch and of training programs put before names.
    pub const WRAPPERS: [&'static str; 2] = ["module.", "backbone."];

    /// Take `prefixes` off names.
    pub fn stripping(prefixes: &[&str]) -> Self {
        Self {
            prefixes: prefixes.iter().map(|&p| p.to_owned()).collect(),
            ..Self::default()
        }
    }

    /// Look for the tensors under `key` only.
    #[must_use]
    pub fn under(mut self, key: &str) -> Self {
        self.nested = vec![key.to_owned()];
        self
    }

    /// The keys to try.
    pub(crate) fn keys(&self) -> Vec<String> {
        if self.nested.is_empty() {
            Self::NESTED.map(str::to_owned).to_vec()
        } else {
            self.nested.clone()
        }
    }

    /// A name without its prefixes.
    pub(crate) fn strip(&self, name: &str) -> String {
        let mut rest = name;
        while let Some(shorter) = self
            .prefixes
            .iter()
            .filter(|prefix| !prefix.is_empty())
            .find_map(|prefix| rest.strip_prefix(prefix.as_str()))
        {
            rest = shorter;
        }
        rest.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_go_in_any_order_and_only_from_the_front() {
        let layout = Layout::stripping(&["module.", "backbone.", "vit."]);
        assert_eq!(layout.strip("module.backbone.cls_token"), "cls_token");
        assert_eq!(layout.strip("backbone.module.vit.x"), "x");
        assert_eq!(layout.strip("blocks.0.module.x"), "blocks.0.module.x");
        assert_eq!(Layout::stripping(&[""]).strip("x"), "x");
    }
}
