//! What the full grid (532 + 228 cells at the published sizes) costs to draw, write, export and import again.
//! `FOCUS_BENCH_DIR` chooses the disk.

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use focus_exchange::{
    Aliases, ExportFormat, ExportOptions, ImportOptions, Preset, SimModel, draw, export,
    import_focus_csv, simulate,
};
use focus_store::RunView;
use std::hint::black_box;

fn models() -> Vec<SimModel> {
    let of = |n: usize, name: &str, methods: &[&str], adapters: &[&str]| {
        let model = |i| SimModel {
            id: format!("{name}/{i}"),
            methods: methods.iter().map(|m| (*m).to_owned()).collect(),
            adapters: adapters.iter().map(|a| (*a).to_owned()).collect(),
        };
        (0..n).map(model).collect::<Vec<_>>()
    };
    [
        of(10, "vision", &["linear_probing"], &[]),
        of(6, "language", &["linear_probing", "zero_shot"], &[]),
        of(6, "multimodal", &["prompting"], &["brset", "mbrset"]),
    ]
    .concat()
}

fn folder() -> tempfile::TempDir {
    let base = std::env::var_os("FOCUS_BENCH_DIR").map_or_else(std::env::temp_dir, Into::into);
    tempfile::tempdir_in(base).expect("a folder")
}

fn grid(c: &mut Criterion) {
    let plan = Preset::Published.plan(&models(), 1);
    let mut group = c.benchmark_group("760 cells");
    group.sample_size(10);
    group.bench_function("draw", |b| {
        b.iter(|| black_box(draw(&plan).expect("draws")));
    });
    group.bench_function("draw and write", |b| {
        b.iter_batched(
            folder,
            |folder| {
                simulate(&plan, &folder.path().join("run"), "bench").expect("simulates");
                folder
            },
            BatchSize::PerIteration,
        );
    });
    let kept = folder();
    let run = kept.path().join("run");
    simulate(&plan, &run, "bench").expect("simulates");
    let run = RunView::open(&run).expect("opens");
    for (name, format) in [
        ("export published layout", ExportFormat::FocusCsv),
        ("export csv", ExportFormat::Csv),
    ] {
        group.bench_function(name, |b| {
            b.iter_batched(
                folder,
                |folder| {
                    export(
                        &run,
                        &folder.path().join("out"),
                        &ExportOptions::new(format),
                    )
                    .expect("exports");
                    folder
                },
                BatchSize::PerIteration,
            );
        });
    }
    let published = kept.path().join("published");
    export(
        &run,
        &published,
        &ExportOptions::new(ExportFormat::FocusCsv),
    )
    .expect("exports");
    let options = ImportOptions {
        tool_version: "bench".into(),
        aliases: Aliases::of_ids(models().iter().map(|m| m.id.clone())),
        ..ImportOptions::default()
    };
    group.bench_function("import published layout", |b| {
        b.iter_batched(
            folder,
            |folder| {
                import_focus_csv(&published, &folder.path().join("run"), &options)
                    .expect("imports");
                folder
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

criterion_group!(benches, grid);
criterion_main!(benches);
