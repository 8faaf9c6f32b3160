"""Checks the built files: one exported symbol, no libraries except libc and libm, a static library, the oldest supported SQLite.
"""

import ast
import collections
import functools
import itertools
import os
import pathlib
import random
import re
import shutil
import sqlite3
import subprocess
import sys

import pytest

import lint

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "ext/packages"))

import needed  # noqa: E402

pytestmark = pytest.mark.own

BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
EXTENSION = BUILD / "diffuse.so"


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def plain_environment():
    """Returns the environment without a preloaded sanitizer, for compilers and shells."""
    return {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}


@pytest.mark.plain
def test_exported_symbols():
    symbols = re.findall(r" [A-Z] (\S+)", run("nm", "-D", "--defined-only", str(EXTENSION)))
    assert sorted(symbols) == ["sqlite3_diffuse_init", "sqlite3_extension_init"]


@pytest.mark.plain
@pytest.mark.parametrize("name", ["diffuse-1.0.so", "privacy.so", "libdp_2.so"])
def test_a_copy_loads_under_any_name(name, tmp_path):
    shutil.copy(EXTENSION, tmp_path / name)
    assert run("sqlite3", ":memory:", f".load {tmp_path / name}", "SELECT dp_version() IS NOT NULL", env=plain_environment()) == "1\n"


@pytest.mark.plain
def test_needs_only_libc_and_libm():
    needed = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", str(EXTENSION)))
    assert sorted(needed) == ["libc.so.6", "libm.so.6"]


def test_loading_has_no_side_effect(tmp_path):
    path = tmp_path / "a.db"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE t(x)")
    before = path.read_bytes()
    db.enable_load_extension(True)
    db.load_extension(str(BUILD / "diffuse"))
    db.close()
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.db"]


def test_old_sqlite_is_refused(tmp_path):
    shared = tmp_path / "capture.so"
    run("cc", "-shared", "-fPIC", str(ROOT / "tests/helpers/capture.c"), "-o", str(shared), env=plain_environment())
    # This runs in a separate process, because the faked API table stays in the library, where other connections would use it.
    load = ("import sqlite3, sys; db = sqlite3.connect(':memory:'); db.enable_load_extension(True)\n"
            "try: db.load_extension(sys.argv[1])\nexcept sqlite3.OperationalError as e: print(e)")
    said = run(sys.executable, "-c", load, str(shared), env={**os.environ, "DIFFUSE": str(EXTENSION)})
    assert "diffuse needs SQLite 3.34 or newer, this is 3" in said


@pytest.mark.plain
def test_static_library_without_leaks(tmp_path):
    program = tmp_path / "static"
    run("cc", str(ROOT / "tests/helpers/static.c"), str(BUILD / "libdiffuse.a"), "-o", str(program), "-l:libsqlite3.a",
        "-l:libgsl.a", "-l:libgslcblas.a", "-l:libsodium.a", "-lm", "-lpthread", "-ldl")
    assert run(str(program)) == "ok\n"
    if shutil.which("valgrind"):
        run("valgrind", "-q", "--error-exitcode=9", "--leak-check=full", str(program))


def test_version():
    db = sqlite3.connect(":memory:")
    db.enable_load_extension(True)
    db.load_extension(str(BUILD / "diffuse"))
    (version,) = db.execute("SELECT dp_version()").fetchone()
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)


def test_column_values_are_only_copied():
    """sqlite3_column_value() gives an unprotected value, which may only be bound or copied: SQLite built with SQLITE_DEBUG
    aborts at anything else. Only a question reads the rows of a unit while a statement of the host holds the mutex."""
    uses = [line.strip() for file in sorted((ROOT / "ext").rglob("*.c")) if file.name not in ("question.c", "evaluator_tables.c")
            for line in file.read_text().splitlines() if "sqlite3_column_value(" in line]
    copies = "sqlite3_value_dup(sqlite3_column_value(", "sqlite3_result_value(context, sqlite3_column_value("
    assert uses and all(any(copy in line for copy in copies) for line in uses), uses


def test_one_version_number():
    """dp_version(), VERSION and the newest heading of CHANGELOG.md agree."""
    version = (ROOT / "VERSION").read_text()
    db = sqlite3.connect(":memory:")
    db.enable_load_extension(True)
    db.load_extension(str(BUILD / "diffuse"))
    assert version == db.execute("SELECT dp_version()").fetchone()[0] + "\n"
    heading = next(line for line in (ROOT / "CHANGELOG.md").read_text().splitlines() if line.startswith("## "))
    assert heading.split()[1] == version.strip()


