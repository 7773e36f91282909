"""Counts of the official IDRiD tables by pandas, as reference for the mapper: python idrid_counts.py DATA > ../tests/data/idrid_counts.json

DATA is the folder that holds `B. Disease Grading` and `C. Localization`.
"""

import json
import sys
from pathlib import Path

import pandas as pd

root = Path(sys.argv[1])
truths = root / "B. Disease Grading" / "2. Groundtruths"
centres = root / "C. Localization" / "2. Groundtruths"
files = {
    "train": (
        truths / "a. IDRiD_Disease Grading_Training Labels.csv",
        centres / "1. Optic Disc Center Location" / "a. IDRiD_OD_Center_Training Set_Markups.csv",
        centres / "2. Fovea Center Location" / "IDRiD_Fovea_Center_Training Set_Markups.csv",
    ),
    "test": (
        truths / "b. IDRiD_Disease Grading_Testing Labels.csv",
        centres / "1. Optic Disc Center Location" / "b. IDRiD_OD_Center_Testing Set_Markups.csv",
        centres / "2. Fovea Center Location" / "IDRiD_Fovea_Center_Testing Set_Markups.csv",
    ),
}
out = {}
for split, (labels, disc, fovea) in files.items():
    frame = pd.read_csv(labels).iloc[:, :3]
    frame.columns = ["name", "grade", "edema"]
    frame = frame.dropna(how="all")
    counts = {
        "rows": len(frame),
        "binary_dr": int((frame.grade >= 1).sum()),
        "referable_dr": int(((frame.grade >= 2) | (frame.edema > 0)).sum()),
        "grades": [int((frame.grade == g).sum()) for g in range(5)],
        "edema": [int((frame.edema == e).sum()) for e in range(3)],
    }
    for what, path in (("disc", disc), ("fovea", fovea)):
        points = pd.read_csv(path).iloc[:, :3].dropna(how="all")
        points.columns = ["name", "x", "y"]
        joined = frame.merge(points, on="name", validate="one_to_one")
        counts[what] = {"rows": len(joined), "x": float(joined.x.sum()), "y": float(joined.y.sum())}
    out[split] = counts
print(json.dumps(out, indent=1))
