"""Compiles the amalgamation for other platforms with zig's C compiler: compile.py WORK [PLATFORM ...].

WORK has amalgamation/ (amalgamate.py), include/ (SQLite's headers), and sources/gsl and sources/libsodium. For each platform
WORK/PLATFORM gets the loadable file, libdiffuse.a (compiled with SQLITE_CORE) and libdiffuse-deps.a (the parts of GSL, and
libsodium). The files do not depend on the folder or the time of the compilation.
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tomllib
from platform import machine

import needed

HERE = pathlib.Path(__file__).resolve().parent
PLATFORMS = tomllib.loads((HERE / "platforms.toml").read_text())
PUBLISHED = [name for name in PLATFORMS if "wheel" in PLATFORMS[name]]
SUFFIX = {"linux": "so", "linux_musl": "so", "macos": "dylib", "windows": "dll"}

GSL_CONFIG = """#define GSL_COERCE_DBL(x) (x)
#define GSL_RANGE_CHECK 0
#define HAVE_DECL_FINITE 0
#define HAVE_DECL_ISFINITE 1
#define HAVE_DECL_ISINF 1
#define HAVE_DECL_ISNAN 1
#define HAVE_IEEE_COMPARISONS 1
#define HAVE_IEEE_DENORMALS 1
#define HAVE_INLINE 1
#define RETURN_IF_NULL(x) if (!x) { return ; }
#define GSL_DISABLE_DEPRECATED 1
#define VERSION "%s"
"""
# Loads the library that this machine can load. `make test-packages` tries the others, with QEMU and Wine.
LOAD = """import sqlite3, sys
db = sqlite3.connect(":memory:")
db.enable_load_extension(True)
db.load_extension(sys.argv[1])
print(*db.execute("SELECT dp_version()"))"""
COMMON = "-O2 -g0 -fno-ident -fvisibility=hidden -ffunction-sections -fdata-sections -ffp-contract=off -fno-math-errno".split()


def os_of(platform):
    return platform.split("-")[0]


def loadable_name(platform):
    return "diffuse." + SUFFIX[os_of(platform)]


class Compiler:
    def __init__(self, work, platform):
        self.work, self.platform = work, platform
        self.target = PLATFORMS[platform]["zig"]
        self.folder = work / platform
        self.cc, self.ar = [os.environ.get("ZIG", "zig"), "cc", "-target", self.target], [os.environ.get("ZIG", "zig"), "ar"]
        self.environment = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": str(work / "zig-cache"), "ZIG_LOCAL_CACHE_DIR": str(work / "zig-cache"),
                            "ZERO_AR_DATE": "1"}

    def run(self, tool, *arguments):
        command = [*map(str, [*tool, *arguments])]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, cwd=self.work)
        if done.returncode:
            raise SystemExit(f"{self.platform}: {' '.join(command)}\n{done.stdout}{done.stderr}")

    def compile(self, source, output, *flags):
        if output.exists() and output.stat().st_mtime > source.stat().st_mtime:
            return
        output.parent.mkdir(parents=True, exist_ok=True)
        pic = [] if os_of(self.platform) in ("windows", "wasm") else ["-fPIC"]
        # Paths are relative to WORK, so that no message in the object names this machine.
        self.write(output, self.cc, *COMMON, *pic, *flags, "-c", source.relative_to(self.work))

    def write(self, output, tool, *arguments):
        """Runs a tool with `-o output`. If it fails or is interrupted, there is no file of this name, so the next run makes it."""
        part = output.with_name(output.name + ".part")
        self.run(tool, *arguments, "-o", part)
        part.replace(output)

    def archive(self, output, objects):
        output.unlink(missing_ok=True)
        self.run(self.ar, "rcsD", output, *objects)

    def library_files(self):
        """Yields (source, object, flags) for each file of GSL and libsodium."""
        gsl, sodium = pathlib.Path("sources/gsl"), pathlib.Path("sources/libsodium/src/libsodium")
        flags = ["-Iinclude", "-Igsl-config", f"-I{gsl}", "-DHAVE_CONFIG_H"]
        for listing in sorted([self.work / gsl / "Makefile.am", *(self.work / gsl).glob("*/Makefile.am")]):
            room = listing.parent.relative_to(self.work / gsl)
            for names in re.findall(r"^\w+_la_SOURCES\s*=((?:.*\\\n)*.*)", listing.read_text(), re.M):
                for name in sorted(set(re.findall(r"\S+\.c\b", names))):
                    yield listing.parent / name, self.folder / "gsl" / ("-".join([*room.parts, name])[:-2] + ".o"), flags
        flags = ["-DSODIUM_STATIC", "-DCONFIGURED=1", "-DNDEBUG", f"-I{sodium}/include", f"-I{sodium}/include/sodium", "-Iinclude",
                 "-Iinclude/sodium", "-Wno-everything", "-D_GNU_SOURCE"]
        machine, system = self.target.split("-")[:2]
        flags += ["-DHAVE_C_VARARRAYS=1", "-DNATIVE_BIG_ENDIAN=1" if machine == "s390x" else "-DNATIVE_LITTLE_ENDIAN=1"]
        if machine != "wasm32":
            flags += ["-DHAVE_TI_MODE=1", "-DHAVE_INLINE_ASM=1"]
        if system not in ("windows", "emscripten"):
            flags += ["-DHAVE_SYS_MMAN_H=1", "-DHAVE_MMAP=1", "-DHAVE_MPROTECT=1", "-DHAVE_MLOCK=1", "-DHAVE_MADVISE=1", "-DHAVE_PTHREAD=1",
                      "-DHAVE_NANOSLEEP=1", "-DHAVE_POSIX_MEMALIGN=1", "-DHAVE_GETPID=1", "-DHAVE_ATOMIC_OPS=1", "-DHAVE_WEAK_SYMBOLS=1"]
        if machine == "x86_64":
            flags += [f"-DHAVE_{name}=1" for name in "MMINTRIN_H EMMINTRIN_H PMMINTRIN_H TMMINTRIN_H SMMINTRIN_H AVXINTRIN_H AVX2INTRIN_H "
                      "WMMINTRIN_H CPUID".split()]
        for source in sorted((self.work / sodium).rglob("*.c")):
            name = source.relative_to(self.work / sodium)
            own = []
            if machine == "x86_64":
                text = str(name)
                own = (["-mavx2"] if "avx2" in text else ["-mavx512f"] if "avx512" in text else ["-msse4.1"] if "sse41" in text
                       else ["-mssse3"] if "ssse3" in text else [])
            yield source, self.folder / "sodium" / (str(name).replace("/", "-")[:-2] + ".o"), [*flags, *own]

    def dependencies(self, *texts):
        """Returns (source, object, flags) for each file of GSL and libsodium that these C files need."""
        own = Compiler(self.work, f"linux-{machine()}")
        found = needed.index(list(own.library_files()), self.work)
        wanted = needed.closure(found, "\n".join(path.read_text() for path in texts))
        return [job for job in self.library_files() if str(job[0]) in wanted]

    def build(self, pool):
        self.folder.mkdir(parents=True, exist_ok=True)
        include = ["-Iinclude", "-DSODIUM_STATIC"]
        diffuse = self.work / "amalgamation" / "diffuse.c"
        jobs = self.dependencies(diffuse)
        ours = [(diffuse, self.folder / "loadable.o", include), (diffuse, self.folder / "diffuse.o", [*include, "-DSQLITE_CORE"])]
        list(pool.map(lambda job: self.compile(job[0], job[1], *job[2]), ours + jobs))
        self.archive(self.folder / "libdiffuse-deps.a", [job[1] for job in jobs])
        self.archive(self.folder / "libdiffuse.a", [self.folder / "diffuse.o"])
        output = self.folder / loadable_name(self.platform)
        system = os_of(self.platform)
        libraries = {"windows": ["-lbcrypt", "-ladvapi32"], "macos": []}.get(system, ["-lm", "-lpthread"])
        special = {"windows": [], "macos": ["-Wl,-install_name,@rpath/diffuse.dylib", "-Wl,-dead_strip", "-Wl,-headerpad_max_install_names"]}.get(
            system, ["-Wl,--gc-sections", "-Wl,-z,defs", "-Wl,-z,relro", "-Wl,-z,now", "-Wl,-soname,diffuse.so"])
        output.unlink(missing_ok=True)
        self.write(output, self.cc, "-shared", "-s", *special, self.folder / "loadable.o", self.folder / "libdiffuse-deps.a", *libraries)
        if self.platform == f"linux-{machine()}":
            self.run([sys.executable, "-c", LOAD, output])


def prepare(work):
    """Writes the headers that the build systems of GSL and libsodium would make."""
    include = work / "include"
    (include / "gsl").mkdir(parents=True, exist_ok=True)
    (include / "sodium").mkdir(exist_ok=True)
    (work / "gsl-config").mkdir(exist_ok=True)
    for name in ("sqlite3.h", "sqlite3ext.h"):
        update(include / name, pathlib.Path("/usr/include", name).read_text())
    gsl, sodium = work / "sources/gsl", work / "sources/libsodium"
    for path in gsl.glob("**/gsl_*.h"):
        update(include / "gsl" / path.name, path.read_text(encoding="latin-1"))
    version = next(line.split("[")[2].split("]")[0] for line in (gsl / "configure.ac").read_text().splitlines() if line.startswith("AC_INIT"))
    update(work / "gsl-config" / "config.h", GSL_CONFIG % version)
    template = (gsl / "gsl_version.h.in").read_text()
    major, minor = version.split(".")[:2]
    update(include / "gsl" / "gsl_version.h",
           template.replace("@VERSION@", version).replace("@GSL_MAJOR@", major).replace("@GSL_MINOR@", minor))
    update(include / "sodium" / "version.h", (sodium / "builds/msvc/version.h").read_text())
    headers = sodium / "src/libsodium/include"
    for path in headers.rglob("*.h"):
        if path.name != "version.h":
            update(include / path.relative_to(headers), path.read_text(encoding="latin-1"))


def update(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="latin-1") != text:
        path.write_text(text, encoding="latin-1")


def main(work, *platforms):
    work = pathlib.Path(work).resolve()
    prepare(work)
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", "1"))) as pool:
        for platform in platforms or PUBLISHED:
            print("CC", platform, flush=True)
            Compiler(work, platform).build(pool)


if __name__ == "__main__":
    main(*sys.argv[1:])
