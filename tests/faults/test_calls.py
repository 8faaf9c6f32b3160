"""Every function and every table of the extension is called while allocations fail (injector.c). A call gives the same rows as without
failures, or an error; a release, which draws noise, gives as many rows. The list of names is SQLite's own, so that a new function is
not forgotten."""

import os
import pathlib
import subprocess

import pytest

from conftest import connect

BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
STEP = os.environ.get("DIFFUSE_FAULTS", "1").replace("all", "0")

PLAIN = {"count": "x, 2", "count_distinct": "", "sum": "x, 9", "avg": "x, 0, 9", "var": "x, 0, 9", "stddev": "x, 0, 9",
         "quantile": "x, 0.5, 0, 9", "median": "x, 0, 9", "histogram": "x, 0, 9, 3, '{\"clip\":2}'", "bounds": "x",
         "vec_sum": "v, 2, 9", "vec_avg": "v, 2, 9"}
KEYS = ", '{\"keys\":[\"p\",\"q\"]}'"
OU = {"count": "x, 9, 2", "count_distinct": "9", "sum": "x, 9, 99", "avg": "x, 0, 9, 5", "var": "x, 0, 9, 5",
      "stddev": "x, 0, 9, 5", "quantile": "x, 0.5, 0, 9, 9", "median": "x, 0, 9, 9", "histogram": "x, 0, 9, 3, 9, '{\"clip\":2}'",
      "vec_sum": "v, 2, 9, 99", "vec_avg": "v, 2, 9, 9"}
KERNEL = "FROM (SELECT column1 AS x, column2 AS y, column3 AS p FROM (VALUES ('a','a',0.5),('a','b',0.5),('b','a',0.25),('b','b',0.75)))"


def joined(*texts):
    return ", ".join(filter(None, ("'a'", *texts)))


def keyed(text):
    """The arguments of the kind with a key and with public keys."""
    if not text:
        return "k" + KEYS
    return f"k, {text[:-2]},\"keys\":[\"p\",\"q\"]}}'" if text.endswith("}'") else f"k, {text}{KEYS}"


CALLS = {f"dp_{kind}": f"~SELECT dp_{kind}({joined(text)}) FROM t" for kind, text in PLAIN.items()}
CALLS |= {f"dp_ou_{kind}": f"~SELECT dp_ou_{kind}({joined(text)}) FROM t" for kind, text in OU.items()}
for kind in ("count", "count_distinct", "sum", "avg", "var", "stddev", "quantile", "median", "histogram"):
    CALLS[f"dp_group_{kind}"] = f"~SELECT dp_group_{kind}('a', {keyed(PLAIN[kind].replace('x, 2', '2') if kind == 'count' else PLAIN[kind])}) FROM t"
    CALLS[f"dp_ou_group_{kind}"] = f"~SELECT dp_ou_group_{kind}('a', {keyed(OU[kind].replace('x, 9', '9') if kind == 'count' else OU[kind])}) FROM t"

MATH = """brownian_gamma(1, 2); brownian_rate(1, 2); delta(0.005, 3); gaussian_mse(0.5, 1, 2, 1);
hockey_gaussian(1, 2); hockey_laplace(1, 3); iterated_gaussian(2, 1, 3, 4); iterated_laplace(2, 1, 1, 1); iteration(2, 1, 1, 0.5, 3);
iteration_best(2, 1, 1, 1, 1); laplace2_epsilon(1, 1, 2); laplace2_pdf(0.5, 1, 2); lipschitz_gaussian(2, 1, 1, 1, 0.5); ou_clock(0.5, 1, 2);
ou_gamma(1, 0.5, 1, 2); ou_mse(0.5, 1, 2, 1, 1); ou_rate(1, 0.5, 1, 2); ou_rho(0.005, 1, 1, 1); ou_shrink(0.5, 2); ou_theta(0.005, 1, 1, 1);
ou_time(0.5, 1, 2); ou_variance(0.5, 3, 1); pgm_mse(0.5, 1, 2, 1, 1); rate(1.0, 1e-6); rdp_gaussian(2, 1, 4); rdp_laplace(1, 0.01, 1);
rdp_response(2, 1); sgd_delta(1, 20, 40, 1, 2, 0.5, 0.5, 0, 1); sgd_delta_laplace(0.1, 38, 40, 1, 2, 0.5, 0.5, 0, 1);
sgd_delta_random_stop(1, 40, 1, 2, 0.5, 0.5, 0, 1); sgd_delta_rdp(1, 20, 40, 1, 2, 0.5, 0.5, 0); sgd_lipschitz(0.5, 1, 0.4);
sgd_rate(3, 10, 1, 1, 0.5, 1, 0); sigma(0.005, 1); version(); zcdp_epsilon(0.5, 1e-6); epsilon(0.5, 1e-6)"""
CALLS |= {f"dp_{call.split('(')[0].strip()}": f"SELECT dp_{call.strip()}" for call in MATH.split(";")}
KERNELS = """kernel_dobrushin(x, y, p); kernel_dobrushin_epsilon(x, y, p, 0.5); kernel_doeblin(x, y, p); kernel_ultra(x, y, p);
kernel_delta(x, y, p, 1, 0.1); kernel_epsilon(x, y, p, 9e999, 0, 0); kernel_pair(x, y, p, p, 0); kernel_power(x, y, p, 2)"""
CALLS |= {f"dp_{call.split('(')[0].strip()}": f"SELECT dp_{call.strip()} {KERNEL}" for call in KERNELS.split(";")}
TRANSPORT = ("FROM (SELECT column1 AS part, column2 AS x, column3 AS y, column4 AS p FROM (VALUES ('kernel','a','a',0.5), ('kernel','a','b',0.5),"
             "('kernel','b','a',0.25), ('kernel','b','b',0.75), ('coupling','a','a',0.5), ('coupling','b','b',0.5), ('nu','a',NULL,0.5), ('nu','b',NULL,0.5)))")
