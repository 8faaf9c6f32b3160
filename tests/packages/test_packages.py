"""Installs each package of build/packages into an empty environment and makes the first release of its README.

Run by `make test-packages` (after `make deps-packages packages deps-test-packages`), not by `make test`. Packages for another CPU
or operating system run under qemu or wine, with tests/packages/host.c as host.
"""
import concurrent.futures
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = ROOT / "build/packages"
WORK = ROOT / "build/packages-work"
TOOLS = ROOT / "build/packages-tools"
HERE = pathlib.Path(__file__).parent
VERSION = (ROOT / "VERSION").read_text().strip()
LIBC = "linux_musl" if pathlib.Path("/etc/alpine-release").exists() else "linux"
NATIVE = f"{LIBC}-{platform.machine()}"
NPM = {"x86_64": "linux-x64", "aarch64": "linux-arm64"}[platform.machine()]

sys.path.insert(0, str(ROOT / "ext/packages"))


def run(*command, cwd=None, text=None, environment=None):
    done = subprocess.run([str(c) for c in command], cwd=cwd, input=text, capture_output=True, text=True, timeout=600,
                          env={**os.environ, **(environment or {})})
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def blocks(path, language):
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(), re.M | re.S)


def unpack(archive, folder):
    with tarfile.open(PACKAGES / archive) as tar:
        tar.extractall(folder)
    return folder


# ---- Python ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """Makes an empty environment with the wheel and apsw. Debian's Python can load extensions."""
    folder = tmp_path_factory.mktemp("python")
    run("/usr/bin/python3", "-m", "venv", folder)
    tag = "manylinux_2_17" if LIBC == "linux" else "musllinux_1_2"
    (wheel,) = PACKAGES.glob(f"*{tag}_{platform.machine()}*.whl")
    run(folder / "bin/pip", "install", "--quiet", "--disable-pip-version-check", "apsw", wheel)
    return folder / "bin/python"


def test_readme_of_the_wheel(python, tmp_path):
    first, second = blocks(ROOT / "ext/packages/python/README.md", "python")
    said = run(python, "-c", first, cwd=tmp_path)
    value, half = map(float, re.fullmatch(r"([\d.]+) ± ([\d.]+) minutes\n", said).groups())
    assert abs(value - 29.5) < 1 and 0.05 < half < 0.2
    assert run(python, "-c", first, cwd=tmp_path) == said, "a named release is drawn once"
    replayed = run(python, "-c", second, cwd=tmp_path)  # apsw, with another SQLite
    assert f"{float(replayed.strip('[](,)' + chr(10))):.2f}" == f"{value:.2f}"


def test_module_says_its_version_and_where_it_is(python, tmp_path):
    code = """import sqlite3, sqlite_diffuse, pathlib
db = sqlite3.connect(":memory:"); db.enable_load_extension(True); sqlite_diffuse.load(db)
assert pathlib.Path(sqlite_diffuse.loadable_path()).is_file()
print(sqlite_diffuse.__version__, *db.execute("SELECT dp_version()").fetchone(), sqlite_diffuse.__all__)"""
    assert run(python, "-c", code, cwd=tmp_path).split()[:2] == [VERSION, VERSION]


def test_the_extra_for_datasette(python, tmp_path):
    """The wheel with its extra [datasette] in an empty environment serves the release of the README, and not the rows behind it."""
    run("/usr/bin/python3", "-m", "venv", tmp_path / "env")
    run(tmp_path / "env/bin/pip", "install", "--quiet", "--disable-pip-version-check", "--find-links", PACKAGES, "sqlite-diffuse[datasette]")
    run(python, "-c", blocks(ROOT / "ext/packages/python/README.md", "python")[0], cwd=tmp_path)
    (tmp_path / "metadata.json").write_text('{"plugins":{"sqlite-diffuse":{"databases":{"clinic":{"tier":"clinic"}}}}}')

    def ask(sql):
        path = f"/clinic.json?_shape=array&sql={sql.replace(' ', '+')}"
        command = [tmp_path / "env/bin/datasette", "serve", "-m", "metadata.json", "--get", path, "clinic.db"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600).stdout

    ((release, value),) = [row.values() for row in json.loads(ask("select release, value from dp_value"))]
    assert abs(value - 29.5) < 1 and release == "January"
    refusal = json.loads(ask("select * from visits"))
    assert not refusal["ok"] and not refusal["rows"] and "visits" in refusal["error"]


