//! Whole prompting runs on drawn photographs and a fake generator: what is asked, what comes of it, what a kill and a cache change.

mod support;

use crate::config::AdapterChoice;
use crate::eval::EvalError;
use focus_analysis::Track;
use focus_models::fake::{FakeGenerator, opened_generator};
use focus_store::{Outcome, RunView};
use focus_wire::FailureKind;
use support::{Place, Spoken, contents};

const TASKS: [&str; 2] = ["binary_dr", "glaucoma"];

fn fake() -> FakeGenerator {
    FakeGenerator::new(opened_generator(3))
}

#[test]
fn a_run_asks_every_task_of_each_test_image_in_one_group() {
    let place = Place::new(10);
    let spoken = Spoken::default();
    let outcomes = place
        .run(&place.config(), &spoken.over(fake()))
        .expect("runs");
    assert_eq!(outcomes.len(), 1);
    let groups = spoken.groups();
    // Sample 0 is a training image.
    assert_eq!(
        groups.iter().map(|g| g.sample).collect::<Vec<_>>(),
        (1..10).collect::<Vec<_>>()
    );
    for group in &groups {
        assert_eq!((group.prompts.len(), group.pictures.len()), (2, 1));
        assert!(
            group.prompts[0].contains("diabetic retinopathy")
                && group.prompts[1].contains("glaucoma")
        );
    }
    let asks = spoken.asks();
    assert_eq!(
        (asks.len(), asks[0].score.len(), asks[0].max_new_tokens),
        (1, 12, 128)
    );
    let report = &outcomes[0].report;
    let cells: Vec<_> = report
        .cells
        .iter()
        .map(|c| c.analysis.cell.task.as_str())
        .collect();
    assert_eq!(cells, TASKS);
    assert_eq!(report.cells[0].analysis.train, 0);
    assert_eq!(report.splits["test"].answered, 9);
    let prompting = report.facts.prompting.as_ref().expect("prompted");
    assert!(
        prompting
            .prompts
            .iter()
            .all(|p| !p.replaced && p.digest.starts_with("blake3:"))
    );
}

#[test]
fn labels_leave_every_prompt_and_pixel_alone_and_no_name_reaches_the_model() {
    let asked = |turn: usize| {
        let mut place = Place::new(10);
        place.permute_labels(turn);
        let spoken = Spoken::default();
        place
            .run(&place.config(), &spoken.over(fake()))
            .expect("runs");
        for group in spoken.groups() {
            for prompt in &group.prompts {
                for word in ["id", "photo", "patient-", "synthetic", "test set", ".ppm"] {
                    let said = prompt.split_whitespace().any(|found| found == word);
                    assert!(!said, "`{word}` in {prompt}");
                }
            }
        }
        let bytes = |g: &focus_models::AskedGroup| {
            let pictures: Vec<_> = g
                .pictures
                .iter()
                .map(|p| (p.width, p.height, p.rgb.to_vec()))
                .collect();
            (g.sample, g.prompts.clone(), pictures)
        };
        spoken.groups().iter().map(bytes).collect::<Vec<_>>()
    };
    let first = asked(0);
    assert!(!first.is_empty());
    for turn in 1..4 {
        assert_eq!(asked(turn), first, "permutation {turn}");
    }
}

