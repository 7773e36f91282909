"""Writes TIFF files that Pillow cannot: tiles, planes, either byte order, grey with alpha, every compression that is read. For generate_formats.py."""

import struct
import zlib

import numpy as np


def lzw(data):
    """TIFF's LZW: codes of 9 to 12 bits, most significant bit first, one code earlier than GIF's."""
    bits, count, out = 0, 0, bytearray()

    def put(code, size):
        nonlocal bits, count
        bits, count = bits << size | code, count + size
        while count >= 8:
            out.append(bits >> (count - 8) & 255)
            count -= 8
            bits &= (1 << count) - 1

    table, size, prefix = {bytes([i]): i for i in range(256)}, 9, b""
    put(256, 9)
    for byte in data:
        longer = prefix + bytes([byte])
        if longer in table:
            prefix = longer
            continue
        put(table[prefix], size)
        table[longer] = len(table) + 2
        prefix = bytes([byte])
        if len(table) + 2 > (1 << size) - 1:
            size += 1
        if len(table) + 2 >= 4094:
            put(table[prefix], size)
            put(256, size)
            table, size, prefix = {bytes([i]): i for i in range(256)}, 9, b""
    if prefix:
        put(table[prefix], size)
        # The decoder adds an entry for every code, so the end comes at the size that the next entry would have.
        if len(table) + 3 > (1 << size) - 1 and size < 12:
            size += 1
    put(257, size)
    if count:
        put(0, 8 - count)
    return bytes(out)


def packbits(data):
    out, at = bytearray(), 0
    while at < len(data):
        run = 1
        while run < 128 and at + run < len(data) and data[at + run] == data[at]:
            run += 1
        if run > 1:
            out += bytes([257 - run, data[at]])
            at += run
            continue
        end = at + 1
        while end < len(data) and end - at < 128 and (end + 1 >= len(data) or data[end] != data[end + 1]):
            end += 1
        out += bytes([end - at - 1]) + data[at:end]
        at = end
    return bytes(out)


COMPRESSIONS = {
    "none": (1, bytes),
    "lzw": (5, lzw),
    "deflate": (8, lambda data: zlib.compress(data, 9)),
    "old_deflate": (32946, lambda data: zlib.compress(data, 9)),
    "packbits": (32773, packbits),
}


def pack(rows, bits, order):
    """Bytes of rows of samples; rows begin on whole bytes."""
    if bits == 16:
        return rows.astype(order + "u2").tobytes()
    if bits == 8:
        return rows.astype(np.uint8).tobytes()
    unpacked = np.unpackbits(rows.astype(np.uint8)[:, :, None], axis=2)[:, :, 8 - bits :].reshape(rows.shape[0], -1)
    return np.packbits(unpacked, axis=1).tobytes()


def tiff(samples, photometric, bits, order="<", compression="none", tile=None, rows=None, planar=False, predictor=False, extra=None, palette=None, tags=(), pages=1):
    """A file of `samples` (rows x columns x channels). `tile` is (width, height), else strips of `rows` rows."""
    height, width, channels = samples.shape
    code, coder = COMPRESSIONS[compression]

    def chunk(part):
        flat = part.reshape(part.shape[0], -1).astype(np.int64)
        if predictor:
            step = part.shape[2]
            flat[:, step:] = (flat[:, step:] - flat[:, :-step]) % (1 << bits)
        return coder(pack(flat, bits, order))

    parts = []
    for plane in [samples[:, :, c : c + 1] for c in range(channels)] if planar else [samples]:
        if tile:
            across, down = -(-width // tile[0]), -(-height // tile[1])
            whole = np.zeros((down * tile[1], across * tile[0], plane.shape[2]), plane.dtype)
            whole[:height, :width] = plane
            parts += [chunk(whole[y * tile[1] : (y + 1) * tile[1], x * tile[0] : (x + 1) * tile[0]]) for y in range(down) for x in range(across)]
        else:
            step = rows or height
            parts += [chunk(plane[y : y + step]) for y in range(0, height, step)]
    body, offsets = b"", []
    for part in parts:
        offsets.append(8 + len(body))
        body += part + b"\0" * (len(part) % 2)
    lengths = [len(part) for part in parts]
    entries = {256: (4, [width]), 257: (4, [height]), 258: (3, [bits] * channels), 259: (3, [code]), 262: (3, [photometric]), 277: (3, [channels])}
    if tile:
        entries |= {322: (3, [tile[0]]), 323: (3, [tile[1]]), 324: (4, offsets), 325: (4, lengths)}
    else:
        entries |= {273: (4, offsets), 278: (3, [rows or height]), 279: (4, lengths)}
    if planar:
        entries[284] = (3, [2])
    if predictor:
        entries[317] = (3, [2])
    if extra is not None:
        entries[338] = (3, extra)
    if palette is not None:
        entries[320] = (3, [int(value) for value in palette.T.reshape(-1)])
    entries |= dict(tags)
    at = 8 + len(body)
    tail = b""
    directories = b""
    size = 2 + 12 * len(entries) + 4
    for page in range(pages):
        directory = struct.pack(order + "H", len(entries))
        for number, (kind, values) in sorted(entries.items()):
            data = b"".join(struct.pack(order + {3: "H", 4: "I"}[kind], value) for value in values)
            if len(data) <= 4:
                data = data.ljust(4, b"\0")
            else:
                tail, data = tail + data, struct.pack(order + "I", at + size * pages + len(tail))
            directory += struct.pack(order + "HHI", number, kind, len(values)) + data
        directories += directory + struct.pack(order + "I", at + size * (page + 1) if page + 1 < pages else 0)
    head = {"<": b"II", ">": b"MM"}[order] + struct.pack(order + "HI", 42, at)
    return head + body + directories + tail
