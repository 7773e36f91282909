"""Times `focus-host dataset map` and pandas on the same table, back to back: 100,000 rows of 16 columns, their images listed.

    python host/datasets/benches/compare.py PATH_OF_FOCUS_HOST [ROWS]

needs pandas. Both read the CSV as text, look every image up in the folder, map codings strictly, and derive the three labels in three
states; once for the records alone, once with JSON lines of them on disk. focus-host is a process of its own from start to end, its
compiled mapper cached, with the sandbox boundary and all its checks; pandas is timed without Python's start and imports. Least
processor time (user and system) and least wall time of five runs each: the first says more on a shared machine.
"""

import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import pandas as pd

REPEATS = 5
COLUMNS = (
    "image,split,patient,eye,age,sex,quality,icdr_grade,edema,gon,disc_x,disc_y,fovea_x,fovea_y,width,height"
)


def draw(data, rows):
    """The table and (empty) images of `mapping.rs`."""
    (data / "images").mkdir(parents=True)
    lines = [COLUMNS]
    for row in range(rows):
        name = f"{row:016x}.png"
        split, eye = ("train", "test")[row % 5 // 3], ("right", "left")[row % 2]
        sex, quality = ("F", "M")[row // 2 % 2], ("good", "poor")[row % 7 // 6]
        lines.append(
            f"{name},{split},{row // 2:06},{eye},{40 + row % 50},{sex},{quality},{row % 5},{row % 11 // 10},{row % 13 // 12},"
            "300.5,210.25,180,205.75,512,512"
        )
        (data / "images" / name).touch()
    (data / "labels.csv").write_text("\n".join(lines) + "\n")


def coded(column, codes):
    """A coded column; blanks are unknown, anything else is refused."""
    mapped = column.map(codes)
    odd = column[mapped.isna() & column.notna()]
    if len(odd):
        raise ValueError(f"{column.name}: {odd.iloc[0]!r}")
    return mapped


def number(column, least, most):
    values = pd.to_numeric(column)
    if not values.dropna().between(least, most).all():
        raise ValueError(column.name)
    return values


def by_pandas(data):
    """The records of the folder as a frame."""
    table = pd.read_csv(data / "labels.csv", dtype=str, encoding="utf-8-sig", skipinitialspace=True)
    missing = set(COLUMNS.split(",")) - set(table.columns)
    if missing:
        raise ValueError(missing)
    listed = {entry.name for entry in os.scandir(data / "images") if entry.is_file()}
    if not table["image"].isin(listed).all() or table["image"].duplicated().any():
        raise ValueError("images")
    records = pd.DataFrame({"image": "images/" + table["image"], "patient": table["patient"]})
    records["split"] = coded(table["split"], {"train": "train", "validation": "validation", "test": "test"})
    records["eye"] = coded(table["eye"], {"right": "right", "left": "left"})
    records["sex"] = coded(table["sex"], {"F": "female", "M": "male"})
    records["quality"] = coded(table["quality"], {"good": "good", "poor": "poor"})
    records["age"] = number(table["age"], 0, 150)
    grade = number(table["icdr_grade"], 0, 4)
    edema = number(table["edema"], 0, 2)
    gon = number(table["gon"], 0, 1)
    records["grade"], records["edema"] = grade, edema
    # Three states: positive, negative, unknown.
    records["binary_dr"] = (grade >= 1).astype("boolean").mask(grade.isna())
    referable = ((grade >= 2) | (edema >= 1)).astype("boolean")
    records["referable_dr"] = referable.mask(~referable & (grade.isna() | edema.isna()))
    records["glaucoma"] = (gon == 1).astype("boolean").mask(gon.isna())
    for name in ("disc_x", "disc_y", "fovea_x", "fovea_y"):
        records[name] = number(table[name], 0, 100_000)
    return records


def agree(said, frame):
    """Both have the same images with the same labels."""
    state = {"positive": True, "negative": False, "unknown": None}
    for task in ("binary_dr", "referable_dr", "glaucoma"):
        ours = {
            record["sample"]["path"]: state[label["corrected"]]
            for record in said
            for label in record["labels"]
            if label["task"] == task
        }
        theirs = dict(zip(frame["image"], frame[task].astype(object).where(frame[task].notna(), None)))
        assert ours == theirs, task


def least(work, whose):
    """Least processor and wall seconds of `work`; `whose` resources count."""
    best = [float("inf")] * 2
    for _ in range(REPEATS):
        before, start = resource.getrusage(whose), time.perf_counter()
        work()
        wall, after = time.perf_counter() - start, resource.getrusage(whose)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        best = [min(best[0], used), min(best[1], wall)]
    return best


def main():
    host = pathlib.Path(sys.argv[1]).resolve()
    rows = int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        data, out = folder / "data", folder / "records.jsonl"
        draw(data, rows)
        command = [host, "dataset", "map", "--dataset", "synthetic", "--data", data, "--quiet"]
        environment = {**os.environ, "FOCUS_CACHE": str(folder / "cache")}

        def by_host(*more):
            subprocess.run([*command, *more], check=True, stdout=subprocess.DEVNULL, env=environment)

        # Compiles the mapper into the cache, and shows that both say the same.
        by_host("--records", out)
        agree([json.loads(line) for line in out.open()], by_pandas(data))
        children, own = resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF
        for what, work, whose in [
            ("focus-host, records", by_host, children),
            ("pandas, records", lambda: by_pandas(data), own),
            ("focus-host, JSON lines", lambda: by_host("--records", out), children),
            ("pandas, JSON lines", lambda: by_pandas(data).to_json(out, orient="records", lines=True), own),
        ]:
            used, wall = least(work, whose)
            print(f"{what:<24}{used:8.2f} s processor {rows / used:10.0f} rows/s {wall:8.2f} s wall")


if __name__ == "__main__":
    main()