def test_type_hints(python, tmp_path):
    """The wheel has py.typed, and a type checker sees that load() returns nothing and loadable_path() returns a string."""
    with zipfile.ZipFile(next(PACKAGES.glob(f"*_{platform.machine()}*.whl"))) as wheel:
        assert "sqlite_diffuse/py.typed" in wheel.namelist()
    code = """import sqlite_diffuse, typing
print(typing.get_type_hints(sqlite_diffuse.loadable_path), typing.get_type_hints(sqlite_diffuse.load)["return"])"""
    assert run(python, "-c", code, cwd=tmp_path) == "{'return': <class 'str'>} <class 'NoneType'>\n"


def test_wheel_on_another_cpu(tmp_path):
    """pip accepts the wheel for aarch64. Debian's Python for arm64 runs under qemu and loads the wheel."""
    arm64 = TOOLS / "arm64"
    run("/usr/bin/python3", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--root-user-action=ignore", "--no-index",
        "--find-links", PACKAGES, "--platform", "manylinux2014_aarch64", "--only-binary", ":all:", "--target", tmp_path / "site", "sqlite-diffuse")
    first, _ = blocks(ROOT / "ext/packages/python/README.md", "python")
    (interpreter,) = (arm64 / "usr/bin").glob("python3.[0-9]*[0-9]")
    said = run("qemu-aarch64-static", "-L", arm64, interpreter, "-c", "import platform; assert platform.machine() == 'aarch64'\n" + first,
               cwd=tmp_path, environment={"PYTHONPATH": str(tmp_path / "site"), "PYTHONHOME": str(arm64 / "usr"), "PYTHONDONTWRITEBYTECODE": "1"})
    assert abs(float(said.split()[0]) - 29.5) < 1


# ---- Node ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def node_project(tmp_path_factory):
    """Makes a project with the main package and the package of this platform. The other optional packages are not published yet.
    """
    folder = tmp_path_factory.mktemp("node")
    (folder / "package.json").write_text('{"private": true}')
    run("npm", "install", "--silent", "--no-fund", "--no-audit", "--omit=optional", PACKAGES / f"sqlite-diffuse-{VERSION}.tgz",
        PACKAGES / f"sqlite-diffuse-{NPM}-{VERSION}.tgz", "better-sqlite3", cwd=folder)
    return folder


def test_readme_of_the_npm_package(node_project):
    """better-sqlite3 makes a release. Then Node's own module, on a newer version of Node, reads the publication."""
    better, own = blocks(ROOT / "ext/packages/npm/README.md", "js")
    (node_project / "better.mjs").write_text(better)
    said = run("node", "better.mjs", cwd=node_project)
    value, half = map(int, re.fullmatch(r"(\d+) ± (\d+) minutes\n", said).groups())
    assert abs(value - 295000) < 10 * half and 1000 < half < 3000
    (node_project / "own.mjs").write_text(own)
    (newer,) = (TOOLS / "node").glob("node_modules/node-linux-*/bin/node")
    assert round(float(run(newer, "--no-warnings", "own.mjs", cwd=node_project))) == value


def test_npm_package_for_require(node_project):
    code = ("const d = require('sqlite-diffuse'); const Database = require('better-sqlite3'); const db = new Database(':memory:');"
            "d.load(db); console.log(db.prepare('SELECT dp_version() AS v').get().v, d.getLoadablePath().endsWith('diffuse.so'))")
    assert run("node", "-e", code, cwd=node_project) == f"{VERSION} true\n"


def test_npm_package_names_what_is_missing(node_project):
    code = "Object.defineProperty(process, 'arch', { value: 'mips' }); require('sqlite-diffuse').getLoadablePath()"
    done = subprocess.run(["node", "-e", code], cwd=node_project, capture_output=True, text=True)
    assert done.returncode and "sqlite-diffuse-linux-mips is not installed" in done.stderr


