//! A dataset's images with what subgroups and patient clusters need, merged from the records of all runs that read it.
//! Owns the age threshold and the rule that runs must agree. It knows no score.

use crate::error::{AnalysisError, Result};
use focus_store::{Record, Records};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// One image.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Id, unique within the dataset.
    pub id: String,
    /// Number of its patient within the dataset.
    pub patient: Option<u32>,
    /// `left` or `right`.
    pub eye: Option<String>,
    /// Years.
    pub age: Option<f64>,
    /// `female` or `male`.
    pub sex: Option<String>,
    /// `good` or `poor`.
    pub quality: Option<String>,
    /// ICDR grade.
    pub grade: Option<i32>,
    /// It is of the test split.
    pub test: bool,
}

/// A dataset's images, by id.
#[derive(Debug, Clone)]
pub struct Cohort {
    dataset: String,
    members: Vec<Member>,
    places: HashMap<String, u32>,
    age_threshold: Option<f64>,
    /// Labels by task, then by image: corrected and as published.
    labels: BTreeMap<String, Vec<[Option<bool>; 2]>>,
    /// Name of the run that an image was first seen in, for errors.
    origin: Vec<u32>,
    runs: Vec<String>,
    units: TestUnits,
}

/// Numbered units of the test set.
#[derive(Debug, Clone)]
pub(crate) struct TestUnits {
    /// Units are patients.
    pub patients: bool,
    /// How many.
    pub count: u32,
    /// By member; of meaning for test members only.
    pub of_member: Vec<u32>,
}

impl Cohort {
    /// Dataset id.
    pub fn dataset(&self) -> &str {
        &self.dataset
    }

    /// Images in order of id.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The place of an image in [`Cohort::members`].
    pub fn place(&self, id: &str) -> Option<u32> {
        self.places.get(id).copied()
    }

    /// Median age of the patients of the test split, before any exclusion: the corrected track's threshold. A patient
    /// with several images counts once, with the median of their ages; an image without a patient key counts for itself.
    pub fn age_threshold(&self) -> Option<f64> {
        self.age_threshold
    }

    /// What the records say about an image in a task, corrected and as published.
    pub fn labels(&self, task: &str, place: u32) -> [Option<bool>; 2] {
        self.labels
            .get(task)
            .map_or([None; 2], |labels| labels[place as usize])
    }

    /// Units of the test set: its patients in order of their keys where every test image has one, else its images.
    pub(crate) fn test_units(&self) -> &TestUnits {
        &self.units
    }

    /// Test images of one eye of each patient: the right one, or the left where there is no right; none unless every
    /// test image has a patient and an eye.
    pub(crate) fn one_eye(&self) -> Option<BTreeSet<u32>> {
        let mut right: BTreeSet<u32> = BTreeSet::new();
        let mut eyes = Vec::new();
        for (place, member) in (0..).zip(&self.members).filter(|(_, m)| m.test) {
            let (patient, eye) = (member.patient?, member.eye.as_deref()?);
            if eye == "right" {
                right.insert(patient);
            }
            eyes.push((place, patient, eye == "right"));
        }
        let chosen =
            |(_, patient, is_right): &(u32, u32, bool)| right.contains(patient) == *is_right;
        Some(
            eyes.iter()
                .filter(|eye| chosen(eye))
                .map(|(place, ..)| *place)
                .collect(),
        )
    }

    /// The run that brought an image.
    pub(crate) fn run_of(&self, place: u32) -> &str {
        &self.runs[self.origin[place as usize] as usize]
    }
}

/// The records of one run for each of its datasets, gathered run by run.
#[derive(Debug, Default)]
pub struct Cohorts {
    runs: Vec<String>,
    datasets: BTreeMap<String, BTreeMap<String, Seen>>,
}

#[derive(Debug)]
struct Seen {
    run: u32,
    record: Record,
}

impl Cohorts {
    /// Adds a run's records. `run` names it in errors.
    ///
    /// # Errors
    /// An image twice in the run; an image about which two runs disagree.
    pub fn add(&mut self, run: &str, records: &Records) -> Result<()> {
        let number = self.runs.len() as u32;
        self.runs.push(run.into());
        let mut ids: BTreeSet<(&str, &str)> = BTreeSet::new();
        for record in &records.rows {
            if !ids.insert((&record.dataset, &record.id)) {
                return Err(AnalysisError::Duplicate {
                    place: format!("Records of `{run}`"),
                    image: record.id.clone(),
                });
            }
            let images = self.datasets.entry(record.dataset.clone()).or_default();
            if let Some(seen) = images.get_mut(&record.id) {
                merge(seen, record).map_err(|[what, first, second]| AnalysisError::Disagree {
                    dataset: record.dataset.as_str().into(),
                    image: record.id.as_str().into(),
                    what: what.into(),
                    first: first.into(),
                    first_run: format!("`{}`", self.runs[seen.run as usize]).into(),
                    second: second.into(),
                    second_run: format!("`{run}`").into(),
                })?;
            } else {
                let seen = Seen {
                    run: number,
                    record: needed(record),
                };
                images.insert(record.id.clone(), seen);
            }
        }
        Ok(())
    }

