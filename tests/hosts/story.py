"""story.py DB-API-MODULE EXTENSION DATABASE SCRIPT HOST [THREADS]: runs the script, in THREADS threads at the same time if
this argument is given."""

import importlib
import sys
import threading

module, extension, database, script, host = sys.argv[1:6]
threads = int(sys.argv[6]) if len(sys.argv) > 6 else 1
sqlite = importlib.import_module(module)


def connect():
    if module == "apsw":
        db = sqlite.Connection(database)
        db.enableloadextension(True)
        db.loadextension(extension)
    else:
        db = sqlite.connect(database, isolation_level=None)
        db.enable_load_extension(True)
        db.load_extension(extension)
    return db


def story(host, lines):
    try:
        db = connect()
    except Exception as error:
        lines.append(f"error: {error}")
        return
    for statement in open(script).read().splitlines():
        lines.append("> " + statement)
        try:
            cursor = db.execute(statement, {"host": host} if ":host" in statement else ())
            lines.extend("|".join(map(str, row)) for row in cursor)
        except Exception as error:
            lines.append(f"error: {error}")
    db.close()
    lines.append("closed")


transcripts = [[] for _ in range(threads)]
names = [host] if threads == 1 else [f"{host} {i}" for i in range(threads)]
running = [threading.Thread(target=story, args=pair) for pair in zip(names, transcripts)]
for thread in running:
    thread.start()
for thread in running:
    thread.join()
for lines in transcripts:
    print("\n".join(lines))
