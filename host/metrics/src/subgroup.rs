//! Subgroups of rows: a threshold on age, and the rule for groups that are too small, with the reason for a skipped
//! attribute. It must not know where attributes come from.

use serde::Serialize;

use crate::bootstrap::same_length;
use crate::error::MetricError;

/// Rows of one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct GroupCount {
    /// n.
    pub n: u64,
    /// n+.
    pub n_pos: u64,
    /// n-.
    pub n_neg: u64,
}

impl GroupCount {
    pub(crate) fn add(&mut self, label: bool) {
        self.n += 1;
        *(if label {
            &mut self.n_pos
        } else {
            &mut self.n_neg
        }) += 1;
    }
}

/// Why an attribute gives no gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Skip {
    /// No row knows the attribute.
    AttributeAbsent,
    /// All rows that know it are in one group.
    OneGroup,
    /// A group has fewer rows than the rule asks for.
    GroupTooSmall,
    /// A group has fewer positives or negatives than the rule asks for.
    ClassTooSmall,
}

impl Skip {
    /// Stable name, as stored and printed.
    pub fn name(self) -> &'static str {
        match self {
            Self::AttributeAbsent => "attribute_absent",
            Self::OneGroup => "one_group",
            Self::GroupTooSmall => "group_too_small",
            Self::ClassTooSmall => "class_too_small",
        }
    }
}

/// Smallest groups that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct GroupRule {
    /// Rows of each group.
    pub min_rows: u64,
    /// Positives, and negatives, of each group; none asks for no class.
    pub min_class: Option<u64>,
}

impl GroupRule {
    /// Age and sex, as published.
    pub const PUBLISHED: Self = Self {
        min_rows: 10,
        min_class: None,
    };
    /// Image quality, as published.
    pub const PUBLISHED_QUALITY: Self = Self {
        min_rows: 5,
        min_class: None,
    };
    /// Every attribute, corrected: rates of a handful of rows are not compared.
    pub const CORRECTED: Self = Self {
        min_rows: 10,
        min_class: Some(10),
    };

    /// The groups' sizes, group 0 first, if the rule admits them.
    ///
    /// # Errors
    /// The first reason that applies, in the order of [`Skip`].
    pub fn check(self, counts: [GroupCount; 2]) -> Result<[GroupCount; 2], Skip> {
        let class = self.min_class.unwrap_or(0);
        if counts.iter().all(|group| group.n == 0) {
            Err(Skip::AttributeAbsent)
        } else if counts.iter().any(|group| group.n == 0) {
            Err(Skip::OneGroup)
        } else if counts.iter().any(|group| group.n < self.min_rows) {
            Err(Skip::GroupTooSmall)
        } else if counts
            .iter()
            .any(|group| group.n_pos.min(group.n_neg) < class)
        {
            Err(Skip::ClassTooSmall)
        } else {
            Ok(counts)
        }
    }
}

/// Sizes of group 0 and group 1; rows whose group is unknown count in neither.
///
/// # Errors
/// Columns of unequal length.
pub fn group_counts(
    labels: &[bool],
    groups: &[Option<bool>],
) -> Result<[GroupCount; 2], MetricError> {
    same_length("groups", labels.len(), groups.len())?;
    let mut counts = [GroupCount::default(); 2];
    for (&label, group) in labels.iter().zip(groups) {
        if let Some(group) = group {
            counts[usize::from(*group)].add(label);
        }
    }
    Ok(counts)
}

/// The median: the middle value, or the mean of the middle two. None without values. Values are not NaN.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// Group 1 where the value is above the threshold, group 0 where it is at most that, unknown where it is unknown or NaN.
/// Age groups are `above(ages, median)`.
pub fn above(values: &[Option<f64>], threshold: f64) -> Vec<Option<bool>> {
    let group = |value: &Option<f64>| {
        value
            .filter(|value| !value.is_nan())
            .map(|value| value > threshold)
    };
    values.iter().map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(n_pos: u64, n_neg: u64) -> GroupCount {
        GroupCount {
            n: n_pos + n_neg,
            n_pos,
            n_neg,
        }
    }

    #[test]
    fn each_reason_has_its_case_and_its_name() {
        let cases = [
            (
                GroupRule::PUBLISHED,
                count(0, 0),
                count(0, 0),
                Some(Skip::AttributeAbsent),
            ),
            (
                GroupRule::PUBLISHED,
                count(0, 0),
                count(50, 50),
                Some(Skip::OneGroup),
            ),
            (
                GroupRule::PUBLISHED,
                count(9, 0),
                count(50, 50),
                Some(Skip::GroupTooSmall),
            ),
            (GroupRule::PUBLISHED, count(10, 0), count(50, 50), None),
            (
                GroupRule::PUBLISHED_QUALITY,
                count(5, 0),
                count(50, 50),
                None,
            ),
            (
                GroupRule::PUBLISHED_QUALITY,
                count(4, 0),
                count(50, 50),
                Some(Skip::GroupTooSmall),
            ),
            (
                GroupRule::CORRECTED,
                count(50, 9),
                count(50, 50),
                Some(Skip::ClassTooSmall),
            ),
            (
                GroupRule::CORRECTED,
                count(50, 10),
                count(9, 50),
                Some(Skip::ClassTooSmall),
            ),
            (GroupRule::CORRECTED, count(10, 10), count(50, 50), None),
        ];
        for (rule, zero, one, reason) in cases {
            for counts in [[zero, one], [one, zero]] {
                assert_eq!(rule.check(counts), reason.map_or(Ok(counts), Err));
            }
            if let Some(reason) = reason {
                assert_eq!(serde_json::to_value(reason).unwrap(), reason.name());
            }
        }
    }

    #[test]
    fn unknown_rows_are_in_neither_group() {
        let groups = [Some(true), None, Some(false), Some(true)];
        let counts = group_counts(&[true, true, false, false], &groups).unwrap();
        assert_eq!(counts, [count(0, 1), count(1, 1)]);
        assert_eq!(
            group_counts(&[true], &groups).unwrap_err().to_string(),
            "Column `groups` has the wrong length: expected 1 rows, found 4"
        );
    }

    #[test]
    fn age_groups_split_above_the_median() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
        assert_eq!(
            above(&[Some(2.5), Some(2.6), None, Some(f64::NAN)], 2.5),
            [Some(false), Some(true), None, None]
        );
    }
}
