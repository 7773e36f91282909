//! Split files of the published shape and the records they belong to, at full size, made up.

use focus_curation::splits::{PublishedFile, parse_published};
use focus_store::{Record, Records};
use std::collections::BTreeMap;
use std::path::Path;

pub struct Set {
    pub records: Records,
    pub file: PublishedFile,
}

pub struct Maker {
    dataset: &'static str,
    records: Vec<Record>,
    lines: Vec<String>,
}

impl Maker {
    pub fn new(dataset: &'static str, header: &str) -> Self {
        Self {
            dataset,
            records: Vec::new(),
            lines: vec![header.to_owned()],
        }
    }

    pub fn seven(dataset: &'static str) -> Self {
        Self::new(
            dataset,
            "dataset,image_id,split,image_path,Task_DR_Binary,Task_Referable,Task_Glaucoma",
        )
    }

    pub fn record(&mut self, path: String) -> &mut Record {
        self.records.push(Record {
            dataset: self.dataset.into(),
            id: format!("{:08x}", self.records.len()),
            path: Some(path),
            ..Record::default()
        });
        self.records.last_mut().expect("just pushed")
    }

    /// A row of the seven columns.
    pub fn row(&mut self, id: &str, split: &str, path: &str, labels: [Option<bool>; 3]) {
        let [dr, referable, glaucoma] = labels.map(|l| l.map_or("", |l| if l { "1" } else { "0" }));
        self.lines.push(format!(
            "{},{id},{split},/lustre/x/{path},{dr},{referable},{glaucoma}",
            self.dataset
        ));
    }

    pub fn line(&mut self, line: String) {
        self.lines.push(line);
    }

    pub fn done(self, tasks: &[&str]) -> Set {
        let text = self.lines.join("\n");
        Set {
            records: Records {
                tasks: tasks.iter().map(|t| (*t).to_owned()).collect(),
                rows: self.records,
            },
            file: parse_published(Path::new("/home/someone/split.csv"), text.as_bytes())
                .expect("the published shape"),
        }
    }
}

pub fn label(record: &mut Record, task: &str, label: bool) {
    record.labels.insert(task.into(), label);
    record.published_labels.insert(task.into(), label);
}

/// IDRiD: `photo(split, n)` gives the path below the folder. 103 training rows point at test photographs, 41 with the other referable label.
pub fn idrid() -> Set {
    let mut maker = Maker::seven("idrid");
    let folder = |split: &str| {
        if split == "train" {
            "a. Training Set"
        } else {
            "b. Testing Set"
        }
    };
    let referable = |split: &str, n: usize| n.is_multiple_of(2) != (split == "test" && n <= 41);
    for (split, count) in [("train", 413), ("test", 103)] {
        for n in 1..=count {
            let name = format!("IDRiD_{n:03}");
            let record = maker.record(format!(
                "B. Disease Grading/1. Original Images/{}/{name}.jpg",
                folder(split)
            ));
            record.source_split = Some(split.into());
            label(record, "binary_dr", true);
            label(record, "referable_dr", referable(split, n));
            let shown = if n <= 103 {
                folder("test")
            } else {
                folder(split)
            };
            let path = format!("raw/B.%20Disease%20Grading/1. Original Images/{shown}/{name}.jpg");
            maker.row(
                &name,
                split,
                &path,
                [Some(true), Some(referable(split, n)), None],
            );
        }
    }
    maker.done(&["binary_dr", "referable_dr"])
}

/// PAPILA: 121 of 244 patients straddle; 155 positive, of which 68 suspects that the corrected track leaves unknown here.
pub fn papila() -> Set {
    let mut maker = Maker::seven("papila");
    let mut photo = 0;
    for patient in 1..=244 {
        let splits = match patient {
            1..=121 => ["train", "test"],
            122..=207 => ["train", "train"],
            _ => ["test", "test"],
        };
        for (eye, split) in ["OD", "OS"].iter().zip(splits) {
            let name = format!("RET{patient:03}{eye}");
            // 155 of 488, spread evenly; 68 of them suspects.
            let nth = photo * 155 / 488;
            let positive = (photo + 1) * 155 / 488 > nth;
            photo += 1;
            let record = maker.record(format!("FundusImages/{name}.jpg"));
            record.patient = Some(patient.to_string());
            record.published_labels.insert("glaucoma".into(), positive);
            if !(positive && nth < 68) {
                record.labels.insert("glaucoma".into(), positive);
            }
            maker.row(
                &name,
                split,
                &format!("PAPILA/FundusImages/{name}.jpg"),
                [None, None, Some(positive)],
            );
        }
    }
    maker.done(&["glaucoma"])
}

