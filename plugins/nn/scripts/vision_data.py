"""Cuts `tests/data/vision_{llava_next,gemma3}.safetensors` out of the fixtures of those models.

Usage: python vision_data.py FIXTURES OUT

Tower and projector in bf16 (the fixtures' values are bf16 numbers), pixel values and image features of the first picture in f32, of LLaVA-NeXT
the base tile alone.
"""
import sys

import torch
from safetensors.torch import load_file, save_file

fixtures, out = sys.argv[1:]
for name in ("llava_next", "gemma3"):
    weights = load_file(f"{fixtures}/{name}/model.safetensors")
    expected = load_file(f"{fixtures}/{name}/expected.safetensors")
    kept = {}
    for key, value in weights.items():
        if key.startswith(("vision_tower.", "multi_modal_projector.")):
            assert torch.equal(value, value.bfloat16().float()), key
            kept[key] = value.bfloat16()
    pixels, features = expected["0.pixel_values"], expected["0.image_features"]
    if name == "llava_next":
        # The base tile comes first, one row of features for each of its patches.
        pixels, features = pixels[0, :1], features[:16]
    kept["expected.pixel_values"] = pixels.contiguous()
    kept["expected.image_features"] = features.reshape(-1, features.shape[-1]).contiguous()
    save_file(kept, f"{out}/vision_{name}.safetensors")
