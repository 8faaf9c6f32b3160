"""PRAGMA hard_heap_limit also bounds the memory for units. A release that needs more memory fails, and everything else keeps
working."""

import pytest

from conftest import run

PROGRAM = """
    import pytest, resource
    limit, call = int(sys.argv[1]), sys.argv[2]
    db = connect()
    db.execute("CREATE TABLE t(i, unit)")
    make_ledger(db, "{}", "t, unit")
    db.execute("SELECT dp_tier('t', 1, 1e6, 1e-6)").fetchall()
    db.execute(f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000) INSERT INTO t SELECT i, {sys.argv[3]} FROM n")
    limit += one(db, "PRAGMA page_count") * one(db, "PRAGMA page_size")
    assert one(db, f"PRAGMA hard_heap_limit = {limit}") == limit
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    with pytest.raises(MemoryError):  # the code SQLITE_NOMEM, because the rows are read on this connection
        db.execute(f"SELECT {call} FROM t").fetchall()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    assert grown < limit + 20 * 2**20, grown
    assert one(db, "SELECT state FROM dp_release") == "failed" and one(db, "SELECT dp_verify()") == "ok"
    # what was taken has been given back
    for _ in range(3):
        assert one(db, f"SELECT {call} FROM t WHERE rowid <= 20000") is not None
    print("ok")
"""


@pytest.mark.plain
@pytest.mark.parametrize("call", ["dp_sum('t', i, 1)", "dp_avg('t', i, 0, 9)"])
@pytest.mark.parametrize("unit", ["i", "'P-' || i"])
@pytest.mark.sample(2)
def test_units_keep_to_the_limit(call, unit):
    assert run(PROGRAM, 15 * 2**20, call, unit) == "ok\n"


@pytest.mark.plain
def test_want_of_memory_is_not_called_malformed_json():
    """The limit ends a statement at many places. Each error says what is wrong, as SQLite's own does."""
    assert run("""
        db = connect()
        db.execute("CREATE TABLE t(x, unit)")
        db.execute("INSERT INTO t VALUES (1, 1)")
        make_ledger(db, "{}", "t, unit")
        one(db, "SELECT dp_tier('t', 1, 1e6, 1e-6)")
        library = ctypes.CDLL("libsqlite3.so.0")
        library.sqlite3_memory_used.restype = ctypes.c_int64
        limit = lambda n: library.sqlite3_hard_heap_limit64(ctypes.c_int64(n))
        said, done = set(), 0
        for i in range(400):
            options = json.dumps({"clip": 1, "name": f"n{i}", "keys": ["k%d" % j for j in range(300)]})
            limit(library.sqlite3_memory_used() + 1000 + 1997 * i)
            try:
                done += one(db, "SELECT dp_release('t', 'group_sum', 'SELECT x, x FROM t', ?)", options) is not None
            except (sqlite3.Error, MemoryError) as error:
                said.add(str(error))
            limit(0)
        assert done and said and not any("JSON" in text for text in said), (done, said)
        print("ok")
    """) == "ok\n"
