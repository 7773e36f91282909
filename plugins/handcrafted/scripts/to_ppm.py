"""Photographs of a folder as 768 x 768 PPM, the long side fitted (bilinear) and black bars around, as the host prepares them.

Usage: python scripts/to_ppm.py FOLDER OUT
"""

import sys
from pathlib import Path

from PIL import Image

SIDE = 768


def main(source, target):
    Path(target).mkdir(parents=True, exist_ok=True)
    for path in sorted(p for p in Path(source).iterdir() if p.suffix.lower() in (".jpg", ".jpeg", ".png")):
        image = Image.open(path).convert("RGB")
        scale = SIDE / max(image.size)
        size = tuple(max(1, int(side * scale)) for side in image.size)
        if size != image.size:
            image = image.resize(size, Image.BILINEAR)
        canvas = Image.new("RGB", (SIDE, SIDE))
        canvas.paste(image, ((SIDE - size[0]) // 2, (SIDE - size[1]) // 2))
        canvas.save(Path(target) / f"{path.stem}.ppm")


if __name__ == "__main__":
    main(*sys.argv[1:3])