#[test]
fn outcomes_are_counted_by_reason_in_both_tracks() {
    let mut place = Place::new(16);
    place.break_photograph(2);
    let generator = fake()
        .fail(3, FailureKind::Crash)
        .refuse(4)
        .say(|group, _| match group.sample {
            5 => "I know".into(),
            6 => String::new(),
            n if n % 2 == 0 => "Yes.".into(),
            _ => "**no**".into(),
        });
    let outcomes = place
        .run(&place.config(), &Spoken::default().over(generator))
        .expect("runs");
    let report = &outcomes[0].report;
    assert_eq!(
        (outcomes[0].counts.failed, outcomes[0].counts.computed),
        (2, 13)
    );
    let analysis = &report.cells[0].analysis;
    let excluded: Vec<_> = analysis
        .excluded
        .iter()
        .map(|(k, n)| (k.as_str(), *n))
        .collect();
    let image = excluded.iter().find(|(k, _)| k.starts_with("image_error:"));
    assert_eq!(image.map(|(_, n)| *n), Some(1), "{excluded:?}");
    for wanted in [
        ("model_error:crash", 1),
        ("refused:declined", 1),
        ("unparseable:no_yes_or_no", 1),
        ("unparseable:no_text", 1),
    ] {
        assert!(excluded.contains(&wanted), "{wanted:?} in {excluded:?}");
    }
    // 15 test images. As published the five above leave everything; corrected, 12 have a score (a refusal tells none) and the
    // unparseable and refused are wrong answers.
    let track = |track| analysis.track(track).expect("reported");
    assert_eq!(track(Track::AsPublished).n, 10);
    assert!(track(Track::AsPublished).decided.is_none());
    assert_eq!(track(Track::Corrected).n, 12);
    assert_eq!(track(Track::Corrected).decided.map(|c| c.n), Some(13));
    let view = RunView::open(&outcomes[0].folder).expect("a run");
    let predictions = view.predictions(&analysis.cell).expect("stored");
    let names: Vec<_> = predictions
        .extra
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(names, ["candidate_mass", "p_minus", "p_normalised"]);
    let row = |sample| {
        predictions
            .rows
            .iter()
            .find(|r| r.sample == sample)
            .expect("a row")
    };
    assert_eq!(
        (row(5).outcome, row(5).predicted),
        (Outcome::Unparseable, None)
    );
    assert!(row(5).score.is_some());
    assert_eq!(row(8).text.as_deref(), Some("Yes."));
    // The fake gives yes and no 0.6 of the mass in lower case at most: p+ is 0.4 of its share.
    let mass = report.cells[0].candidate_mass.expect("told");
    assert_eq!(mass.images, 12);
    assert!(
        (mass.mean - 0.4).abs() < 1e-9 && mass.under_half == 1.0,
        "{mass:?}"
    );
    assert!(
        report
            .notes
            .iter()
            .any(|n| n.starts_with("WARNING: binary_dr / prompting"))
    );
}

#[test]
fn a_service_that_tells_no_probability_is_score_unavailable() {
    let place = Place::new(6);
    let outcomes = place
        .run(&place.config(), &Spoken::default().over(fake().silent()))
        .expect("runs");
    let cell = &outcomes[0].report.cells[0];
    assert_eq!(
        cell.analysis.excluded.get("score_unavailable:not_told"),
        Some(&5)
    );
    assert_eq!(cell.analysis.track(Track::AsPublished).expect("there").n, 0);
    let corrected = cell.analysis.track(Track::Corrected).expect("there");
    assert_eq!((corrected.n, corrected.decided.map(|c| c.n)), (0, Some(5)));
    assert_eq!(cell.candidate_mass, None);
}

#[test]
fn a_broken_run_resumes_to_the_same_bytes() {
    let place = Place::new(14);
    let mut config = place.config();
    config.cache = false;
    config.out = Some(place.path("whole"));
    place
        .run(&config, &Spoken::default().over(fake()))
        .expect("runs");
    let expected = contents(&place.path("whole"));
    for after in 0..5 {
        let out = place.path(&format!("broken-{after}"));
        config.out = Some(out.clone());
        let error = place.run(&config, &Spoken::default().over(fake().break_after(after)));
        assert!(matches!(error, Err(EvalError::Model(_))), "batch {after}");
        let spoken = Spoken::default();
        let again = place.run(&config, &spoken.over(fake())).expect("resumes");
        assert_eq!(again[0].counts.resumed, 3 * after);
        assert_eq!(spoken.groups().len(), 13 - 3 * after);
        assert!(expected == contents(&out), "broken after {after}");
    }
}

