#!/usr/bin/env python3
"""Copies the tiny reference models of these families into tests/data, with pixels as bytes where the reference's are bytes.

Usage: python copy_fixtures.py FIXTURES (the folder that make_fixtures.py wrote), from plugins/vit. Needs numpy.
"""
import json
import shutil
import struct
import sys
from pathlib import Path

import numpy as np

FAMILIES = ["vit", "dinov2", "dinov3", "retfound_mae", "retfound_dinov2", "retfound_green", "visionfm"]
TYPES = {"F32": np.float32, "U8": np.uint8, "I64": np.int64}


def read(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    tensors = {}
    for name, info in header.items():
        if name == "__metadata__":
            continue
        start, end = info["data_offsets"]
        values = np.frombuffer(data[8 + length + start : 8 + length + end], TYPES[info["dtype"]])
        tensors[name] = values.reshape(info["shape"])
    return tensors


def write(path, tensors):
    header, body = {}, b""
    for name, values in sorted(tensors.items()):
        raw = np.ascontiguousarray(values).tobytes()
        kind = "U8" if values.dtype == np.uint8 else "F32"
        header[name] = {"dtype": kind, "shape": list(values.shape), "data_offsets": [len(body), len(body) + len(raw)]}
        body += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def main():
    fixtures, target = Path(sys.argv[1]), Path("tests/data")
    for family in FAMILIES:
        source, out = fixtures / family, target / family
        out.mkdir(parents=True, exist_ok=True)
        for name in ["config.json", "preprocessor_config.json", "model.safetensors", "checkpoint.pth"]:
            if (source / name).exists():
                shutil.copyfile(source / name, out / name)
        processor = json.loads((source / "preprocessor_config.json").read_text())
        mean = np.array(processor["image_mean"])[:, None, None]
        std = np.array(processor["image_std"])[:, None, None]
        expected = read(source / "expected.safetensors")
        for name in ["pixel_values", "pixel_values_pil"]:
            if family == "dinov3" or name not in expected:
                continue
            values = expected.pop(name)
            levels = np.rint((values * std + mean) * 255)
            assert np.abs((levels / 255 - mean) / std - values).max() < 1e-6, (family, name)
            expected[name.replace("pixel_values", "levels")] = levels.astype(np.uint8).transpose(0, 2, 3, 1)
        write(out / "expected.safetensors", expected)
    images = target / "images"
    images.mkdir(exist_ok=True)
    for name in ["fundus_b.png", "fundus_c.jpg"]:
        shutil.copyfile(fixtures / "images" / name, images / name)


if __name__ == "__main__":
    main()
