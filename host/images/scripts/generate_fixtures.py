"""Regenerates tests/data: small pictures of every kind that is read, with what Pillow makes of them.

Usage: python scripts/generate_fixtures.py   (needs pillow and numpy; a few seconds)

All pictures are drawn by a formula. JPEG bytes depend on the encoder's version, so files and expectations are committed together and regenerated
together. `sha256` is of the RGB bytes after orientation (ImageOps.exif_transpose) and compositing on black (Image.alpha_composite).
"""

import hashlib
import io
import json
import pathlib
import struct
import zlib

import numpy as np
import PIL
from PIL import Image, ImageOps

OUT = pathlib.Path(__file__).parent.parent / "tests/data"
FILTERS = {"box": Image.BOX, "bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC, "lanczos": Image.LANCZOS}


def draw(width, height, channels, seed=0):
    """A disc on a dark ground with ripples, an edge and some noise: enough to make every DCT coefficient matter."""
    y, x, c = np.meshgrid(np.arange(height), np.arange(width), np.arange(channels), indexing="ij")
    radius = np.hypot(x - width / 2, y - height / 2) / (max(width, height) / 2 + 1)
    value = 200 * (radius < 0.9) * (1 - 0.5 * radius) + 30 * np.sin(x / (2 + c) + y / 5 + seed) + 40 * (x > y) * (c == 0)
    noise = ((x * 7919 + y * 104729 + c * 1299709 + seed * 15485863) % 23) - 11
    return np.clip(value + noise, 0, 255).astype(np.uint8)


def picture(width, height, mode="RGB", seed=0):
    channels = {"L": 1, "LA": 2, "RGB": 3, "RGBA": 4, "CMYK": 4}[mode]
    return Image.frombytes(mode, (width, height), draw(width, height, channels, seed).tobytes())


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(samples, color, depth, interlace=False, before=b"", after=b""):
    """A PNG that Pillow cannot write: 16 bits, Adam7, chunks in odd places. `samples` is rows x columns x channels."""
    height, width, _ = samples.shape

    def scanlines(part):
        if depth == 16:
            rows = part.astype(">u2")
            return b"".join(b"\0" + row.tobytes() for row in rows)
        if depth == 8:
            return b"".join(b"\0" + row.astype(np.uint8).tobytes() for row in part)
        bits = np.unpackbits(part.astype(np.uint8)[:, :, :1], axis=2)[:, :, 8 - depth :].reshape(part.shape[0], -1)
        return b"".join(b"\0" + np.packbits(row).tobytes() for row in bits)

    if interlace:
        passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
        parts = [samples[y::dy, x::dx] for x, y, dx, dy in passes]
        raw = b"".join(scanlines(p) for p in parts if p.shape[0] and p.shape[1])
    else:
        raw = scanlines(samples)
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, int(interlace))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + before + chunk(b"IDAT", zlib.compress(raw, 9)) + after + chunk(b"IEND", b"")


def saved(image, format_, **options):
    buffer = io.BytesIO()
    image.save(buffer, format_, **options)
    return buffer.getvalue()


def exif(orientation):
    block = Image.Exif()
    block[0x0112] = orientation
    return block.tobytes()


def decode(data):
    """What the project promises, in Pillow's terms."""
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    if image.mode.startswith("I"):
        # 16-bit grey, which Pillow's own conversion saturates at 255.
        image = Image.fromarray(((np.asarray(image).astype(np.uint32) + 128) // 257).astype(np.uint8))
    if image.mode in ("LA", "RGBA", "PA") or "transparency" in image.info:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, (0, 0, 0, 255)), image)
    return image.convert("RGB")