# ---- shell, C, Debian ------------------------------------------------------------------------------

FIRST = ["SELECT dp_init();", "SELECT dp_tier('t', 1.0, 500.0, 1e-6);",
         "CREATE TABLE t(i INTEGER); SELECT dp_protect('t', 'i'); WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000) INSERT INTO t SELECT i FROM n;",
         "SELECT dp_count('t', i, 1, 'first') FROM t;"]


def is_near(text):
    return abs(float(text.split()[-1]) - 1000) < 50  # 35 standard deviations


def test_shell(tmp_path):
    unpack(f"diffuse-{VERSION}-loadable-{NATIVE}.tar.gz", tmp_path)
    assert is_near(run("sqlite3", tmp_path / "a.db", f".load {tmp_path}/diffuse", *FIRST))


def test_amalgamation(tmp_path):
    """The amalgamation compiles into a program and as an extension, with the commands in its first lines."""
    folder = unpack(f"diffuse-amalgamation-{VERSION}.tar.gz", tmp_path) / f"diffuse-amalgamation-{VERSION}"
    program = tmp_path / "program"
    run("cc", "-O1", "-DSQLITE_CORE", "-ffp-contract=off", f"-I{folder}", "-o", program, HERE / "program.c", folder / "diffuse.c",
        "-lsqlite3", "-lgsl", "-lgslcblas", "-lsodium", "-lm", "-lpthread")
    assert is_near(run(program))
    line = re.search(r"As an extension: cc (.*)", (folder / "diffuse.c").read_text()).group(1)
    run("cc", *line.split(), cwd=folder)
    assert is_near(run("sqlite3", tmp_path / "a.db", f".load {folder}/diffuse", *FIRST))


def test_static_library(tmp_path):
    folder = unpack(f"diffuse-{VERSION}-static-{NATIVE}.tar.gz", tmp_path)
    program = tmp_path / "program"
    run("cc", HERE / "program.c", f"-I{folder}", f"-L{folder}", "-o", program, "-ldiffuse", "-ldiffuse-deps", "-lsqlite3", "-lm", "-lpthread")
    assert is_near(run(program))
    loaded = run("readelf", "-d", program)
    assert "libgsl" not in loaded and "libsodium" not in loaded


def test_debian_package(tmp_path):
    """The test unpacks the package instead of installing it, so that this machine does not change."""
    (package,) = PACKAGES.glob("libsqlite3-mod-diffuse_*.deb")
    run("dpkg-deb", "-x", package, tmp_path)
    (extension,) = tmp_path.glob("usr/lib/*/sqlite3/diffuse.so")
    assert is_near(run("sqlite3", tmp_path / "a.db", f".load {extension}", *FIRST))
    depends = run("dpkg-deb", "-f", package, "Depends")
    assert "libgsl27" in depends and "libsodium23" in depends


# ---- other platforms -------------------------------------------------------------------------------

# The command that runs programs of each platform on this machine.
RUNNERS = {
    "linux-x86_64": [],
    "linux_musl-x86_64": [],
    "linux-aarch64": ["qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"],
    "linux_musl-aarch64": ["qemu-aarch64-static", "-L", str(TOOLS / "arm64")],
    "linux-s390x": ["qemu-s390x-static", "-L", "/usr/s390x-linux-gnu"],
    "windows-x86_64": ["/usr/lib/wine/wine64"],
}
WINE = {"WINEPREFIX": str(WORK / "wine"), "WINEDEBUG": "-all", "WINEARCH": "win64"}


