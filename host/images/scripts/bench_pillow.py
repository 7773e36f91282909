"""Pillow's and torchvision's times for the tables of benches/, in the same processor time: python scripts/bench_pillow.py FOLDER

torchvision is left out where it is not installed. Run it on one thread: OMP_NUM_THREADS=1.
"""

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


def whole_path(name, prepare):
    """The table of benches/whole_path.rs: read, decode, resize."""
    paths = sorted(pathlib.Path(sys.argv[1]).glob("*.jpg"))[:8]
    for side in (224, 768):
        for filter_ in ("bilinear", "bicubic"):
            best = [float("inf")] * len(paths)
            for _ in range(5):
                for index, path in enumerate(paths):
                    start = time.thread_time()
                    prepare(path, side, filter_)
                    best[index] = min(best[index], time.thread_time() - start)
            value = sum(best) / len(best)
            print(f"{f'{name} {side} {filter_}':<40}{value * 1e3:10.2f} ms{1 / value:10.1f} images/s")


def pillow(path, side, filter_):
    Image.open(path).convert("RGB").resize((side, side), getattr(Image, filter_.upper())).tobytes()


def pillow_draft(path, side, filter_):
    """Pillow's own reduced decoding, which keeps at least the size asked for."""
    image = Image.open(path)
    image.draft("RGB", (2 * side, 2 * side))
    image.convert("RGB").resize((side, side), getattr(Image, filter_.upper())).tobytes()


whole_path("Pillow", pillow)
whole_path("Pillow, draft mode", pillow_draft)
try:
    import torch
    import torchvision
    from torchvision.io import ImageReadMode, decode_image
    from torchvision.transforms import v2
except ImportError:
    print("torchvision is not installed")
else:
    torch.set_num_threads(1)

    def tensor(path, side, filter_):
        image = decode_image(str(path), mode=ImageReadMode.RGB)
        v2.functional.resize(image, [side, side], getattr(v2.InterpolationMode, filter_.upper()), antialias=True)

    whole_path(f"torchvision {torchvision.__version__}", tensor)