def jpegs():
    for name, sampling in (("444", "4:4:4"), ("422", "4:2:2"), ("420", "4:2:0")):
        for width, height in ((64, 48), (67, 41), (17, 1), (1, 19), (1, 1)):
            yield f"jpeg_{name}_{width}x{height}.jpg", saved(picture(width, height), "JPEG", quality=90, subsampling=sampling), {}
    # Chroma rows of two and of three samples (libjpeg-turbo repeats the former and smooths the latter), and rows of several vectors.
    for name, sampling in (("444", "4:4:4"), ("422", "4:2:2"), ("420", "4:2:0")):
        for width, height in ((4, 6), (5, 7), (203, 131)):
            yield f"jpeg_{name}_{width}x{height}.jpg", saved(picture(width, height), "JPEG", quality=75, subsampling=sampling), {}
    yield "jpeg_progressive_422.jpg", saved(picture(131, 66), "JPEG", quality=75, subsampling="4:2:2", progressive=True), {}
    yield "jpeg_low_quality.jpg", saved(picture(61, 53), "JPEG", quality=20), {}
    yield "jpeg_progressive.jpg", saved(picture(67, 41), "JPEG", quality=85, progressive=True), {}
    yield "jpeg_progressive_grey.jpg", saved(picture(40, 33, "L"), "JPEG", progressive=True), {"mode": "grey"}
    yield "jpeg_grey.jpg", saved(picture(45, 39, "L"), "JPEG", quality=90), {"mode": "grey"}
    yield "jpeg_restart.jpg", saved(picture(67, 41), "JPEG", quality=90, restart_marker_blocks=2), {}
    yield "jpeg_rgb.jpg", saved(picture(35, 29), "JPEG", quality=90, keep_rgb=True), {"mode": "rgb"}
    yield "jpeg_cmyk.jpg", saved(picture(24, 16, "CMYK"), "JPEG"), {"mode": "cmyk"}
    for value in range(1, 9):
        data = saved(picture(3, 2, seed=value), "JPEG", quality=95, subsampling="4:4:4", exif=exif(value))
        yield f"jpeg_orientation_{value}.jpg", data, {"orientation": value}
    yield "jpeg_orientation_6_large.jpg", saved(picture(70, 45), "JPEG", quality=90, exif=exif(6)), {"orientation": 6}
    yield "jpeg_orientation_9.jpg", saved(picture(9, 5), "JPEG", exif=exif(9)), {"orientation": 1, "remarks": 1}
    broken = exif(6)
    data = saved(picture(9, 5), "JPEG", exif=broken)
    yield "jpeg_exif_damaged.jpg", data.replace(broken[6:12], b"XX*\0\xff\xff"), {"orientation": 1, "remarks": 1}


def pngs():
    yield "png_rgb.png", saved(picture(33, 21), "PNG"), {"mode": "rgb"}
    yield "png_rgba.png", saved(picture(33, 21, "RGBA"), "PNG"), {"mode": "rgba", "alpha": True}
    yield "png_grey.png", saved(picture(33, 21, "L"), "PNG"), {"mode": "grey"}
    yield "png_grey_alpha.png", saved(picture(33, 21, "LA"), "PNG"), {"mode": "grey_alpha", "alpha": True}
    yield "png_1_bit.png", saved(picture(33, 21, "L").convert("1"), "PNG"), {"mode": "grey", "bits": 1}
    for depth in (2, 4):
        samples = draw(19, 11, 1) >> (8 - depth)
        yield f"png_grey_{depth}_bit.png", png(samples, 0, depth), {"mode": "grey", "bits": depth}
    palette = picture(33, 21).quantize(200)
    yield "png_palette.png", saved(palette, "PNG"), {"mode": "palette"}
    yield "png_palette_transparent.png", saved(palette, "PNG", transparency=bytes(range(0, 200))), {"mode": "palette", "alpha": True}
    for colors, depth in ((2, 1), (4, 2), (16, 4)):
        yield f"png_palette_{depth}_bit.png", saved(picture(33, 21).quantize(colors), "PNG", bits=depth), {"mode": "palette", "bits": depth}
    yield "png_rgb_key.png", saved(Image.fromarray(draw(33, 21, 3) & 0xC0), "PNG", transparency=(192, 128, 128)), {"mode": "rgb", "alpha": True}
    yield "png_grey_key.png", saved(Image.fromarray(draw(33, 21, 1)[:, :, 0] & 0xE0), "PNG", transparency=192), {"mode": "grey", "alpha": True}
    deep = lambda channels: draw(21, 13, channels).astype(np.uint16) * 256 + draw(21, 13, channels, seed=3)
    yield "png_rgb_16_bit.png", png(deep(3), 2, 16), {"mode": "rgb", "bits": 16}
    yield "png_rgba_16_bit.png", png(deep(4), 6, 16), {"mode": "rgba", "bits": 16, "alpha": True}
    yield "png_grey_alpha_16_bit.png", png(deep(2), 4, 16), {"mode": "grey_alpha", "bits": 16, "alpha": True}
    yield "png_grey_16_bit.png", png(deep(1), 0, 16), {"mode": "grey", "bits": 16}
    yield "png_interlaced.png", png(draw(29, 19, 3), 2, 8, interlace=True), {"mode": "rgb"}
    yield "png_interlaced_1x1.png", png(draw(1, 1, 3), 2, 8, interlace=True), {"mode": "rgb"}
    for value in (3, 6):
        yield f"png_orientation_{value}.png", saved(picture(12, 7), "PNG", exif=exif(value)), {"mode": "rgb", "orientation": value}
    block = chunk(b"eXIf", exif(8)[6:])
    yield "png_orientation_8_behind_pixels.png", png(draw(12, 7, 3), 2, 8, after=block), {"mode": "rgb", "orientation": 8}


