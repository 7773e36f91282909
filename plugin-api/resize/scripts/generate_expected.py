"""Regenerates tests/data/pillow.json: hashes of Pillow's answers on images drawn by a formula.

Usage: python scripts/generate_expected.py   (needs pillow >= 13 and numpy; takes a few seconds)

The same formula is in tests/matrix.rs. `pillow` holds the answers of Image.resize; `horizontal_first` those of the order of
passes that Pillow had before 13, made by resizing along one axis at a time (null where the two agree).
"""

import hashlib
import json
import pathlib

import numpy as np
import PIL
from PIL import Image

FILTERS = {"box": Image.BOX, "bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC, "lanczos": Image.LANCZOS}
MODES = {1: "L", 3: "RGB", 4: "CMYK"}  # CMYK: four plain channels, no alpha rule
SOURCES = [(1, 1), (1, 7), (7, 1), (3, 2), (16, 16), (33, 17), (64, 48), (101, 67), (40, 200), (200, 40), (320, 213), (1000, 9)]
TARGETS = [(1, 1), (5, 5), (16, 16), (33, 17), (64, 64), (13, 150), (224, 224), (97, 3), (101, 21), (20, 67), (500, 2)]
REGIONS = [(0.0, 0.0, 50.0, 30.0), (10.0, 5.0, 90.0, 60.0), (3.25, 7.5, 61.75, 66.5), (0.0, 0.5, 101.0, 67.0), (99.5, 65.0, 101.0, 67.0), (2.0, 0.0, 66.0, 67.0)]
REGION_TARGETS = [(5, 5), (50, 30), (64, 67), (101, 40), (120, 7)]
WINDOWS = [(0, 0, 10, 10), (3, 5, 40, 20), (63, 47, 1, 1), (0, 20, 64, 3)]


def draw(width, height, channels):
    """Hard edges, noise and ramps in blocks of 8 pixels; tests/matrix.rs has the same formula."""
    y, x, c = np.meshgrid(np.arange(height, dtype=np.uint64), np.arange(width, dtype=np.uint64), np.arange(channels, dtype=np.uint64), indexing="ij")
    mask = np.uint64(0xFFFFFFFF)
    h = ((x * np.uint64(73856093)) & mask) ^ ((y * np.uint64(19349663)) & mask) ^ ((c * np.uint64(83492791)) & mask)
    h ^= h >> np.uint64(13)
    h = (h * np.uint64(0x5BD1E995)) & mask
    noise = h >> np.uint64(24)
    edge = ((x + y + c) % np.uint64(2)) * np.uint64(255)
    ramp = (x * np.uint64(3) + y * np.uint64(5) + c * np.uint64(40)) & np.uint64(255)
    kind = (x // np.uint64(8) + y // np.uint64(8)) % np.uint64(3)
    return np.where(kind == 0, edge, np.where(kind == 1, noise, ramp)).astype(np.uint8)


def digest(data):
    return hashlib.sha256(data).hexdigest()[:16]


def image(width, height, channels):
    pixels = draw(width, height, channels)
    return Image.frombytes(MODES[channels], (width, height), pixels.tobytes())


def horizontal_first(im, size, resample, box=None):
    left, top, right, bottom = box or (0, 0, *im.size)
    wide = im.resize((size[0], im.size[1]), resample, box=(left, 0, right, im.size[1]))
    return wide.resize(size, resample, box=(0, top, size[0], bottom))


def pair(im, size, resample, box=None):
    now = digest(im.resize(size, resample, box=box).tobytes())
    before = digest(horizontal_first(im, size, resample, box).tobytes())
    return now, None if before == now else before


def main():
    rows, regions, windows, floats = [], [], [], []
    for channels in MODES:
        for source in SOURCES:
            im = image(*source, channels)
            for name, resample in FILTERS.items():
                answers = [pair(im, target, resample) for target in TARGETS]
                rows.append({"channels": channels, "source": source, "filter": name, "pillow": [a[0] for a in answers], "horizontal_first": [a[1] for a in answers]})
    for channels in MODES:
        im = image(101, 67, channels)
        for box in REGIONS:
            for name, resample in FILTERS.items():
                answers = [pair(im, target, resample, box) for target in REGION_TARGETS]
                regions.append({"channels": channels, "region": box, "filter": name, "pillow": [a[0] for a in answers], "horizontal_first": [a[1] for a in answers]})
    for channels in MODES:
        for source in [(101, 67), (64, 67), (101, 48), (64, 48), (20, 300)]:
            im = image(*source, channels).resize((64, 48), Image.BICUBIC)
            windows.append({"channels": channels, "source": source, "pillow": [digest(im.crop((x, y, x + w, y + h)).tobytes()) for x, y, w, h in WINDOWS]})
    for source in SOURCES:
        pixels = draw(*source, 1)[:, :, 0].astype(np.float32) / np.float32(255) - np.float32(0.25)
        im = Image.fromarray(pixels)
        for name, resample in FILTERS.items():
            floats.append({"source": source, "filter": name, "pillow": [digest(np.asarray(im.resize(t, resample), dtype="<f4").tobytes()) for t in TARGETS]})
    out = {
        "made_with": {"pillow": PIL.__version__},
        "targets": TARGETS,
        "rows": rows,
        "region_targets": REGION_TARGETS,
        "regions": regions,
        "windows_of": WINDOWS,
        "windows": windows,
        "floats": floats,
    }
    path = pathlib.Path(__file__).parent.parent / "tests/data/pillow.json"
    sections = []
    for key, value in out.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            body = ",\n".join("  " + json.dumps(item) for item in value)
            sections.append(f' "{key}": [\n{body}\n ]')
        else:
            sections.append(f' "{key}": {json.dumps(value)}')
    path.write_text("{\n" + ",\n".join(sections) + "\n}\n")
    print(path, path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
