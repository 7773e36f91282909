"""Writes real_embeddings.{f32,json}: a part of the `handcrafted` embeddings of the IDRiD photographs (CC BY 4.0, Porwal et
al. 2018), as little-endian f32 rows, with scikit-learn's scores of the balanced and the unweighted probe at tight tolerance.

Run `python real_embeddings.py RUN` on a run folder of
`focus-host eval --plugin target/release/libhandcrafted.so --dataset idrid --data DIR`, with numpy, pyarrow and scikit-learn.
Every fourth training image is kept to fit on, every third test image to score.
"""

import json
import pathlib
import sys

import numpy as np
import pyarrow.parquet as pq
import sklearn
from sklearn.linear_model import LogisticRegression

HERE = pathlib.Path(__file__).parent
run = pathlib.Path(sys.argv[1])
answers = pq.read_table(run / "answers" / "embeddings.parquet").to_pydict()
predictions = pq.read_table(next(run.glob("predictions/*referable_dr~linear_probing~*.parquet"))).to_pydict()

vectors = {s: np.array(e, dtype=np.float32) for s, e in zip(answers["sample"], answers["embedding"])}
rows = {"train": [], "test": []}
for sample, fold, label in zip(predictions["sample"], predictions["fold"], predictions["label"]):
    rows[fold].append((sample, label))
train, test = rows["train"][::4], rows["test"][::3]

x = {name: np.stack([vectors[s] for s, _ in part]) for name, part in (("train", train), ("test", test))}
y = np.array([label for _, label in train])
z = {name: v.astype(np.float64) / np.linalg.norm(v.astype(np.float64), axis=1, keepdims=True) for name, v in x.items()}


def optimum(weight):
    """scikit-learn's own optimum: the better of two solvers at their tightest, with its gradient norm."""
    cost = np.where(y, len(y) / (2 * y.sum()), len(y) / (2 * (~y).sum())) if weight else np.ones(len(y))
    sign = np.where(y, 1.0, -1.0)
    best = None
    for solver, tol in (("newton-cholesky", 1e-14), ("lbfgs", 1e-14)):
        model = LogisticRegression(C=1.0, class_weight=weight, solver=solver, tol=tol, max_iter=100000).fit(z["train"], y)
        w, b = model.coef_[0], model.intercept_[0]
        slope = -sign * cost / (1.0 + np.exp(sign * (z["train"] @ w + b)))
        norm = float(np.sqrt(np.sum((w + z["train"].T @ slope) ** 2) + slope.sum() ** 2))
        if best is None or norm < best[0]:
            best = (norm, model)
    return {"gradient_norm": best[0], "scores": best[1].predict_proba(z["test"])[:, 1].tolist()}


np.concatenate([x["train"], x["test"]]).astype("<f4").tofile(HERE / "real_embeddings.f32")
(HERE / "real_embeddings.json").write_text(
    json.dumps(
        {
            "scikit_learn": sklearn.__version__,
            "dim": int(x["train"].shape[1]),
            "train_labels": [bool(v) for v in y],
            "test": len(test),
            "balanced": optimum("balanced"),
            "unweighted": optimum(None),
        }
    )
    + "\n"
)