#[test]
fn a_photograph_that_changed_since_is_refused() {
    let mut place = Place::new(8);
    let mut config = place.config();
    config.out = Some(place.path("run"));
    place
        .run(&config, &Spoken::default().over(fake()))
        .expect("runs");
    place.break_photograph(3);
    let error = place
        .run(&config, &Spoken::default().over(fake()))
        .expect_err("changed");
    assert!(
        matches!(error, EvalError::Changed(_)) && error.to_string().contains("photo-3"),
        "{error}"
    );
}

#[test]
fn a_second_run_is_answered_from_the_cache_and_another_question_is_not() {
    let mut place = Place::new(10);
    let mut config = place.config();
    let run = |place: &Place, config: &crate::config::EvalConfig, name: &str| {
        let mut config = config.clone();
        config.out = Some(place.path(name));
        let spoken = Spoken::default();
        let outcomes = place.run(&config, &spoken.over(fake())).expect("runs");
        let report = outcomes[0].folder.join("report.json");
        (
            spoken.groups().len(),
            std::fs::read(report).expect("a report"),
        )
    };
    let (asked, first) = run(&place, &config, "first");
    assert_eq!(asked, 9);
    let (asked, second) = run(&place, &config, "second");
    assert_eq!(asked, 0);
    assert!(
        first == second,
        "a report reads the same with and without a cache"
    );
    config.prompting.max_new_tokens = 64;
    assert_eq!(run(&place, &config, "tokens").0, 9, "other tokens");
    let prompts = place.path("prompts");
    std::fs::create_dir(&prompts).expect("makes");
    std::fs::write(prompts.join("glaucoma.txt"), "Is it green?").expect("writes");
    config.prompting.folder = Some(prompts);
    assert_eq!(run(&place, &config, "prompt").0, 9, "another prompt");
    place.break_photograph(2);
    // A batch is asked whole: samples 1 and 3, beside the one that broke.
    assert_eq!(run(&place, &place.config(), "image").0, 2);
}

#[test]
fn another_adapter_plugin_or_setting_is_another_key() {
    let place = Place::new(10);
    let config = place.config();
    place
        .run(&config, &Spoken::default().over(fake()))
        .expect("runs");
    let asked = |config: &crate::config::EvalConfig, place: &Place| {
        let spoken = Spoken::default();
        place.run(config, &spoken.over(fake())).expect("runs");
        spoken.groups().len()
    };
    let mut settings = config.clone();
    settings.out = Some(place.path("settings"));
    settings.settings.insert("pooling".into(), "mean".into());
    assert_eq!(asked(&settings, &place), 9);
    let mut other = Place::new(10);
    other.share_cache(&place);
    other.plugin_digest = "sha256:other".into();
    assert_eq!(asked(&other.config(), &other), 9);
}