CALLS |= {f"dp_kernel_{name}": f"SELECT dp_kernel_{name}(part, x, y, p, 2) {TRANSPORT}" for name in ("coupling", "renyi")}
CALLS |= {
    "dp_diffusion_rate": "SELECT dp_diffusion_rate(column1, column2, 0.01) FROM (VALUES (1, 2), (2, 1))",
    "dp_iteration_path": "SELECT dp_iteration_path(2, column1, 1, 0.7, 0.05) FROM (VALUES (1), (2), (3))",
    "dp_amplify": "SELECT delta FROM dp_amplify('dobrushin', 0.5, 1, 1e-6)",
    "dp_init": "SELECT dp_init() IS NOT NULL", "dp_protect": "CREATE TABLE n(u); SELECT dp_protect('n', 'u')", "dp_public": "SELECT dp_public('w')",
    "dp_within": "+SELECT dp_init() IS NOT NULL; CREATE TABLE n(u INTEGER PRIMARY KEY, h); SELECT dp_protect('n', 'u'); SELECT dp_within('house', 'n', 'h', 4)",
    "dp_undeclare": "+SELECT dp_init() IS NOT NULL; SELECT dp_protect('t', 'u'); SELECT dp_undeclare('t')", "dp_policy_plan": "CREATE TABLE m(id INTEGER PRIMARY KEY); CREATE TABLE n(i INT REFERENCES m); SELECT * FROM dp_policy_plan('m')",
    "dp_tier": "SELECT dp_tier('d', 1e3, 2000, 1e-6); SELECT name, rate, epsilon FROM dp_tier",
    "dp_drop_tier": "SELECT dp_tier('d', 1e3, 2000, 1e-6); SELECT dp_drop_tier('d')",
    "dp_grant": "SELECT dp_grant('g', 'a', 2); SELECT name FROM dp_grant",
    "dp_guard": "SELECT dp_guard('b'); SELECT * FROM dp_column; SELECT release, key, value FROM dp_value",
    "dp_choice": "~SELECT dp_choice('a', k, '[\"p\",\"q\"]', '{\"weight\":1e-4}') FROM t",
    "dp_mix": "~SELECT dp_mix('symbol', 'b', '[[\"p\",\"p\",0.75],[\"p\",\"q\",0.25],[\"q\",\"p\",1]]')",
    "dp_release": "~SELECT dp_release('a', 'group_sum', 'SELECT k, x FROM t', '{\"clip\":100,\"keys\":[\"p\",\"q\"]}')",
    "dp_answer": "~SELECT key, value, display FROM dp_answer('a', 'histogram', 'SELECT x FROM t', '{\"name\":\"h\",\"clip\":9,\"lo\":0,\"hi\":9,\"bins\":300}')",
    "dp_partial": "SELECT dp_partial('sum', 'SELECT x FROM t', '{\"clip\":9}') IS NOT NULL",
    "dp_merge": "~SELECT dp_merge('a', dp_states(dp_partial('group_sum', 'SELECT k, x FROM t', '{\"clip\":100,\"shard\":\"p\"}')), '{\"name\":\"m\",\"shards\":[\"p\"]}')",
    "dp_batch": "~SELECT dp_batch('[{\"tier\":\"a\",\"kind\":\"sum\",\"sql\":\"SELECT x FROM t\",\"options\":{\"name\":\"new\",\"clip\":100},\"diffuse\":[\"b\"]}]')",
    "dp_diffuse": "~SELECT dp_diffuse('keys', 'c')", "dp_discard": "SELECT dp_discard('old')",
    "dp_interval": "~SELECT dp_interval('keys', 'b', 'p', 0.9)", "dp_plan": "SELECT dp_plan('c', 'avg', 1, '{\"lo\":0,\"hi\":1}')",
    "dp_exposure": "SELECT dp_exposure('a, b, c')", "dp_certificate": "SELECT length(dp_certificate()) > 1000", "dp_verify": "SELECT dp_verify()",
    "dp_report": "SELECT length(dp_report('b')) > 1000", "dp_export": "SELECT dp_export('b', 'DIRECTORY/other.ledger') IS NOT NULL",
    "dp_clipping": "~SELECT dp_release('a', 'sum', 'SELECT x FROM t', '{\"name\":\"d\",\"clip\":9,\"diagnose\":true}'); SELECT dp_clipping('d', 'a')",
    "dp_table": "~SELECT dp_release('a', 'group_count', 'SELECT k, x AS y FROM t', '{\"name\":\"ct\",\"clip\":2,\"ways\":2,"
                "\"keys\":{\"k\":[\"p\",\"q\"],\"y\":[1,2,3,4]}}'); SELECT key, value FROM dp_table('ct', 'a', 'y')",
    "dp_reserve": "SELECT dp_grant('g', 'a', 2); SELECT tier FROM dp_reserve", "dp_rdp": "SELECT * FROM dp_rdp",
    "dp_page": """SELECT length(dp_report('b', '{"title":"T","note":"N","order":[]}')) > 1000; SELECT options FROM dp_page""", "dp_column": "SELECT * FROM dp_column",
}
SERIES = ("~SELECT dp_release('a', 'sum', 'SELECT ''p1'', x FROM t', '{\"name\":\"series\",\"clip\":9,"
          "\"periods\":[\"p1\",\"p2\"]}'); SELECT dp_append('series', 'p1')")
