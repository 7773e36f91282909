//! Folders and mappers for the tests.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use focus_datasets::{
    Age, DatasetError, Job, Limits, Mapped, MapperSource, Record, Track, Truth, map_stream,
};

/// A folder that goes away with the test.
pub struct Data {
    dir: tempfile::TempDir,
}

impl Data {
    pub fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Writes a file, with the folders above it.
    pub fn file(&self, path: &str, bytes: impl AsRef<[u8]>) -> &Self {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
        self
    }

    pub fn remove(&self, path: &str) -> &Self {
        fs::remove_file(self.dir.path().join(path)).unwrap();
        self
    }
}

pub fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// A component of `datasets-wasm/dist`, or of the folder under test.
pub fn component(file: &str) -> PathBuf {
    match std::env::var_os("FOCUS_MAPPERS_DIR") {
        Some(folder) => Path::new(&folder).join(file),
        None => project().join("datasets-wasm/dist").join(file),
    }
}

pub fn mapper(file: &str) -> MapperSource {
    MapperSource::Path(component(file))
}

pub fn map(file: &str, data: &Path) -> Result<Mapped, DatasetError> {
    map_with(file, data, &[], &Limits::default())
}

pub fn map_with(
    file: &str,
    data: &Path,
    options: &[(&str, &str)],
    limits: &Limits,
) -> Result<Mapped, DatasetError> {
    let options: Vec<(String, String)> = options
        .iter()
        .map(|(n, v)| ((*n).into(), (*v).into()))
        .collect();
    let mapper = mapper(file);
    let mut records = Vec::new();
    // Compiling is most of a run's time; the cache is shared by all tests.
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mappers");
    let job = Job {
        mapper: &mapper,
        data,
        options: &options,
        limits,
        cache: Some(&cache),
    };
    let summary = map_stream(&job, &mut |batch| {
        records.extend(batch);
        Ok(())
    })?;
    Ok(Mapped { summary, records })
}

/// The message, with the folder of the components taken out.
pub fn message(result: Result<Mapped, DatasetError>) -> String {
    let message = result.expect_err("expected an error").to_string();
    let folder = component("").display().to_string();
    message.replace(&folder, "")
}

/// One line of JSON a record.
pub fn lines(mapped: &Mapped) -> String {
    let lines = mapped
        .records
        .iter()
        .map(|record| serde_json::to_string(record).unwrap());
    lines.collect::<Vec<_>>().join("\n")
}

/// A record in one line: file, split, what is known, labels as published and corrected (`+`, `-`, `?`).
pub fn brief(record: &Record) -> String {
    let file = record.sample.path.rsplit('/').next().unwrap();
    let mut words = vec![file.to_owned()];
    words.extend(record.sample.split.map(|split| split.to_string()));
    words.extend(record.patient.as_ref().map(|patient| format!("p{patient}")));
    words.extend(record.eye.map(|eye| eye.to_string()));
    words.extend(record.view.map(|view| view.to_string()));
    let plus = |age: Age| if age.at_least { "+" } else { "" };
    words.extend(record.age.map(|age| format!("{}{}", age.years, plus(age))));
    words.extend(record.sex.map(|sex| sex.to_string()));
    words.extend(record.quality.map(|quality| quality.to_string()));
    words.extend(record.grade.map(|grade| format!("grade{grade}")));
    words.extend(record.edema.map(|edema| format!("edema{edema}")));
    words.extend(record.vcdr.map(|vcdr| format!("vcdr{vcdr:.3}")));
    let sign = |truth: Truth| match truth {
        Truth::Positive => '+',
        Truth::Negative => '-',
        Truth::Unknown => '?',
    };
    words.extend(record.labels.iter().map(|label| {
        let (published, corrected) = (sign(label.as_published), sign(label.corrected));
        format!("{}:{published}{corrected}", label.task)
    }));
    words.join(" ")
}

