//! One result file of the published code: its columns, and what each row says. It must not know which cell it is or
//! what other files say.

use super::{ONCE, OnBadRow, text::TextTable};
use crate::{
    answer_text::parse_yes_no,
    error::{BadRow, ExchangeError, Result, shorten},
};
use focus_store::Outcome;
use std::collections::{HashMap, hash_map::Entry};

/// What the code writes where generating failed.
pub(crate) const ERROR_TEXT: &str = "ERROR";
/// The reason stored with such a row.
pub(crate) const ERROR_REASON: &str = "error_text";

/// A row that keeps the rules.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ResultRow {
    pub line: u64,
    pub id: String,
    pub label: Option<bool>,
    pub score: Option<f64>,
    pub prob_no: Option<f64>,
    pub predicted: Option<bool>,
    pub outcome: Outcome,
    pub reason: Option<&'static str>,
    pub text: Option<String>,
}

/// A file's rows, good and bad.
pub(crate) struct ResultFile {
    pub rows: Vec<ResultRow>,
    pub bad: Vec<BadRow>,
    /// Rows left out by `OnBadRow::Drop`, by reason.
    pub dropped: Vec<(&'static str, u64)>,
    /// Rows with text, `prob_yes` = 0 and `prob_no` = 0.
    pub both_zero: u64,
    /// The file is of a prompted model (`prediction_text`).
    pub prompted: bool,
    /// Columns that were not read.
    pub unread: Vec<String>,
    /// The file has `prob_no`.
    pub has_prob_no: bool,
}

const ID_RULE: &str = "`id` must not be empty";
const LABEL_RULE: &str = "`ground_truth` must be 0 or 1, or blank or -1 where it is unknown";
const PREDICTION_RULE: &str = "`prediction` must be 0 or 1";
const SCORE_RULE: &str = "a probability must be finite and lie in [0, 1]";
const WIDTH_RULE: &str = "a row must have as many cells as the header";

/// Read `table`. `zero_is_missing`: a text whose two probabilities are both 0 has no score.
pub(crate) fn read_rows(
    table: &TextTable,
    zero_is_missing: bool,
    on_bad: OnBadRow,
) -> Result<ResultFile> {
    let one_of = |names: &[&str]| -> Result<Option<usize>> {
        for name in names {
            if let Some(at) = table.column(name)? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    };
    let lacking = |expected: &str| ExchangeError::Columns {
        file: table.name.clone(),
        expected: expected.into(),
        found: table
            .header
            .iter()
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(", "),
    };
    let id = one_of(&["id", "image_id", "file"])?
        .ok_or_else(|| lacking("`id` (or `image_id`, `file`)"))?;
    let label = one_of(&["ground_truth", "label"])?.ok_or_else(|| lacking("`ground_truth`"))?;
    let (prediction, text) = (
        one_of(&["prediction", "pred"])?,
        one_of(&["prediction_text"])?,
    );
    let prompted = match (prediction, text) {
        (Some(_), None) => false,
        (None, Some(_)) => true,
        _ => return Err(lacking("either `prediction` or `prediction_text`")),
    };
    let answer = prediction.or(text).expect("one of the two is there");
    let (prob_1, prob_yes) = (one_of(&["prob_1", "prob"])?, one_of(&["prob_yes"])?);
    let ((Some(score), None) | (None, Some(score))) = (prob_1, prob_yes) else {
        return Err(lacking("either `prob_1` or `prob_yes`"));
    };
    let prob_no = one_of(&["prob_no"])?;
    let used = [Some(id), Some(label), Some(answer), Some(score), prob_no];
    let unread = (0..table.header.len())
        .filter(|i| !used.contains(&Some(*i)))
        .map(|i| table.header[i].clone())
        .collect();
    let mut file = ResultFile {
        rows: Vec::with_capacity(table.rows.len()),
        bad: Vec::new(),
        dropped: Vec::new(),
        both_zero: 0,
        prompted,
        unread,
        has_prob_no: prob_no.is_some(),
    };
    for (line, record) in &table.rows {
        let mut bad = |rule, found: &str| {
            file.bad.push(BadRow {
                file: table.name.clone(),
                line: *line,
                rule,
                found: format!("`{}`", shorten(found, 60)),
            });
        };
        if record.len() != table.header.len() {
            bad(
                WIDTH_RULE,
                &format!("{} for {}", record.len(), table.header.len()),
            );
            continue;
        }
        let cell = |at: usize| record.get(at).unwrap_or_default();
        let key = cell(id).trim();
        if key.is_empty() {
            bad(ID_RULE, "");
            continue;
        }
        let Ok(truth) = label_of(cell(label).trim()) else {
            bad(LABEL_RULE, cell(label));
            continue;
        };
        let probability = |at: usize| -> Result<Option<f64>, String> {
            let text = cell(at).trim();
            match text {
                "" | "nan" | "NaN" => Ok(None),
                _ => table
                    .number(text)
                    .filter(|p| (0.0..=1.0).contains(p))
                    // A negative zero is a zero.
                    .map(|p| Some(p + 0.0))
                    .ok_or_else(|| text.to_owned()),
            }
        };
        let (mut score, prob_no) = match (probability(score), prob_no.map_or(Ok(None), probability))
        {
            (Ok(score), Ok(prob_no)) => (score, prob_no),
            (Err(found), _) | (_, Err(found)) => {
                bad(SCORE_RULE, &found);
                continue;
            }
        };
        let mut row = ResultRow {
            line: *line,
            id: key.to_owned(),
            label: truth,
            score,
            prob_no,
            predicted: None,
            outcome: Outcome::Ok,
            reason: None,
            text: None,
        };
        if prompted {
            let text = cell(answer);
            row.text = Some(text.to_owned());
            if text.trim() == ERROR_TEXT {
                // The probabilities beside it are the code's placeholders.
                (row.score, row.prob_no) = (None, None);
                (row.outcome, row.reason) = (Outcome::ModelError, Some(ERROR_REASON));
                file.rows.push(row);
                continue;
            }
            if score == Some(0.0) && prob_no == Some(0.0) {
                file.both_zero += 1;
                if zero_is_missing {
                    score = None;
                    (row.score, row.prob_no) = (None, None);
                }
            }
            row.predicted = parse_yes_no(text);
        } else {
            let Ok(Some(predicted)) = label_of(cell(answer).trim()) else {
                bad(PREDICTION_RULE, cell(answer));
                continue;
            };
            row.predicted = Some(predicted);
        }
        row.outcome = match (row.predicted, score) {
            (Some(_), Some(_)) => Outcome::Ok,
            (Some(_), None) => Outcome::ScoreUnavailable,
            (None, _) => Outcome::Unparseable,
        };
        file.rows.push(row);
    }
    let broken = file.bad.len() as u64;
    if broken > 0 {
        file.dropped.push(("breaks a rule", broken));
    }
    once(table, &mut file, on_bad);
    Ok(file)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Keep,
    /// Says the same as an earlier row.
    Repeat,
    /// Differs from another row of its id.
    Dispute,
}

// Ids that are there twice: of rows that say the same the first stays, of others none does.
fn once(table: &TextTable, file: &mut ResultFile, on_bad: OnBadRow) {
    let mut first: HashMap<&str, usize> = HashMap::new();
    let mut fate = vec![Fate::Keep; file.rows.len()];
    for (i, row) in file.rows.iter().enumerate() {
        match first.entry(&row.id) {
            Entry::Vacant(place) => {
                place.insert(i);
            }
            Entry::Occupied(place) => {
                let earlier = &file.rows[*place.get()];
                file.bad.push(BadRow {
                    file: table.name.clone(),
                    line: row.line,
                    rule: ONCE,
                    found: format!(
                        "`{}` again (first on line {})",
                        shorten(&row.id, 60),
                        earlier.line
                    ),
                });
                let same = ResultRow {
                    line: earlier.line,
                    ..row.clone()
                } == *earlier;
                if same {
                    fate[i] = Fate::Repeat;
                } else {
                    (fate[i], fate[*place.get()]) = (Fate::Dispute, Fate::Dispute);
                }
            }
        }
    }
    // A repeat of a row that turned out to be disputed goes with it.
    let disputed: Vec<bool> = file
        .rows
        .iter()
        .map(|row| fate[first[row.id.as_str()]] == Fate::Dispute)
        .collect();
    drop(first);
    for (fate, disputed) in fate.iter_mut().zip(disputed) {
        if disputed {
            *fate = Fate::Dispute;
        }
    }
    if on_bad == OnBadRow::Drop {
        for (kind, reason) in [
            (Fate::Repeat, "repeats a row"),
            (Fate::Dispute, "shares its id with a different row"),
        ] {
            let count = fate.iter().filter(|f| **f == kind).count() as u64;
            if count > 0 {
                file.dropped.push((reason, count));
            }
        }
        let mut keep = fate.iter().map(|fate| *fate == Fate::Keep);
        file.rows.retain(|_| keep.next().unwrap_or(false));
    }
}

/// Text that is no truth value.
pub(crate) struct NoTruth;

/// A truth value as pandas and numpy write it; none where it is unknown. -1 is what the code puts where a dataset has no
/// such label.
pub(crate) fn label_of(text: &str) -> Result<Option<bool>, NoTruth> {
    match text {
        "1" | "1.0" | "true" | "True" | "TRUE" => Ok(Some(true)),
        "0" | "0.0" | "false" | "False" | "FALSE" => Ok(Some(false)),
        "" | "-1" | "-1.0" | "nan" | "NaN" | "<NA>" | "None" => Ok(None),
        _ => Err(NoTruth),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, on_bad: OnBadRow) -> ResultFile {
        let table = TextTable::parse(text.as_bytes(), "a.csv").expect("text");
        read_rows(&table, false, on_bad).expect("columns")
    }

    #[test]
    fn rows_of_encoders() {
        let file = read(
            "id,ground_truth,prediction,prob_1\na,1,1,0.75\nb,0.0,0,1e-05\nc,,True,\nd,-1,0.0,0\n",
            OnBadRow::Error,
        );
        assert!(file.bad.is_empty() && !file.prompted);
        let short: Vec<_> = file
            .rows
            .iter()
            .map(|r| (r.label, r.predicted, r.score, r.outcome))
            .collect();
        assert_eq!(
            short,
            [
                (Some(true), Some(true), Some(0.75), Outcome::Ok),
                (Some(false), Some(false), Some(1e-5), Outcome::Ok),
                (None, Some(true), None, Outcome::ScoreUnavailable),
                (None, Some(false), Some(0.0), Outcome::Ok),
            ]
        );
    }

    #[test]
    fn rows_of_prompted_models() {
        let text = "id,ground_truth,prediction_text,prompt,prob_yes,prob_no\na,1,Yes.,q,0.6,0.3\nb,0,\"cannot tell, sorry\",q,0.2,0.1\nc,1,ERROR,q,0.0,0.0\nd,0,no,q,,\ne,0,no,q,0.0,0.0\n";
        let file = read(text, OnBadRow::Error);
        assert!(
            file.bad.is_empty() && file.prompted && file.both_zero == 1,
            "{:?}",
            file.bad
        );
        assert_eq!(file.unread, ["prompt"]);
        let short: Vec<_> = file
            .rows
            .iter()
            .map(|r| (r.predicted, r.score, r.prob_no, r.outcome))
            .collect();
        assert_eq!(
            short,
            [
                (Some(true), Some(0.6), Some(0.3), Outcome::Ok),
                (None, Some(0.2), Some(0.1), Outcome::Unparseable),
                (None, None, None, Outcome::ModelError),
                (Some(false), None, None, Outcome::ScoreUnavailable),
                (Some(false), Some(0.0), Some(0.0), Outcome::Ok),
            ]
        );
        let table = TextTable::parse(text.as_bytes(), "a").expect("text");
        let file = read_rows(&table, true, OnBadRow::Error).expect("columns");
        assert_eq!(file.rows[4].outcome, Outcome::ScoreUnavailable);
    }

    #[test]
    fn each_bad_row_names_its_line_and_rule() {
        for (row, rule) in [
            (",1,1,0.5", ID_RULE),
            ("a,2,1,0.5", LABEL_RULE),
            ("a,yes,1,0.5", LABEL_RULE),
            ("a,0.5,1,0.5", LABEL_RULE),
            ("a,1,2,0.5", PREDICTION_RULE),
            ("a,1,,0.5", PREDICTION_RULE),
            ("a,1,1,1.01", SCORE_RULE),
            ("a,1,1,-0.1", SCORE_RULE),
            ("a,1,1,inf", SCORE_RULE),
            ("a,1,1,high", SCORE_RULE),
            ("a,1,1", WIDTH_RULE),
            ("a,1,1,0.5,9", WIDTH_RULE),
            ("z,1,1,0.5", ONCE),
        ] {
            let text = format!("id,ground_truth,prediction,prob_1\nz,1,1,0.5\n{row}\n");
            let file = read(&text, OnBadRow::Error);
            assert_eq!(
                (file.bad.len(), file.bad[0].line, file.bad[0].rule),
                (1, 3, rule),
                "{row}"
            );
        }
    }

    #[test]
    fn of_doubled_rows_one_stays_only_where_they_agree() {
        let text = "id,ground_truth,prediction,prob_1\na,1,1,0.5\nb,1,1,0.5\na,1,1,0.5\nb,0,1,0.5\nb,1,1,0.5\nc,0,0,0.1\n";
        let file = read(text, OnBadRow::Drop);
        let ids: Vec<_> = file.rows.iter().map(|r| r.id.as_str()).collect();
        assert_eq!(ids, ["a", "c"]);
        assert_eq!(
            file.dropped,
            [
                ("repeats a row", 1),
                ("shares its id with a different row", 3)
            ]
        );
        assert_eq!(file.bad.len(), 3);
    }

    #[test]
    fn columns_must_be_clear() {
        for header in [
            "x,ground_truth,prediction,prob_1",
            "id,prediction,prob_1",
            "id,ground_truth,prob_1",
            "id,ground_truth,prediction,prediction_text,prob_1",
            "id,ground_truth,prediction",
            "id,ground_truth,prediction,prob_1,prob_yes",
            "id,id,ground_truth,prediction,prob_1",
        ] {
            let table = TextTable::parse(format!("{header}\n").as_bytes(), "a.csv").expect("text");
            let error = read_rows(&table, false, OnBadRow::Error)
                .err()
                .expect(header)
                .to_string();
            assert!(
                error.starts_with("`a.csv` has other columns: expected "),
                "{error}"
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic_or_break_a_rule(
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200),
            at in 0usize..120,
            whole in proptest::bool::ANY,
        ) {
            let mut text = b"id,ground_truth,prediction_text,prob_yes,prob_no\na,1,\"Yes, it is\",0.5,0.25\r\nb,0,no,1e-3,\n".to_vec();
            if whole {
                text = bytes;
            } else {
                let at = at.min(text.len());
                let end = (at + bytes.len() % 5).min(text.len());
                text.splice(at..end, bytes.into_iter().take(6));
            }
            let read = TextTable::parse(&text, "f").and_then(|table| read_rows(&table, false, OnBadRow::Drop));
            for row in read.iter().flat_map(|file| &file.rows) {
                proptest::prop_assert!(!row.id.is_empty());
                proptest::prop_assert!(row.score.is_none_or(|s| (0.0..=1.0).contains(&s)));
                proptest::prop_assert!(row.outcome != Outcome::Ok || row.score.is_some() && row.predicted.is_some());
            }
        }
    }
}
