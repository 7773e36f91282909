"""Random cases with the answers of scikit-learn, fairlearn and scipy: `python agreement.py SEED COUNT > cases.json`.

Ties, one class, tiny sizes, unknown and tiny groups, scores outside [0, 1]. `null` stands for a missing value. Scores are
written as their shortest decimals, which read back as the same numbers. Run by `python.rs`, once as a test.
"""
import json
import math
import random
import sys
import warnings

import numpy as np
import sklearn
from fairlearn import metrics as fair
from scipy import stats
from sklearn import metrics as sk
from sklearn.linear_model import LogisticRegression

warnings.filterwarnings("ignore")
seed, count = int(sys.argv[1]), int(sys.argv[2])
random.seed(seed)
CLIP = 1e-6
KINDS = ["uniform", "one decimal", "two decimals", "logit", "constant", "extreme", "beta"]


def draw_scores(kind, labels):
    if kind == "uniform":
        return [random.random() for _ in labels]
    if kind == "one decimal":
        return [round(random.random(), 1) for _ in labels]
    if kind == "two decimals":
        return [round(min(1.0, max(0.0, random.gauss(0.4 + 0.2 * y, 0.25))), 2) for y in labels]
    if kind == "logit":
        return [random.gauss(y, 1.5) for y in labels]
    if kind == "constant":
        return [random.choice([0.0, 0.5, 1.0, 0.7])] * len(labels)
    if kind == "extreme":
        return [random.choice([0.0, 1.0, 1e-300, 1 - 2**-53, 5e-324, 0.1, 0.2, 0.3]) for _ in labels]
    return [random.betavariate(1 + y, 2 - y) for y in labels]


def both(labels):
    return 0 < sum(labels) < len(labels)


def scalar(value):
    return None if value is None or math.isnan(value) else float(value)


def whole(labels, predicted, scores, two_classes):
    proper = all(0 <= s <= 1 for s in scores)
    # Rows of the answer: the positive class, then the negative one, whose recall is the specificity.
    precision, recall, f1, support = sk.precision_recall_fscore_support(
        labels, predicted, labels=[1, 0], zero_division=0.0
    )
    out = {
        "auroc": sk.roc_auc_score(labels, scores) if two_classes else None,
        "auprc": sk.average_precision_score(labels, scores) if two_classes else None,
        "accuracy": sk.accuracy_score(labels, predicted),
        "f1": f1[0],
        "precision": precision[0],
        "recall": recall[0],
        "brier": math.fsum((s - y) ** 2 for s, y in zip(scores, labels)) / len(labels) if proper else None,
        "positive_rate": fair.selection_rate(labels, predicted),
        "true_positive_rate": recall[0] if support[0] else None,
        "false_positive_rate": 1 - recall[1] if support[1] else None,
        "specificity": recall[1] if support[1] else None,
        "mean_score": math.fsum(scores) / len(scores) if proper else None,
    }
    if proper and random.random() < 0.1:
        theirs = sk.brier_score_loss(labels, scores, pos_label=1)
        assert math.isclose(out["brier"], theirs, rel_tol=1e-9, abs_tol=1e-15)
    return out


def line(labels, scores):
    """Slope and intercept where a maximum exists; the string says why not."""
    if not both(labels):
        return "one_class"
    if not all(0 <= s <= 1 for s in scores):
        return "score_out_of_range"
    clipped = np.clip(np.array(scores), CLIP, 1 - CLIP)
    x = np.log(clipped / (1 - clipped))
    positive, negative = x[np.array(labels) == 1], x[np.array(labels) == 0]
    if np.ptp(x) == 0:
        return "constant_scores"
    if positive.min() >= negative.max() or positive.max() <= negative.min():
        return "separated"
    # Newton from scikit-learn on the standardised logit, where its stopping rule bites last.
    centre, spread = x.mean(), x.std()
    model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-14, max_iter=1000)
    model.fit(((x - centre) / spread)[:, None], labels)
    slope = model.coef_[0, 0] / spread
    return [float(slope), float(model.intercept_[0] - slope * centre)]


