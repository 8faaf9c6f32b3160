"""The Datasette plugin: each connection gets the extension and the guard of the tier in the plugin's configuration."""

import json
import sqlite3
import sys
from typing import Any, Dict, List, Optional, Tuple

from datasette import NotFound, Response, hookimpl, hookspecs
from datasette.utils import StartupError, tilde_decode
from jinja2 import DictLoader

from . import load

# Datasette 1.0 replaced the hook that forbids the download of database files. A plugin of the old kind would not be asked.
if not hasattr(hookspecs, "permission_allowed"):
    raise ImportError("sqlite-diffuse cannot forbid downloads in this version of Datasette (install 'datasette>=0.65,<1')")

# The page of a database shows the published figures first, and then how to ask.
PAGE = """{% extends "default:database.html" %}
{% block description_source_license %}
{{ super() }}
{% if diffuse %}
<h2>Published figures</h2>
{% if diffuse.figures %}
<table class="rows-and-columns">
<thead><tr><th>release</th><th>key</th><th>figure</th><th>95% interval</th></tr></thead>
<tbody>{% for release, key, figure, low, high in diffuse.figures %}
<tr><td>{{ release }}</td><td>{{ key or "" }}</td><td>{{ figure }}</td><td>{% if low is not none %}{{ "{:.6g}".format(low) }} to {{ "{:.6g}".format(high) }}{% endif %}</td></tr>
{% endfor %}</tbody>
</table>
<p><a href="{{ urls.query(database, "published") }}">All published figures</a></p>
{% else %}<p>Nothing is published yet.</p>{% endif %}
{% if diffuse.ask %}
<h2>Ask a question</h2>
<p>A question counts the rows of people without showing them, and uses up a part of this page's budget. Its answer has noise, and is published
here. The columns that you can ask about are in <a href="{{ urls.query(database, "columns") }}">this list</a>. Copy this example into the box below,
and give the question a name of its own:</p>
<pre>{{ diffuse.ask }}</pre>
{% endif %}
{% endif %}
{% endblock %}"""
FIGURES = "SELECT release, nullif(key, ''), display, low, high FROM dp_value ORDER BY release, key LIMIT 20"

QUERIES = {
    "published": ("Published values", "SELECT release, key, display, value, low, high, tier FROM dp_value ORDER BY release, tier, key"),
    "columns": ("Columns for questions", "SELECT table_name, column_name, declared_type, role FROM dp_column"),
    "budget": ("Budgets", "SELECT * FROM dp_budget"),
    "publications": ("Publications", "SELECT * FROM dp_publication ORDER BY release, tier"),
}


def _terms(datasette: Any, database: str) -> Optional[Dict[str, str]]:
    """Returns the tier and the grant of a database, or None if the configuration has no tier."""
    config = datasette.plugin_config("sqlite-diffuse") or {}
    terms = config.get("databases", {}).get(database)
    if terms is not None and (not {"tier"} <= set(terms) <= {"tier", "ask"}):
        raise StartupError(f"sqlite-diffuse: database {database!r} needs a tier, and may have a grant to ask under; nothing else")
    return terms


def _no_files(action: int, *_: Any) -> int:
    """The authorizer of databases in memory. Such a database may not attach the file of another database."""
    return sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_ATTACH else sqlite3.SQLITE_OK


def _nothing(*_: Any) -> int:
    """The authorizer of databases without a tier."""
    return sqlite3.SQLITE_DENY


