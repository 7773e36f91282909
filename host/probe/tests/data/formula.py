"""Made-up embeddings by the formula of tests/common/mod.rs, bit for bit."""

from dataclasses import dataclass

import numpy as np

U = np.uint64


def mix(values):
    x = np.asarray(values, dtype=U)
    with np.errstate(over="ignore"):
        x = x + U(0x9E3779B97F4A7C15)
        x = (x ^ (x >> U(30))) * U(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> U(27))) * U(0x94D049BB133111EB)
    return x ^ (x >> U(31))


def bell(seed, count):
    with np.errstate(over="ignore"):
        hashes = mix(np.arange(count, dtype=U) + mix(np.array([seed], dtype=U)))
    total = sum(((hashes >> U(16 * part)) & U(0xFFFF)).astype(np.int64) for part in range(4))
    return (total - 2 * 65535).astype(np.float64) / 32768.0


@dataclass
class Recipe:
    rows: int
    width: int
    factors: int
    offset: float
    noise: float
    strength: float
    confusion: float
    threshold: float
    seed: int

    def make(self):
        latent = bell(self.seed, self.rows * self.factors).reshape(self.rows, self.factors)
        noise = bell(self.seed + 1, self.rows * self.width).reshape(self.rows, self.width)
        mean = bell(self.seed + 2, self.width)
        loads = bell(self.seed + 3, self.factors * self.width).reshape(self.factors, self.width)
        confusion = bell(self.seed + 4, self.rows)
        values = noise * self.noise + (mean * self.offset)[None, :]
        for factor in range(self.factors):
            load = loads[factor] * (self.strength / (factor + 1))
            values = values + latent[:, factor : factor + 1] * load[None, :]
        score = latent[:, 0] + latent[:, 1] - latent[:, 2] + self.confusion * confusion
        return values.astype(np.float32), score > self.threshold
