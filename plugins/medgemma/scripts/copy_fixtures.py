#!/usr/bin/env python3
"""Copies the tiny reference model of Gemma 3 into tests/data: weights and adapters in bf16 (their values are bf16 numbers), pixels as bytes.

Usage: python copy_fixtures.py FIXTURES (the folder that make_fixtures.py wrote), from plugins/medgemma. Needs numpy.
"""
import json
import shutil
import struct
import sys
from pathlib import Path

import numpy as np

TYPES = {"F32": np.float32, "U8": np.uint8, "I64": np.int64}
FILES = ["config.json", "config.v5.json", "preprocessor_config.json", "processor_config.json", "processor_config.v5.json"]
FILES += ["generation_config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "expected.json"]


def read(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, info in json.loads(data[8 : 8 + length]).items():
        if name != "__metadata__":
            start, end = info["data_offsets"]
            values = np.frombuffer(data[8 + length + start : 8 + length + end], TYPES[info["dtype"]])
            tensors[name] = values.reshape(info["shape"])
    return tensors


def half(values):
    bits = values.view(np.uint32)
    assert not (bits & 0xFFFF).any()
    return (bits >> 16).astype(np.uint16)


def write(path, tensors):
    kinds = {"float32": "F32", "uint8": "U8", "int64": "I64", "uint16": "BF16"}
    header, body = {}, b""
    for name, values in sorted(tensors.items()):
        raw = np.ascontiguousarray(values).tobytes()
        offsets = [len(body), len(body) + len(raw)]
        header[name] = {"dtype": kinds[str(values.dtype)], "shape": list(values.shape), "data_offsets": offsets}
        body += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def main():
    fixtures, out = Path(sys.argv[1]), Path("tests/data")
    source = fixtures / "gemma3"
    out.mkdir(parents=True, exist_ok=True)
    for file in FILES:
        shutil.copyfile(source / file, out / file)
    shutil.copyfile(fixtures / "images" / "fundus_b.png", out / "fundus_b.png")
    write(out / "model.safetensors", {name: half(values) for name, values in read(source / "model.safetensors").items()})
    # The other spelling is made in the tests.
    old, new = read(source / "model.safetensors"), read(source / "model.v5.safetensors")
    assert {k.replace("vision_tower.vision_model.", "vision_tower."): v.tobytes() for k, v in old.items()} == {k: v.tobytes() for k, v in new.items()}
    for name in ("lora", "lora_v5", "sft_init"):
        tensors = read(source / name / "adapter_model.safetensors")
        kept = {key: half(values) for key, values in tensors.items()}
        if name == "sft_init":
            kept = {key: values for key, values in kept.items() if ".layers.0.self_attn.q_proj." in key and "language_model" in key}
        write(out / name / "adapter_model.safetensors", kept)
        config = json.loads((source / name / "adapter_config.json").read_text())
        if name == "sft_init":
            config["target_modules"] = "model\\.language_model\\.layers\\.0\\.self_attn\\.q_proj"
        (out / name / "adapter_config.json").write_text(json.dumps(config, indent=1))
    expected = read(source / "expected.safetensors")
    kept = {}
    for name, values in expected.items():
        if name.endswith("pixel_values"):
            levels = np.rint((values[0] * 0.5 + 0.5) * 255)
            assert np.abs((levels / 255 - 0.5) / 0.5 - values[0]).max() < 1e-6
            values = levels.astype(np.uint8).transpose(1, 2, 0)
        kept[name] = values
    lora = read(source / "lora_expected.safetensors")
    kept |= {name: values for name, values in lora.items() if not name.startswith("sft.") and "sft" not in name}
    write(out / "expected.safetensors", kept)


if __name__ == "__main__":
    main()
