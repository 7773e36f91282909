"""Cuts `tests/data` out of the fixtures of LLaVA-NeXT.

Usage: python test_data.py FIXTURES OUT

Weights and adapter in bf16 (the fixtures' values are bf16 numbers); pictures as decoded pixels; pixel values as the levels they stand for.
"""
import os
import shutil
import sys

import numpy as np
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

fixtures, out = sys.argv[1:]
here = f"{fixtures}/llava_next"
MEAN = torch.tensor([0.48145466, 0.4578275, 0.40821073]).reshape(1, 1, 3, 1, 1)
STD = torch.tensor([0.26862954, 0.26130258, 0.27577711]).reshape(1, 1, 3, 1, 1)


def brief(path, target):
    tensors = load_file(path)
    for name, value in tensors.items():
        assert torch.equal(value, value.bfloat16().float()), name
    save_file({name: value.bfloat16() for name, value in tensors.items()}, target)


brief(f"{here}/model.safetensors", f"{out}/model.safetensors")
for adapter in ("lora", "sft_init"):
    os.makedirs(f"{out}/{adapter}", exist_ok=True)
    brief(f"{here}/{adapter}/adapter_model.safetensors", f"{out}/{adapter}/adapter_model.safetensors")
for file in (
    "config.json config.v5.json preprocessor_config.json processor_config.json processor_config.v5.json generation_config.json "
    "tokenizer.json tokenizer_config.json chat_template.jinja lora/adapter_config.json sft_init/adapter_config.json sft_trace.json"
).split():
    shutil.copyfile(f"{here}/{file}", f"{out}/{file}")

expected, lora = load_file(f"{here}/expected.safetensors"), load_file(f"{here}/lora_expected.safetensors")
kept = {"batch.input_ids": expected["batch.input_ids"], "batch.attention_mask": expected["batch.attention_mask"]}
kept["batch.first_logits"], kept["0.image_features"] = expected["batch.first_logits"], expected["0.image_features"]
for number, picture in enumerate(("fundus_b.png", None, "fundus_w.png")):
    if picture:
        pixels = np.asarray(Image.open(f"{fixtures}/images/{picture}").convert("RGB"))
    else:
        pixels = np.load(f"{fixtures}/images/fundus_c.decoded.npy")
    kept[f"{number}.picture"] = torch.from_numpy(pixels.copy())
    values = (expected[f"{number}.pixel_values"] * STD + MEAN) * 255
    levels = values.round()
    assert (values - levels).abs().max() < 1e-3
    kept[f"{number}.levels"] = levels[0].to(torch.uint8)
    for name in ("input_ids", "generated", "first_logits", "step_logits"):
        kept[f"{number}.{name}"] = expected[f"{number}.{name}"]
    for name in ("lora_first_logits", "merged_first_logits", "merged_generated"):
        kept[f"{number}.{name}"] = lora[f"{number}.{name}"]
for mode in ("assistant", "all_but_image_and_pad"):
    for number in range(2):
        for name in ("input_ids", "labels"):
            kept[f"sft.{mode}.{number}.{name}"] = lora[f"sft.{mode}.{number}.{name}"]
for name, value in kept.items():
    if value.dtype == torch.int64:
        kept[name] = value.to(torch.int32)
save_file({name: value.contiguous() for name, value in kept.items()}, f"{out}/expected.safetensors")
