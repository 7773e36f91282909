//! What comes back from the mapper: each outcome is checked, its images are found, and records go to the sink.

use crate::check;
use crate::contour;
use crate::contract::wit;
use crate::error::{DatasetError, MapperFault, Place};
use crate::layout::Lookup;
use crate::record::{
    Age, BoundingBox, Contour, Dropped, Finding, Landmark, Mask, Missing, Record, SampleId,
    TaskLabel, Unusable,
};
use crate::run::Run;
use crate::text;

impl Run<'_, '_> {
    /// Settles a batch of outcomes.
    pub(crate) fn outcomes(&mut self, outcomes: Vec<wit::Outcome>) -> Result<(), DatasetError> {
        let mut records = Vec::with_capacity(outcomes.len());
        for outcome in outcomes {
            let reference = (outcome.row.table, outcome.row.row);
            let (file, line) = match self.accounts.answer(reference.0, reference.1) {
                Ok((file, line)) => (file.to_owned(), line),
                Err(fault) => return Err(self.session.fault(fault)),
            };
            let place = || Place {
                file: file.clone(),
                line: Some(line.into()),
            };
            match outcome.fate {
                wit::Fate::Used => self.used_rows += 1,
                wit::Fate::Dropped(drop) => {
                    let long = drop
                        .reason
                        .len()
                        .max(drop.detail.as_ref().map_or(0, String::len));
                    if long > self.limits.text_bytes || drop.reason.is_empty() {
                        let limit = self.limits.text_bytes;
                        let what =
                            format!("expected a reason of 1 to {limit} bytes, found one of {long}");
                        return Err(self.session.fault(MapperFault::Outcome {
                            place: place(),
                            what,
                        }));
                    }
                    let clean = |text: String| text::quote(&text, self.limits.text_bytes);
                    let (reason, detail) = (clean(drop.reason), drop.detail.map(clean));
                    self.dropped.push(Dropped {
                        table: file,
                        line,
                        reason,
                        detail,
                    });
                }
                wit::Fate::Mapped(samples) => {
                    let (found, limit) = (samples.len(), self.limits.samples_per_row);
                    if !(1..=limit).contains(&found) {
                        let what = format!("expected 1 to {limit} samples, found {found}");
                        return Err(self.session.fault(MapperFault::Outcome {
                            place: place(),
                            what,
                        }));
                    }
                    for sample in samples {
                        check::sample(&sample, self.descriptor, self.limits).map_err(|what| {
                            self.session.fault(MapperFault::Sample {
                                place: place(),
                                what,
                            })
                        })?;
                        records.extend(self.record(sample, reference, &file, line)?);
                    }
                }
            }
        }
        self.mapped += records.len() as u64;
        if records.is_empty() {
            Ok(())
        } else {
            (self.sink)(records).map_err(DatasetError::Sink)
        }
    }

