"""Statements that a person at a guarded connection may try: statements that must be refused, and statements that may read."""

# Tables: visit (protected), ward (public), secret (undeclared), and the view `wards` over ward.
SCHEMA = """
    CREATE TABLE visit(id INTEGER PRIMARY KEY, patient INT, ward TEXT, day INT, minutes INT);
    CREATE INDEX visit_day ON visit(day);
    CREATE TABLE ward(name TEXT PRIMARY KEY, beds INT);
    CREATE TABLE secret(id INTEGER PRIMARY KEY AUTOINCREMENT, x TEXT);
    CREATE VIEW wards AS SELECT * FROM ward;
    CREATE VIEW visits AS SELECT * FROM visit;
    INSERT INTO ward VALUES ('north', 12), ('south', 30);
    INSERT INTO secret(x) VALUES ('hidden');
    WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 399)
    INSERT INTO visit SELECT i, i / 4, iif(i % 3, 'north', 'south'), i % 90, 10 + i % 50 FROM n;
"""

RAW = ["visit", "main.visit", "secret", "main.secret", "visits", "wards", "sqlite_sequence", "sqlite_stat1", "sqlite_stat4",
       "dp_ledger_id", "sqlite_dbpage", "dbstat", "sqlite_stmt", "sqlite_memstat", "bytecode('SELECT 1')",
       "tables_used('SELECT 1')", "pragma_function_list", "pragma_page_count", "pragma_freelist_count", "pragma_data_version",
       "pragma_integrity_check", "pragma_stats", "generate_series(1, 3)", "dp_path", "dp_seal", "dp_order",
       "dp_ledger", "other.thing", "fts3tokenize", "rtreecheck", "dp_public_table", "dp_public_table('visit')"]

# What describes the new main, which holds public tables only.
SHOWN = ["sqlite_master", "sqlite_schema", "main.sqlite_master", "sqlite_temp_master", "temp.sqlite_master",
         "pragma_table_info('visit')", "pragma_table_info('ward')", "pragma_database_list", "pragma_table_list", "pragma_schema_version",
         "pragma_index_list('visit')", "pragma_foreign_key_list('visit')"]

FROM = ["SELECT * FROM {}", "SELECT 1 FROM {}", "SELECT count(*) FROM {}", "SELECT rowid FROM {}",
        "SELECT (SELECT count(*) FROM {})", "SELECT EXISTS (SELECT 1 FROM {})", "SELECT 1 WHERE EXISTS (SELECT * FROM {})",
        "WITH t AS (SELECT * FROM {}) SELECT * FROM t", "WITH ward AS (SELECT * FROM {}) SELECT count(*) FROM ward",
        "SELECT * FROM ward JOIN {}", "SELECT ward.* FROM ward, {}", "SELECT name FROM ward LEFT JOIN {} ON 1",
        "SELECT name FROM ward UNION ALL SELECT 1 FROM {}", "SELECT * FROM (SELECT * FROM {})",
        "SELECT name FROM ward WHERE beds > (SELECT count(*) FROM {})", "EXPLAIN SELECT * FROM {}",
        "EXPLAIN QUERY PLAN SELECT * FROM {}", "SELECT count(*) OVER () FROM {}",
        "SELECT value FROM json_each((SELECT json_group_array(1) FROM {}))",
        "WITH RECURSIVE n(i) AS (SELECT 1 FROM {} UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT i FROM n",
        "SELECT 1 LIMIT (SELECT count(*) FROM {})",
        "VALUES ((SELECT 1 FROM {}))"]

# SQLite does not ask its authorizer about the columns that USING and NATURAL JOIN compare.
SHARED = ["SELECT w.minutes FROM w JOIN {} USING (minutes)", "SELECT w.minutes FROM {} JOIN w USING (minutes)",
          "SELECT count(w.minutes) FROM w NATURAL JOIN {}", "SELECT w.minutes FROM w LEFT JOIN {} USING (minutes)",
          "SELECT name FROM ward WHERE EXISTS (SELECT w.minutes FROM w NATURAL JOIN {})",
          "SELECT (SELECT sum(w.minutes) FROM w JOIN {} USING (minutes))", "SELECT 1 FROM w JOIN ward JOIN {} USING (minutes)",
          "SELECT w.minutes IN (SELECT w.minutes FROM w JOIN {} USING (minutes)) FROM w"]
