//! Which rows a cell is fitted on and tested on, in which track, and what happens where nothing can be fitted.

use super::*;
use crate::eval::method;
use focus_models::fake::{FakeDualEncoder, opened};
use focus_plugin_abi::v1::message::Similarity;
use focus_store::{AnswerLog, AnswerRow};

/// One image: split, label in the corrected track, label in the published one, embedding or a failure.
type Row = (&'static str, Option<bool>, Option<bool>, Option<[f32; 2]>);

fn compute(rows: &[Row]) -> (Vec<CellRecord>, Vec<Predictions>) {
    let probes: Vec<_> = method::all()
        .into_iter()
        .filter(|method| method.fits)
        .collect();
    compute_by(rows, &probes, None)
}

fn compute_by(
    rows: &[Row],
    methods: &[&Method],
    texts: Option<&Texts>,
) -> (Vec<CellRecord>, Vec<Predictions>) {
    let dir = tempfile::tempdir().expect("a folder");
    let (mut log, _) = AnswerLog::open_or_create(&dir.path().join("a.log"), 2).expect("opens");
    let mut records = Records {
        tasks: BTreeSet::from(["binary_dr".to_owned()]),
        rows: Vec::new(),
    };
    let mut asked = BTreeSet::new();
    for (sample, (split, corrected, published, embedding)) in rows.iter().enumerate() {
        let labels =
            |label: &Option<bool>| label.iter().map(|l| ("binary_dr".to_owned(), *l)).collect();
        records.rows.push(Record {
            dataset: "d".into(),
            id: format!("id{sample}"),
            split: Some((*split).into()),
            labels: labels(corrected),
            published_labels: labels(published),
            ..Record::default()
        });
        asked.insert(sample as u32);
        log.append(&[AnswerRow {
            sample: sample as u32,
            id: format!("id{sample}"),
            content_hash: None,
            outcome: if embedding.is_some() {
                Outcome::Ok
            } else {
                Outcome::ModelError
            },
            reason: embedding.is_none().then(|| "hang".into()),
            message: None,
            embedding: embedding.map(|e| e.to_vec()),
        }])
        .expect("appends");
    }
    let file = log
        .compact(&dir.path().join("a.parquet"))
        .expect("compacts");
    let inputs = CellInputs {
        records: &records,
        asked: &asked,
        embeddings: &Embeddings::read(&file, &records).expect("reads"),
        texts,
        dataset: "d",
        model: "m",
        device: &Device::Cpu,
    };
    let mut predictions = Vec::new();
    let cells = compute_cells(&inputs, &["binary_dr".to_owned()], methods, &mut |cell| {
        predictions.push(cell.clone());
        Ok(())
    })
    .expect("computes");
    (cells, predictions)
}

const UP: Option<[f32; 2]> = Some([1.0, 0.1]);
const DOWN: Option<[f32; 2]> = Some([0.1, 1.0]);

#[test]
fn equal_labels_give_one_cell_for_both_tracks() {
    let (cells, predictions) = compute(&[
        ("train", Some(true), Some(true), UP),
        ("train", Some(false), Some(false), DOWN),
        ("validation", Some(true), Some(true), DOWN),
        ("test", Some(true), Some(true), UP),
        ("test", Some(false), Some(false), DOWN),
        ("test", Some(false), Some(false), None),
    ]);
    let methods: Vec<_> = cells.iter().map(|c| c.cell.method.as_str()).collect();
    assert_eq!(methods, ["linear_probing", "linear_probing_unweighted"]);
    let failed: Vec<_> = predictions[0]
        .rows
        .iter()
        .filter_map(|row| Some((row.sample, row.outcome, row.reason.clone()?)))
        .collect();
    assert_eq!(failed, [(5, Outcome::ModelError, "hang".to_owned())]);
    let fold = |fold| {
        predictions[0]
            .fold(fold)
            .map(|row| row.sample)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        fold(Fold::Train),
        [0, 1],
        "the validation image is in neither fold"
    );
    assert_eq!(fold(Fold::Test), [3, 4, 5]);
    let score = |sample| {
        predictions[0]
            .rows
            .iter()
            .find(|row| row.sample == sample)
            .and_then(|row| row.score)
    };
    assert!(score(3) > Some(0.5) && score(4) < Some(0.5));
}

#[test]
fn labels_that_differ_are_fitted_apart() {
    // As published an unknown label is a negative one; corrected it leaves the task.
    let (cells, predictions) = compute(&[
        ("train", Some(true), Some(true), UP),
        ("train", Some(false), Some(false), DOWN),
        ("train", None, Some(false), UP),
        ("test", Some(true), Some(true), UP),
        ("test", None, Some(false), DOWN),
    ]);
    let methods: Vec<_> = cells.iter().map(|c| c.cell.method.as_str()).collect();
    assert_eq!(
        methods,
        [
            "linear_probing",
            "linear_probing+as_published",
            "linear_probing_unweighted"
        ]
    );
    let fitted: Vec<_> = cells
        .iter()
        .map(|c| c.fit.as_ref().expect("fitted").n)
        .collect();
    assert_eq!(fitted, [2, 3, 2]);
    // Each holds the images that its own track has a label for.
    let tested = |n: usize| predictions[n].fold(Fold::Test).count();
    assert_eq!((tested(0), tested(1)), (1, 2));
}

#[test]
fn a_training_split_of_one_class_is_said_and_not_guessed() {
    let (cells, predictions) = compute(&[
        ("train", Some(true), Some(true), UP),
        ("train", Some(true), Some(true), DOWN),
        ("test", Some(true), Some(true), UP),
    ]);
    assert!(predictions.is_empty());
    let reason = cells[0].skipped.as_deref().expect("skipped");
    assert!(reason.contains("both classes"), "{reason}");
}

fn zero_shot() -> Vec<&'static Method> {
    let methods: Vec<_> = method::all()
        .into_iter()
        .filter(|method| method.id == "zero_shot")
        .collect();
    assert_eq!(methods.len(), 1);
    methods
}

