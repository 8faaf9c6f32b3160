"""Statements that make ledgers with releases of every mechanism and in every state."""

import os

from conftest import connect, interrupted, one, when_reading

CANDIDATES = '{"candidates":["a","b","c"],"name":"%s"}'
FLIP = '[["a","a",0.75],["a","b",0.25],["b","b",0.75],["b","a",0.25],["c","a",0.5],["c","b",0.5]]'

# The statements that make each ledger. A statement that begins with "interrupted" is interrupted while it reads rows, and one that
# begins with "killed" is killed then.
STORIES = {
    "units": [
        "CREATE TABLE t(x, k, v, unit)",
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 299) INSERT INTO t"
        " SELECT i % 7, char(97 + i % 3), printf('[%d,%d]', i % 5, i % 2), i / 3 FROM n",
        """SELECT dp_init('{"unit":"patient"}') IS NOT NULL""",
        "SELECT dp_protect('t', 'unit')",
        "SELECT dp_tier('clinic', 0.2, 30, 1e-4, 'rdp', 5e-5)",
        "SELECT dp_tier('region', 0.02, 20, 1e-4, 'rdp', 5e-5)",
        "SELECT dp_tier('public', 0.001, 10, 1e-5, 'gdp')",
        "SELECT dp_count('clinic', x, 1, 'a count') FROM t",
        "SELECT dp_sum('region', x, 20, '{\"name\":\"weighted ✓''\\n\",\"weight\":0.3}') FROM t",
        "SELECT dp_diffuse('a count', 'public')",
        "SELECT dp_release('region', 'sum', 'SELECT x FROM t', '{\"name\":\"refined\",\"clip\":20}')",
        "SELECT dp_release('clinic', 'sum', 'SELECT x FROM t',"
        " '{\"name\":\"refined\",\"clip\":20,\"refine\":true}')",
        "SELECT dp_avg('clinic', x, 0, 10, 'avg') FROM t",
        "SELECT dp_stddev('clinic', x, 0, 10, 'stddev') FROM t",
        "SELECT dp_quantile('clinic', x, '[0.25,0.5]', 0, 8, '{\"name\":\"tree\",\"bins\":8}') FROM t",
        "SELECT dp_histogram('clinic', x, 0, 8, 4, '{\"name\":\"histogram\",\"clip\":1}') FROM t",
        "SELECT dp_vec_avg('clinic', v, 2, 10, 'vector') FROM t",
        "SELECT dp_group_avg('clinic', k, x, 10, 20, '{\"name\":\"groups\",\"keys\":[\"a\",\"b\",\"d\"]}') FROM t",
        "SELECT dp_group_count('clinic', k, 2, '{\"name\":\"private\",\"max_groups\":1,\"key_share\":0.05}') FROM t",
        "SELECT dp_diffuse('private', 'region')",
        "SELECT dp_ou_sum('clinic', x, 20, 1e4, '{\"name\":\"ou\",\"centre\":100}') FROM t",
        "SELECT dp_release('clinic', 'ou_count', 'SELECT x FROM t', '{\"name\":\"theta\",\"theta\":1,\"rho\":1e4,\"clip\":1}')",
        "SELECT dp_sum('clinic', x, 20, '{\"name\":\"laplace\",\"mechanism\":\"laplace\"}') FROM t",
        "SELECT dp_diffuse('laplace', 'region')",
        "SELECT dp_release('clinic', 'choice', 'SELECT k FROM t', '%s')" % CANDIDATES % "choice",
        "SELECT dp_mix('choice', 'region', '%s')" % FLIP,
        "SELECT dp_release('clinic', 'choice', 'SELECT k FROM t', '{\"candidates\":[\"a\",\"b\",\"c\"],"
        "\"name\":\"response\",\"mechanism\":\"response\"}')",
        "SELECT dp_count('public', x, 1) FROM t",
        "SELECT dp_count('clinic', x, 1, 'again') FROM t",
        "SELECT dp_discard('again')",
        "SELECT dp_sum('clinic', x, 3, 'again') FROM t",
        "interrupted SELECT dp_release('clinic', 'sum', 'SELECT x FROM t', '{\"clip\":1,\"name\":\"failed\"}')",
        "killed SELECT dp_release('clinic', 'count', 'SELECT x FROM t', '{\"name\":\"unfinished\",\"clip\":1}')",
        "SELECT dp_tier('later', 0.005, 20, 1e-4, 'rdp')",
        "SELECT dp_diffuse('avg', 'later')",
        "SELECT dp_diffuse('groups', 'public')",
    ],
    "rows": [
        "CREATE TABLE t(id INTEGER PRIMARY KEY, y, x)",
        "INSERT INTO t(y, x) VALUES (1, '[0.5]'), (0, '[-1]'), (1, '[0.1]'), (0, '[0.7]'), (1, '[1]')",
        "CREATE TABLE p(y, x)",
        "INSERT INTO p VALUES (1, '[0.2]'), (0, '[0.4]')",
        """SELECT dp_init('{"protects":"row","adjacency":"replace"}') IS NOT NULL""",
        "SELECT dp_protect('t'), dp_public('p')",
        "SELECT dp_tier('inner', 0.5, 300, 1e-2, 'rdp', 5e-3)",
        "SELECT dp_tier('outer', 0.05, 300, 1e-2, 'rdp', 5e-3)",
        "SELECT dp_release('inner', 'sgd', 'SELECT y, x FROM t', '{\"loss\":\"logistic\",\"n\":5,\"dim\":1,\"clip\":1,\"radius\":0.5,"
        "\"eta\":0.3,\"name\":\"model\"}')",
        "SELECT dp_diffuse('model', 'outer')",
        "SELECT dp_release('inner', 'sgd', 'SELECT y, x FROM t', '{\"loss\":\"huber\",\"n\":5,\"dim\":1,\"clip\":1,\"radius\":0.8,"
        "\"eta\":0.9,\"l2\":0.2,\"threshold\":0.5,\"stop\":\"random\",\"key_share\":0.2,\"name\":\"stopped\"}')",
        "SELECT dp_release('inner', 'sgd', 'SELECT y, x FROM t; SELECT y, x FROM p ORDER BY rowid', '{\"loss\":\"logistic\",\"n\":5,"
        "\"dim\":1,\"clip\":1,\"radius\":0.5,\"eta\":0.3,\"public_rows\":2,\"name\":\"public rows\"}')",
        "SELECT dp_count('outer', y, 1, 'rows') FROM t",
        "SELECT dp_group_count('inner', y, 1, '{\"name\":\"keys\",\"key_share\":0.1}') FROM t",
    ],
    "pure": [
        "CREATE TABLE t(x, unit)",
        "INSERT INTO t VALUES (1, 1), (2, 1), (3, 2)",
        "SELECT dp_init() IS NOT NULL",
        "SELECT dp_protect('t', 'unit')",
        "SELECT dp_tier('inner', 0.1, 100, 0, 'pure')",
        "SELECT dp_tier('outer', 0.01, 100, 0, 'pure')",
        "SELECT dp_sum('inner', x, 5, '{\"name\":\"sum\",\"mechanism\":\"laplace\"}') FROM t",
        "SELECT dp_diffuse('sum', 'outer')",
    ],
    "empty": ["CREATE TABLE t(x, unit)", "SELECT dp_init() IS NOT NULL"],
}


def tell(story, path):
    """Makes a database and its ledger with the statements of a story."""
    db = connect(path)
    for sql in story:
        if sql.startswith("killed "):
            if not os.fork():
                child = connect(path)
                when_reading(child, lambda: os._exit(9))
                child.execute(sql[7:]).fetchall()
                os._exit(1)
            assert os.waitstatus_to_exitcode(os.wait()[1]) == 9
        elif sql.startswith("interrupted "):
            interrupted(db, sql[12:])
        else:
            db.execute(sql).fetchall()
    assert one(db, "SELECT dp_verify()") == "ok"
    db.close()
