//! Vertical cup-to-disc ratios from a dataset's masks: mappers name the pictures and their coding, the host reads them. Knows
//! records and masks; no model, no metric.

use focus_datasets::{Mapped, Mask, Record, Unusable};
use focus_images::{LabelMask, Limits, MaskCoding, read_mask_file, vertical_cup_to_disc};
use rayon::prelude::*;
use std::path::Path;

/// Label of the structure in a mask as read here.
const INSIDE: u8 = 1;

/// Measure every record that has masks of disc and cup and no ratio yet, where some task is labelled by the ratio. A mask that
/// cannot be used is noted; the record stays as it is.
pub fn measure(mapped: &mut Mapped) {
    let descriptor = &mapped.summary.descriptor;
    if descriptor
        .tasks
        .iter()
        .all(|task| task.vcdr_at_least.is_none())
    {
        return;
    }
    let root = &mapped.summary.root;
    let found: Vec<_> = mapped
        .records
        .par_iter()
        .map(|record| of_record(record, root))
        .collect();
    for (record, found) in mapped.records.iter_mut().zip(found) {
        match found {
            None => {}
            Some(Ok(ratio)) => record.set_vcdr(ratio, descriptor),
            Some(Err((file, reason))) => mapped.summary.unusable.push(Unusable {
                table: record.table.clone(),
                line: record.line,
                file,
                reason,
            }),
        }
    }
}

type Found = Result<f64, (String, String)>;

fn of_record(record: &Record, root: &Path) -> Option<Found> {
    if record.vcdr.is_some() {
        return None;
    }
    let named = |what: &str| record.masks.iter().find(|mask| mask.what == what);
    let (disc, cup) = (named("disc")?, named("cup")?);
    Some(ratio(disc, cup, root))
}

fn ratio(disc: &Mask, cup: &Mask, root: &Path) -> Found {
    let (whole, part) = (read(disc, root)?, read(cup, root)?);
    let measured = vertical_cup_to_disc((&whole, &[INSIDE]), (&part, &[INSIDE]));
    match measured {
        Some(ratio) if ratio <= 1.0 => Ok(ratio),
        Some(ratio) => Err((
            cup.path.clone(),
            format!("its cup is {ratio:.2} times as tall as its disc"),
        )),
        None => Err((
            disc.path.clone(),
            "has no disc, or another size than the cup's".into(),
        )),
    }
}

fn read(mask: &Mask, root: &Path) -> Result<LabelMask, (String, String)> {
    let inside = mask.values.iter().map(|&value| (u16::from(value), INSIDE));
    let rest = mask.others.iter().map(|&value| (u16::from(value), 0));
    let coding = MaskCoding::new(rest.chain(inside));
    read_mask_file(root.join(&mask.path), &coding, &Limits::default())
        .map_err(|error| (mask.path.clone(), error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(what: &str, path: &str, values: &[u8], others: &[u8]) -> Mask {
        Mask {
            what: what.into(),
            path: path.into(),
            values: values.to_vec(),
            others: others.to_vec(),
        }
    }

    /// A picture of one column: rows of these values.
    fn column(dir: &Path, name: &str, values: &[u8]) {
        let head = format!("P5 1 {} 255\n", values.len());
        std::fs::write(dir.join(name), [head.as_bytes(), values].concat()).expect("writes");
    }

    #[test]
    fn disc_and_cup_in_one_picture_give_the_ratio_of_their_heights() {
        let dir = tempfile::tempdir().expect("a folder");
        column(dir.path(), "m.pgm", &[255, 128, 128, 0, 0, 0, 128, 255]);
        let disc = mask("disc", "m.pgm", &[128, 0], &[255]);
        let cup = mask("cup", "m.pgm", &[0], &[128, 255]);
        assert_eq!(ratio(&disc, &cup, dir.path()), Ok(0.5));
    }

    #[test]
    fn another_coding_a_missing_file_and_a_cup_beyond_its_disc_are_said() {
        let dir = tempfile::tempdir().expect("a folder");
        column(dir.path(), "m.pgm", &[0, 1, 2, 7]);
        let said = |disc: &Mask, cup: &Mask| ratio(disc, cup, dir.path()).expect_err("unusable");
        let disc = mask("disc", "m.pgm", &[1, 2], &[0]);
        let cup = mask("cup", "m.pgm", &[2], &[0, 1]);
        assert!(said(&disc, &cup).1.contains('7'), "{:?}", said(&disc, &cup));
        assert_eq!(
            said(&mask("disc", "none.pgm", &[1], &[0]), &cup).0,
            "none.pgm"
        );
        column(dir.path(), "d.pgm", &[0, 1, 0, 0]);
        column(dir.path(), "c.pgm", &[1, 1, 0, 0]);
        let (disc, cup) = (
            mask("disc", "d.pgm", &[1], &[0]),
            mask("cup", "c.pgm", &[1], &[0]),
        );
        assert!(said(&disc, &cup).1.contains("2.00 times"));
    }
}
