"""Answers SQL from stdin as a member of one tier may ask it. A statement ends with a semicolon."""
import sqlite3
import sys
import time

DATABASE, TIER, GRANT = "hospital.db", "public", "visitors"
EXTENSION = "build/diffuse"  # where yours is, for example /usr/local/lib/diffuse
SECONDS = 60  # a statement that takes longer is interrupted; the grant limits questions

db = sqlite3.connect(DATABASE, isolation_level=None)
db.enable_load_extension(True)
db.load_extension(EXTENSION)
db.execute("SELECT dp_guard(?, json_object('ask', ?))", (TIER, GRANT)).fetchall()  # raises an error if it fails

deadline = 0.0
db.set_progress_handler(lambda: time.monotonic() > deadline, 100_000)
statement = ""
for line in sys.stdin:
    statement += line
    if not sqlite3.complete_statement(statement):
        continue
    deadline = time.monotonic() + SECONDS
    try:
        for row in db.execute(statement):
            print(*row, sep="|")
    except Exception as error:
        print("error:", error)
    sys.stdout.flush()
    statement = ""
if statement.strip():
    print("error: a statement ends with a semicolon")
