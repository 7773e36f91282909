#!/usr/bin/env python3
"""Copies the tiny reference models of these families into tests/data, with pixels as bytes where the reference's are bytes.

Usage: python copy_fixtures.py FIXTURES (the folder that make_fixtures.py wrote), from plugins/clip. Needs numpy, and transformers (without
torch) for the ids of a long text.
"""
import json
import shutil
import struct
import sys
from pathlib import Path

import numpy as np

FAMILIES = {"clip": 77, "eyeclip": 77, "siglip2": 64, "medsiglip": 64, "retclip": 52, "flair": 77}
TYPES = {"F32": np.float32, "U8": np.uint8, "I64": np.int64}
NAMES = {"float32": "F32", "uint8": "U8", "int64": "I64"}
# A text of more tokens than any family takes.
LONG = " ".join(["A fundus photograph of a retina with diabetic retinopathy,"] * 60)
FILES = ["config.json", "preprocessor_config.json", "model.safetensors", "eyeclip_visual.pt", "checkpoint.pt", "texts.json"]
FILES += ["tokenizer.json", "tokenizer_config.json", "vocab.txt"]


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
        kind = NAMES[str(values.dtype)]
        header[name] = {"dtype": kind, "shape": list(values.shape), "data_offsets": [len(body), len(body) + len(raw)]}
        body += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def levels(values, processor):
    """The bytes that were normalised."""
    mean = np.array(processor["image_mean"])[:, None, None]
    std = np.array(processor["image_std"])[:, None, None]
    found = np.rint((values * std + mean) * 255)
    assert np.abs((found / 255 - mean) / std - values).max() < 1e-6
    return found.astype(np.uint8).transpose(0, 2, 3, 1)


def main():
    from transformers import PreTrainedTokenizerFast

    fixtures, target = Path(sys.argv[1]), Path("tests/data")
    long_ids = {}
    for family, longest in FAMILIES.items():
        source, out = fixtures / family, target / family
        out.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            if (source / name).exists():
                shutil.copyfile(source / name, out / name)
        expected = read(source / "expected.safetensors")
        if family == "flair":
            # The fixture's own description leaves out the sizes that differ from the published model's.
            config = json.loads((source / "config.json").read_text())
            config["bert"] |= {"intermediate": 64, "vocab": 98, "places": 80}
            (out / "config.json").write_text(json.dumps(config, indent=1) + "\n")
        else:
            processor = json.loads((source / "preprocessor_config.json").read_text())
            for name in ["pixel_values", "pixel_values_pil"]:
                expected[name.replace("pixel_values", "levels")] = levels(expected.pop(name), processor)
        write(out / "expected.safetensors", expected)
        tokenizer = PreTrainedTokenizerFast.from_pretrained(source)
        long_ids[family] = tokenizer(LONG, truncation=True, max_length=longest).input_ids
    (target / "long.json").write_text(json.dumps({"text": LONG, "ids": long_ids}) + "\n")
    images = target / "images"
    images.mkdir(exist_ok=True)
    for name in ["fundus_b.png", "fundus_c.jpg"]:
        shutil.copyfile(fixtures / "images" / name, images / name)


if __name__ == "__main__":
    main()