    /// The record of a checked sample; `None`, and noted, where its image is missing.
    fn record(
        &mut self,
        sample: wit::Sample,
        row: (u32, u32),
        file: &str,
        line: u32,
    ) -> Result<Option<Record>, DatasetError> {
        let place = || Place {
            file: file.into(),
            line: Some(line.into()),
        };
        let Some(path) = self.resolve(&sample.image, place)? else {
            let folder = self.folders[sample.image.folder as usize]
                .as_ref()
                .map(|folder| folder.path.as_str());
            let spec = &self.descriptor.folders[sample.image.folder as usize];
            let image = format!("{}/{}", folder.unwrap_or(&spec.id), sample.image.name);
            self.missing.push(Missing {
                table: file.into(),
                line,
                image,
            });
            return Ok(None);
        };
        let hash = blake3::hash(path.as_bytes());
        let key: [u8; 16] = hash.as_bytes()[..16].try_into().expect("16 of 32 bytes");
        if let Some((table, number)) = self.taken.insert(key, row) {
            let first = self.accounts.place(table, number);
            let first = first.map_or_else(place, |(file, line)| Place {
                file: file.into(),
                line: Some(line.into()),
            });
            return Err(DatasetError::ImageTwice {
                image: path,
                first,
                second: place(),
            });
        }
        let mut masks = Vec::with_capacity(sample.masks.len());
        for mask in sample.masks {
            if let Some(path) = self.part(&mask.image, file, line)? {
                masks.push(Mask {
                    what: mask.what,
                    path,
                    values: mask.values,
                    others: mask.others,
                });
            }
        }
        let mut contours = Vec::with_capacity(sample.contours.len());
        for contour in sample.contours {
            if let Some(path) = self.part(&contour.file, file, line)? {
                contours.push(Contour {
                    structure: contour.structure.into(),
                    annotator: contour.annotator,
                    path,
                });
            }
        }
        let (measured, faults) = contour::ratio(&contours, self.root, self.limits);
        self.unusable
            .extend(faults.into_iter().map(|(path, reason)| Unusable {
                table: file.into(),
                line,
                file: path,
                reason,
            }));
        let task = |index: u32| self.descriptor.tasks[index as usize].id.clone();
        let label = |l: wit::Label| TaskLabel {
            task: task(l.task),
            as_published: l.as_published.into(),
            corrected: l.corrected.into(),
        };
        let mut record = Record {
            sample: SampleId {
                dataset: self.descriptor.id.clone(),
                split: sample.split.map(Into::into),
                path,
            },
            table: file.into(),
            line,
            patient: sample.patient,
            eye: sample.eye.map(Into::into),
            view: sample.view.map(Into::into),
            labels: sample.labels.into_iter().map(label).collect(),
            grade: sample.grade,
            edema: sample.edema,
            age: sample.age.map(|age| Age {
                years: age.years,
                at_least: age.at_least,
            }),
            sex: sample.sex.map(Into::into),
            quality: sample.quality.map(Into::into),
            vcdr: None,
            camera: sample.camera,
            findings: sample
                .findings
                .into_iter()
                .map(|f| Finding {
                    name: f.name,
                    state: f.state.into(),
                })
                .collect(),
            landmarks: sample
                .landmarks
                .into_iter()
                .map(|l| Landmark {
                    kind: l.kind.into(),
                    x: l.x,
                    y: l.y,
                    frame: l.frame.into(),
                })
                .collect(),
            boxes: sample
                .boxes
                .into_iter()
                .map(|b| BoundingBox {
                    what: b.what,
                    x1: b.x1,
                    y1: b.y1,
                    x2: b.x2,
                    y2: b.y2,
                    frame: b.frame.into(),
                })
                .collect(),
            masks,
            contours,
        };
        // The source's own ratio comes before one that is measured here.
        if let Some(vcdr) = sample.vcdr.or(measured) {
            record.set_vcdr(vcdr, self.descriptor);
        }
        Ok(Some(record))
    }

    /// The file of a mask or contour, below the data folder. One that is not there is noted, unless its whole folder is
    /// absent, which the summary says once.
    fn part(
        &mut self,
        image: &wit::ImageRef,
        file: &str,
        line: u32,
    ) -> Result<Option<String>, DatasetError> {
        let place = || Place {
            file: file.into(),
            line: Some(line.into()),
        };
        let found = self.resolve(image, place)?;
        if found.is_none()
            && let Some(folder) = &self.folders[image.folder as usize]
        {
            let missing = Unusable {
                table: file.into(),
                line,
                file: format!("{}/{}", folder.path, image.name),
                reason: "is not there".into(),
            };
            // Structures that share a picture lack it once.
            if self.unusable.last() != Some(&missing) {
                self.unusable.push(missing);
            }
        }
        Ok(found)
    }

    /// The file of an image, below the data folder; `None` where it is not there.
    fn resolve(
        &mut self,
        image: &wit::ImageRef,
        place: impl Fn() -> Place,
    ) -> Result<Option<String>, DatasetError> {
        let Some(folder) = &mut self.folders[image.folder as usize] else {
            return Ok(None);
        };
        match folder.take(&image.name) {
            Lookup::Found(path) => Ok(Some(path)),
            Lookup::Missing => Ok(None),
            Lookup::Ambiguous(paths) => Err(DatasetError::AmbiguousImage {
                place: place(),
                name: image.name.clone(),
                matches: text::list(&paths, 4),
            }),
        }
    }
}
