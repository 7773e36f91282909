//! The questions: the paper's, built in, or a user's own files. Knows tasks by id and no dataset.

use crate::eval::{Advised, EvalError};
use crate::task;
use std::collections::BTreeMap;
use std::path::Path;

/// The paper's questions, for both tracks and every dataset.
const PAPER: [(&str, &str); 3] = [
    ("binary_dr", include_str!("prompts/binary_dr.txt")),
    ("referable_dr", include_str!("prompts/referable_dr.txt")),
    ("glaucoma", include_str!("prompts/glaucoma.txt")),
];
/// A question longer than this is a mistake.
const LONGEST: u64 = 64 << 10;

/// One task's question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The task.
    pub task: String,
    /// The text as the model gets it: the file's, without the line ends at its end.
    pub text: String,
    /// `blake3:hex` of the text.
    pub digest: String,
    /// Not the paper's, but a user's file.
    pub replaced: bool,
}

impl Prompt {
    fn new(task: &str, text: &str, replaced: bool) -> Self {
        let text = text.trim_end_matches(['\n', '\r']).to_owned();
        Self {
            task: task.into(),
            digest: format!("blake3:{}", blake3::hash(text.as_bytes()).to_hex()),
            text,
            replaced,
        }
    }
}

/// Questions by task: the paper's, with those of a folder (`<task>.txt`) over them.
pub fn read(folder: Option<&Path>) -> Result<BTreeMap<String, Prompt>, EvalError> {
    let paper = PAPER.map(|(task, text)| (task.to_owned(), Prompt::new(task, text, false)));
    let mut prompts = BTreeMap::from(paper);
    let Some(folder) = folder else {
        return Ok(prompts);
    };
    let wrong = |message: String| {
        let known: Vec<_> = task::all()
            .iter()
            .map(|t| format!("`{}.txt`", t.id))
            .collect();
        let hint = format!("--prompts takes a folder with any of: {}", known.join(", "));
        EvalError::Input(Advised::new(message, hint))
    };
    let failed = |path: &Path, error: &dyn std::fmt::Display| {
        wrong(format!("Cannot read prompts `{}`: {error}", path.display()))
    };
    let mut found = false;
    for entry in std::fs::read_dir(folder).map_err(|e| failed(folder, &e))? {
        let path = entry.map_err(|e| failed(folder, &e))?.path();
        if path.extension().is_none_or(|end| end != "txt") {
            continue;
        }
        let stem = path
            .file_stem()
            .and_then(|s| s.to_str())
            .unwrap_or_default();
        if task::by_id(stem).is_none() {
            return Err(wrong(format!("Prompt `{}` is for no task", path.display())));
        }
        let size = path.metadata().map_err(|e| failed(&path, &e))?.len();
        if size > LONGEST {
            return Err(failed(
                &path,
                &format!("expected at most {LONGEST} bytes, found {size}"),
            ));
        }
        let text = std::fs::read_to_string(&path).map_err(|e| failed(&path, &e))?;
        if text.trim().is_empty() {
            return Err(failed(&path, &"expected a question, found nothing"));
        }
        found = true;
        prompts.insert(stem.into(), Prompt::new(stem, &text, true));
    }
    if !found {
        return Err(failed(folder, &"expected prompts, found no `.txt` file"));
    }
    Ok(prompts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_asks_one_question_a_task() {
        let prompts = read(None).expect("built in");
        assert_eq!(
            prompts.keys().collect::<Vec<_>>(),
            ["binary_dr", "glaucoma", "referable_dr"]
        );
        for prompt in prompts.values() {
            assert!(
                prompt
                    .text
                    .starts_with("Based on the fundus image, does this eye show ")
            );
            assert!(
                prompt.text.ends_with(
                    "Respond only with \"yes\" or \"no\" without additional commentary."
                )
            );
            assert!(!prompt.text.contains('\n') && !prompt.replaced);
        }
        // The published bytes: a change here is another benchmark.
        assert_eq!(prompts["binary_dr"].digest, "blake3:5a49fc9f99f99f25b10cefa1f0d878a916f730ee0f4fa23f3135f90a5479601d");
    }

    #[test]
    fn a_folder_replaces_what_it_holds() {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::write(dir.path().join("glaucoma.txt"), "Glaucoma?\r\n").expect("writes");
        std::fs::write(dir.path().join("notes.md"), "not a prompt").expect("writes");
        let prompts = read(Some(dir.path())).expect("reads");
        let own = &prompts["glaucoma"];
        assert_eq!((own.text.as_str(), own.replaced), ("Glaucoma?", true));
        assert!(!prompts["binary_dr"].replaced);
        assert_ne!(own.digest, read(None).expect("built in")["glaucoma"].digest);
    }

    #[test]
    fn senseless_folders_are_refused_by_name() {
        let dir = tempfile::tempdir().expect("a folder");
        let said = || {
            let error = read(Some(dir.path())).expect_err("senseless");
            assert!(
                error
                    .hint()
                    .is_some_and(|hint| hint.contains("`glaucoma.txt`"))
            );
            error.to_string()
        };
        assert!(said().contains("no `.txt` file"));
        std::fs::write(dir.path().join("dr.txt"), "?").expect("writes");
        assert!(said().contains("dr.txt` is for no task"));
        std::fs::remove_file(dir.path().join("dr.txt")).expect("removes");
        std::fs::write(dir.path().join("glaucoma.txt"), " \n").expect("writes");
        assert!(said().contains("found nothing"));
        std::fs::write(dir.path().join("glaucoma.txt"), [0xff, 0xfe]).expect("writes");
        assert!(said().contains("glaucoma.txt"));
        std::fs::write(dir.path().join("glaucoma.txt"), "x".repeat(70_000)).expect("writes");
        assert!(said().contains("at most"));
        assert!(read(Some(&dir.path().join("none"))).is_err());
    }
}
