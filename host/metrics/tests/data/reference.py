"""Reference values from scikit-learn, scipy and numpy: `python reference.py > reference.json`.

Random cases with ties, one class, tiny sizes, scores in f32, scores outside [0, 1]. Scores are written as their
shortest decimal; a case with "f32": true holds single-precision scores. `null` stands for a missing value.
Calibration error is computed here in exact decimal arithmetic, independently of binary bin edges.
"""
import itertools
import json
import math
import random
from decimal import Decimal

import numpy as np
import scipy
import sklearn
from scipy.stats import false_discovery_control, kendalltau
from sklearn import metrics as sk

random.seed(20260919)


def ece(labels, scores):
    bins = {}
    for label, score in zip(labels, scores):
        exact = Decimal(repr(score))
        bins.setdefault(min(int(exact * 10), 9), []).append((label, exact))
    total = sum(abs(sum(s for _, s in rows) - sum(y for y, _ in rows)) for rows in bins.values())
    return float(total / len(labels))


def case(index):
    n = random.choice([1, 2, 3, 4, 5, 7, 12, 20, 33, 40, 50, 50])
    prevalence = random.choice([0.0, 0.1, 0.3, 0.5, 0.5, 0.6, 0.8, 1.0])
    labels = [int(random.random() < prevalence) for _ in range(n)]
    kind = ["uniform", "one decimal", "two decimals", "f32", "logit", "constant", "extreme"][index % 7]
    if kind in ("uniform", "f32"):
        scores = [random.betavariate(1 + y, 2 - y) for y in labels]
    elif kind == "one decimal":
        scores = [round(random.random(), 1) for _ in labels]
    elif kind == "two decimals":
        scores = [round(random.random(), 2) for _ in labels]
    elif kind == "logit":
        scores = [random.gauss(y, 1.5) for y in labels]
    elif kind == "constant":
        scores = [random.choice([0.0, 0.5, 1.0, 0.7])] * n
    else:
        scores = [random.choice([0.0, 1.0, 1e-300, 1 - 2**-53, 5e-324, 0.1, 0.2, 0.3]) for _ in labels]
    if kind == "f32":
        scores = [float(str(np.float32(s))) for s in scores]
    threshold = random.choice([0.5, 0.5, 0.05, 0.95, -10.0, 10.0])
    predicted = [int(s > threshold) for s in scores]
    both = 0 < sum(labels) < n
    proper = all(0 <= s <= 1 for s in scores)
    p = sum(labels) / n
    brier = math.fsum((s - y) ** 2 for s, y in zip(scores, labels)) / n
    if proper:
        assert math.isclose(brier, sk.brier_score_loss(labels, scores, pos_label=1), rel_tol=1e-9, abs_tol=1e-15)
    undefined = {"zero_division": 0.0}
    return {
        "f32": kind == "f32",
        "labels": "".join(map(str, labels)),
        "predicted": "".join(map(str, predicted)),
        "scores": scores,
        "expected": {
            "auroc": sk.roc_auc_score(labels, scores) if both else None,
            "auprc": sk.average_precision_score(labels, scores) if both else None,
            "accuracy": sk.accuracy_score(labels, predicted),
            "f1": sk.f1_score(labels, predicted, **undefined),
            "precision": sk.precision_score(labels, predicted, **undefined),
            "recall": sk.recall_score(labels, predicted, **undefined),
            "ece": ece(labels, scores) if both and proper else None,
            "brier": brier if proper else None,
            "brier_skill": 1 - brier / (p * (1 - p)) if both and proper else None,
        },
    }


def family(size):
    p = [random.choice([random.random(), random.random() ** 4, 0.001998001998001998]) for _ in range(size)]
    return {"p": p, "q": false_discovery_control(p, method="bh").tolist()}


def rankings():
    letters = "ABCD"
    out = []
    for gold, answer in itertools.product(itertools.permutations(letters), repeat=2):
        if random.random() < 0.2:
            tau = kendalltau([gold.index(c) for c in letters], [answer.index(c) for c in letters]).statistic
            out.append(["".join(gold), "".join(answer), float(tau)])
    return out


def percentiles(size):
    values = [random.gauss(0, 1) for _ in range(size)]
    return {"values": values, "ends": np.percentile(values, [2.5, 97.5]).tolist()}


def fast_auroc(labels, scores):
    gaps = scores[labels][:, None] - scores[~labels][None, :]
    return (np.sum(gaps > 0) + 0.5 * np.sum(gaps == 0)) / gaps.size if gaps.size else None


def bootstraps():
    """Percentile ends by numpy's own random numbers: agreement can only be statistical."""
    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 5, 60)
    patients = np.repeat(np.arange(60), sizes)
    labels = np.repeat(rng.random(60) < 0.4, sizes)
    belief = np.repeat(rng.normal(0, 1, 60), sizes)
    arms = [
        np.round(1 / (1 + np.exp(-(1.2 * labels - 0.6 + belief + rng.normal(0, 0.4, len(labels))))), 2)
        for _ in range(2)
    ]
    out = {
        "labels": "".join(str(int(y)) for y in labels),
        "patients": patients.tolist(),
        "arms": [scores.tolist() for scores in arms],
        "threshold": 0.5,
        "ends": {},
    }
    rows_of = [np.flatnonzero(patients == patient) for patient in range(60)]
    for level in ("images", "patients"):
        draws = []
        for _ in range(20000):
            if level == "images":
                rows = rng.integers(0, len(labels), len(labels))
            else:
                rows = np.concatenate([rows_of[patient] for patient in rng.integers(0, 60, 60)])
            y = labels[rows]
            values = []
            for scores in arms:
                values += [fast_auroc(y, scores[rows]), np.mean((scores[rows] > 0.5) == y)]
            draws.append(values)
        draws = np.array(draws)
        columns = {
            "auroc": draws[:, 0],
            "accuracy": draws[:, 1],
            "delta auroc": draws[:, 2] - draws[:, 0],
            "delta accuracy": draws[:, 3] - draws[:, 1],
        }
        out["ends"][level] = {name: np.percentile(v, [2.5, 97.5]).tolist() for name, v in columns.items()}
    return out


reference = {
    "bootstraps": bootstraps(),
    "versions": {"sklearn": sklearn.__version__, "scipy": scipy.__version__, "numpy": np.__version__},
    "families": [family(size) for size in (1, 2, 3, 12, 57, 228)],
    "rankings": rankings(),
    "percentiles": [percentiles(size) for size in (1, 2, 3, 40, 41, 199)],
}
head = json.dumps(reference)[:-1]
cases = ",\n".join(json.dumps(case(index)) for index in range(320))
print(head + ', "cases": [\n' + cases + "\n]}")
