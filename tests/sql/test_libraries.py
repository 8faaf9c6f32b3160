"""Several SQLite libraries in one process, as where Python's sqlite3 and apsw each bring one: a shared object serves one of
them, and two copies of it keep out of each other's transactions."""

import pathlib
import shutil

import pytest

from conftest import connect, create, one, run


def sqlite_library():
    """The file of the SQLite library that this process uses."""
    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        if "libsqlite3" in line:
            return pathlib.Path(line.split(maxsplit=5)[5])
    pytest.skip("no SQLite library to make a copy of")


@pytest.fixture
def second(tmp_path):
    """A second SQLite library: a copy of the first under another name is another library."""
    return shutil.copy(sqlite_library(), tmp_path / "other.so")


@pytest.mark.plain
def test_a_second_library_is_refused_and_the_first_goes_on(path, second):
    create(path).close()
    said = run("""
        db = connect(sys.argv[1])
        one(db, SUM, "a")
        for _ in range(2):
            try:
                print("loaded", Raw(sys.argv[1], sys.argv[2]).one("SELECT dp_verify()"))
            except sqlite3.Error as error:
                print(error)
        again = connect(sys.argv[1])
        assert one(again, SUM, "a") == one(db, SUM, "a")
        print(one(db, "SELECT dp_verify()"))
        """, path, second).splitlines()
    refusal = ("error during initialization: diffuse is in use by another SQLite library of this process (load a copy of "
               "the file, under another name)")
    assert said == [refusal, refusal, "ok"]


@pytest.mark.plain
def test_the_second_library_can_load_when_the_first_has_finished(second):
    assert run("""
        connect().close()
        print(Raw(":memory:", sys.argv[1]).one("SELECT dp_version()"))
        """, second) == one(connect(), "SELECT dp_version()") + "\n"


def test_threads_of_one_library_load_at_the_same_time():
    results = run("""
        barrier = threading.Barrier(8)
        def load_again():
            barrier.wait()
            print(one(connect(), "SELECT dp_version()") + ";", end="", flush=True)
        threads = [threading.Thread(target=load_again) for _ in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        """)
    assert results == (one(connect(), "SELECT dp_version()") + ";") * 8
