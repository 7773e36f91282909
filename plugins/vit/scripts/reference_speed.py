#!/usr/bin/env python3
"""ViT-L/16 in plain PyTorch, for comparison with examples/speed.rs: python reference_speed.py [batch] [repeats] [threads]. Needs torch.

Random weights, 224 pixels, f32, inference mode, scaled_dot_product_attention: the operations that transformers' ViT runs.
"""
import sys
import time

import torch
from torch import nn

BATCH, REPEATS, THREADS = (int(sys.argv[i]) if len(sys.argv) > i else d for i, d in ((1, 8), (2, 3), (3, 2)))


class Block(nn.Module):
    def __init__(self, dim=1024, heads=16, hidden=4096):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim, 1e-12), nn.LayerNorm(dim, 1e-12)
        self.query, self.key, self.value, self.out = (nn.Linear(dim, dim) for _ in range(4))
        self.up, self.down, self.act = nn.Linear(dim, hidden), nn.Linear(hidden, dim), nn.GELU()

    def forward(self, x):
        b, n, d = x.shape
        y = self.norm1(x)
        q, k, v = (f(y).view(b, n, self.heads, -1).transpose(1, 2) for f in (self.query, self.key, self.value))
        a = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d)
        x = x + self.out(a)
        return x + self.down(self.act(self.up(self.norm2(x))))


class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 1024, 16, 16)
        self.cls, self.pos = nn.Parameter(torch.zeros(1, 1, 1024)), nn.Parameter(torch.zeros(1, 197, 1024))
        self.blocks, self.norm = nn.Sequential(*[Block() for _ in range(24)]), nn.LayerNorm(1024, 1e-12)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], 1) + self.pos
        return self.norm(self.blocks(x))[:, 0]


def best(run):
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


torch.set_num_threads(THREADS)
with torch.inference_mode():
    a, b = torch.ones(BATCH * 197, 1024), torch.ones(4096, 1024)
    product = best(lambda: a @ b.T)
    print(f"product: {2 * BATCH * 197 * 1024 * 4096 / product / 1e9:.0f} GFLOP/s")
    model, pixels = Vit().eval(), torch.zeros(BATCH, 3, 224, 224)
    seconds = best(lambda: model(pixels))
    print(f"batch {BATCH}: {seconds:.2f} s, {BATCH / seconds:.3f} images/s")