USING = [f"WITH w(minutes, patient) AS (VALUES (10, 0), (11, 0)) {s.format(t)}" for s in SHARED for t in ("visit", "main.visit", "visits")] + [
    f"SELECT w.{c} FROM (SELECT {v} AS {c}) AS w {join}" for c, v, t in [
        ("x", "'hidden'", "secret"), ("day", "3", "visit"),
        ("seq", "1", "sqlite_sequence"), ("x", "'host'", "other.thing"), ("name", "'visit'", "dbstat"), ("data", "1", "sqlite_dbpage"),
        ("name", "'visit'", "pragma_stats")]
    for join in (f"JOIN {t} USING ({c})", f"NATURAL JOIN {t}")]

NAMED = ["SELECT 1 IN visit", "SELECT 1 IN secret", "SELECT 1 IN main.secret", "SELECT name FROM ward WHERE beds IN secret",
         "SELECT minutes FROM visit AS ward", "SELECT ward.minutes FROM visit AS ward", "SELECT * FROM visit INDEXED BY visit_day",
         "SELECT day FROM visit NOT INDEXED", "SELECT * FROM ward, visit USING (nothing)",
         "WITH main AS (SELECT 1) SELECT * FROM main.visit", "WITH visit AS (SELECT * FROM main.visit) SELECT * FROM visit",
         "SELECT sum(minutes) FILTER (WHERE day > 3) FROM visit", "SELECT x FROM ward, secret"]

JOIN_COLUMNS = {"visit": "id, patient, ward, day, minutes", "main.visit": "minutes", "visit AS ward": "day", "visit INDEXED BY visit_day": "day",
                "secret": "id, x", "visits": "day", "sqlite_sequence": "name", "other.thing": "x", "other.sqlite_master": "name",
                "dp_ledger_id": "path", "dbstat": "name"}
JOIN_SHOWN = {"sqlite_master": "type, name, tbl_name, rootpage, sql", "sqlite_schema": "rootpage", "sqlite_temp_master": "name",
              "pragma_table_list": "name", "pragma_database_list": "name"}
JOINS = ["WITH a({0}) AS (VALUES({1})) SELECT {2} FROM a NATURAL JOIN {3}", "WITH a({0}) AS (VALUES({1})) SELECT {2} FROM {3} NATURAL JOIN a",
         "WITH a({0}) AS (VALUES({1})) SELECT {2} FROM a JOIN {3} USING ({0})", "WITH a({0}) AS (VALUES({1})) SELECT {2} FROM {3} LEFT JOIN a USING ({0})",
         "WITH a({0}) AS (VALUES({1})) SELECT {2} FROM a NATURAL FULL JOIN {3}", "WITH a({0}) AS (VALUES({1})) SELECT {2} FROM a RIGHT JOIN {3} USING ({0})",
         "WITH a({0}) AS (VALUES({1})), b AS (SELECT {2} FROM {3} NATURAL LEFT JOIN a) SELECT name FROM ward, b",
         "WITH a({0}) AS (VALUES({1})) SELECT name FROM ward WHERE EXISTS (SELECT 1 FROM a NATURAL JOIN {3})",
         "WITH a({0}) AS (VALUES({1})) SELECT name FROM ward UNION ALL SELECT 1 FROM a NATURAL JOIN {3}",
         "WITH a({0}) AS (VALUES({1})) SELECT (SELECT count(*) FROM a NATURAL JOIN {3}) FROM json_each('[1]')"]
def joined(tables):
    return [form.format(columns, ",".join("1" for _ in columns.split(",")), select, table)
            for table, columns in tables.items() for select in ("*", "count(*)", "1") for form in JOINS]


JOINED = joined(JOIN_COLUMNS)

