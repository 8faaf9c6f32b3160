"""Fixtures and hooks that all tests share. conftest.py loads them."""

import gc
import hashlib
import shutil
import tempfile

import pytest

from conftest import Clock, Folders, create, quick_folder


@pytest.fixture
def clock():
    clock = Clock()
    yield clock
    clock.stop()


@pytest.fixture(params=[None, "year"])
def period(request, monkeypatch):
    """Runs an attack twice: with budgets that never renew, and with budgets for each year."""
    monkeypatch.setattr("attack.PERIOD", request.param)
    return request.param


@pytest.fixture(scope="session")
def tmp_path_factory():
    with tempfile.TemporaryDirectory(prefix="diffuse-", dir=quick_folder(), ignore_cleanup_errors=True) as base:
        yield Folders(base)


@pytest.fixture
def tmp_path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("test")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "clinic.db"


@pytest.fixture
def db(path):
    """Returns a connection to a database with visits, a ledger that protects units, and the tiers clinic, region and public."""
    connection = create(path)
    yield connection
    connection.close()


def pytest_addoption(parser):
    parser.addoption("--at-most", type=int, metavar="N", help="run only N of the parameters of each test")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Marks as slow all but some parameters of the tests with the mark `sample`, and with the option --at-most of all tests. Which
    parameters are left is fixed, and by a hash, so that they do not all share one value."""
    tests = {}
    for item in items:
        tests.setdefault((item.location[0], item.cls, item.originalname), []).append(item)
    for found in tests.values():
        found.sort(key=lambda item: hashlib.sha256(item.name.encode()).digest())
        sample = found[0].get_closest_marker("sample")
        own = found[0].get_closest_marker("own")  # the parameters of the unit tests are different tests
        limits = [*(sample.args if sample else ()), None if own else config.getoption("--at-most")]
        for item in found[min((limit for limit in limits if limit is not None), default=len(found)):]:
            item.add_marker("slow")


CRASHED = []  # workers of pytest-xdist that have died


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    """If a worker dies during a test, pytest-xdist fails this test. This hook makes the run fail also if a worker dies between
    two tests or after the last test."""
    if error:
        CRASHED.append(node.gateway.id)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    gc.collect()  # close objects that are still open now, so that their errors are seen
    if CRASHED and session.exitstatus == 0:
        session.exitstatus = 1


@pytest.fixture
def forty_digits():
    """mpmath computes with 40 digits."""
    import mpmath
    with mpmath.workdps(40):
        yield
