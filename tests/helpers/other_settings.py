"""Turns each setting of a connection the other way, as an extension does that SQLite loads for every connection, or a SQLite that
was built with other defaults. The lists come from SQLite's documentation, not from ext/base/own_connection.c."""

import contextlib
import ctypes
import sqlite3

FLAGS = ["automatic_index", "cell_size_check", "checkpoint_fullfsync", "count_changes", "defer_foreign_keys", "empty_result_callbacks",
         "foreign_keys", "full_column_names", "fullfsync", "ignore_check_constraints", "legacy_alter_table", "query_only", "read_uncommitted",
         "recursive_triggers", "reverse_unordered_selects", "short_column_names", "trusted_schema", "writable_schema"]
VALUES = {"analysis_limit": ["1"], "auto_vacuum": ["FULL", "INCREMENTAL"], "busy_timeout": ["1"], "cache_size": ["1"], "cache_spill": ["OFF", "1"],
          "encoding": ["'UTF-16le'", "'UTF-16be'"], "journal_mode": ["OFF", "PERSIST"], "journal_size_limit": ["0"], "locking_mode": ["EXCLUSIVE"],
          "max_page_count": ["1"], "mmap_size": ["268435456"], "page_size": ["512", "65536"], "secure_delete": ["OFF", "ON"],
          "synchronous": ["OFF", "EXTRA"], "temp_store": ["FILE", "MEMORY"], "threads": ["4"], "wal_autocheckpoint": ["1"]}
# What is no setting of a connection. The first three belong to the process. LIKE counts as replaced (question_text.c).
NO_SETTINGS = """soft_heap_limit hard_heap_limit temp_store_directory case_sensitive_like data_store_directory
    application_id collation_list compile_options data_version database_list default_cache_size foreign_key_check foreign_key_list freelist_count
    function_list incremental_vacuum index_info index_list index_xinfo integrity_check lock_proxy_file lock_status module_list optimize page_count
    pragma_list quick_check schema_version shrink_memory stats table_info table_list table_xinfo user_version wal_checkpoint""".split()
OPTIONS = [*range(1002, 1009), *range(1010, 1024)]  # of sqlite3_db_config(); 1009 empties the database file
FP_DIGITS = 1023
LIMITS = {0: 100, 1: 50, 2: 2, 3: 3, 4: 1, 5: 20, 6: 1, 7: 0, 8: 1, 9: 1, 10: 1, 11: 4}  # of sqlite3_limit()

LIBRARY = ctypes.CDLL("libsqlite3.so.0")
ENTRY = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


def other_settings():
    """Returns the name of each change and what it does, as arguments of change()."""
    plain = sqlite3.connect(":memory:")
    changes = {}
    for flag in FLAGS:
        for (now,) in plain.execute(f"PRAGMA {flag}"):
            changes[f"{flag}={1 - now}"] = ("pragma", f"{flag} = {1 - now}")
    for name, values in VALUES.items():
        for value in values:
            changes[f"{name}={value}"] = ("pragma", f"{name} = {value}")
    for option in OPTIONS:
        for value in [3] if option == FP_DIGITS else [0, 1]:
            changes[f"option {option}={value}"] = ("option", option, value)
    for limit, value in LIMITS.items():
        changes[f"limit {limit}={value}"] = ("limit", limit, value)
    return changes


def in_order(changes):
    """A connection that locks its file while it is opened keeps the lock until it has read the file again, so this comes
    late. After it come the limits, under which no other change would compile."""
    return sorted(changes, key=lambda arguments: (arguments[0] == "limit", "locking_mode" in str(arguments)))


def change(db, kind, *arguments):
    if kind == "pragma":
        LIBRARY.sqlite3_exec(ctypes.c_void_p(db), f"PRAGMA {arguments[0]}".encode(), None, None, None)
    elif kind == "option":
        LIBRARY.sqlite3_db_config(ctypes.c_void_p(db), arguments[0], ctypes.c_int(arguments[1]), None)
    else:
        LIBRARY.sqlite3_limit(ctypes.c_void_p(db), *arguments)


class Changed:
    """Changes the settings of every connection that SQLite opens in this process, except those that are opened in a `with plain()`."""

    def __init__(self):
        self.changes, self.count, self.is_plain = [], 0, False
        self.entry = ENTRY(self.opened)
        LIBRARY.sqlite3_auto_extension(self.entry)

    def opened(self, db, error, functions):
        if not self.is_plain:
            self.count += 1
            for arguments in self.changes:
                change(db, *arguments)
        return 0

    @contextlib.contextmanager
    def plain(self):
        before, self.is_plain = self.is_plain, True
        try:
            yield
        finally:
            self.is_plain = before


def change_all():
    """Turns all settings of all connections of the extension the other way, and none of the connections of the tests."""
    changed, connect = Changed(), sqlite3.connect

    def connect_plainly(*arguments, **options):
        with changed.plain():
            return connect(*arguments, **options)

    sqlite3.connect = connect_plainly
    changed.changes = in_order(other_settings().values())
    return changed
