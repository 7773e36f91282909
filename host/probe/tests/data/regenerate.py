"""Writes scikit_learn.json: scikit-learn's scores at tight tolerance on the data sets of tests/scikit_learn.rs.

Run `python tests/data/regenerate.py` with numpy and scikit-learn installed. Each reference is scikit-learn's own optimum
(the better of its newton-cholesky and lbfgs solvers at their tightest); its gradient norm is recorded beside it.
"""

import json
import pathlib
import warnings

import numpy as np
import sklearn
from formula import Recipe
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

CASES = {
    "tall": dict(recipe=Recipe(300, 20, 4, 0.0, 1.0, 0.5, 0.75, 0.3, 101)),
    "wide": dict(recipe=Recipe(60, 200, 5, 0.5, 0.5, 1.0, 0.5, 0.0, 111)),
    "imbalanced": dict(recipe=Recipe(400, 33, 4, 0.3, 0.5, 1.0, 0.5, 3.5, 121)),
    "imbalanced_unweighted": dict(recipe=Recipe(400, 33, 4, 0.3, 0.5, 1.0, 0.5, 3.5, 121), balanced=False),
    "separable": dict(recipe=Recipe(120, 16, 3, 0.2, 0.05, 1.0, 0.0, 0.1, 131)),
    "separable_large_c": dict(recipe=Recipe(120, 16, 3, 0.2, 0.05, 1.0, 0.0, 0.1, 131), c=1000.0),
    "duplicated": dict(recipe=Recipe(150, 24, 4, 0.4, 0.4, 1.0, 0.75, 0.4, 141), copies=2),
    "zero_rows": dict(recipe=Recipe(90, 18, 4, 0.4, 0.4, 1.0, 0.75, 0.2, 151), zero_every=7),
    "embedding_like": dict(recipe=Recipe(500, 64, 16, 1.0, 0.25, 2.0, 0.75, 0.8, 161)),
    "embedding_like_unweighted": dict(recipe=Recipe(500, 64, 16, 1.0, 0.25, 2.0, 0.75, 0.8, 161), balanced=False),
    "strong_mean": dict(recipe=Recipe(200, 48, 6, 20.0, 0.25, 1.0, 0.75, 0.5, 171)),
    "small_c": dict(recipe=Recipe(200, 40, 6, 0.5, 0.25, 1.0, 0.75, 0.5, 181), c=0.01),
    "one_column": dict(recipe=Recipe(50, 1, 3, 0.0, 0.5, 1.0, 0.5, 0.0, 191)),
}


def gradient_norm(z, y, cost, w, b):
    sign = np.where(y, 1.0, -1.0)
    slope = -sign * cost / (1.0 + np.exp(sign * (z @ w + b)))
    return float(np.sqrt(np.sum((w + z.T @ slope) ** 2) + slope.sum() ** 2))


def reference(recipe, balanced=True, c=1.0, copies=1, zero_every=0):
    x, y = recipe.make()
    x, y = np.concatenate([x] * copies), np.concatenate([y] * copies)
    if zero_every:
        x[::zero_every] = 0
    z = x.astype(np.float64)
    norms = np.linalg.norm(z, axis=1, keepdims=True)
    z = z / np.where(norms == 0, 1.0, norms)
    n, positives = len(y), int(y.sum())
    cost = c * (np.where(y, n / (2 * positives), n / (2 * (n - positives))) if balanced else np.ones(n))
    best = None
    for solver, tolerance in [("newton-cholesky", 1e-13), ("newton-cholesky", 1e-15), ("lbfgs", 1e-14)]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", RuntimeWarning)
            model = LogisticRegression(
                C=c, class_weight="balanced" if balanced else None, solver=solver, tol=tolerance, max_iter=100000
            ).fit(z, y)
        norm = gradient_norm(z, y, cost, model.coef_[0], model.intercept_[0])
        if best is None or norm < best[0]:
            best = (norm, solver, model)
    norm, solver, model = best
    margin = model.decision_function(z)
    loss = 0.5 * model.coef_[0] @ model.coef_[0] + cost @ np.logaddexp(0, np.where(y, -margin, margin))
    shown = slice(0, None, max(1, n // 40))
    return dict(
        recipe=vars(recipe),
        balanced=balanced,
        c=c,
        copies=copies,
        zero_every=zero_every,
        positives=positives,
        last_value=float(x.ravel()[-1]),
        solver=solver,
        gradient_norm=norm,
        loss=float(loss),
        intercept=float(model.intercept_[0]),
        every=max(1, n // 40),
        scores=model.predict_proba(z)[shown, 1].tolist(),
        labels=model.predict(z)[shown].astype(int).tolist(),
    )


def main():
    cases = {name: reference(**case) for name, case in CASES.items()}
    for name, case in cases.items():
        print(f"{name:28} {case['solver']:16} gradient {case['gradient_norm']:.1e}  positives {case['positives']}")
    text = json.dumps(dict(scikit_learn=sklearn.__version__, cases=cases), indent=1)
    pathlib.Path(__file__).with_name("scikit_learn.json").write_text(text + "\n")


main()