class Host:
    """A host for one platform: tests/packages/host.c with SQLite, compiled for this platform."""

    def __init__(self, name, folder):
        from compile import PLATFORMS, loadable_name
        self.runner = RUNNERS[name]
        self.extension = WORK / name / loadable_name(name)
        sqlite = TOOLS / "node/node_modules/better-sqlite3/deps/sqlite3"
        self.program = WORK / "hosts" / f"{name}.exe"
        self.program.parent.mkdir(exist_ok=True)
        if not self.program.exists():
            system = [] if "windows" in name else ["-dynamic", "-lm", "-lpthread", "-ldl"]
            run(TOOLS / "python/ziglang/zig", "cc", "-target", PLATFORMS[name]["zig"], "-O1", "-DSQLITE_THREADSAFE=1", f"-I{sqlite}", "-o",
                self.program, HERE / "host.c", sqlite / "sqlite3.c", *system,
                environment={"ZIG_GLOBAL_CACHE_DIR": str(WORK / "zig-cache"), "ZIG_LOCAL_CACHE_DIR": str(WORK / "zig-cache")})

    def sql(self, database, *statements):
        lines = run(*self.runner, self.program, database.name, self.extension, text="\n".join(statements) + "\n", cwd=database.parent,
                    environment=WINE if "wine64" in str(self.runner) else None).splitlines()
        errors = [line for line in lines if line.startswith("error: ")]
        assert not errors, errors
        return lines


@pytest.fixture(scope="module", params=list(RUNNERS))
def host(request, tmp_path_factory):
    if RUNNERS[request.param] and not shutil.which(RUNNERS[request.param][0]):
        pytest.skip(f"no {RUNNERS[request.param][0]} (make deps-test-packages)")
    return Host(request.param, tmp_path_factory.mktemp("host"))


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    return Host(NATIVE, tmp_path_factory.mktemp("native"))


STORY = [
    "SELECT dp_init();",
    "SELECT dp_tier('clinic', 1.0, 500.0, 1e-6), dp_tier('public', 0.1, 100.0, 1e-6);",
    "CREATE TABLE visits(patient, name TEXT, minutes REAL);",
    "SELECT dp_protect('visits', 'name');",
    "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000) INSERT INTO visits SELECT i, 'patient ' || i, i % 60 FROM n;",
    "SELECT dp_avg('clinic', minutes, 0, 60, 'average') FROM visits;",
    "SELECT dp_group_count('clinic', minutes / 10, 1, '{\"name\":\"groups\",\"keys\":[0,1,2,3,4,5]}') FROM visits WHERE minutes % 10 = 0;",
    "SELECT dp_sum('clinic', minutes, 60, 'walked') FROM visits;",
    "SELECT dp_diffuse('walked', 'public');",
]


def digest(host, database):
    """Returns the result of dp_verify(), the published values, the budgets and the exposure."""
    return host.sql(database, "SELECT dp_verify();", "SELECT release, tier, key, value, low, high FROM dp_value ORDER BY 1, 2, 3;",
                    "SELECT * FROM dp_budget ORDER BY tier;", "SELECT dp_exposure('clinic,public');")


def test_story_and_files_that_move(host, native, tmp_path):
    """A ledger that was made on the platform passes dp_verify() on this machine, has the same values and can be continued here.
    The same holds in the other direction."""
    for maker, reader, name in ((host, native, "there"), (native, host, "here")):
        database = tmp_path / f"{name}.db"
        maker.sql(database, *STORY)
        before = digest(maker, database)
        assert before[0] == "ok" and digest(reader, database) == before
        (walked,) = [float(row.split("|")[3]) for row in before if row.startswith("walked|clinic|")]
        assert abs(walked - 29340) < 500  # 12 standard deviations
        reader.sql(database, "SELECT dp_diffuse('average', 'public');", "SELECT dp_count('public', 1, 1, 'more') FROM visits;")
        after = digest(maker, database)
        assert after[0] == "ok" and after != before and digest(reader, database) == after


def test_two_processes_share_a_ledger(host, tmp_path):
    """The lock of the platform works: each of two processes charges ten releases, and no charge is lost."""
    database = tmp_path / "shared.db"
    host.sql(database, *STORY[:5])
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda who: host.sql(database, *(f"SELECT dp_count('public', 1, 1, '{who} {i}') FROM visits;" for i in range(10))),
                      "ab"))
    assert host.sql(database, "SELECT dp_verify();", "SELECT count(*), count(DISTINCT release) FROM dp_value;") == ["ok", "20|20"]
    assert not pathlib.Path(f"{database}-ledger-lock").exists()