CALLS |= {"dp_parts": "~SELECT dp_release('a', 'avg', 'SELECT x FROM t', '{\"name\":\"mean\",\"lo\":0,\"hi\":9}');"
                       " SELECT statistic, value FROM dp_parts('mean', 'a')",
          "dp_states": CALLS["dp_merge"]}
CALLS |= {"dp_append": SERIES, "dp_span": SERIES + "; SELECT key, value FROM dp_span('series', 'a', 'p1', 'p1')"}
for name in ("dp_budget", "dp_charge", "dp_policy", "dp_publication", "dp_value"):
    CALLS[name] = f"SELECT * FROM {name}"
MODEL = ("+~SELECT dp_init('{\"protects\":\"row\",\"adjacency\":\"replace\"}') IS NOT NULL; SELECT dp_protect('t'), dp_tier('a', 1e6, 1e9, 1e-6);"
         " SELECT dp_release('a', 'sgd', 'SELECT x, v FROM t', '{\"name\":\"new\",\"n\":4,\"dim\":2,\"loss\":\"huber\",\"clip\":1,\"radius\":1,"
         "\"threshold\":1}'); SELECT ")
CALLS |= {"dp_sgd_profile": MODEL + "dp_sgd_profile('new')", "dp_predict": MODEL + "dp_predict('new', 'a', '[1,2]')"}


