"""What the tests of models share: a protected table of rows, a table of public rows, and the call that trains a model."""

import json

from conftest import one

# A release of the tier {} with the options ?1, which may leave the loss out.
SGD = """SELECT dp_release('{}', 'sgd', iif(ifnull(json_extract(?1, '$.public_rows'), 0), 'SELECT y, x FROM t; SELECT y, x FROM p ORDER BY id',
 'SELECT y, x FROM t'), json_patch('{{"loss":"logistic"}}', ?1))"""


def make_tables(db):
    db.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, y, x)")
    db.execute("CREATE TABLE p(id INTEGER PRIMARY KEY, y, x)")
    one(db, "SELECT dp_protect('t')")
    one(db, "SELECT dp_public('p')")


def release(db, tier, options):
    """Trains a model on the rows of t in the order of their ids. With public rows, the rows after the n-th are moved to p."""
    sql = "SELECT y, x FROM t"
    if options.get("public_rows"):
        db.execute("INSERT INTO p SELECT * FROM t ORDER BY id LIMIT -1 OFFSET ?", (options["n"],))
        db.execute("DELETE FROM t WHERE id IN (SELECT id FROM p)")
        sql += "; SELECT y, x FROM p ORDER BY id"
    return json.loads(one(db, "SELECT dp_release(?, 'sgd', ?, ?)", tier, sql, json.dumps(options)))