/// Texts under which [`UP`] is positive and [`DOWN`] is negative.
fn texts(task: &str) -> Texts {
    let captions = method::captions::captions_of("binary_dr").expect("has sentences");
    let mut opened = opened(4, 2, 2, 2);
    opened.similarity = Some(Similarity {
        scale: 2.0,
        bias: -1.0,
        sigmoid: true,
    });
    let mut model = FakeDualEncoder::new(opened)
        .text(captions.negative, vec![0.0, 5.0])
        .text(captions.positive, vec![5.0, 0.0]);
    Texts::embed(&mut model, &[task.to_owned()]).expect("embeds")
}

#[test]
fn zero_shot_scores_the_test_images_alone_with_the_models_own_reading_beside() {
    let rows: [Row; 5] = [
        ("train", Some(true), Some(true), UP),
        ("train", Some(false), Some(false), None),
        ("test", Some(true), Some(true), DOWN),
        ("test", Some(false), Some(false), None),
        ("test", Some(true), None, UP),
    ];
    let (cells, predictions) = compute_by(&rows, &zero_shot(), Some(&texts("binary_dr")));
    let methods: Vec<_> = cells.iter().map(|c| c.cell.method.as_str()).collect();
    assert_eq!(methods, ["zero_shot", "zero_shot+as_published"]);
    assert!(cells.iter().all(|c| c.fit.is_none() && c.skipped.is_none()));
    let shown: Vec<_> = predictions[0]
        .rows
        .iter()
        .map(|row| (row.sample, row.fold, row.predicted, row.outcome))
        .collect();
    assert_eq!(
        shown,
        [
            (2, Fold::Test, Some(false), Outcome::Ok),
            (3, Fold::Test, None, Outcome::ModelError),
            (4, Fold::Test, Some(true), Outcome::Ok),
        ]
    );
    let names: Vec<_> = predictions[0]
        .extra
        .iter()
        .map(|(n, _)| n.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "cosine_negative",
            "cosine_positive",
            "own_softmax",
            "sigmoid_negative",
            "sigmoid_positive"
        ]
    );
    for (name, values) in &predictions[0].extra {
        let there: Vec<bool> = values.iter().map(Option::is_some).collect();
        assert_eq!(there, [true, false, true], "{name}");
    }
    // The positive sentence's cosine is the first of two values over the length, 1.0 and 0.1 the other way round.
    let cosine = predictions[0].extra[1].1[2].expect("answered");
    assert!((cosine - 1.0 / 1.01_f64.sqrt()).abs() < 1e-6, "{cosine}");
    // As published, the image without a label is in no fold.
    assert_eq!(predictions[1].rows.len(), 2);
}

#[test]
fn a_task_without_sentences_is_said_to_have_none() {
    let rows: [Row; 1] = [("test", Some(true), Some(true), UP)];
    for texts in [None, Some(&texts("glaucoma"))] {
        let (cells, predictions) = compute_by(&rows, &zero_shot(), texts);
        assert!(predictions.is_empty());
        let reason = cells[0].skipped.as_deref().expect("skipped");
        assert!(reason.contains("no sentences"), "{reason}");
    }
}