WRITES = ["INSERT INTO ward VALUES ('east', 1)", "INSERT OR IGNORE INTO ward VALUES ('north', 1)",
          "INSERT INTO ward VALUES ('east', 1) RETURNING *", "INSERT INTO ward SELECT * FROM ward", "REPLACE INTO ward VALUES ('a', 1)",
          "INSERT INTO ward VALUES ('north', 1) ON CONFLICT DO UPDATE SET beds = 2", "UPDATE ward SET beds = 0",
          "UPDATE ward SET beds = 0 WHERE 0", "DELETE FROM ward", "DELETE FROM ward WHERE 0", "UPDATE visit SET day = 1",
          "DELETE FROM visit", "INSERT INTO dp_tier VALUES (1)", "DELETE FROM dp_value", "UPDATE dp_ledger_id SET path = 'x'",
          "DROP TABLE dp_ledger_id", "DROP TABLE ward", "DROP VIEW wards", "DROP INDEX visit_day", "CREATE TABLE t(x)",
          "CREATE TABLE t AS SELECT * FROM ward", "CREATE TEMP TABLE t(x)", "CREATE TEMP TABLE ward AS SELECT 1 AS name",
          "CREATE TEMP VIEW ward AS SELECT * FROM main.visit", "CREATE VIEW v AS SELECT 1", "CREATE TEMP VIEW v AS SELECT 1",
          "CREATE INDEX i ON ward(beds)", "CREATE UNIQUE INDEX i ON visit(patient)",
          "CREATE TRIGGER t AFTER INSERT ON ward BEGIN SELECT 1; END", "CREATE TEMP TRIGGER t AFTER INSERT ON ward BEGIN SELECT 1; END",
          "CREATE VIRTUAL TABLE t USING fts5(x)", "CREATE VIRTUAL TABLE t USING fts5(x, content='visit')",
          "CREATE VIRTUAL TABLE temp.t USING dbstat(main)", "CREATE VIRTUAL TABLE t USING rtree(a, b, c)",
          "ALTER TABLE ward RENAME TO yard", "ALTER TABLE ward ADD COLUMN x", "ALTER TABLE ward DROP COLUMN beds",
          "ALTER TABLE visit RENAME COLUMN day TO date", "REINDEX visit_day", "ANALYZE", "ANALYZE ward", "VACUUM",
          "VACUUM INTO '/tmp/diffuse-guard-copy.db'", "ATTACH ':memory:' AS a", "ATTACH '' AS a", "DETACH main", "DETACH temp",
          "DETACH other", "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE", "COMMIT", "END", "ROLLBACK", "RELEASE s",
          "ROLLBACK TO s", "EXPLAIN INSERT INTO ward VALUES ('a', 1)", "EXPLAIN DELETE FROM visit", "PRAGMA writable_schema = 1"]

FUNCTIONS = ["load_extension('x')", "changes()", "total_changes()", "last_insert_rowid()", "sqlite_offset(name)", "sqlite_log(1, 'x')",
             "fts3_tokenizer('simple')", "readfile('/etc/passwd')", "writefile('/tmp/x', 'y')", "edit('x')", "eval('SELECT 1')",
             "application()", "sqlite_compileoption_get(1)", "rtreenode(2, x'00')", "rtreecheck('main', 'visit')", "snippet(ward)",
             "dp_collect(1)"]

# Functions that only the owner may call. The arguments are correct on the owner's connection.
OWNERS = ["dp_init()", "dp_init('{}')", "dp_tier('new', 0.5, 1, 1e-6)", "dp_drop_tier('clinic')", "dp_protect('secret', 'id')",
          "dp_public('secret')", "dp_public('visit')", "dp_discard('total')", "dp_diffuse('total', 'public')",
          "dp_diffuse('inner', 'public')", "dp_diffuse('inner', 'clinic')", "dp_diffuse('nothing', 'public')",
          "dp_mix('total', 'public', '[[\"a\",\"a\",1]]')", "dp_exposure('public')", "dp_exposure('clinic')", "dp_verify()",
          "dp_interval('total', 'public', NULL, 0.9)", "dp_interval('inner', 'clinic', NULL, 0.9)",
          "dp_predict('inner', 'public', '[1]')", "dp_sgd_profile('inner')", "dp_grant('visitors', 'public', 0.1)", "dp_grant('visitors', 'clinic', 0.1)",
          "dp_release('clinic', 'count', 'SELECT 1 FROM visit', '{\"name\":\"x\",\"clip\":1}')",
          "dp_release('public', 'count', 'SELECT 1 FROM visit', '{\"name\":\"x\",\"clip\":1}')",
          "dp_plan('clinic', 'count', 1)", "dp_plan('public', 'count', 1)", "dp_plan('[{\"tier\":\"public\",\"kind\":\"count\"}]')"]