# Stories in which a lack of memory once passed for a fact: a count of clipped units that was NULL, a table of a plan without a name, a
# declaration that the owner decides, a discrepancy of a good ledger.
STORIES = [
    "~SELECT dp_release('a', 'sum', 'SELECT ''p1'', x FROM t', '{\"name\":\"series\",\"clip\":9,\"periods\":[\"p1\",\"p2\",\"p3\"],\"diagnose\":true}');"
    " SELECT dp_append('series', 'p1'); SELECT dp_diffuse('series', 'b'); SELECT dp_append('series', 'p2'); SELECT dp_clipping('series', 'b')",
    "SELECT dp_plan('c', 'sum', NULL, '{\"clip\":9,\"half_width\":90,\"mechanism\":\"laplace\"}')",
    "SELECT dp_plan('a', 'group_count', NULL, '{\"clip\":2,\"ways\":2,\"keys\":{\"k\":[\"p\",\"q\"],\"y\":[1,2,3]},\"rows\":50}')",
    "SELECT dp_plan('a', 'sum', NULL, '{\"clip\":9,\"periods\":[\"p1\",\"p2\",\"p3\"],\"diagnose\":true,\"rows\":50}')",
    "SELECT dp_plan('[{\"tier\":\"a\",\"kind\":\"sum\",\"sql\":\"SELECT x FROM t\",\"options\":{\"name\":\"b6\",\"clip\":9},\"diffuse\":[\"b\",\"c\"]}]')",
    "SELECT dp_plan('b', 'median', NULL, '{\"lo\":0,\"hi\":9,\"rows\":5,\"half_width\":100}')",
    "SELECT dp_plan('a', 'choice', NULL, '{\"candidates\":[1,2],\"weight\":1e-4}')",
    "SELECT dp_grant('g', 'a', 1); SELECT dp_guard('a', '{\"ask\":\"g\"}'); SELECT dp_plan('a', 'count', NULL, '{\"clip\":1}'); SELECT * FROM dp_budget",
    "CREATE TABLE m(id INTEGER PRIMARY KEY); CREATE TABLE n(i INT REFERENCES m, j); CREATE TABLE o(i INT REFERENCES n); CREATE TABLE z(i REFERENCES"
    " nobody); SELECT * FROM dp_policy_plan('m')",
    "SELECT display, figure FROM dp_value", "SELECT replace(dp_certificate(), 'x', 'y')", "SELECT dp_report('b')"]


INSIDE = {"dp_collect"}  # only the extension's own statements call it, such as those of dp_release()


def names():
    db = connect()
    functions = {name for name, in db.execute("SELECT DISTINCT name FROM pragma_function_list WHERE name LIKE 'dp\\_%' ESCAPE '\\'")}
    tables = {name for name, in db.execute("SELECT name FROM pragma_module_list WHERE name LIKE 'dp\\_%' ESCAPE '\\'")}
    assert len(functions) > 100 and len(tables) > 10
    return functions | tables


def test_no_function_and_no_table_is_forgotten():
    assert names() - set(CALLS) == INSIDE and set(CALLS) <= names()


@pytest.mark.parametrize("part", range(4))
def test_calls_give_all_rows_or_an_error(part, tmp_path):
    lines = tmp_path / "calls"
    calls = [*CALLS.values(), *STORIES][part::4]
    lines.write_text("".join(f"{call}\n" for call in calls).replace("DIRECTORY", str(tmp_path)), encoding="utf-8")
    done = subprocess.run([BUILD / "injector", tmp_path, "calls", STEP, lines], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    counts = [int(line.split()[0]) for line in done.stdout.splitlines()]
    assert len(counts) == len(calls) and min(counts) > 2, done.stdout


def test_the_text_of_a_statement_is_whole_or_an_error(tmp_path):
    """The ledger stores the name of a release in place of the options of its aggregate. The last SELECT finds the release by its text."""
    lines = tmp_path / "calls"
    lines.write_text("~SELECT dp_sum('a', x, 9, '{\"name\":\"m\"}') FROM t;"
                     " SELECT name FROM dp_release WHERE statement = 'SELECT dp_sum(?, x, ?, ''m'') FROM t'\n", encoding="utf-8")
    done = subprocess.run([BUILD / "injector", tmp_path, "calls", "40", lines], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert int(done.stdout.split()[0]) > 100


@pytest.mark.slow
def test_a_guest_gets_all_rows_or_an_error(tmp_path):
    """Memory can run out in one call and be there in the next: a module was released twice, and a table passed for one that is not there."""
    lines = tmp_path / "calls"
    lines.write_text(CALLS["dp_guard"] + "\n", encoding="utf-8")
    done = subprocess.run([BUILD / "injector", tmp_path, "calls", "900", lines], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def test_json_that_cannot_be_read_is_an_error(tmp_path):
    """An allocation fails while the statement is compiled that reads the options."""
    lines = tmp_path / "calls"
    lines.write_text("SELECT dp_plan('c', 'avg', 1, '{\"lo\":0,\"hi\":1}')\n", encoding="utf-8")
    done = subprocess.run([BUILD / "injector", tmp_path, "calls", "20", lines], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
