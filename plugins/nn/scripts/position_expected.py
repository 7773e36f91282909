#!/usr/bin/env python3
"""Writes tests/data/position.json: position tables resampled by PyTorch. Usage: python position_expected.py, from plugins/nn. Needs torch."""
import json

import torch

CASES = [
    # rows, columns, target rows, target columns, offset (None: by size)
    (5, 5, 4, 4, None),
    (37, 37, 16, 16, None),
    (4, 4, 7, 5, None),
    (6, 6, 4, 4, 0.1),
    (14, 14, 16, 16, 0.1),
    (3, 5, 8, 2, None),
]


def main():
    out = []
    for rows, columns, to_rows, to_columns, offset in CASES:
        dim = 2
        # Exact in f32 and easy to make again in the test.
        index = torch.arange(rows * columns * dim, dtype=torch.int64)
        table = ((index * 7919) % 1009).float() / 512 - 1
        grid = table.reshape(1, rows, columns, dim).permute(0, 3, 1, 2)
        if offset is None:
            how = {"size": (to_rows, to_columns)}
        else:
            how = {"scale_factor": ((to_rows + offset) / rows, (to_columns + offset) / columns)}
        result = torch.nn.functional.interpolate(grid, mode="bicubic", align_corners=False, **how)
        assert result.shape[-2:] == (to_rows, to_columns)
        values = result.permute(0, 2, 3, 1).reshape(-1)
        out.append({"from": [rows, columns], "to": [to_rows, to_columns], "offset": offset, "values": [round(v, 7) for v in values.tolist()]})
    with open("tests/data/position.json", "w") as file:
        json.dump(out, file)
        file.write("\n")


if __name__ == "__main__":
    main()
