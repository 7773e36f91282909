//! The paper's Table 3: its "Overall" block follows from its task blocks. Data: `data/table3.csv`, extracted from the
//! paper's text by `data/table3.py`.

use std::collections::BTreeMap;

use focus_metrics::{Axis, overall};

#[test]
fn the_overall_block_follows_from_the_task_blocks() {
    let mut rows = BTreeMap::<(&str, &str), BTreeMap<&str, Vec<f64>>>::new();
    for line in include_str!("data/table3.csv").lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let numbers = fields[3..]
            .iter()
            .map(|field| field.parse().unwrap())
            .collect();
        rows.entry((fields[1], fields[2]))
            .or_default()
            .insert(fields[0], numbers);
    }
    assert_eq!(rows.len(), 8);
    let axes = [
        Axis::Performance,
        Axis::Performance,
        Axis::Performance,
        Axis::Performance,
        Axis::Fairness,
        Axis::Quality,
    ];
    let mut compared = 0;
    for (row, blocks) in &rows {
        for (column, axis) in axes.iter().enumerate() {
            let tasks =
                ["Binary DR", "Referable DR", "Glaucoma"].map(|task| Some(blocks[task][column]));
            let ours = overall(&tasks, &axis.published_weights()).unwrap();
            let printed = blocks["Overall"][column];
            assert!(
                (ours - printed).abs() <= 0.001,
                "{row:?} column {column}: {ours} against {printed}"
            );
            compared += 1;
        }
    }
    assert_eq!(compared, 48);
}
