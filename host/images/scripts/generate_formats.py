"""Regenerates tests/data/formats: pictures and masks in the formats beside JPEG and PNG, with what Pillow makes of them.

Usage: python scripts/generate_formats.py   (needs pillow and numpy; a few seconds)

Where Pillow cannot read a file, or reads it by another rule than the project's (see `ours`), the expectation is computed from the samples that the file
was made of. `sha256` is of RGB bytes, upright, alpha on black.
"""

import hashlib
import io
import json
import pathlib
import struct

import numpy as np
import PIL
from PIL import Image, features

from generate_fixtures import FILTERS, decode, draw, exif, picture, png, saved, shortest_edge_crop
from tiff_writer import tiff

OUT = pathlib.Path(__file__).parent.parent / "tests/data/formats"
WIDTH, HEIGHT = 37, 23


def deep(channels):
    return draw(WIDTH, HEIGHT, channels).astype(np.uint16) * 256 + draw(WIDTH, HEIGHT, channels, seed=3)


def rgb(array):
    return Image.fromarray(np.ascontiguousarray(array.astype(np.uint8)), "RGB")


def grey(values):
    return rgb(np.repeat(values.reshape(HEIGHT, WIDTH, 1), 3, axis=2))


def composited(samples, premultiplied=False):
    """Colours and alpha of 8 bits on black, to the nearest level."""
    colors, alpha = samples[:, :, :-1].astype(np.uint32), samples[:, :, -1:].astype(np.uint32)
    colors = colors if premultiplied else (colors * alpha + 127) // 255
    return rgb(np.repeat(colors, 3, axis=2) if colors.shape[2] == 1 else colors)


