"""Loads diffuse, differential privacy inside SQLite, into a connection."""

from os import path as _path
from typing import Any

__all__ = ["__version__", "load", "loadable_path"]

__version__: str = "@VERSION@"


def loadable_path() -> str:
    """Returns the path of the extension, for `load_extension`, `.load` and similar calls."""
    return _path.join(_path.dirname(_path.abspath(__file__)), "@LOADABLE@")


def load(connection: Any) -> None:
    """Loads the extension into a connection of sqlite3, apsw or another module with the same methods.

    The caller must allow this first: `connection.enable_load_extension(True)`.
    """
    if hasattr(connection, "load_extension"):
        connection.load_extension(loadable_path())
    else:
        connection.loadextension(loadable_path())  # apsw before 3.42