#[test]
fn adapters_run_over_the_base_that_is_loaded_once() {
    let place = Place::new(12);
    let mut config = place.config();
    config.out = Some(place.path("runs"));
    let folder = place.adapter("brset-binary_dr", b"a");
    config.adapters = vec![
        AdapterChoice {
            name: None,
            folder: folder.clone(),
        },
        AdapterChoice {
            name: Some("mbrset-all".into()),
            folder,
        },
    ];
    let spoken = Spoken::default();
    let outcomes = place.run(&config, &spoken.over(fake())).expect("runs");
    assert_eq!(spoken.opened(), 1);
    let asks = spoken.asks();
    let names: Vec<_> = asks.iter().map(|ask| ask.adapter.as_deref()).collect();
    assert_eq!(names, [None, Some("brset-binary_dr"), Some("mbrset-all")]);
    let models: Vec<_> = outcomes
        .iter()
        .map(|o| o.report.cells[0].analysis.cell.model.clone())
        .collect();
    assert_eq!(
        models,
        [
            "fake-mllm",
            "fake-mllm+lora-brset-binary_dr",
            "fake-mllm+lora-mbrset-all"
        ]
    );
    let tasks: Vec<_> = outcomes.iter().map(|o| o.report.cells.len()).collect();
    assert_eq!(
        tasks,
        [2, 1, 2],
        "an adapter answers the question that it was trained on"
    );
    for (outcome, name) in outcomes
        .iter()
        .zip(["base", "lora-brset-binary_dr", "lora-mbrset-all"])
    {
        assert_eq!(outcome.folder, place.path("runs").join(name));
    }
    let facts = outcomes[1]
        .report
        .facts
        .adapter
        .as_ref()
        .expect("an adapter");
    assert!(facts.digest.starts_with("blake3:") && facts.attached.probe_change > 0.0);
    let text = crate::report::render(&outcomes[1].report, "markdown").expect("renders");
    assert!(
        text.contains("* Adapter: brset-binary_dr, blake3:"),
        "{text}"
    );
    // The same images in both arms, so they pair.
    let ids = |at: usize| {
        let view = RunView::open(&outcomes[at].folder).expect("a run");
        let cell = view
            .predictions(&outcomes[at].report.cells[0].analysis.cell)
            .expect("stored");
        cell.rows.iter().map(|r| r.id.clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids(0), ids(1));
}

#[test]
fn adapters_that_cannot_be_are_refused_before_anything_is_asked() {
    let place = Place::new(6);
    let refused = |name: Option<&str>, folder: std::path::PathBuf| {
        let mut config = place.config();
        config.adapters = vec![AdapterChoice {
            name: name.map(str::to_owned),
            folder,
        }];
        let spoken = Spoken::default();
        let error = place
            .run(&config, &spoken.over(fake()))
            .expect_err("refused");
        assert_eq!((spoken.opened(), spoken.groups().len()), (0, 0));
        assert!(error.hint().is_some(), "{error}");
        error.to_string()
    };
    let good = place.adapter("brset-binary_dr", b"a");
    assert!(refused(None, place.path("none")).starts_with("Cannot read adapter"));
    assert!(refused(Some("dr"), good.clone()).contains("name `dr` is malformed"));
    assert!(refused(Some("brset-referable_dr"), good.clone()).contains("not among the tasks"));
    std::fs::remove_file(good.join("adapter_config.json")).expect("removes");
    assert!(refused(None, good).contains("has no `adapter_config.json`"));
}

#[test]
fn an_adapter_that_changes_nothing_is_an_error() {
    let place = Place::new(6);
    let mut config = place.config();
    let folder = place.adapter("brset-binary_dr", b"a");
    config.adapters = vec![AdapterChoice { name: None, folder }];
    let error = place
        .run(&config, &Spoken::unchanging().over(fake()))
        .expect_err("no change");
    assert!(
        error.to_string().contains("does not change the model"),
        "{error}"
    );
}

#[test]
fn a_task_without_a_prompt_is_said_or_refused() {
    let mut place = Place::new(8);
    place.add_task("glaucoma_vcdr");
    let outcomes = place
        .run(&place.config(), &Spoken::default().over(fake()))
        .expect("runs");
    let note = "glaucoma_vcdr / prompting: no result, there is no prompt for this task";
    assert!(
        outcomes[0].report.notes.iter().any(|n| n == note),
        "{:?}",
        outcomes[0].report.notes
    );
    let mut config = place.config();
    config.tasks = vec!["glaucoma_vcdr".into()];
    let error = place
        .run(&config, &Spoken::default().over(fake()))
        .expect_err("asked for");
    assert!(error.to_string().contains("`glaucoma_vcdr`"), "{error}");
}

#[test]
fn the_predictions_are_rebuilt_from_the_stored_answers() {
    let place = Place::new(10);
    let outcomes = place
        .run(&place.config(), &Spoken::default().over(fake()))
        .expect("runs");
    let view = RunView::open(&outcomes[0].folder).expect("a run");
    let (cells, rebuilt) = crate::report::rebuild(&view).expect("rebuilds");
    assert_eq!((cells.len(), rebuilt.len()), (2, 2));
    for predictions in rebuilt {
        assert_eq!(
            view.predictions(&predictions.cell).expect("stored"),
            predictions
        );
    }
}