def gaps(labels, predicted, scores, groups):
    known = [i for i, g in enumerate(groups) if g is not None]
    y, h, s, g = (np.array([column[i] for i in known]) for column in (labels, predicted, scores, groups))
    if len(set(g.tolist())) < 2:
        return None
    classes = {k: both(y[g == k].tolist()) for k in (0, 1)}
    frame = fair.MetricFrame(
        metrics={"accuracy": sk.accuracy_score, "positive_rate": fair.selection_rate, "count": fair.count},
        y_true=y,
        y_pred=h,
        sensitive_features=g,
    )
    signed = {k: float(frame.by_group[k][1] - frame.by_group[k][0]) for k in ("accuracy", "positive_rate")}
    absolute = {k: float(v) for k, v in frame.difference(method="between_groups").items() if k != "count"}
    absolute["demographic_parity"] = float(fair.demographic_parity_difference(y, h, sensitive_features=g))
    odds = None
    if all(classes.values()):
        odds = float(fair.equalized_odds_difference(y, h, sensitive_features=g))
        rates = fair.MetricFrame(
            metrics={"true_positive_rate": fair.true_positive_rate, "false_positive_rate": fair.false_positive_rate},
            y_true=y,
            y_pred=h,
            sensitive_features=g,
        )
        rank = fair.MetricFrame(
            metrics={"auroc": sk.roc_auc_score, "auprc": sk.average_precision_score},
            y_true=y,
            y_pred=s,
            sensitive_features=g,
        )
        for part in (rates, rank):
            absolute |= {k: float(v) for k, v in part.difference(method="between_groups").items()}
            signed |= {k: float(part.by_group[k][1] - part.by_group[k][0]) for k in part.by_group.columns}
    return {
        "counts": [int(n) for n in frame.by_group["count"]],
        "signed": signed,
        "absolute": absolute,
        "equalized_odds": odds,
    }


def case(index):
    n = random.choice([1, 2, 3, 4, 5, 7, 12, 20, 33, 50, 80])
    prevalence = random.choice([0.0, 0.1, 0.3, 0.5, 0.5, 0.6, 0.8, 1.0])
    labels = [int(random.random() < prevalence) for _ in range(n)]
    scores = draw_scores(KINDS[index % len(KINDS)], labels)
    threshold = random.choice([0.5, 0.5, 0.05, 0.95, -10.0, 10.0])
    predicted = [int(s > threshold) for s in scores]
    share, unknown = random.choice([0.05, 0.5, 0.5, 0.9]), random.choice([0.0, 0.0, 0.2, 0.9])
    groups = [None if random.random() < unknown else int(random.random() < share) for _ in range(n)]
    expected = {k: scalar(v) for k, v in whole(labels, predicted, scores, both(labels)).items()}
    return {
        "labels": labels,
        "predicted": predicted,
        "scores": scores,
        "groups": groups,
        "expected": expected,
        "line": line(labels, scores),
        "gaps": gaps(labels, predicted, scores, groups) if index % 8 == 0 else None,
    }


def points():
    n = random.choice([3, 3, 4, 5, 9, 10, 24, 60, 200])
    slope, noise = random.choice([0.0, 1.0, -0.2, 30.0]), random.choice([0.01, 1.0, 5.0])
    shift = random.choice([0.0, 0.8, 100.0])
    digits = random.choice([1, 2, 15])
    x = [round(random.random() + shift, digits) for _ in range(n)]
    y = [round(slope * value + random.gauss(0, noise), digits) for value in x]
    if len(set(x)) < 2 or len(set(y)) < 2:
        return {"x": x, "y": y, "expected": None}
    fit, r = stats.linregress(x, y), stats.pearsonr(x, y)
    return {"x": x, "y": y, "expected": [float(v) for v in (r.statistic, r.pvalue, fit.slope, fit.intercept)]}


def family():
    p = [random.choice([random.random(), random.random() ** 4, 0.05, 2 / 1001]) for _ in range(random.randint(1, 60))]
    return {"p": p, "q": stats.false_discovery_control(p, method="bh").tolist()}


def ranks():
    values = [round(random.random(), 1) for _ in range(random.randint(1, 30))]
    return {"values": values, "ranks": stats.rankdata(values).tolist(), "median": float(np.median(values))}


with sklearn.config_context(assume_finite=True, skip_parameter_validation=True):
    json.dump(
        {
            "cases": [case(index) for index in range(count)],
            "points": [points() for _ in range(count // 4)],
            "families": [family() for _ in range(count // 10)],
            "ranks": [ranks() for _ in range(count // 10)],
        },
        sys.stdout,
    )
