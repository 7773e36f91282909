//! What a bootstrap draws on a dataset's test set: patients where every test image has a patient key, else images. Units
//! are numbered by the cohort alone, so that all cells of a test set are resampled alike, whatever rows they hold.

use crate::cohort::Cohort;
use crate::options::Options;
use focus_metrics::{Plan, Units, seed_for};

/// The units of some rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowUnits {
    /// Number of units of the test set; none where some row lies outside it, and units are the rows' own.
    count: Option<u32>,
    /// Each row's unit; empty where rows are their own units.
    of_row: Vec<u32>,
    /// `patient` or `image`.
    pub kind: &'static str,
}

impl RowUnits {
    /// Units of the rows of these images, which are places in the cohort.
    pub fn new(cohort: &Cohort, images: &[u32]) -> Self {
        let members = cohort.members();
        let patient = |image: &u32| members[*image as usize].patient;
        if images.iter().all(|image| members[*image as usize].test) {
            let numbered = cohort.test_units();
            return Self {
                count: Some(numbered.count),
                of_row: images
                    .iter()
                    .map(|image| numbered.of_member[*image as usize])
                    .collect(),
                kind: if numbered.patients {
                    "patient"
                } else {
                    "image"
                },
            };
        }
        // Rows from outside the test split (a table that calls its own split `validation`): nothing ties them to others.
        let patients: Option<Vec<u32>> = images.iter().map(patient).collect();
        let kind = if patients.is_some() {
            "patient"
        } else {
            "image"
        };
        Self {
            count: None,
            of_row: patients.unwrap_or_default(),
            kind,
        }
    }

    /// As the metrics take them.
    pub fn units(&self) -> Units<'_> {
        match self.count {
            Some(count) => Units::Numbered {
                count,
                of_row: &self.of_row,
            },
            None if self.of_row.is_empty() => Units::Images,
            None => Units::Patients(&self.of_row),
        }
    }

    /// A plan over them. Each test set has a seed of its own: test sets are independent.
    pub fn plan(&self, cohort: &Cohort, resamples: u32, options: &Options) -> Plan<'_> {
        Plan {
            resamples,
            seed: seed_for(options.seed, cohort.dataset()),
            units: self.units(),
        }
    }
}
