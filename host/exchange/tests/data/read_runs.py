"""Read a simulated run, its exports, and the import of one of them, with other people's tools.

Used by tests/python.rs: `python read_runs.py FOLDER`, where FOLDER holds `simulated/`, `imported/`, `published/`, `csv/`
and `parquet/`. pyarrow is needed; pandas, polars and DuckDB are used where present. Asserts, then prints who read it.
"""

import csv
import glob
import json
import os
import sys

import pyarrow.parquet as pq

folder = sys.argv[1]
at = lambda *parts: os.path.join(folder, *parts)
readers = ["csv", "pyarrow"]
CELLS = 9  # 3 dataset-task pairs, 2 models, 1 adapter

truth = json.load(open(at("simulated", "truth.json"), encoding="utf-8"))
assert truth["schema"] == "focus-truth" and len(truth["cells"]) == CELLS
assert json.load(open(at("simulated", "run.json")))["identity"]["synthetic"] is True
note = json.load(open(at("imported", "import.json"), encoding="utf-8"))
assert (note["files"], note["cells"], note["unknown_labels"]) == (CELLS, CELLS, 0), note

# Each cell, by its four names.
key = lambda row: (row["dataset"], row["task"], row["method"], row["model"])


def cells(run):
    found = {}
    for path in glob.glob(at(run, "predictions", "*.parquet")):
        rows = pq.read_table(path).to_pylist()
        assert len({key(row) for row in rows}) == 1
        found[key(rows[0])] = rows
    return found


drawn, imported, copied = cells("simulated"), cells("imported"), cells("parquet")
assert len(drawn) == CELLS and drawn == copied and drawn.keys() == imported.keys()
for name, rows in drawn.items():
    for a, b in zip(rows, imported[name], strict=True):
        assert all(a[column] == b[column] for column in a if column != "patient"), (a, b)

# The truth is of these images.
for cell in truth["cells"]:
    rows = drawn[key(cell["cell"])]
    assert len(rows) == cell["overall"]["n"] and sum(r["label"] for r in rows) == cell["overall"]["n_pos"]

# CSV: numbers come back exactly, a leading apostrophe protects text.
plain = lambda text: None if text == "" else text.removeprefix("'")
with open(at("csv", "predictions.csv"), encoding="utf-8", newline="") as file:
    lines = list(csv.DictReader(file))
assert len(lines) == sum(map(len, drawn.values()))
scores = {(*(plain(line[n]) for n in ("dataset", "task", "method", "model")), plain(line["id"])): float(line["score"]) for line in lines}
for name, rows in drawn.items():
    for row in rows:
        assert scores[(*name, row["id"])] == row["score"]
with open(at("csv", "columns.csv"), encoding="utf-8", newline="") as file:
    described = {(row["table"], row["column"]) for row in csv.DictReader(file)}
for table in ("predictions", "records"):
    with open(at("csv", f"{table}.csv"), encoding="utf-8", newline="") as file:
        assert {(table, column) for column in next(csv.reader(file))} <= described

total = sum(row["score"] for rows in drawn.values() for row in rows)
close = lambda found: abs(found - total) < 1e-9 * total
tables = [at(run, "records.parquet") for run in ("simulated", "imported")]
tables += glob.glob(at("*", "predictions", "*.parquet"))
try:
    import pandas

    for path in tables:
        pandas.read_parquet(path)
    frames = [pandas.read_parquet(path) for path in glob.glob(at("imported", "predictions", "*.parquet"))]
    assert close(pandas.concat(frames).score.sum())
    # The published layout, as the published code reads it.
    frames = [pandas.read_csv(path) for path in glob.glob(at("published", "**", "*.csv"), recursive=True)]
    assert len(frames) == CELLS
    for frame in frames:
        assert {"id", "ground_truth"} <= set(frame.columns) and frame.ground_truth.isin([0, 1]).all()
        assert {"prediction", "prob_1"} <= set(frame.columns) or {"prediction_text", "prob_yes"} <= set(frame.columns)
    readers.append("pandas")
except ImportError:
    pass
try:
    import polars

    for path in tables:
        polars.read_parquet(path)
    assert close(polars.read_parquet(at("imported", "predictions", "*.parquet"))["score"].sum())
    readers.append("polars")
except ImportError:
    pass
try:
    import duckdb

    files = at("imported", "predictions", "*.parquet")
    found = duckdb.sql(f"select sum(score), count(*) from read_parquet('{files}')").fetchall()[0]
    assert close(found[0]) and found[1] == len(lines)
    ages = duckdb.sql(f"select count(*) from '{at('simulated', 'records.parquet')}' where age > 58 and label_glaucoma").fetchall()
    assert ages[0][0] > 0
    readers.append("duckdb")
except ImportError:
    pass

print("read by:", ", ".join(readers))
