//! The analysis held against readers whose truth is known: intervals of signed gaps cover it about 95 times in 100, and where
//! there is no difference the permutation p is uniform. Seeds are fixed; bounds are several standard errors wide.

use focus_analysis::{
    Catalogue, CellAnalysis, CellContext, Grid, MemorySource, Options, Track, analyse,
};
use focus_exchange::{CellTruth, GapTruth, Preset, SimModel, draw};

/// Two readers of the published sizes: subgroups are known on BRSET, mBRSET and PAPILA.
fn readers() -> Vec<SimModel> {
    [("a", "linear_probing"), ("b", "zero_shot")]
        .map(|(id, method)| SimModel {
            id: id.into(),
            methods: vec![method.into()],
            adapters: Vec::new(),
        })
        .into()
}

/// Analyses of the cells with subgroups, each beside its truth.
fn simulated(preset: Preset, seed: u64, options: &Options) -> Vec<(CellAnalysis, CellTruth)> {
    let mut plan = preset.plan(&readers(), seed);
    plan.datasets.retain(|set| set.demographics);
    let kept: Vec<String> = plan.datasets.iter().map(|set| set.id.clone()).collect();
    plan.cells.retain(|cell| kept.contains(&cell.cell.dataset));
    let drawn = draw(&plan).expect("draws");
    let source = MemorySource::new("simulated", drawn.records, drawn.cells.clone());
    let grid = Grid::open(vec![Box::new(source)], Catalogue::embedded()).expect("agrees");
    let context = CellContext {
        error_budget: 0.0,
        published_apart: false,
    };
    let analysed = drawn.cells.iter().map(|cell| {
        let rows = grid.rows(&cell.cell).expect("joins");
        analyse(
            &rows,
            &grid.cohorts()[&cell.cell.dataset],
            &context,
            options,
        )
        .expect("analyses")
    });
    analysed.zip(drawn.truth.cells).collect()
}

fn true_gap(truth: &GapTruth, id: &str) -> Option<f64> {
    match id {
        "gap_auroc" => truth.auroc,
        "gap_accuracy" => Some(truth.accuracy),
        "gap_equal_opportunity" => truth.tpr,
        "gap_false_positive_rate" => truth.fpr,
        "gap_demographic_parity" => Some(truth.selection),
        _ => None,
    }
}

#[test]
fn intervals_of_signed_gaps_and_of_auroc_cover_the_truth() {
    let options = Options {
        resamples: 600,
        permutations: 1,
        ..Options::default()
    };
    let (mut gaps, mut covered, mut aurocs, mut auroc_covered) = (0_u32, 0_u32, 0_u32, 0_u32);
    for seed in 0..16 {
        for (cell, truth) in simulated(Preset::Published, seed, &options) {
            let track = cell.track(Track::Corrected).expect("there");
            let auroc = track.metric("auroc").expect("there");
            let [low, high] = auroc.interval.expect("both classes are there");
            aurocs += 1;
            let value = truth.overall.auroc.expect("both classes");
            auroc_covered += u32::from((low..=high).contains(&value));
            for found in &track.subgroups {
                let of = |gap: &&GapTruth| gap.attribute.as_str() == found.attribute;
                let Some(known) = truth.gaps.iter().find(of) else {
                    continue;
                };
                assert_eq!(found.groups[1].group, known.first, "the sign of a gap");
                for gap in &found.gaps {
                    let (Some([low, high]), Some(value)) = (gap.interval, true_gap(known, gap.id))
                    else {
                        continue;
                    };
                    gaps += 1;
                    covered += u32::from((low..=high).contains(&value));
                }
            }
        }
    }
    let share = f64::from(covered) / f64::from(gaps);
    assert!(gaps > 1500, "{gaps}");
    // Cells of a seed share their images, so a standard error is about 0.01.
    assert!((0.92..=0.98).contains(&share), "{covered} of {gaps}");
    let share = f64::from(auroc_covered) / f64::from(aurocs);
    assert!((0.89..=0.995).contains(&share), "{share}");
}

#[test]
fn without_a_difference_the_permutation_p_is_uniform() {
    let options = Options {
        resamples: 1,
        permutations: 199,
        ..Options::default()
    };
    let mut values = Vec::new();
    for seed in 100..130 {
        for (cell, _) in simulated(Preset::Null, seed, &options) {
            let track = cell.track(Track::Corrected).expect("there");
            for found in &track.subgroups {
                let gap = found.gaps.iter().find(|gap| gap.id == "gap_auroc");
                values.extend(gap.and_then(|gap| gap.null).map(|null| null.p));
            }
        }
    }
    values.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    assert!(n > 500.0, "{n}");
    // Kolmogorov-Smirnov distance from the uniform law; tasks of one dataset and readers of one image are correlated, so the
    // bound is twice the 1 % one of independent values.
    let distance = values
        .iter()
        .enumerate()
        .map(|(i, p)| (p - i as f64 / n).abs().max((p - (i + 1) as f64 / n).abs()))
        .fold(0.0, f64::max);
    let below = values.iter().filter(|p| **p <= 0.05).count() as f64 / n;
    assert!(distance < 2.0 * 1.63 / n.sqrt(), "{distance}");
    assert!((0.02..=0.09).contains(&below), "{below}");
}
