//! The sentences that zero-shot classification tells a task's classes by (focus-benchmark.md, section 4). Data only; their hash is part
//! of a run's identity.

/// One task's sentences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Captions {
    /// The task.
    pub task: &'static str,
    /// Said of a negative photograph.
    pub negative: &'static str,
    /// Said of a positive one.
    pub positive: &'static str,
}

/// Every task that has sentences; `glaucoma_vcdr` has none of its own.
pub const CAPTIONS: [Captions; 3] = [
    Captions {
        task: "binary_dr",
        negative: "A fundus photograph of a healthy retina without diabetic retinopathy.",
        positive: "A fundus photograph of a retina with diabetic retinopathy.",
    },
    Captions {
        task: "referable_dr",
        negative: "A fundus photograph showing no referable diabetic retinopathy.",
        positive: "A fundus photograph showing referable diabetic retinopathy.",
    },
    Captions {
        task: "glaucoma",
        negative: "A fundus photograph of a healthy eye without glaucoma.",
        positive: "A fundus photograph showing signs of glaucoma.",
    },
];

/// A task's sentences.
pub fn captions_of(task: &str) -> Option<&'static Captions> {
    CAPTIONS.iter().find(|captions| captions.task == task)
}

impl Captions {
    /// In the order in which a model is asked about them.
    pub fn texts(&self) -> [String; 2] {
        [self.negative.to_owned(), self.positive.to_owned()]
    }

    /// `blake3:hex` of both, each with its length before it.
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for text in [self.negative, self.positive] {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        format!("blake3:{}", hasher.finalize().to_hex())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_of_known_tasks_and_told_apart() {
        let mut digests = std::collections::BTreeSet::new();
        for captions in CAPTIONS {
            assert!(crate::task::by_id(captions.task).is_some());
            assert_ne!(captions.negative, captions.positive);
            assert!(digests.insert(captions.digest()));
            assert_eq!(captions_of(captions.task), Some(&captions));
        }
        assert_eq!(captions_of("glaucoma_vcdr"), None);
        // What is hashed is where one sentence ends as well.
        let moved = |negative, positive| {
            Captions {
                task: "",
                negative,
                positive,
            }
            .digest()
        };
        assert_ne!(moved("ab", "c"), moved("a", "bc"));
    }

    #[test]
    fn sentences_are_the_benchmarks_letter_for_letter() {
        let Ok(spec) = std::fs::read_to_string(
            std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../../shared/spec/focus-benchmark.md"),
        ) else {
            // The page lies beside some checkouts only.
            return;
        };
        for captions in CAPTIONS {
            let row = format!(
                "| {} | {} | {} |",
                captions.task, captions.negative, captions.positive
            );
            assert!(spec.contains(&row), "{row}");
        }
    }
}
