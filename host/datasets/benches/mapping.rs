//! Rows a second through a mapper, boundary included: a table of 100,000 rows of the drawn dataset's shape, its images
//! listed but not decoded. `cargo bench -p focus-datasets`; prints the best of five runs of each stage. Under `cargo test`
//! (without `--bench`) the table has 1,000 rows.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program that prints its figures"
)]

use std::fmt::Write;
use std::fs;
use std::time::{Duration, Instant};

use focus_datasets::{Column, CsvTable, Job, Limits, MapperSource, describe, map_stream};

fn main() {
    let whole = std::env::args().any(|argument| argument == "--bench");
    let rows: u32 = if whole { 100_000 } else { 1_000 };
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    fs::create_dir_all(data.join("images")).unwrap();
    let mut table = String::from(
        "image,split,patient,eye,age,sex,quality,icdr_grade,edema,gon,disc_x,disc_y,fovea_x,fovea_y,width,height\n",
    );
    for row in 0..rows {
        let (split, eye) = (
            ["train", "test"][(row % 5 / 3) as usize],
            ["right", "left"][(row % 2) as usize],
        );
        let (age, sex, quality) = (
            40 + row % 50,
            ["F", "M"][(row / 2 % 2) as usize],
            ["good", "poor"][(row % 7 / 6) as usize],
        );
        writeln!(
            table,
            "{row:016x}.png,{split},{:06},{eye},{age},{sex},{quality},{},{},{},300.5,210.25,180,205.75,512,512",
            row / 2,
            row % 5,
            row % 11 / 10,
            row % 13 / 12
        )
        .unwrap();
        fs::write(data.join(format!("images/{row:016x}.png")), b"").unwrap();
    }
    fs::write(data.join("labels.csv"), &table).unwrap();

    let limits = Limits::default();
    let mapper: MapperSource = "synthetic".parse().unwrap();
    let cache = dir.path().join("cache");
    let cold = time(1, || drop(describe(&mapper, &limits, None).unwrap()));
    println!("load, no cache        {:>8.1} ms", cold.as_secs_f64() * 1e3);
    describe(&mapper, &limits, Some(&cache)).unwrap();
    let warm = time(5, || {
        drop(describe(&mapper, &limits, Some(&cache)).unwrap());
    });
    println!("load, cached          {:>8.1} ms", warm.as_secs_f64() * 1e3);

    let (descriptor, _) = describe(&mapper, &limits, Some(&cache)).unwrap();
    let wanted: &[Column] = &descriptor.tables[0].columns;
    let csv = time(5, || {
        let mut table = CsvTable::open(
            &data.join("labels.csv"),
            "labels.csv",
            wanted,
            false,
            &limits,
        )
        .unwrap();
        while let Some(row) = table.next_row().unwrap() {
            std::hint::black_box(row);
        }
    });
    report("read the table", rows, csv);
    let job = Job {
        mapper: &mapper,
        data: &data,
        options: &[],
        limits: &limits,
        cache: Some(&cache),
    };
    let mapped = time(5, || {
        let mut records = 0;
        let summary = map_stream(&job, &mut |batch| {
            records += batch.len();
            Ok(())
        })
        .unwrap();
        assert_eq!((summary.mapped, records), (u64::from(rows), rows as usize));
    });
    report("map, streamed", rows, mapped);
}

fn time(runs: u32, mut body: impl FnMut()) -> Duration {
    let run = |_| {
        let start = Instant::now();
        body();
        start.elapsed()
    };
    (0..runs).map(run).min().unwrap()
}

fn report(what: &str, rows: u32, time: Duration) {
    println!(
        "{what:<21} {:>8.1} ms  {:>10.0} rows/s",
        time.as_secs_f64() * 1e3,
        f64::from(rows) / time.as_secs_f64()
    );
}
