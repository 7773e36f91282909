"""Read what the store wrote, with other people's tools, and check it against docs/formats.md.

Used by tests/all/python.rs: `python read_tables.py FOLDER`, where FOLDER holds `run/` and `cache/`.
pyarrow is needed; pandas, polars and DuckDB are used where present. Asserts, then prints who read it.
"""

import glob
import json
import os
import struct
import sys
import zlib

import pyarrow as pa
import pyarrow.parquet as pq

DIM = 5
folder = sys.argv[1]
run = os.path.join(folder, "run")
tables = {
    "records": os.path.join(run, "records.parquet"),
    "answers": os.path.join(run, "answers", "done.parquet"),
    "predictions": glob.glob(os.path.join(run, "predictions", "*.parquet"))[0],
    "metrics": os.path.join(run, "metrics.parquet"),
}
readers = ["pyarrow"]


def f32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def embedding(n):
    base = f32(f32(n) + f32(0.1))
    return [f32(base * f32(i - 2.0)) for i in range(DIM)]


for name, path in tables.items():
    keys = pq.read_metadata(path).metadata
    assert keys[b"focus.schema"] == name.encode(), (name, keys)
    assert keys[b"focus.schema_version"] == b"1"
    assert int(keys[b"focus.rows"]) == pq.read_metadata(path).num_rows
    assert pq.read_metadata(path).created_by == "focus-host"

answers = pq.read_table(tables["answers"]).to_pylist()
assert [a["sample"] for a in answers] == list(range(5, 19))
for a in answers:
    n = a["sample"]
    ok = n % 7 != 3
    assert a["id"] == f"image-{n:04}"
    assert a["outcome"] == ("ok" if ok else "model_error") and a["reason"] == (None if ok else "crash")
    assert a["embedding"] == (embedding(n) if ok else None), (n, a["embedding"], embedding(n))
    assert (a["content_hash"] is None) == (n % 11 == 3)

rows = pq.read_table(tables["predictions"]).to_pylist()
assert [r["score"] for r in rows] == [n / 32 for n in range(20)]
assert [r["label"] for r in rows] == [[None, True, False][n % 3] for n in range(20)]
assert [r["x_logit"] for r in rows] == [float(n) for n in range(20)]
assert rows[0]["model"] == "handcrafted/zones"
assert "handcrafted%2Fzones" in tables["predictions"]
records = pq.read_table(tables["records"]).to_pylist()
assert [r["label_binary_dr"] for r in records] == [[None, True, False][n % 3] for n in range(20)]
assert pq.read_table(tables["metrics"]).to_pylist()[0]["missing"] == "one_class"

# The log, by hand.
data = open(os.path.join(run, "answers", "going.log"), "rb").read()
assert data[:8] == b"FOCUSLOG"
version, size, crc, zero = struct.unpack_from("<4I", data, 8)
assert (version, zero) == (1, 0) and crc == zlib.crc32(data[:16] + data[24 : 24 + size])
schema = pa.ipc.read_schema(pa.py_buffer(data[24 : 24 + size]))
at, number, samples = 24 + size, 0, []
while at < len(data):
    assert data[at : at + 4] == b"FRME"
    n, size, count, crc, head = struct.unpack_from("<5I", data, at + 4)
    assert n == number and head == zlib.crc32(data[at : at + 20])
    payload = data[at + 24 : at + 24 + size]
    assert crc == zlib.crc32(payload) and data[at + 24 + size : at + 32 + size] == b"FRAMEEND"
    batch = pa.ipc.read_record_batch(pa.py_buffer(payload), schema)
    assert batch.num_rows == count
    samples += batch.column("sample").to_pylist()
    at, number = at + 32 + size, number + 1
assert samples == list(range(12, 19)) + list(range(5, 12)), samples

# The cache, and its key.
key = json.dumps({"model": 'é "m"', "dtype": "f32"}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
(note,) = glob.glob(os.path.join(folder, "cache", "*", "key.json"))
assert open(note, encoding="utf-8").read() == key
(segment,) = glob.glob(os.path.join(folder, "cache", "*", "*.parquet"))
cached = pq.read_table(segment).to_pylist()
hashes = [r["content_hash"] for r in cached]
assert hashes == sorted(hashes) and all(len(h) == 32 for h in hashes)
try:
    import blake3

    assert os.path.basename(os.path.dirname(note)) == blake3.blake3(key.encode()).hexdigest()
    assert os.path.basename(segment) == blake3.blake3(open(segment, "rb").read()).hexdigest() + ".parquet"
    readers.append("blake3")
except ImportError:
    pass

total = sum(n / 32 for n in range(20))
try:
    import pandas

    for path in tables.values():
        pandas.read_parquet(path)
    frame = pandas.read_parquet(tables["predictions"])
    assert frame.score.sum() == total and frame.label.isna().sum() == 7
    readers.append("pandas")
except ImportError:
    pass
try:
    import polars

    for path in tables.values():
        polars.read_parquet(path)
    frame = polars.read_parquet(tables["predictions"])
    assert frame["score"].sum() == total and frame["label"].null_count() == 7
    wide = polars.read_parquet(tables["answers"])["embedding"].to_list()
    assert wide[0] == embedding(5)
    readers.append("polars")
except ImportError:
    pass
try:
    import duckdb

    for path in tables.values():
        duckdb.sql(f"select count(*) from '{path}'").fetchall()
    found = duckdb.sql(f"select sum(score), count(*) - count(label) from '{run}/predictions/*.parquet'").fetchall()[0]
    assert found == (total, 7), found
    wide = duckdb.sql(f"select embedding from '{tables['answers']}' where sample = 5").fetchall()[0][0]
    assert list(wide) == embedding(5)
    readers.append("duckdb")
except ImportError:
    pass

print("read by:", ", ".join(readers))