@functools.cache
def nodes_of(path):
    """Returns the imports and the names of a Python file."""
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, (ast.Import, ast.ImportFrom, ast.Name))]


def test_no_test_module_imports_another_one():
    """No module of tests imports another module of tests, so that each module can be renamed, split or run alone. Shared code is
    in helper modules."""
    tests = {path.stem: path for path in (ROOT / "tests").rglob("test_*.py")}
    assert len(tests) > 50
    imports = [(name, other) for name, path in tests.items() for node in nodes_of(path)
               for other in ([alias.name for alias in node.names] if isinstance(node, ast.Import)
                             else [node.module] if isinstance(node, ast.ImportFrom) else [])
               if other in tests]
    assert not imports


def test_every_import_is_used():
    files = [path for folder in ("tests", "bench") for path in (ROOT / folder).rglob("*.py")]
    unused = []
    for path in files:
        nodes = nodes_of(path)
        imported = {(alias.asname or alias.name).split(".")[0] for node in nodes
                    if isinstance(node, (ast.Import, ast.ImportFrom)) for alias in node.names}
        used = {node.id for node in nodes if isinstance(node, ast.Name)}
        unused += [(path.name, name) for name in sorted(imported - used)]
    assert len(files) > 50 and not unused


@pytest.mark.plain
def test_every_include_is_used(tmp_path, monkeypatch):
    """Every include is used. The test also runs the check on files with unused includes (a system header, a header of ext/, and
    an include in a header), and the check finds them."""
    monkeypatch.chdir(ROOT)
    assert lint.unused_includes(BUILD) == []
    (tmp_path / "some.h").write_text("#include <math.h>\n#include <stddef.h>\nsize_t some(void); /* sqrt() */\n")
    (tmp_path / "some.c").write_text('#include "some.h"\n\n#include <math.h>\n#include <stdlib.h>\n#include <string.h>\n'
                                     '#include "math/math.h"\n\nsize_t some(void) {\n'
                                     '  return sqrt(2.0) > 1 ? strlen("malloc") : 0;\n}\n')
    found = lint.unused_includes(BUILD, [tmp_path])
    assert [line.split(" ")[:2] for line in found] == [
        [f"{tmp_path}/some.c:4:", "stdlib.h"], [f"{tmp_path}/some.c:6:", "math/math.h"], [f"{tmp_path}/some.h:1:", "math.h"]]


@pytest.mark.plain
def test_includes_go_one_way(tmp_path, monkeypatch):
    """Each folder of ext/ includes only the folders below it, and no files include each other. The test also makes a
    file with each of these two faults, and the check finds both faults."""
    monkeypatch.chdir(ROOT)
    assert lint.wrong_arrows() == []
    for name, text in (("math/a.h", '#include "noise/b.h"'), ("noise/b.h", '#include "noise/c.h"'), ("noise/c.c", '#include "noise/b.h"')):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    assert lint.wrong_arrows(tmp_path) == [f"{tmp_path}/math/a.h: includes noise/b.h, but math is not above noise",
                                           "noise/b needs itself through noise/c", "noise/c needs itself through noise/b"]


@pytest.mark.plain
def test_files_do_not_call_in_circles(tmp_path, monkeypatch):
    """No two C files of one folder use functions or data of each other, directly or indirectly. The test also compiles three files
    that do, and the check finds them."""
    monkeypatch.chdir(ROOT)
    assert lint.circles_of_calls(BUILD / "obj") == []
    (tmp_path / "ext" / "room").mkdir(parents=True)
    (tmp_path / "obj" / "room").mkdir(parents=True)
    for name, text in (("a", "extern const int datum; int first(void) { return datum; }"), ("c", "int first(void); int last(void) { return first(); }"),
                       ("b", "int last(void); const int datum = 1; int second(void) { return last(); }"), ("d", "int last(void); int top(void) { return last(); }")):
        (tmp_path / "ext" / "room" / f"{name}.c").write_text(text)
        run("cc", "-c", "-o", tmp_path / "obj" / "room" / f"{name}.o", tmp_path / "ext" / "room" / f"{name}.c")
    assert lint.circles_of_calls(tmp_path / "obj", tmp_path / "ext") == ["room: a -> b (datum), b -> c (last), c -> a (first)",
                                                       "room: b -> c (last), c -> a (first), a -> b (datum)",
                                                       "room: c -> a (first), a -> b (datum), b -> c (last)"]


