//! The two readings of the benchmark, and how a cell's name tells them apart. It must not know what either computes.

/// The two readings of the benchmark (focus-benchmark.md).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Track {
    /// What a statistician would sign.
    Corrected,
    /// What the paper and its published code compute.
    AsPublished,
}

impl Track {
    /// Both, in the order reports show them.
    pub const ALL: [Self; 2] = [Self::Corrected, Self::AsPublished];

    /// Stable name in stores and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Corrected => "corrected",
            Self::AsPublished => "as_published",
        }
    }
}

pub use focus_store::AS_PUBLISHED_SUFFIX;

/// The methods that the paper reports; every other one belongs to the corrected track alone.
pub const PUBLISHED_METHODS: [&str; 3] = ["linear_probing", "zero_shot", "prompting"];

/// The method without the mark of the published labels: `linear_probing+as_published` is `linear_probing`.
pub fn plain_method(method: &str) -> &str {
    method.strip_suffix(AS_PUBLISHED_SUFFIX).unwrap_or(method)
}

/// Whether the paper reports this method.
pub fn is_published_method(method: &str) -> bool {
    PUBLISHED_METHODS.contains(&plain_method(method))
}

/// The tracks a cell is reported in. Corrected always; as published where the paper has the method and the labels agree,
/// which the caller knows: `published_apart` says that the published labels have a cell of their own. Such a cell is of
/// that track alone.
pub fn tracks_of(method: &str, published_apart: bool) -> Vec<Track> {
    if method.ends_with(AS_PUBLISHED_SUFFIX) {
        vec![Track::AsPublished]
    } else if is_published_method(method) && !published_apart {
        Track::ALL.to_vec()
    } else {
        vec![Track::Corrected]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_its_tracks() {
        assert_eq!(tracks_of("linear_probing", false), Track::ALL);
        assert_eq!(tracks_of("linear_probing", true), [Track::Corrected]);
        assert_eq!(
            tracks_of("linear_probing+as_published", true),
            [Track::AsPublished]
        );
        assert_eq!(
            tracks_of("linear_probing_unweighted", false),
            [Track::Corrected]
        );
        assert_eq!(tracks_of("zero_shot+sigmoid", false), [Track::Corrected]);
    }

    #[test]
    fn names_equal_their_serialised_form() {
        for track in Track::ALL {
            assert_eq!(serde_json::to_value(track).expect("JSON"), track.name());
        }
    }
}
