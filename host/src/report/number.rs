//! How numbers look: fixed decimals, and words where there is no number.

use focus_analysis::MetricEntry;

/// Three decimals; `-` with the reason where the value is missing; `*` where it is flagged.
pub(super) fn metric(entry: Option<&MetricEntry>) -> String {
    match entry {
        None => "-".into(),
        Some(MetricEntry {
            value: Some(value),
            flag,
            ..
        }) => {
            format!("{value:.3}{}", if flag.is_some() { "*" } else { "" })
        }
        Some(MetricEntry { missing, .. }) => format!("- ({})", missing.unwrap_or("unknown")),
    }
}

/// The metric and, where it has one, its interval: `0.863 [0.790, 0.930]`.
pub(super) fn metric_with_interval(entry: Option<&MetricEntry>) -> String {
    let text = metric(entry);
    match entry.and_then(|entry| entry.interval) {
        Some([low, high]) => format!("{text} [{low:.3}, {high:.3}]"),
        None => text,
    }
}

/// A p or q value: never rounded to 0.
pub fn probability(value: Option<f64>) -> String {
    match value {
        None => "-".into(),
        Some(value) if value < 0.0005 => format!("{value:.1e}"),
        Some(value) => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_and_flagged_values_are_not_plain_numbers() {
        let entry = |value, missing, flag| MetricEntry {
            id: "f1",
            value,
            interval: None,
            valid_resamples: None,
            missing,
            flag,
        };
        assert_eq!(metric(Some(&entry(Some(0.8499), None, None))), "0.850");
        assert_eq!(
            metric(Some(&entry(Some(0.0), None, Some("no_positives")))),
            "0.000*"
        );
        assert_eq!(
            metric(Some(&entry(None, Some("one_class"), None))),
            "- (one_class)"
        );
        assert_eq!(metric(None), "-");
        let whole = MetricEntry {
            interval: Some([0.79, 0.93]),
            ..entry(Some(0.863), None, None)
        };
        assert_eq!(metric_with_interval(Some(&whole)), "0.863 [0.790, 0.930]");
    }
}
