"""Checks the rows that fixtures/hospital.sql generates: always the same rows, sound references, and the awkward facts that the
script's header promises."""

import contextlib
import hashlib
import pathlib
import sqlite3

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "fixtures" / "hospital.sql"
DIGEST = "d39754ba11d304b10b72848337d0edbddf62a2e6d35a871aac9602facf8a355c"  # SHA-256 of all rows; renew it only together with the tutorial


@pytest.fixture(scope="module")
def hospital():
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        db.executescript(SCRIPT.read_text())
        yield db


def rows(db, sql):
    return db.execute(sql).fetchall()


def test_the_rows_are_always_the_same(hospital):
    digest = hashlib.sha256()
    for table in ("ward", "age_band", "test", "patient", "visit", "result"):
        for row in hospital.execute(f"SELECT * FROM {table} ORDER BY 1"):
            digest.update(repr(row).encode())
    assert digest.hexdigest() == DIGEST


def test_the_header_says_what_is_there(hospital):
    assert rows(hospital, "SELECT count(*) FROM patient") == [(30000,)]
    assert 99000 < rows(hospital, "SELECT count(*) FROM visit")[0][0] < 101000
    assert rows(hospital, "SELECT min(admitted), max(admitted), max(discharged) FROM visit") == [("2024-01-01", "2025-12-31", "2025-12-31")]
    assert rows(hospital, "SELECT DISTINCT count(*) FROM result GROUP BY visit_id") == [(2,)]
    assert rows(hospital, "SELECT count(*) FROM visit WHERE (ward IS NULL) = (id IN (SELECT visit_id FROM result))") == [(0,)]
    most, second = rows(hospital, "SELECT patient_id, count(*) FROM visit GROUP BY 1 ORDER BY 2 DESC LIMIT 2")
    assert most == (4711, 366) and second[1] <= 30
    assert 450 < rows(hospital, "SELECT count(*) FROM visit WHERE ward IS NULL")[0][0] < 550
    assert rows(hospital, "SELECT count(*) > 100, min(admitted) > '2025-11-01' FROM visit WHERE discharged IS NULL") == [(1, 1)]
    assert rows(hospital, "SELECT test, value FROM result WHERE value > 500 OR value < 5 ORDER BY 1") == [("glucose", 999999.0), ("haemoglobin", 1330.0)]


def test_the_references_are_sound(hospital):
    assert rows(hospital, "PRAGMA foreign_key_check") == [] and rows(hospital, "PRAGMA integrity_check") == [("ok",)]
    assert rows(hospital, "SELECT count(*) FROM visit WHERE discharged < admitted OR date(admitted) <> admitted"
                          " OR date(discharged) <> discharged") == [(0,)]
    assert rows(hospital, "SELECT count(*) FROM visit JOIN patient ON patient.id = patient_id"
                          " WHERE strftime('%Y', admitted) - born NOT BETWEEN 0 AND 95") == [(0,)]
    assert rows(hospital, "SELECT name FROM sqlite_temp_master") == []


def test_the_script_says_that_it_generates_its_rows():
    assert "generates" in SCRIPT.read_text().splitlines()[0] and SCRIPT.stat().st_size < 10000