/// BRSET: patients of one or two photographs in the file; 50 photographs of people without diabetes are not in it.
pub fn brset() -> Set {
    let mut maker = Maker::new("brset", "patient_id,image_id,split");
    let (mut patient, mut image) = (0, 0);
    for (split, images, patients) in [("train", 1417, 742), ("val", 394, 201), ("test", 768, 403)] {
        for k in 0..patients {
            patient += 1;
            for _ in 0..if k < images - patients { 2 } else { 1 } {
                image += 1;
                let record = maker.record(format!("fundus_photos/img{image:05}.jpg"));
                record.patient = Some(patient.to_string());
                label(record, "glaucoma", image % 5 == 0);
                maker.line(format!("{patient},img{image:05},{split}"));
            }
        }
    }
    for _ in 0..50 {
        image += 1;
        maker
            .record(format!("fundus_photos/img{image:05}.jpg"))
            .patient = Some(format!("{}", 9000 + image));
    }
    maker.done(&["glaucoma"])
}

/// mBRSET: views 1 and 3 of 1,291 patients; of the first 386 patients 124 are test patients, so that 248 rows meet a test row by position.
pub fn mbrset() -> Set {
    let mut maker = Maker::new("mbrset", "patient,file,split");
    let mut splits = vec!["test"; 124];
    splits.extend(vec!["train"; 262]);
    splits.extend(vec!["test"; 262]);
    splits.extend(vec!["val"; 193]);
    splits.extend(vec!["train"; 450]);
    for (i, split) in splits.iter().enumerate() {
        let patient = i + 1;
        for view in 1..=4 {
            let record = maker.record(format!("images/{patient}.{view}.jpg"));
            record.patient = Some(patient.to_string());
            label(record, "binary_dr", patient % 3 == 0);
            if view % 2 == 1 {
                maker.line(format!("{patient},{patient}.{view}.jpg,{split}"));
            }
        }
    }
    maker.done(&["binary_dr"])
}

/// RFMiD and RFMiD 2.0: ids restart in each split; referable is known as published only.
pub fn rfmid(dataset: &'static str, sizes: [usize; 3], extension: &str) -> Set {
    let mut maker = Maker::seven(dataset);
    for ((split, source, folder), count) in [
        ("train", "train", "Training"),
        ("val", "validation", "Validation"),
        ("test", "test", "Test"),
    ]
    .into_iter()
    .zip(sizes)
    {
        for n in 1..=count {
            let path = format!("{folder}_Set/{folder}/{n}.{extension}");
            let record = maker.record(path.clone());
            record.source_split = Some(source.into());
            label(record, "binary_dr", n % 4 == 0);
            record
                .published_labels
                .insert("referable_dr".into(), n <= 2);
            // The copy at hand has other letter case than the one the file was made from.
            maker.row(
                &n.to_string(),
                split,
                &path.to_uppercase(),
                [Some(n % 4 == 0), Some(n <= 2), None],
            );
        }
    }
    maker.done(&["binary_dr", "referable_dr"])
}

/// Sets without patients or source splits: names as `name` gives them, in the file and in the folder.
pub fn plain(
    dataset: &'static str,
    task: &'static str,
    sizes: (usize, usize),
    name: impl Fn(usize) -> (String, String),
) -> Set {
    let mut maker = Maker::seven(dataset);
    for n in 0..sizes.0 + sizes.1 {
        let (in_file, in_folder) = name(n);
        let positive = n % 3 == 0;
        label(maker.record(in_folder), task, positive);
        let split = if n < sizes.0 { "train" } else { "test" };
        let labels = BTreeMap::from([(task, Some(positive))]);
        let of = |task: &str| labels.get(task).copied().flatten();
        let id = in_file.rsplit('/').next().unwrap_or_default().to_owned();
        maker.row(
            &id,
            split,
            &in_file,
            [of("binary_dr"), of("referable_dr"), of("glaucoma")],
        );
    }
    maker.done(&[task])
}
