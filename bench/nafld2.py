"""Writes the data set nafld2 of the R package survival as CSV, from the package's lazy-load database.

    python3 bench/nafld2.py FOLDER OUT.csv        FOLDER holds Rdata.rdx and Rdata.rdb

The program leaves out rows of the tests chol and dbp, because in this data set their values repeat those of hdl and
sbp. The program needs the Python package rdata (make deps-utility). It prints the numbers of rows in its output, and
fails if these numbers differ from those in bench/utility.md.
"""

import bz2
import collections
import csv
import lzma
import pathlib
import sys
import zlib

import rdata

ROWS, PATIENTS, MOST = 205_435, 15_666, 257
REPEATED = {"chol": "hdl", "dbp": "sbp"}


def inflate(blob):
    """Decompresses one entry of the .rdb file. An entry has four bytes of length, then zlib data, or a letter
    followed by bzip2 or raw LZMA data."""
    body = blob[4:]
    if body[:1] == b"Z":
        filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 24}]
        return lzma.decompress(body[1:], format=lzma.FORMAT_RAW, filters=filters)
    return bz2.decompress(body[1:]) if body[:1] == b"2" else zlib.decompress(body)


def read(folder, name):
    index = rdata.conversion.convert(
        rdata.parser.parse_data((folder / "Rdata.rdx").read_bytes(), extension=".rds"))
    start, length = (int(number) for number in index["variables"][name])
    blob = (folder / "Rdata.rdb").read_bytes()[start:start + length]
    return rdata.conversion.convert(rdata.parser.parse_data(inflate(blob), extension=".rds"))


def main():
    folder, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    frame = read(folder, "nafld2")
    rows = [(int(i), int(d), str(t), float(v))
            for i, d, t, v in zip(frame["id"], frame["days"], frame["test"], frame["value"])]
    of = {t: sorted(r[:2] + r[3:] for r in rows if r[2] == t) for t in ("chol", "hdl", "dbp", "sbp")}
    for copy, original in REPEATED.items():
        same = len(set(of[copy]) & set(of[original])) / len(set(of[copy]))
        print(f"{copy}: {len(of[copy])} rows, {same:.2%} of them also in {original}")
    rows = [r for r in rows if r[2] not in REPEATED]
    per_patient = collections.Counter(r[0] for r in rows)
    print(f"{len(rows)} rows of {len(per_patient)} patients, at most {max(per_patient.values())} of one")
    if (len(rows), len(per_patient), max(per_patient.values())) != (ROWS, PATIENTS, MOST):
        sys.exit(f"expected {ROWS} rows of {PATIENTS} patients, at most {MOST} of one")
    with open(out, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("id", "days", "test", "value"))
        writer.writerows(rows)


if __name__ == "__main__":
    main()
