"""The plain scikit-learn loop that `kernel.rs` is compared with: a paired bootstrap, n = 2,000, five metrics.

`python sklearn_loop.py [B]` prints the time of B resamples (default 50) and its extrapolation to B = 1,000. ECE is ten
lines of numpy, as scikit-learn has none.
"""
import sys
import time

import numpy as np
from sklearn import metrics as sk

resamples = int(sys.argv[1]) if len(sys.argv) > 1 else 50
n = 2000
index = np.arange(n)
labels = (index % 3 == 0).astype(int)
arms = [(index * 7919 % 1_000_003) / 1_000_003, (index * 104_729 % 1_000_033) / 1_000_033]


def ece(y, s):
    bins = np.minimum((10 * s).astype(int), 9)
    sums = np.bincount(bins, weights=s - y, minlength=10)
    return np.abs(sums).sum() / len(y)


def five(y, s):
    h = (s > 0.5).astype(int)
    return [
        sk.roc_auc_score(y, s),
        sk.average_precision_score(y, s),
        sk.accuracy_score(y, h),
        sk.f1_score(y, h),
        ece(y, s),
    ]


rng = np.random.default_rng(13)
start = time.process_time()
deltas = []
for _ in range(resamples):
    rows = rng.integers(0, n, n)
    base, other = (five(labels[rows], scores[rows]) for scores in arms)
    deltas.append(np.subtract(other, base))
seconds = time.process_time() - start
print(np.percentile(deltas, [2.5, 97.5], axis=0).round(4).tolist())
print(f"{resamples} resamples: {seconds:.2f} s of CPU, B = 1,000: {seconds / resamples * 1000:.1f} s")