def tiffs():
    g, color, alpha, ga = draw(WIDTH, HEIGHT, 1), draw(WIDTH, HEIGHT, 3), draw(WIDTH, HEIGHT, 4), draw(WIDTH, HEIGHT, 2)
    palette = np.array([[(i * 7 + c * 31) % 256 * 257 for c in range(3)] for i in range(256)])
    for compression in ("none", "lzw", "deflate", "old_deflate", "packbits"):
        for order, letter in (("<", "le"), (">", "be")):
            yield f"rgb_{compression}_{letter}_strips.tif", tiff(color, 2, 8, order, compression, rows=5), {"mode": "rgb"}, None
        yield f"grey_{compression}_tiles.tif", tiff(g, 1, 8, "<", compression, tile=(16, 16)), {"mode": "grey"}, None
        yield f"rgb_16_{compression}.tif", tiff(deep(3), 2, 16, ">", compression, tile=(32, 16)), {"mode": "rgb", "bits": 16}, rgb(deep(3) >> 8)
    for compression in ("lzw", "deflate"):
        yield f"rgb_{compression}_predicted.tif", tiff(color, 2, 8, "<", compression, rows=7, predictor=True), {"mode": "rgb"}, None
        yield f"rgb_16_{compression}_predicted.tif", tiff(deep(3), 2, 16, "<", compression, rows=7, predictor=True), {"mode": "rgb", "bits": 16}, rgb(deep(3) >> 8)
        yield f"rgb_{compression}_planes.tif", tiff(color, 2, 8, "<", compression, rows=6, planar=True), {"mode": "rgb"}, None
    yield "rgb_planes_tiles_predicted.tif", tiff(color, 2, 8, ">", "lzw", tile=(16, 32), planar=True, predictor=True), {"mode": "rgb"}, None
    for bits in (1, 2, 4):
        values = g >> (8 - bits)
        spread = grey(values.astype(np.uint32) * 255 // ((1 << bits) - 1))
        yield f"grey_{bits}_bit.tif", tiff(values, 1, bits, "<", "packbits", rows=4), {"mode": "grey", "bits": bits}, spread
    yield "grey_1_bit_inverted.tif", tiff(g >> 7, 0, 1, "<", "lzw"), {"mode": "grey", "bits": 1}, None
    yield "grey_inverted.tif", tiff(g, 0, 8), {"mode": "grey"}, None
    nearest = grey((deep(1).astype(np.uint32) + 128) // 257)
    for order, letter in (("<", "le"), (">", "be")):
        yield f"grey_16_{letter}.tif", tiff(deep(1), 1, 16, order, "lzw", rows=9), {"mode": "grey", "bits": 16}, nearest
    yield "grey_16_dark.tif", tiff(deep(1) >> 5, 1, 16), {"mode": "grey", "bits": 16, "remarks": 1}, grey(((deep(1) >> 5).astype(np.uint32) + 128) // 257)
    for bits in (4, 8):
        values, colors = g >> (8 - bits), palette[: 1 << bits]
        yield f"palette_{bits}_bit.tif", tiff(values, 3, bits, "<", "lzw", palette=colors), {"mode": "palette", "bits": bits}, rgb((colors >> 8)[values[:, :, 0]])
    yield "rgba.tif", tiff(alpha, 2, 8, "<", "lzw", extra=[2]), {"mode": "rgba", "alpha": True}, None
    yield "rgba_unnamed.tif", tiff(alpha, 2, 8), {"mode": "rgba", "alpha": True}, None
    yield "rgba_16.tif", tiff(deep(4), 2, 16, extra=[2]), {"mode": "rgba", "bits": 16, "alpha": True}, composited(deep(4) >> 8)
    multiplied = np.concatenate([(alpha[:, :, :3].astype(int) * alpha[:, :, 3:] // 255).astype(np.uint8), alpha[:, :, 3:]], axis=2)
    yield "rgba_multiplied.tif", tiff(multiplied, 2, 8, extra=[1]), {"mode": "rgba", "alpha": True}, composited(multiplied, True)
    yield "rgbx.tif", tiff(alpha, 2, 8, extra=[0]), {"mode": "rgb", "remarks": 1}, rgb(alpha[:, :, :3])
    yield "grey_alpha.tif", tiff(ga, 1, 8, ">", "deflate", extra=[2]), {"mode": "grey_alpha", "alpha": True}, composited(ga)
    yield "cmyk.tif", tiff(alpha, 5, 8, "<", "lzw"), {"mode": "cmyk"}, None
    yield "pages.tif", tiff(color, 2, 8, "<", "lzw", pages=3), {"mode": "rgb", "remarks": 1}, None
    for value in (3, 6):
        yield f"orientation_{value}.tif", tiff(color, 2, 8, tags={274: (3, [value])}.items()), {"mode": "rgb", "orientation": value}, None
    for compression in ("tiff_lzw", "tiff_adobe_deflate", "packbits"):
        yield f"pillow_{compression}.tif", saved(picture(WIDTH, HEIGHT), "TIFF", compression=compression), {"mode": "rgb"}, None
    unread = {"fax.tif": {259: (3, [4])}, "jpeg.tif": {259: (3, [7])}, "float.tif": {339: (3, [3])}, "luma.tif": {262: (3, [6])}}
    for name, tags in unread.items():
        yield name, tiff(color, 2, 8, tags=tags.items()), {"error": "unsupported"}, None


def bitmap(rows, width, height, bits, compression=0, palette=b"", masks=b"", header=40, top_down=False):
    pixels = 14 + header + len(masks if header == 40 else b"") + len(palette)
    if header == 12:
        info = struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        info = struct.pack("<IiiHHIIiiII", header, width, -height if top_down else height, 1, bits, compression, len(rows), 2835, 2835, 0, 0)
        info += masks if header == 40 else masks.ljust(header - 40, b"\0")
    return b"BM" + struct.pack("<IHHI", pixels + len(rows), 0, 0, pixels) + info + palette + rows


def padded(rows):
    """Rows from the bottom up, each padded to four bytes."""
    return b"".join(row + b"\0" * (-len(row) % 4) for row in reversed(rows))


def run_length(values, nibbles):
    """Runs, stretches as they are, line ends."""
    out = b""
    for row in values[::-1].tolist():
        at = 0
        while at < len(row):
            run = 1
            while at + run < len(row) and row[at + run] == row[at] and run < 255:
                run += 1
            stretch = row[at : at + 5]
            if run == 1 and len(stretch) == 5:
                data = bytes((a << 4) | b for a, b in zip(stretch[::2], stretch[1::2] + [0])) if nibbles else bytes(stretch)
                out += bytes([0, 5]) + data + b"\0" * (len(data) % 2)
                at += 5
            else:
                out += bytes([run, row[at] * 17 if nibbles else row[at]])
                at += run
        out += b"\0\0"
    return out + b"\0\1"


def bmps():
    color, alpha, g = draw(WIDTH, HEIGHT, 3), draw(WIDTH, HEIGHT, 4), draw(WIDTH, HEIGHT, 1)[:, :, 0]
    palette = b"".join(bytes([(i * 5) % 256, (i * 11) % 256, (i * 3) % 256, 0]) for i in range(256))
    for bits in (1, 4, 8):
        values = g >> (8 - bits)
        unpacked = np.unpackbits(values[:, :, None], axis=2)[:, :, 8 - bits :].reshape(HEIGHT, -1)
        rows = padded([np.packbits(row).tobytes() for row in unpacked])
        yield f"palette_{bits}_bit.bmp", bitmap(rows, WIDTH, HEIGHT, bits, palette=palette[: 4 << bits]), {"mode": "palette", "bits": bits}, None
    yield "rle_8.bmp", bitmap(run_length(g, False), WIDTH, HEIGHT, 8, 1, palette), {"mode": "palette"}, None
    yield "rle_4.bmp", bitmap(run_length(g >> 4, True), WIDTH, HEIGHT, 4, 2, palette[:64]), {"mode": "palette", "bits": 4}, None
    bgr = [row[:, ::-1].tobytes() for row in color]
    yield "rgb.bmp", bitmap(padded(bgr), WIDTH, HEIGHT, 24), {"mode": "rgb"}, None
    yield "rgb_top_down.bmp", bitmap(padded(bgr[::-1]), WIDTH, HEIGHT, 24, top_down=True), {"mode": "rgb"}, None
    yield "rgb_core.bmp", bitmap(padded(bgr), WIDTH, HEIGHT, 24, header=12), {"mode": "rgb"}, None
    bgra = padded([row[:, [2, 1, 0, 3]].tobytes() for row in alpha])
    yield "rgbx_32.bmp", bitmap(bgra, WIDTH, HEIGHT, 32), {"mode": "rgb"}, None
    masks = struct.pack("<IIII", 0xFF0000, 0xFF00, 0xFF, 0xFF000000)
    yield "rgba_32.bmp", bitmap(bgra, WIDTH, HEIGHT, 32, 3, masks=masks, header=124), {"mode": "rgba", "alpha": True}, composited(alpha)
    c = color.astype(np.uint16)
    five = (c[:, :, 0] >> 3) << 10 | (c[:, :, 1] >> 3) << 5 | c[:, :, 2] >> 3
    six = (c[:, :, 0] >> 3) << 11 | (c[:, :, 1] >> 2) << 5 | c[:, :, 2] >> 3
    yield "rgb_555.bmp", bitmap(padded([row.astype("<u2").tobytes() for row in five]), WIDTH, HEIGHT, 16), {"mode": "rgb"}, None
    masks = struct.pack("<III", 0xF800, 0x7E0, 0x1F)
    yield "rgb_565.bmp", bitmap(padded([row.astype("<u2").tobytes() for row in six]), WIDTH, HEIGHT, 16, 3, masks=masks), {"mode": "rgb"}, None
    yield "pillow_grey.bmp", saved(picture(WIDTH, HEIGHT, "L"), "BMP"), {"mode": "palette"}, None


def others():
    image, clear = picture(WIDTH, HEIGHT), picture(WIDTH, HEIGHT, "RGBA")
    yield "lossless.webp", saved(image, "WEBP", lossless=True), {"mode": "rgb"}, None
    yield "lossless_alpha.webp", saved(clear, "WEBP", lossless=True, exact=True), {"mode": "rgba", "alpha": True}, None
    yield "orientation_6.webp", saved(image, "WEBP", lossless=True, exif=exif(6)), {"mode": "rgb", "orientation": 6}, None
    yield "animation.webp", saved(image, "WEBP", lossless=True, save_all=True, append_images=[picture(WIDTH, HEIGHT, seed=4)]), {"mode": "rgba", "alpha": True, "remarks": 1}, None
    for quality in (30, 90):
        yield f"lossy_{quality}.webp", saved(image, "WEBP", quality=quality), {"mode": "rgb"}, None
    yield "lossy_alpha.webp", saved(clear, "WEBP", quality=80), {"mode": "rgba", "alpha": True}, None
    yield "lossy_large.webp", saved(picture(151, 86), "WEBP", quality=75, method=6), {"mode": "rgb"}, None
    yield "palette.gif", saved(image.quantize(64), "GIF"), {"mode": "palette"}, None
    yield "transparent.gif", saved(image.quantize(64), "GIF", transparency=5), {"mode": "palette", "alpha": True}, None
    yield "rgb.ppm", saved(image, "PPM"), {"mode": "rgb"}, None
    yield "grey.pgm", saved(image.convert("L"), "PPM"), {"mode": "grey"}, None
    yield "bits.pbm", saved(image.convert("1"), "PPM"), {"mode": "grey", "bits": 1}, None
    values = draw(WIDTH, HEIGHT, 1) >> 3
    yield "grey_31.pgm", b"P5 # of five bits\n%d %d 31\n" % (WIDTH, HEIGHT) + values.tobytes(), {"mode": "grey"}, None
    yield "grey_16.pgm", b"P5 %d %d 65535\n" % (WIDTH, HEIGHT) + deep(1).astype(">u2").tobytes(), {"mode": "grey", "bits": 16}, grey((deep(1).astype(np.uint32) + 128) // 257)
    inks = saved(picture(WIDTH, HEIGHT, "CMYK"), "JPEG", quality=90)
    adobe = inks.index(b"Adobe")
    yield "cmyk_adobe.jpg", inks, {"mode": "cmyk"}, None
    yield "ycck_adobe.jpg", inks[: adobe + 11] + b"\2" + inks[adobe + 12 :], {"mode": "ycck"}, None
    # Without the marker inks are not inverted; Pillow inverts all, so its inversion is undone.
    bare = inks[: adobe - 4] + inks[adobe + 12 :]
    raw = Image.frombytes("CMYK", (WIDTH, HEIGHT), bytes(255 - value for value in Image.open(io.BytesIO(bare)).tobytes()))
    yield "cmyk_bare.jpg", bare, {"mode": "cmyk", "remarks": 1}, raw.convert("RGB")
    twelve = bytearray(saved(image, "JPEG"))
    frame = twelve.index(b"\xff\xc0")
    twelve[frame + 1], twelve[frame + 4] = 0xC1, 12
    yield "twelve_bit.jpg", bytes(twelve), {"error": "unsupported"}, None
    both = saved(image, "MPO", save_all=True, append_images=[picture(WIDTH, HEIGHT, seed=9)])
    yield "two.mpo", both, {"mode": "ycbcr", "remarks": 1}, None


def masks():
    """Values 0 to 2 in nested ellipses, in every way that masks are stored."""
    y, x = np.mgrid[0:41, 0:53]
    values = (((x - 25) / 20) ** 2 + ((y - 19) / 16) ** 2 <= 1).astype(np.uint8)
    values += ((x - 27) / 9) ** 2 + ((y - 20) / 8) ** 2 <= 1
    disc = (values > 0).astype(np.uint8)
    spread = np.array([255, 128, 0], np.uint8)[values]
    indexed = Image.fromarray(values, "P")
    indexed.putpalette([0, 0, 0, 200, 30, 40, 5, 250, 90])
    one = {"0": 0, "1": 1}
    three = {"0": 0, "1": 1, "2": 2}
    refuge = {"255": 0, "128": 1, "0": 2}
    black_white = {"0": 0, "255": 1}
    L = lambda array: Image.fromarray(array, "L")
    yield "mask_indexed.png", saved(indexed, "PNG"), three, values
    yield "mask_indexed_2_bit.png", saved(indexed, "PNG", bits=2), three, values
    yield "mask_1_bit.png", saved(L(disc * 255).convert("1"), "PNG"), one, disc
    yield "mask_grey.png", saved(L(values), "PNG"), three, values
    yield "mask_refuge.png", saved(L(spread), "PNG"), refuge, values
    yield "mask_refuge.bmp", saved(L(spread), "BMP"), refuge, values
    yield "mask_1_bit.bmp", saved(L(disc * 255).convert("1"), "BMP"), black_white, disc
    yield "mask_16_bit.png", png(values[:, :, None].astype(np.uint16) * 300, 0, 16), {"0": 0, "300": 1, "600": 2}, values
    yield "mask_rgb.png", saved(L(values).convert("RGB"), "PNG"), three, values
    yield "mask_rgba.png", saved(L(values).convert("RGBA"), "PNG"), three, values
    yield "mask_indexed.tif", tiff(values[:, :, None], 3, 8, "<", "lzw", palette=np.array([[i * 257] * 3 for i in range(256)])), three, values
    yield "mask_grey.tif", tiff(spread[:, :, None], 1, 8, ">", "packbits", rows=8), refuge, values
    yield "mask_1_bit.tif", tiff(disc[:, :, None], 1, 1), one, disc
    yield "mask.gif", saved(indexed, "GIF"), three, values
    yield "mask_orientation_6.png", saved(L(values), "PNG", exif=exif(6)), three, np.rot90(values, -1)


def beside_pillow(data, ours):
    """What Pillow makes of a file whose expectation was computed; of 16-bit grey, something else (`decode` holds the project's rule for it)."""
    try:
        if Image.open(io.BytesIO(data)).mode.startswith("I"):
            return "differs"
        return "same" if decode(data).tobytes() == ours.tobytes() else "differs"
    except (OSError, SyntaxError, ValueError):
        return "unreadable"


def prepared(name, image):
    """Sizes that shrink, stretch and enlarge; two filters for each file, all four over the files."""
    index = len(name)
    for width, height, geometry in ((16, 16, "squash"), (50, 19, "squash"), (20, 24, "shortest_edge_crop")):
        for filter_ in sorted(FILTERS)[index % 2 :: 2]:
            squashed = geometry == "squash"
            result = image.resize((width, height), FILTERS[filter_]) if squashed else shortest_edge_crop(image, 22, width, height, FILTERS[filter_])
            spec = {"width": width, "height": height, "geometry": {"kind": geometry} | ({} if squashed else {"edge": 22}), "filter": filter_}
            yield {"file": f"formats/{name}"} | spec | {"sha256": hashlib.sha256(result.tobytes()).hexdigest()}


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    for old in OUT.iterdir():
        old.unlink()
    rows, cases, marks = [], [], []
    for name, data, about, ours in (*tiffs(), *bmps(), *others()):
        (OUT / name).write_bytes(data)
        row = {"file": f"formats/{name}", **about}
        if "error" not in about:
            image = ours or decode(data)
            if ours:
                row["pillow"] = beside_pillow(data, ours)
            row |= {"width": image.width, "height": image.height, "sha256": hashlib.sha256(image.tobytes()).hexdigest()}
            cases += prepared(name, image)
        rows.append(row)
    for name, data, coding, labels in masks():
        (OUT / name).write_bytes(data)
        image = Image.fromarray(np.ascontiguousarray(labels), "L")
        digest = lambda image: hashlib.sha256(image.tobytes()).hexdigest()
        sizes = ((20, 13), (53, 41), (107, 64), (31, 90), (1, 1), (7, 300))
        resized = [{"width": w, "height": h, "sha256": digest(image.resize((w, h), Image.NEAREST))} for w, h in sizes]
        marks.append({"file": f"formats/{name}", "coding": coding, "width": image.width, "height": image.height, "sha256": digest(image), "resized": resized})
    versions = {"pillow": PIL.__version__} | {name: features.version(name) for name in ("libtiff", "webp", "libjpeg_turbo")}
    lines = lambda items: ",\n".join("  " + json.dumps(item) for item in items)
    text = f'{{\n "made_with": {json.dumps(versions)},\n "decoded": [\n{lines(rows)}\n ],\n "prepared": [\n{lines(cases)}\n ],\n "masks": [\n{lines(marks)}\n ]\n}}\n'
    (OUT / "expected.json").write_text(text)
    print(len(rows), "files,", len(cases), "prepared,", len(marks), "masks,", sum(p.stat().st_size for p in OUT.iterdir()), "bytes")


if __name__ == "__main__":
    main()