@hookimpl(trylast=True)
def prepare_connection(conn: sqlite3.Connection, database: str, datasette: Any) -> None:
    """Guards a connection after all other plugins have prepared it."""
    known = datasette.databases.get(database)
    if database == "_memory" or (known and known.is_memory):
        conn.set_authorizer(_no_files)
        return
    if known:
        # Removes the size and the hash of the file, and the numbers of rows that `datasette inspect` has counted,
        # because they depend on single rows.
        known.cached_size, known.cached_hash = 0, ""
        if datasette.inspect_data:
            datasette.inspect_data.pop(database, None)
    terms = _terms(datasette, database)
    if not terms:
        conn.set_authorizer(_nothing)
        return
    try:
        conn.enable_load_extension(True)
        load(conn)
        conn.enable_load_extension(False)
        options = {"ask": terms["ask"]} if "ask" in terms else {}
        conn.execute("SELECT dp_guard(?, ?)", (terms["tier"], json.dumps(options))).fetchall()
    except BaseException:
        conn.enable_load_extension(False)
        conn.set_authorizer(_nothing)  # Datasette without threads uses the connection in spite of the error
        raise


@hookimpl
def startup(datasette: Any) -> None:
    if datasette.crossdb:
        raise StartupError("sqlite-diffuse: --crossdb attaches databases to a connection that no tier guards")
    for name, database in list(datasette.databases.items()):
        if not database.is_memory and not _terms(datasette, name):
            datasette.remove_database(name)
            print(f"sqlite-diffuse: database {name!r} is closed, because no tier is configured for it", file=sys.stderr)


@hookimpl
def permission_allowed(action: str) -> Optional[bool]:
    """Forbids the download of a database file for everybody, because this file has the rows of all people."""
    return False if action == "view-database-download" else None


@hookimpl
def canned_queries(datasette: Any, database: str) -> Dict[str, Dict[str, str]]:
    if not _terms(datasette, database):
        return {}
    return {name: {"title": title, "sql": sql} for name, (title, sql) in QUERIES.items()}


@hookimpl
def prepare_jinja2_environment(env: Any) -> None:
    env.loader.loaders.insert(0, DictLoader({"database.html": PAGE}))


def _figures(conn: sqlite3.Connection, terms: Dict[str, str]) -> Dict[str, Any]:
    """Returns what the page of a database shows: the published figures, and an example of a question if visitors may ask."""
    table = conn.execute("SELECT table_name FROM dp_policy WHERE role = 'protected' ORDER BY table_name").fetchone()
    ask = None
    if table and "ask" in terms:
        query = 'SELECT 1 FROM "{}"'.format(table[0].replace('"', '""')).replace("'", "''")
        ask = "SELECT value, low, high FROM dp_answer('{}', 'count', '{}', '{{\"name\":\"my first question\",\"clip\":10}}')".format(
            terms["tier"].replace("'", "''"), query)
    return {"figures": conn.execute(FIGURES).fetchall(), "ask": ask}


@hookimpl
def extra_template_vars(view_name: str, database: str, datasette: Any) -> Any:
    terms = _terms(datasette, database) if view_name == "database" and database else None

    async def variables() -> Dict[str, Any]:
        if not terms:
            return {}
        # Nobody can download the file, so the page has no link to it.
        return {"allow_download": False, "diffuse": await datasette.get_database(database).execute_fn(lambda conn: _figures(conn, terms))}
    return variables


async def _report(request: Any, datasette: Any) -> Response:
    """Sends the page of dp_report()."""
    try:
        database = datasette.get_database(route=tilde_decode(request.url_vars["database"]))
    except KeyError:
        raise NotFound("Database not found")
    terms = _terms(datasette, database.name)
    if not terms:
        raise NotFound("No tier is configured for this database")
    await datasette.ensure_permissions(request.actor, [("view-database", database.name), "view-instance"])
    page = await database.execute_fn(lambda conn: conn.execute("SELECT dp_report(?)", (terms["tier"],)).fetchone()[0])
    return Response.html(page)


@hookimpl
def register_routes() -> List[Tuple[str, Any]]:
    return [(r"^/-/diffuse/(?P<database>[^/]+)$", _report)]


@hookimpl
def database_actions(datasette: Any, database: str) -> List[Dict[str, str]]:
    if not _terms(datasette, database):
        return []
    return [{"href": datasette.urls.path(f"/-/diffuse/{database}"), "label": "Report of published values"}]