@pytest.mark.plain
def test_the_storeys_of_the_ledger_are_those_of_the_map():
    """The table in ext/README.md lists every file of ledger/, and each file uses only files of its own storey and of earlier ones."""
    root = ROOT / "ext"
    table = (root / "README.md").read_text().split("## The storeys of the ledger")[1].split("\n## ")[0]
    rows = re.findall(r"^\|[^|]*\|(.*)\|$", table, re.M)[2:]
    storey = {file: number for number, row in enumerate(rows) for file in re.findall(r"`(\w+)`", row)}
    calls = lint.calls_of(lint.symbols_of([BUILD / "obj" / "ledger" / f"{path.stem}.o" for path in sorted((root / "ledger").glob("*.c"))]))
    assert set(calls) == set(storey)
    assert not [(file, other) for file in calls for other in calls[file] if storey[other] > storey[file]]


@pytest.mark.plain
def test_the_ledger_names_no_mechanism():
    """The ledger does not name a mechanism. Mechanisms are in their own table, and the ledger asks its caller about them. (An
    error may name a mechanism, to tell the owner what to write.)"""
    root = ROOT / "ext"
    names = {name for path in [*root.glob("mechanism/*.c"), root / "models/hiding.c", root / "categories/categories.c"] for name in re.findall(r'\.name = "([a-z_]+)"', path.read_text())}
    assert {"gaussian", "ou", "laplace", "exponential", "response", "local", "iteration", "laplace_iteration"} <= names
    quoted = re.compile(f"""["'](?:{'|'.join(sorted(names))})["']""")
    assert [f"{path.name}:{number}" for path in sorted((root / "ledger").glob("*.[ch]"))
            for number, line in enumerate(path.read_text().splitlines(), 1) if quoted.search(line)] == []


def test_comments_name_files_that_exist():
    """Comments in C and documents name only existing files: name.c and name.h of this repository, and paths in ext/ and tests/.
    """
    root = ROOT
    ours = {path.name for folder in ("ext", "tests", "bench") for path in (root / folder).rglob("*.[ch]")}
    system = {"diffuse.h", "sqlite3.h", "sqlite3ext.h", "version.h", "ledger_sql.h", "page_html.h", "page_sql.h"}
    stale = []
    documents = [*root.glob("*.md"), *(path for folder in ("bench", "ext", "fixtures", "sql", "tests") for path in (root / folder).rglob("*.md"))]
    for path in [*(root / "ext").rglob("*.[ch]"), *(root / "tests").rglob("*.c"), *documents]:
        if path.name == "CHANGELOG.md" or "packages" in path.parts:
            continue
        text = path.read_text()
        comments = text if path.suffix == ".md" else " ".join(re.findall(r"/\*.*?\*/", text, re.S))
        for name in set(re.findall(r"\b(?:[a-z]+/)*[a-z_0-9]+\.[ch]\b", comments)) - system:
            there = (root / name).exists() or (root / "ext" / name).exists() or (root / "tests" / name).exists()
            if not (there if "/" in name else name in ours):
                stale.append((str(path.relative_to(root)), name))
    assert not stale


