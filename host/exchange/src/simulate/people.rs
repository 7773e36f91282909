//! Simulated images: patients, eyes, ages, sexes, qualities and labels. It must not know readers.

use super::{
    plan::{Attribute, SimDataset},
    random::Stream,
};
use focus_store::Record;
use std::collections::HashMap;

/// Share of liability to disease that the two eyes of a patient have in common.
const EYES: f64 = 0.6;
/// Share of photographs that are poor.
const POOR: f64 = 0.2;

/// The images of one dataset.
pub(super) struct People {
    pub records: Vec<Record>,
    /// Number of each image's patient; an image without a patient key is a patient of its own.
    pub patient: Vec<usize>,
    /// Whether each image is in the first group, by attribute, where known.
    pub first: Vec<[Option<bool>; 3]>,
}

/// The images of `set`.
pub(super) fn people(set: &SimDataset, seed: u64) -> People {
    let patients = set.patients.unwrap_or(set.images);
    let pairs = set.images - patients;
    let patient: Vec<usize> = (0..set.images)
        .map(|i| if i < 2 * pairs { i / 2 } else { i - pairs })
        .collect();
    let mut ages = Stream::new(seed, &["age", &set.id]);
    // Every second patient of each kind is old. The oldest of the young share one age, so that the median, of patients
    // or of images, lies at or just above it and the groups of any sensible median are these.
    let person = |p: usize| if p < pairs { p } else { p - pairs };
    let old = |p: usize| person(p) % 2 == 1;
    let age: Vec<f64> = (0..patients)
        .map(|p| {
            let u = ages.uniform();
            if old(p) {
                62.0 + (27.0 * u).floor()
            } else if person(p).is_multiple_of(4) {
                58.0
            } else {
                30.0 + (28.0 * u).floor()
            }
        })
        .collect();
    let mut photographs = Stream::new(seed, &["quality", &set.id]);
    let mut records = Vec::with_capacity(set.images);
    let mut first = Vec::with_capacity(set.images);
    for (i, &p) in patient.iter().enumerate() {
        let female = (person(p) / 2) % 2 == 0;
        let good = photographs.uniform() >= POOR;
        let word = |attribute: Attribute, first: bool| {
            Some(attribute.groups()[usize::from(!first)].to_owned())
        };
        records.push(Record {
            dataset: set.id.clone(),
            id: format!("{}-{i:06}", set.id),
            split: Some("test".into()),
            patient: set.patients.map(|_| format!("{}-p{p:06}", set.id)),
            eye: set.patients.map(|_| {
                if i < 2 * pairs && i % 2 == 1 {
                    "left"
                } else {
                    "right"
                }
                .into()
            }),
            age: set.demographics.then(|| age[p]),
            sex: set
                .demographics
                .then(|| word(Attribute::Sex, female))
                .flatten(),
            quality: set
                .quality
                .then(|| word(Attribute::Quality, good))
                .flatten(),
            ..Record::default()
        });
        first.push([
            set.demographics.then(|| old(p)),
            set.demographics.then_some(female),
            set.quality.then_some(good),
        ]);
    }
    let mut people = People {
        records,
        patient,
        first,
    };
    label(set, seed, patients, &mut people);
    people
}

// The images with the largest liability are positive: as many as asked for, in both eyes of a patient more often than
// chance has it, and the rarer stage of a disease within the commoner.
fn label(set: &SimDataset, seed: u64, patients: usize, people: &mut People) {
    let mut orders: HashMap<&str, Vec<usize>> = HashMap::new();
    for task in &set.tasks {
        let order = orders.entry(&task.disease).or_insert_with(|| {
            let mut stream = Stream::new(seed, &["disease", &set.id, &task.disease]);
            let liability = correlated(&mut stream, &people.patient, patients, EYES);
            let mut order: Vec<usize> = (0..set.images).collect();
            order.sort_by(|a, b| liability[*b].total_cmp(&liability[*a]).then(a.cmp(b)));
            order
        });
        for (rank, i) in order.iter().enumerate() {
            let positive = rank < task.positives;
            let record = &mut people.records[*i];
            record.labels.insert(task.task.clone(), positive);
            record.published_labels.insert(task.task.clone(), positive);
        }
    }
}

/// A standard normal number for each image, of which `share` of the variance is the patient's.
pub(super) fn correlated(
    stream: &mut Stream,
    patient: &[usize],
    patients: usize,
    share: f64,
) -> Vec<f64> {
    let (common, own) = (share.sqrt(), (1.0 - share).sqrt());
    let theirs: Vec<f64> = (0..patients).map(|_| stream.normal()).collect();
    patient
        .iter()
        .map(|p| common * theirs[*p] + own * stream.normal())
        .collect()
}
