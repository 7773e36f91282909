"""Times the probe and scikit-learn on the same made-up embeddings, back to back, and compares them at equal loss.

    python host/probe/benches/compare.py [path of a built `fit` bench]

needs numpy and scikit-learn; without a path it builds and runs `cargo bench -p focus-probe --bench fit`. scikit-learn is
given the L2-normalised f64 matrix ready-made; the probe's time includes checking, copying and normalising the f32 values.
"""

import json
import pathlib
import subprocess
import sys
import time
import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "data"))
from formula import Recipe  # noqa: E402

BASE = dict(rows=5000, width=1024, factors=8, offset=0.0, noise=1.0, strength=0.2, confusion=0.75, threshold=0.8, seed=7)
EMBEDDING = {**BASE, "factors": 64, "offset": 1.0, "noise": 0.25, "strength": 2.0}
RECIPES = {
    "plain": Recipe(**BASE),
    "embedding": Recipe(**{**EMBEDDING, "seed": 17}),
    "embedding_413x128": Recipe(**{**EMBEDDING, "rows": 413, "width": 128, "seed": 27}),
    "embedding_413x1024": Recipe(**{**EMBEDDING, "rows": 413, "seed": 37}),
}
REPEATS = 5


def scikit_learn(z, y, tolerance):
    """Least seconds and the loss reached by the default solver at this tolerance."""
    least = np.inf
    for _ in range(REPEATS):
        model = LogisticRegression(class_weight="balanced", max_iter=1000, tol=tolerance)
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(z, y)
        least = min(least, time.perf_counter() - start)
    w, b = model.coef_[0], model.intercept_[0]
    n, positives = len(y), y.sum()
    cost = np.where(y, n / (2 * positives), n / (2 * (n - positives)))
    margin = z @ w + b
    loss = 0.5 * w @ w + cost @ np.logaddexp(0, np.where(y, -margin, margin))
    return least, float(loss), int(model.n_iter_[0])


def main():
    command = sys.argv[1:] or ["cargo", "bench", "-q", "-p", "focus-probe", "--bench", "fit"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    ours = [json.loads(line) for line in lines if line.startswith("{")]
    for name, recipe in RECIPES.items():
        x, y = recipe.make()
        z = x.astype(np.float64)
        z /= np.linalg.norm(z, axis=1, keepdims=True)
        runs = [run for run in ours if run["data"] == name]
        best = min(run["loss"] for run in runs)
        print(f"\n{name}: {recipe.rows} x {recipe.width}, {y.sum()} positives, {runs[0]['threads']} threads, least loss {best:.10f}")
        for run in runs:
            print(
                f"  probe        tolerance {run['tolerance']:7.0e}  {run['seconds'] * 1e3:8.2f} ms"
                f" (prepared {run['prepared'] * 1e3:8.2f})  {run['passes']:3} passes"
                f"  loss above least {run['loss'] - best:9.2e}  gradient {run['gradient']:.0e}"
            )
        bytes_read = 4 * recipe.rows * recipe.width * runs[0]["passes"]
        print(f"  floor: {bytes_read / 1e6:.0f} MB in the tightest fit, {runs[0]['passes'] * runs[0]['read_once'] * 1e3:.2f} ms to read")
        for tolerance in (1e-4, 1e-6, 1e-8):
            seconds, loss, iterations = scikit_learn(z, y, tolerance)
            equal = min((run["seconds"] for run in runs if run["loss"] <= loss + 1e-12 * best), default=np.nan)
            print(
                f"  scikit-learn tolerance {tolerance:7.0e}  {seconds * 1e3:8.2f} ms  {iterations:3} iterations"
                f"  loss above least {loss - best:9.2e}; the probe reaches that loss {seconds / equal:.1f} times as fast,"
                f" its 1e-10 optimum {seconds / runs[0]['seconds']:.1f} times as fast"
            )


main()