def test_every_c_file_names_its_tests():
    """The first comment of each C file in a room names tests, and these exist. The map of the tests has every folder."""
    named = {path: re.findall(r"tests/\S+?\.(?:py|c)\b", path.read_text().split("*/")[0]) for path in (ROOT / "ext").glob("*/*.c")}
    assert len(named) > 100
    assert [str(path) for path, tests in named.items() if not tests or not all((ROOT / test).exists() for test in tests)] == []
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/*") if path.is_file()} - {"__pycache__"}
    assert folders == set(re.findall(r"`(\w+)/`", re.sub("`ext/`|`sql/`|`bench/`|`fixtures/`", "", (ROOT / "tests/README.md").read_text())))


def test_lines_of_at_most_100_columns():
    files = [path for folder in ("ext", "tests", "bench") for path in (ROOT / folder).rglob("*.[ch]")]
    assert len(files) > 100
    long = [f"{path.relative_to(ROOT)}:{number}" for path in files
            for number, line in enumerate(path.read_text().splitlines(), 1) if len(line) > 100]
    assert not long


def test_no_symbol_is_external_for_one_file():
    """Every external symbol is used in another object of the extension or in a unit test. All other symbols are static."""
    sources = [path.relative_to(ROOT / "ext") for path in (ROOT / "ext").rglob("*.c")]
    objects = [path for source in sources if (path := BUILD / "obj" / source.with_suffix(".o")).exists()]
    if not objects:
        pytest.skip("no object files here (make)")
    uses, defines = collections.defaultdict(set), {}
    for path, rows in lint.symbols_of(objects).items():
        for kind, name in rows:
            if kind == "U":
                uses[name].add(path)
            elif kind in "TDBRV" and "." not in name:  # __odr_asan.x is the sanitizer's
                defines[name] = path
    tested = " ".join(path.read_text() for path in (ROOT / "tests").rglob("*.[ch]"))
    lonely = [name for name in defines if not uses[name] and not re.search(rf"\b{name}\b", tested)]
    assert lonely in ([], ["sqlite3_diffuse_init"])


SYSTEM_HEADERS = """dirent emscripten errno fcntl poll process pthread sched signal strings sys time threads unistd windows bcrypt
                    xlocale""".split()


def test_operating_system_stays_in_one_room():
    """Only ext/os and the source of random bytes have code for specific operating systems."""
    root = ROOT / "ext"
    may = [root / "os", root / "noise" / "entropy.c"]
    named = re.compile(r'#include <(?:%s)[./]' % "|".join(SYSTEM_HEADERS))
    conditional = re.compile(r"#\s*(?:el)?if.*\b(_WIN32|__linux__|__APPLE__|__EMSCRIPTEN__)\b")
    files = [path for path in sorted(root.rglob("*.[ch]")) if not any(m in (path, *path.parents) for m in may)]
    assert len(files) > 100
    found = [(path.name, line) for path in files for line in path.read_text().splitlines()
             if named.match(line) or conditional.match(line)]
    # diffuse.c is an exception, because it defines how each system exports a symbol.
    assert [line for name, line in found if name != "diffuse.c"] == [], found


def texts(*arguments):
    """Returns the string literals of C files after the preprocessor, adjacent ones joined, except those of pragmas and assertions."""
    code = run("cc", "-std=c11", "-DNDEBUG", "-E", "-P", *arguments, env=plain_environment())
    literals = re.findall(r'"((?:\\.|[^"\\])*)"|\'(?:\\.|[^\'\\])*\'|[^\s"\']+', re.sub(r"^#.*", "", code, flags=re.M))
    return {"".join(group) for kind, group in itertools.groupby(literals, bool) if kind}


@pytest.mark.slow
def test_packages_take_the_files_that_a_linker_takes(tmp_path):
    """needed.py derives the files of a library from a program's text. Random libraries, and the linker as the truth: the members of
    an archive that it takes."""
    chance = random.Random(1)
    for library in range(2):
        folder = tmp_path / str(library)
        folder.mkdir()
        uses = {i: chance.sample(range(30), chance.choice([0, 0, 1, 2])) for i in range(30)}
        for i, others in uses.items():
            calls = " + ".join(["1", *(f"call_{j}(n - 1)" for j in others if j != i)])
            declarations = "".join(f"int call_{j}(int);" for j in others)
            (folder / f"f{i}.c").write_text(f"{declarations}\nstatic int call_x; int call_{i}(int n) {{ return n < 0 ? call_x : {calls}; }}\n")
        text = "int call_3(int), call_7(int); int main(void) { return call_3(2) + call_7(2) < 0; }\n"
        (folder / "main.c").write_text(text)
        members = [f"f{i}.c" for i in uses]
        run("cc", "-c", *members, cwd=folder, env=plain_environment())
        run("ar", "rcs", "all.a", *(name[:-2] + ".o" for name in members), cwd=folder, env=plain_environment())
        run("cc", "main.c", "all.a", "-Wl,-Map=map", "-o", "main", cwd=folder, env=plain_environment())
        truth = {str(folder / f"{name}.c") for name in re.findall(r"all\.a\((f\d+)\.o\)", (folder / "map").read_text())}
        found = needed.symbols([(folder / name, None, []) for name in members], folder, tmp_path)
        assert needed.closure(found, text) == truth and 2 <= len(truth) < 30


@pytest.mark.plain
@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["syntax", "whole"])
def test_amalgamation_is_one_file_with_one_symbol(whole, tmp_path):
    """The amalgamation is one C file. Without the rest of the source, it compiles without warnings, has the texts of the source,
    exports only its entry point, and makes a release. `make test` only looks for errors and for names that two files define."""
    root = ROOT
    run(sys.executable, str(root / "ext/packages/amalgamate.py"), str(BUILD), str(tmp_path))
    assert not re.search(r'#include "(?!sqlite3)', (tmp_path / "diffuse.c").read_text())
    shared = tmp_path / "diffuse.so"
    flags = ["-O0", "-std=c11", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-fPIC", "-shared"]
    if not whole:
        run("cc", "-std=c11", "-fsyntax-only", str(tmp_path / "diffuse.c"), env=plain_environment())
        return
    sources = [str(path) for path in sorted((root / "ext").rglob("*.c"))]
    ours = texts(f"-I{root}/ext", f"-I{BUILD}", "-D_DEFAULT_SOURCE", "-D_POSIX_C_SOURCE=200809L", *sources)
    assert texts(str(tmp_path / "diffuse.c")) == ours | {"hidden"} and len(ours) > 1000  # of DIFFUSE_HIDDEN
    run("cc", *flags, "-o", str(shared), str(tmp_path / "diffuse.c"), "-l:libgsl.a", "-l:libgslcblas.a", "-l:libsodium.a", "-lm",
        "-Wl,--exclude-libs,ALL", "-Wl,-z,defs", env=plain_environment())
    symbols = re.findall(r" [A-Z] (\S+)", run("nm", "-D", "--defined-only", str(shared)))
    assert sorted(symbols) == ["sqlite3_diffuse_init", "sqlite3_extension_init"]
    said = run("sqlite3", ":memory:", f".load {shared}", "CREATE TABLE t(i); SELECT dp_init(); SELECT dp_protect('t', 'i'); SELECT dp_tier('t', 1.0, 500.0, 1e-6);"
               "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000) INSERT INTO t SELECT i FROM n;"
               "SELECT dp_count('t', i, 1, 'n') BETWEEN 900 AND 1100 FROM t;",
               env=plain_environment())
    assert said.splitlines()[-1] == "1", said


@pytest.mark.plain
@pytest.mark.slow
def test_install_puts_files_in_their_places(tmp_path):
    """`make install` respects PREFIX and DESTDIR. A program finds the static library with pkg-config, and the library exports
    only symbols of this extension. Here the library is compiled without optimisation, which saves 20 seconds."""
    root = ROOT
    environment = {key: value for key, value in plain_environment().items() if not key.startswith("MAKE")}
    run("make", "-s", "install", f"BUILD={BUILD}", f"INSTALLED={tmp_path}/library", "CFLAGS=-O0", "PREFIX=/opt/d",
        f"DESTDIR={tmp_path}", cwd=root, env=environment)
    top = tmp_path / "opt/d"
    assert sorted(str(p.relative_to(top)) for p in top.rglob("*") if p.is_file()) == [
        "include/diffuse.h", "lib/diffuse.so", "lib/libdiffuse.a", "lib/pkgconfig/diffuse.pc", "share/man/man7/diffuse.7"]
    for name in ("diffuse.so", "libdiffuse.a"):
        assert ".debug" not in run("readelf", "-SW", str(top / "lib" / name)), "stripped"
    assert run("sqlite3", ":memory:", f".load {top}/lib/diffuse", "SELECT dp_version()", env=plain_environment()).strip() == (root / "VERSION").read_text().strip()
    symbols = re.findall(r" [A-Z] (\S+)", run("nm", "--defined-only", str(top / "lib/libdiffuse.a")))
    assert [s for s in symbols if not s.startswith("diffuse_")] == ["sqlite3_diffuse_init"]  # compiled with SQLITE_CORE
    fields = dict(line.split(": ", 1) for line in (top / "lib/pkgconfig/diffuse.pc").read_text().splitlines() if ": " in line)
    version = (root / "VERSION").read_text().strip()
    assert fields["Version"] == version and f'"{version}"' in (top / "include/diffuse.h").read_text()
    assert "prefix=/opt/d\n" in (top / "lib/pkgconfig/diffuse.pc").read_text()