pub fn briefs(mapped: &Mapped) -> Vec<String> {
    mapped.records.iter().map(brief).collect()
}

/// Positive, negative and unknown labels of a task in a track.
pub fn counts(mapped: &Mapped, task: &str, track: Track) -> [usize; 3] {
    let of = |truth| {
        let labels = mapped
            .records
            .iter()
            .map(|record| record.label(task, track));
        labels.filter(|label| *label == truth).count()
    };
    [of(Truth::Positive), of(Truth::Negative), of(Truth::Unknown)]
}

/// The sample label files of the specification, where they are at hand. They are made up, in the true shape.
pub fn samples(dataset: &str) -> Option<PathBuf> {
    let path = project().join("../shared/samples").join(dataset);
    if !path.is_dir() {
        eprintln!("skipped: no `{}`", path.display());
        return None;
    }
    Some(path)
}

/// A workbook of one sheet, as a spreadsheet program writes it: rows of (row number, cells); numbers are numbers, an empty
/// cell is left out. `merged` are ranges such as `E1:G1`.
pub fn workbook(rows: &[(u32, &[&str])], merged: &[&str]) -> Vec<u8> {
    archive(sheet(rows, merged), None)
}

/// The XML of its sheet.
pub fn sheet(rows: &[(u32, &[&str])], merged: &[&str]) -> String {
    let mut sheet = String::from(
        r#"<?xml version="1.0" encoding="UTF-8"?><worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>"#,
    );
    for (number, cells) in rows {
        sheet += &format!(r#"<row r="{number}">"#);
        for (column, cell) in (b'A'..=b'Z').zip(*cells) {
            let place = format!("{}{number}", char::from(column));
            match cell {
                &"" => {}
                cell if cell.starts_with('#') && cell.ends_with('!') => {
                    sheet += &format!(r#"<c r="{place}" t="e"><v>{cell}</v></c>"#);
                }
                cell if cell.parse::<f64>().is_ok() => {
                    sheet += &format!(r#"<c r="{place}"><v>{cell}</v></c>"#);
                }
                cell => {
                    sheet += &format!(
                        r#"<c r="{place}" t="inlineStr"><is><t xml:space="preserve">{cell}</t></is></c>"#
                    );
                }
            }
        }
        sheet += "</row>";
    }
    sheet += "</sheetData>";
    if !merged.is_empty() {
        sheet += &format!(r#"<mergeCells count="{}">"#, merged.len());
        for range in merged {
            sheet += &format!(r#"<mergeCell ref="{range}"/>"#);
        }
        sheet += "</mergeCells>";
    }
    sheet += "</worksheet>";
    sheet
}

/// A workbook around the XML of a sheet and of shared strings.
pub fn archive(sheet: String, strings: Option<&str>) -> Vec<u8> {
    let parts = [
        (
            "[Content_Types].xml",
            r#"<?xml version="1.0" encoding="UTF-8"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/></Types>"#.to_owned(),
        ),
        (
            "_rels/.rels",
            r#"<?xml version="1.0" encoding="UTF-8"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="xl/workbook.xml"/></Relationships>"#.to_owned(),
        ),
        (
            "xl/workbook.xml",
            r#"<?xml version="1.0" encoding="UTF-8"?><workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="Sheet1" sheetId="1" r:id="rId1"/></sheets></workbook>"#.to_owned(),
        ),
        (
            "xl/_rels/workbook.xml.rels",
            r#"<?xml version="1.0" encoding="UTF-8"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet1.xml"/></Relationships>"#.to_owned(),
        ),
        ("xl/worksheets/sheet1.xml", sheet),
    ];
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let strings = strings.map(|text| ("xl/sharedStrings.xml", text.to_owned()));
    for (name, text) in parts.into_iter().chain(strings) {
        archive
            .start_file(name, zip::write::SimpleFileOptions::default())
            .unwrap();
        archive.write_all(text.as_bytes()).unwrap();
    }
    archive.finish().unwrap().into_inner()
}