    /// The cohorts, by dataset.
    pub fn finish(self) -> BTreeMap<String, Cohort> {
        let runs = self.runs;
        self.datasets
            .into_iter()
            .map(|(dataset, images)| {
                let cohort = finish(dataset.clone(), images, runs.clone());
                (dataset, cohort)
            })
            .collect()
    }
}

/// The columns that are used here; paths and the mapper's further notes may be large.
fn needed(record: &Record) -> Record {
    Record {
        path: None,
        extra: None,
        content_hash: None,
        source_split: None,
        ..record.clone()
    }
}

type Difference = [String; 3];

/// Fills what the first run does not know; what both know must be equal.
fn merge(seen: &mut Seen, other: &Record) -> Result<(), Difference> {
    fn one<T: PartialEq + Clone + std::fmt::Debug>(
        what: &str,
        held: &mut Option<T>,
        found: Option<&T>,
    ) -> Result<(), Difference> {
        match (&*held, found) {
            (Some(a), Some(b)) if a != b => {
                Err([what.to_owned(), format!("{a:?}"), format!("{b:?}")])
            }
            (None, Some(b)) => {
                *held = Some(b.clone());
                Ok(())
            }
            _ => Ok(()),
        }
    }
    let held = &mut seen.record;
    one("the patient key", &mut held.patient, other.patient.as_ref())?;
    one("the eye", &mut held.eye, other.eye.as_ref())?;
    one("the age", &mut held.age, other.age.as_ref())?;
    one("the sex", &mut held.sex, other.sex.as_ref())?;
    one("the quality", &mut held.quality, other.quality.as_ref())?;
    one("the grade", &mut held.grade, other.grade.as_ref())?;
    one("the split", &mut held.split, other.split.as_ref())?;
    for (what, held, found) in [
        ("the label", &mut held.labels, &other.labels),
        (
            "the published label",
            &mut held.published_labels,
            &other.published_labels,
        ),
    ] {
        for (task, label) in found {
            let mut known = held.get(task).copied();
            one(&format!("{what} of `{task}`"), &mut known, Some(label))?;
            held.insert(task.clone(), *label);
        }
    }
    Ok(())
}

fn finish(dataset: String, images: BTreeMap<String, Seen>, runs: Vec<String>) -> Cohort {
    let patients: BTreeMap<&str, u32> = images
        .values()
        .filter_map(|seen| seen.record.patient.as_deref())
        .collect::<BTreeSet<_>>()
        .into_iter()
        .zip(0..)
        .collect();
    let tasks: BTreeSet<&String> = images
        .values()
        .flat_map(|seen| {
            seen.record
                .labels
                .keys()
                .chain(seen.record.published_labels.keys())
        })
        .collect();
    let labels = tasks
        .into_iter()
        .map(|task| {
            let of = |seen: &Seen| {
                [
                    seen.record.labels.get(task).copied(),
                    seen.record.published_labels.get(task).copied(),
                ]
            };
            (task.clone(), images.values().map(of).collect())
        })
        .collect();
    // A table without any split holds a test set alone: that is what people bring from elsewhere.
    let split = images.values().any(|seen| seen.record.split.is_some());
    let members: Vec<Member> = images
        .iter()
        .map(|(id, Seen { record, .. })| Member {
            id: id.clone(),
            patient: record.patient.as_deref().map(|key| patients[key]),
            eye: record.eye.clone(),
            age: record.age,
            sex: record.sex.clone(),
            quality: record.quality.clone(),
            grade: record.grade,
            test: !split || record.split.as_deref() == Some("test"),
        })
        .collect();
    let places = images.keys().cloned().zip(0..).collect();
    let origin = images.values().map(|seen| seen.run).collect();
    Cohort {
        dataset,
        age_threshold: age_threshold(&members),
        units: test_units(&members),
        members,
        places,
        labels,
        origin,
        runs,
    }
}

