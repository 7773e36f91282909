"""The same with PyTorch: `python reference_speed.py [THREADS [BATCHES]]` (packages as for make_reference.py)."""

import sys
import time

import torch
from efficientnet_lite_pytorch import EfficientNet

threads, batches = (int(text) for text in (sys.argv[1:] + ["1", "8"][len(sys.argv) - 1 :])[:2])
torch.set_num_threads(threads)
model = EfficientNet.from_name("efficientnet-lite0").eval()
pixels = torch.rand(8, 3, 224, 224)
with torch.inference_mode():
    model.extract_features(pixels)
    start = time.perf_counter()
    for _ in range(batches):
        model.extract_features(pixels).mean((2, 3))
each = (time.perf_counter() - start) * 1e3 / (8 * batches)
print(f"{threads} threads: {each:.1f} ms a picture, {1e3 / each:.1f} pictures a second")
