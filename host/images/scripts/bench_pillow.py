"""Pillow's times for the table of benches/decode_resize.rs, in the same processor time: python scripts/bench_pillow.py FOLDER"""

import io
import pathlib
import sys
import time

import PIL
from PIL import Image

ROUNDS, IMAGES = 7, 5
KINDS = [(side, name, getattr(Image, name.upper())) for side in (224, 768) for name in ("bilinear", "bicubic", "lanczos")]

files = [p.read_bytes() for p in sorted(pathlib.Path(sys.argv[1]).glob("*.jpg"))[:IMAGES]]
best = [[float("inf")] * (len(KINDS) + 1) for _ in files]
for _ in range(ROUNDS):
    for row, data in zip(best, files):
        start = time.thread_time()
        Image.open(io.BytesIO(data)).convert("RGB").load()
        row[0] = min(row[0], time.thread_time() - start)
        for index, (side, _, filter_) in enumerate(KINDS, 1):
            start = time.thread_time()
            Image.open(io.BytesIO(data)).convert("RGB").resize((side, side), filter_).tobytes()
            row[index] = min(row[index], time.thread_time() - start)
mean = [sum(row[i] for row in best) / len(best) * 1e3 for i in range(len(KINDS) + 1)]
print(f"Pillow {PIL.__version__}: {len(files)} images, least of {ROUNDS} rounds each, mean in ms")
print(f"{'decode alone':<28}{mean[0]:8.2f}")
for (side, name, _), value in zip(KINDS, mean[1:]):
    print(f"{f'decode + {side} {name}':<28}{value:8.2f}  x{value / mean[0]:.3f}")
