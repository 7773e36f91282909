"""Exports a small encoder and what it computes in Python: the recipe of docs/torchscript.md, and the data of tests/encoder.rs.

    python export_example.py FOLDER

Any `torch.nn.Module` that takes (images, 3, height, width) goes the same way.
"""

import sys
from pathlib import Path

import torch
from torch import nn


class Encoder(nn.Module):
    """A few convolutions and a block of attention, enough to use several of libtorch's libraries."""

    def __init__(self, width=24):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 8, 8)
        self.norm = nn.LayerNorm(width)
        self.mix = nn.MultiheadAttention(width, 4, batch_first=True)
        self.head = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, 32))

    def forward(self, pixels):
        tokens = self.stem(pixels).flatten(2).transpose(1, 2)
        normed = self.norm(tokens)
        tokens = tokens + self.mix(normed, normed, normed, need_weights=False)[0]
        return self.head(tokens)


CARD = """\
# The card of encoder.pt: what TorchScript does not say of itself.
title = "A small encoder with random weights, for trying things out"
licence = "MIT OR Apache-2.0"
batch = 2

[preprocessing]
width = 64
height = 48
geometry = { kind = "squash" }
filter = "bicubic"
mean = [0.485, 0.456, 0.406]
std = [0.229, 0.224, 0.225]

[output]
pooling = "mean_tokens"
"""


def picture(number, width, height):
    """Whole numbers only, so that any language draws the same bytes."""
    y, x, c = torch.meshgrid(torch.arange(height), torch.arange(width), torch.arange(3), indexing="ij")
    return ((x * (3 + c) + y * (5 - c) + (x * y) // (4 + number) + 40 * number) % 256).to(torch.uint8)


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(5)
    model = Encoder().eval()
    bytes_ = torch.stack([picture(n, 64, 48) for n in range(2)])
    mean = torch.tensor([0.485, 0.456, 0.406], dtype=torch.float64)
    std = torch.tensor([0.229, 0.224, 0.225], dtype=torch.float64)
    pixels = ((bytes_.double() / 255 - mean) / std).float().permute(0, 3, 1, 2).contiguous()
    with torch.no_grad():
        program = torch.jit.trace(model, pixels)
        program.save(str(folder / "encoder.pt"))
        expected = model(pixels).mean(1)
    (folder / "encoder.toml").write_text(CARD)
    (folder / "expected.f32").write_bytes(expected.numpy().astype("<f4").tobytes())
    print(f"{tuple(expected.shape)} written to {folder}")


if __name__ == "__main__":
    main()