fn test_units(members: &[Member]) -> TestUnits {
    let test = || members.iter().filter(|member| member.test);
    let patients = test().all(|member| member.patient.is_some());
    let mut of_member = vec![0; members.len()];
    let mut numbers: BTreeMap<u32, u32> = BTreeMap::new();
    if patients {
        numbers = test()
            .filter_map(|member| member.patient)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .zip(0..)
            .collect();
    }
    let mut images = 0;
    for (member, unit) in members.iter().zip(&mut of_member).filter(|(m, _)| m.test) {
        *unit = match member.patient.filter(|_| patients) {
            Some(patient) => numbers[&patient],
            None => images,
        };
        images += 1;
    }
    TestUnits {
        patients,
        count: if patients {
            numbers.len() as u32
        } else {
            images
        },
        of_member,
    }
}

fn age_threshold(members: &[Member]) -> Option<f64> {
    let mut by_patient: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    let mut ages = Vec::new();
    for member in members.iter().filter(|member| member.test) {
        match (member.patient, member.age) {
            (Some(patient), Some(age)) => by_patient.entry(patient).or_default().push(age),
            (None, Some(age)) => ages.push(age),
            _ => {}
        }
    }
    ages.extend(by_patient.into_values().filter_map(median));
    median(ages)
}

/// The middle value, or the mean of the two middle ones; none of no values. Values are finite.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[half]),
        _ => Some(f64::midpoint(values[half - 1], values[half])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: &str, patient: Option<&str>, age: Option<f64>, split: &str) -> Record {
        Record {
            dataset: "d".into(),
            id: id.into(),
            patient: patient.map(str::to_owned),
            age,
            split: Some(split.into()),
            labels: [("t".to_owned(), true)].into(),
            ..Record::default()
        }
    }

    fn records(rows: Vec<Record>) -> Records {
        Records {
            tasks: ["t".to_owned()].into(),
            rows,
        }
    }

    #[test]
    fn the_threshold_counts_each_test_patient_once() {
        let mut cohorts = Cohorts::default();
        let rows = vec![
            record("a", Some("p"), Some(80.0), "test"),
            record("b", Some("p"), Some(80.0), "test"),
            record("c", Some("p"), Some(80.0), "test"),
            record("d", Some("q"), Some(40.0), "test"),
            record("e", None, Some(50.0), "test"),
            record("f", Some("r"), Some(10.0), "train"),
            record("g", Some("s"), None, "test"),
        ];
        cohorts.add("run", &records(rows)).expect("agree");
        let cohort = cohorts.finish().remove("d").expect("there");
        assert_eq!(cohort.age_threshold(), Some(50.0));
        assert_eq!(cohort.members().len(), 7);
        assert_eq!(cohort.place("d"), Some(3));
        assert_eq!(cohort.labels("t", 0), [Some(true), None]);
        assert_eq!(cohort.labels("other", 0), [None, None]);
    }

    #[test]
    fn without_ages_or_rows_there_is_no_threshold() {
        let mut cohorts = Cohorts::default();
        cohorts
            .add("run", &records(vec![record("a", None, None, "test")]))
            .expect("agree");
        assert_eq!(cohorts.finish()["d"].age_threshold(), None);
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1.0]), Some(2.0));
    }

    #[test]
    fn runs_fill_each_others_gaps_and_may_not_contradict() {
        let mut cohorts = Cohorts::default();
        cohorts
            .add("one", &records(vec![record("a", None, None, "test")]))
            .expect("first");
        cohorts
            .add(
                "two",
                &records(vec![record("a", Some("p"), Some(61.0), "test")]),
            )
            .expect("more is known now");
        let mut other = record("a", Some("p"), Some(62.0), "test");
        let error = cohorts
            .add("three", &records(vec![other.clone()]))
            .expect_err("another age");
        assert_eq!(
            error.to_string(),
            "Image `a` of `d`: the age is 61.0 in `one` and 62.0 in `three`"
        );
        other.age = None;
        other.labels.insert("t".into(), false);
        let error = cohorts
            .add("four", &records(vec![other]))
            .expect_err("another label");
        let text = error.to_string();
        assert!(
            text.contains("`t`") && text.contains("`one`") && text.contains("`four`"),
            "{text}"
        );
        assert!(error.hint().is_some());
    }

    #[test]
    fn an_image_twice_in_one_run_is_an_error() {
        let row = record("a", None, None, "test");
        let error = Cohorts::default()
            .add("run", &records(vec![row.clone(), row]))
            .expect_err("twice");
        assert_eq!(
            error.to_string(),
            "Records of `run`: expected each image once, found `a` again"
        );
    }
}