AGGREGATES = ["dp_count('public', 1, 1)", "dp_sum('public', 1, 1)", "dp_avg('public', 1, 0, 1)", "dp_var('public', 1, 0, 1)",
              "dp_stddev('public', 1, 0, 1)", "dp_median('public', 1, 0, 1)", "dp_histogram('public', 1, 0, 1, 4)", "dp_bounds('public', 1)",
              "dp_vec_sum('public', '[1]', 1, 1)", "dp_group_count('public', 'a', 1)", "dp_group_sum('public', 'a', 1, 1)",
              "dp_ou_sum('public', 1, 1, 1)", "dp_choice('public', 'a', '[\"a\"]')", "dp_merge('public', dp_states(x'00'))",
              "dp_partial('count', 1, 1, NULL)", "dp_partial('count', NULL, '{\"clip\":1}')", "dp_sgd('public', 1, '[1]', 1, '{}')",
              "dp_response_count('public', 'a', 1, '{}')"]

REFUSED = ([form.format(table) for form in FROM for table in RAW] + USING + JOINED + NAMED + WRITES + ["SELECT " + call for call in FUNCTIONS]
           + ["SELECT " + call for call in OWNERS + AGGREGATES] + ["SELECT " + call + " FROM ward" for call in AGGREGATES]
           + ["SELECT * FROM dp_answer('public', 'count', 'SELECT 1 FROM visit', '{\"name\":\"x\",\"clip\":1}')",
              "SELECT * FROM dp_answer('clinic', 'count', 'SELECT 1 FROM visit', '{\"name\":\"x\",\"clip\":1}')",
              "SELECT * FROM dp_answer", "SELECT CAST(dp_discard('total') AS TEXT)", "SELECT iif(1, dp_verify(), 1)"])

TABLES = "dp_tier dp_policy dp_release dp_publication dp_value dp_charge dp_rdp dp_budget dp_grant dp_reserve dp_page dp_column".split()

# Statements that together show everything that a guarded connection can show.
READ = (["SELECT * FROM " + table for table in TABLES]
        + [form.format(table) for form in FROM for table in SHOWN] + joined(JOIN_SHOWN)
        + [f"SELECT {call} FROM {table}" for table in TABLES for call in ("count(*)", "rowid", "typeof(rowid)")]
        + [f"EXPLAIN SELECT * FROM {table}" for table in TABLES] + [f"EXPLAIN QUERY PLAN SELECT * FROM {table} WHERE rowid = 1" for table in TABLES]
        + ["SELECT * FROM dp_release WHERE id = 1", "SELECT * FROM dp_release WHERE id IS NULL", "SELECT * FROM dp_release WHERE name = 'inner'",
           "SELECT count(*) FROM dp_release WHERE state = 'released'", "SELECT * FROM dp_value WHERE tier = 'clinic'",
           "SELECT * FROM dp_value WHERE release = 'inner'", "SELECT * FROM dp_value ORDER BY release DESC, tier, key", "SELECT * FROM dp_charge WHERE id > 0",
           "SELECT * FROM dp_budget WHERE tier = 'clinic'", "SELECT * FROM dp_tier t JOIN dp_budget b ON b.tier = t.name",
           "SELECT dp_certificate()", "SELECT dp_clipping('inner', 'clinic')", "SELECT dp_clipping('total', 'public')", "SELECT dp_clipping('mor', 'public')", "SELECT dp_report('clinik')", "SELECT dp_report('public', '{}')",
           "SELECT * FROM dp_table('mor', 'clinik')", "SELECT dp_version()", "SELECT dp_rate(1.0, 1e-6)", "SELECT dp_sigma(0.1, 1)",
           "SELECT * FROM dp_amplify('x')", "SELECT * FROM ward", "SELECT count(*) FROM ward", "SELECT count(*) FROM main.ward",
           "SELECT * FROM main.ward ORDER BY beds", "SELECT rowid, * FROM ward", "EXPLAIN SELECT * FROM ward",
           "SELECT 1 ORDER BY (SELECT count(*) FROM visit)",  # SQLite drops this term before it asks the authorizer
           "SELECT nothing FROM visit", "SELECT nothing FROM ward", "SELECT * FROM nothing", "SELECT visit.nothing FROM ward",
           "SELECT nothing()", "SELECT dp_rate('x', 1)", "SELECT", "SELECT * FROM ward WHERE beds > 'x' COLLATE nothing",
           "WITH t AS (SELECT beds FROM ward) SELECT sum(beds) FROM t", "SELECT key, value FROM json_each('[1, 2]')",
           "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9) SELECT sum(i) FROM n"])
