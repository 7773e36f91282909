#!/usr/bin/env python3
"""Fits the rational approximation of the error function in src/kernel/maths.rs: python fit_erf.py. Needs numpy and scipy.

erf(x) = x P(x^2) / Q(x^2) on |x| <= 3.95, degrees 6 and 5, by least squares on the linearised equation, reweighted towards the points
with the largest relative error. Prints the coefficients in f32 and the largest error of the f32 evaluation.
"""
import numpy as np
from scipy.special import erf

END, ABOVE, BELOW = 3.95, 6, 5


def fit():
    x = END * np.cos((np.arange(4000) + 0.5) * np.pi / 8000)
    x = x[x > 1e-3]
    z = (x / END) ** 2
    f = erf(x) / x
    weight, denominator, best = np.ones_like(x), np.ones_like(x), None
    for _ in range(60):
        rows = np.stack([z**i for i in range(ABOVE + 1)] + [-f * z**j for j in range(1, BELOW + 1)], 1)
        scale = weight / (f * denominator)
        solved, *_ = np.linalg.lstsq(rows * scale[:, None], f * scale, rcond=None)
        p, q = solved[: ABOVE + 1], np.r_[1, solved[ABOVE + 1 :]]
        denominator = np.polynomial.polynomial.polyval(z, q)
        error = np.abs(np.polynomial.polynomial.polyval(z, p) / denominator / f - 1)
        if best is None or error.max() < best[0]:
            best = error.max(), p, q
        weight = weight * (error / error.max() + 0.02) ** 0.3
        weight /= weight.max()
    _, p, q = best
    return p / END ** (2 * np.arange(ABOVE + 1)), q / END ** (2 * np.arange(BELOW + 1))


def main():
    p, q = (c.astype(np.float32) for c in fit())
    x = np.linspace(-6, 6, 2000001).astype(np.float32)
    clamped = np.clip(x, np.float32(-END), np.float32(END))
    z, above, below = clamped * clamped, np.float32(0), np.float32(0)
    for c in p[::-1]:
        above = above * z + c
    for c in q[::-1]:
        below = below * z + c
    error = np.abs((clamped * above / below).astype(np.float64) - erf(x.astype(np.float64)))
    print("above", p.tolist(), "below", q.tolist(), "largest error", error.max(), sep="\n")


if __name__ == "__main__":
    main()