def shortest_edge_crop(image, edge, width, height, resample):
    """torchvision's and Hugging Face's sizes, Hugging Face's centre (rounded down), zeros where the crop is larger."""
    w, h = image.size
    size = (edge, int(edge * h / w)) if w <= h else (int(edge * w / h), edge)
    image = image.resize(size, resample)
    canvas = Image.new("RGB", (width, height))
    x, y = (size[0] - width) // 2 if size[0] >= width else -((width - size[0]) // 2), (size[1] - height) // 2 if size[1] >= height else -((height - size[1]) // 2)
    canvas.paste(image, (-x, -y))
    return canvas


def prepared(files):
    for name in ("jpeg_420_67x41.jpg", "jpeg_orientation_6_large.jpg", "png_rgba.png", "jpeg_422_1x19.jpg"):
        image = decode(files[name])
        for width, height in ((24, 24), (60, 20), (81, 90), (7, 33)):
            for filter_, resample in FILTERS.items():
                made = {
                    ("squash", None): image.resize((width, height), resample),
                    ("shortest_edge_crop", 40): shortest_edge_crop(image, 40, width, height, resample),
                }
                # ImageOps.contain makes sides of 0 pixels for such strips; the project clamps to 1.
                if min(image.size) > 1:
                    made["fit", None] = ImageOps.pad(image, (width, height), resample, color=(0, 0, 0))
                for (geometry, edge), result in made.items():
                    case = {"file": name, "width": width, "height": height, "geometry": {"kind": geometry}, "filter": filter_}
                    if edge:
                        case["geometry"]["edge"] = edge
                    yield case | {"sha256": hashlib.sha256(result.tobytes()).hexdigest()}


def prepared_from_planes(files):
    """JPEGs of every chroma spacing, of odd and even sides, and some that are not left in planes; fewer targets each."""
    for name, data in files.items():
        if not name.startswith("jpeg") or name == "jpeg_cmyk.jpg" or "orientation" in name:
            continue
        image = decode(data)
        # The last keeps the width, so that there is no horizontal pass.
        for width, height in ((24, 24), (90, 11), (image.width, 5)):
            for filter_ in ("bilinear", "bicubic"):
                result = image.resize((width, height), FILTERS[filter_])
                case = {"file": name, "width": width, "height": height, "geometry": {"kind": "squash"}, "filter": filter_}
                yield case | {"sha256": hashlib.sha256(result.tobytes()).hexdigest()}


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    for old in OUT.iterdir():
        if old.is_file():
            old.unlink()
    files, rows = {}, []
    for name, data, about in (*jpegs(), *pngs()):
        files[name] = data
        (OUT / name).write_bytes(data)
        row = {"file": name, **about}
        if "error" not in about:
            image = decode(data)
            row |= {"width": image.width, "height": image.height, "sha256": hashlib.sha256(image.tobytes()).hexdigest()}
        rows.append(row)
    versions = {"pillow": PIL.__version__, "libjpeg-turbo": PIL.features.version("libjpeg_turbo")}
    cases = [*prepared(files), *prepared_from_planes(files)]
    lines = lambda items: ",\n".join("  " + json.dumps(item) for item in items)
    text = f'{{\n "made_with": {json.dumps(versions)},\n "decoded": [\n{lines(rows)}\n ],\n "prepared": [\n{lines(cases)}\n ]\n}}\n'
    (OUT / "expected.json").write_text(text)
    print(len(rows), "files,", len(cases), "prepared,", sum(p.stat().st_size for p in OUT.iterdir() if p.is_file()), "bytes")


if __name__ == "__main__":
    from PIL import features  # noqa: F401  (PIL.features is used above)

    main()