def test_shards_of_several_machines(host, native, tmp_path):
    """A unit with rows in several shards is one unit, even if the states were made and merged on different platforms. If such
    units counted twice, they would add 3,000."""
    states = []
    for maker, first in ((host, 1), (native, 301)):  # patients 301 to 500 are in both shards
        states += maker.sql(tmp_path / f"shard{first}.db", "CREATE TABLE visits(name TEXT, minutes REAL);",
                            f"WITH n(i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM n LIMIT 500)"
                            " INSERT INTO visits SELECT 'patient ' || i, i % 60 FROM n;",
                            "SELECT dp_init(), dp_protect('visits', 'name');",
                            "SELECT hex(dp_partial('sum', 'SELECT minutes FROM visits', '{\"clip\":60}'));")[-1:]
    exact = sum(min(60, (i % 60) * (2 if 301 <= i <= 500 else 1)) for i in range(1, 801))
    assert sum((i % 60) * (2 if 301 <= i <= 500 else 1) for i in range(1, 801)) > exact + 2000
    for merger, name in ((host, "there"), (native, "here")):
        said = merger.sql(tmp_path / f"merge-{name}.db", "CREATE TABLE visits(name TEXT, minutes REAL);",
                          "SELECT dp_init(), dp_protect('visits', 'name'), dp_tier('clinic', 1.0, 500.0, 1e-6);", "CREATE TABLE shard(state);", *(f"INSERT INTO shard VALUES (x'{state}');" for state in states),
                          "SELECT dp_merge('clinic', dp_states(state), 'total') FROM shard;")
        assert abs(float(said[-1]) - exact) < 500, (said[-1], exact)  # 12 standard deviations


# ---- the same bytes --------------------------------------------------------------------------------


def test_an_interrupted_compilation_leaves_no_file(tmp_path, monkeypatch):
    """A compiler that writes half of its file and dies leaves no file of the wanted name, and the next run compiles again."""
    import compile as packages
    (tmp_path / "a.c").write_text("int a;\n")
    zig = tmp_path / "zig"
    monkeypatch.setenv("ZIG", str(zig))
    compiler, output = packages.Compiler(tmp_path, "linux-x86_64"), tmp_path / "objects" / "a.o"
    script = "#!/bin/sh\nwhile [ $# -gt 0 ]; do [ \"$1\" = -o ] && file=$2; shift; done\nprintf '%s' >\"$file\"; exit {}\n"
    for text, status in (("", 1), ("whole", 0)):
        zig.write_text(script.replace("%s", text).replace("{}", str(status)))
        zig.chmod(0o755)
        if status:
            with pytest.raises(SystemExit):
                compiler.compile(tmp_path / "a.c", output)
            assert not output.exists()
        else:
            compiler.compile(tmp_path / "a.c", output)
            assert output.read_text() == "whole"


def test_same_bytes_in_another_folder(tmp_path):
    """If the library is compiled again in another folder, the file is the same. If the packages are made again with the same
    SOURCE_DATE_EPOCH, all files are the same."""
    for name in ("sources/gsl", "sources/libsodium", "amalgamation"):
        shutil.copytree(WORK / name, tmp_path / name)
    run(sys.executable, ROOT / "ext/packages/compile.py", tmp_path, NATIVE, environment={"ZIG": str(TOOLS / "python/ziglang/zig"), "JOBS": "2"})
    for name in ("diffuse.so", "libdiffuse.a", "libdiffuse-deps.a"):
        assert (tmp_path / NATIVE / name).read_bytes() == (WORK / NATIVE / name).read_bytes(), name
    with tarfile.open(PACKAGES / f"diffuse-amalgamation-{VERSION}.tar.gz") as tar:
        epoch = str(tar.getmembers()[0].mtime)
    again = tmp_path / "again"
    run(sys.executable, ROOT / "ext/packages/packages.py", WORK, again, environment={"SOURCE_DATE_EPOCH": epoch})
    sources = f"diffuse-{VERSION}-source.tar.gz"  # this archive has the current commit, which may be newer than the packages
    different = [path.name for path in again.iterdir() if path.name != sources and path.read_bytes() != (PACKAGES / path.name).read_bytes()]
    assert different == []
