"""Compiles for WebAssembly with Emscripten, which must be on the PATH:

    wasm.py page WORK OUTPUT.html       SQLite with the extension, in one page
    wasm.py libraries WORK OUTPUT.a     the parts of GSL and libsodium that the extension and its unit tests need

WORK has amalgamation/, sources/gsl, sources/libsodium and sqlite/ (SQLite's amalgamation).
"""
import html
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
TESTS = HERE.parents[2] / "tests"
sys.path.insert(0, str(HERE.parent))

from compile import Compiler, prepare  # noqa: E402

# One thread, and no loadable extensions.
SQLITE = ["-DSQLITE_THREADSAFE=0", "-DSQLITE_OMIT_LOAD_EXTENSION", "-DSQLITE_ENABLE_MATH_FUNCTIONS", "-w"]
CALLED = "open prepare_v2 step column_count column_name column_text finalize errmsg close diffuse_init".split()
# The heap ends at 1 GiB, so twice the size of anything in it fits into the 32 bits of a size_t.
LINK = ["-O2", "-sSINGLE_FILE=1", "-sENVIRONMENT=web", "-sDYNAMIC_EXECUTION=0", "-sMINIFY_HTML=0", "-sALLOW_MEMORY_GROWTH=1",
        "-sMAXIMUM_MEMORY=1GB", "-sTOTAL_STACK=1MB", "-sSTACK_OVERFLOW_CHECK=1",
        "-sEXPORTED_RUNTIME_METHODS=UTF8ToString,stringToUTF8,lengthBytesUTF8,getValue",
        "-sEXPORTED_FUNCTIONS=_malloc,_free," + ",".join("_sqlite3_" + name for name in CALLED)]


class Emscripten(Compiler):
    def __init__(self, work):
        self.work, self.platform, self.target = work, "wasm", "wasm32-emscripten"
        self.folder = work / "wasm"
        self.cc, self.ar = ["emcc"], ["emar"]
        # A node that is not from Debian does not look for modules where Debian installs them.
        self.environment = {**os.environ, "NODE_PATH": "/usr/share/nodejs"}

    def shell(self):
        """Returns the page with the licence of libsodium filled in. Emscripten then fills in the program."""
        licence = (self.work / "sources/libsodium/LICENSE").read_text().strip("/* \n").replace("\n * ", "\n").replace("\n *", "\n")
        shell = self.folder / "shell.html"
        shell.write_text((HERE / "page.html").read_text().replace("@SODIUM_LICENSE@", html.escape(licence)))
        return shell

    def compile_all(self, jobs):
        for source, output, flags in jobs:
            self.compile(source, output, *flags)
        return [output for _, output, _ in jobs]

    def page(self, output):
        jobs = [(self.work / "sqlite/sqlite3.c", self.folder / "sqlite3.o", SQLITE),
                (self.work / "amalgamation/diffuse.c", self.folder / "diffuse.o", ["-Isqlite", "-Iinclude", "-DSODIUM_STATIC", "-DSQLITE_CORE"]),
                *self.dependencies(self.work / "amalgamation/diffuse.c")]
        objects = self.compile_all(jobs)
        self.run(self.cc, *LINK, "--shell-file", self.shell(), "-o", output, *objects)

    def libraries(self, output):
        tests = [*TESTS.glob("*/test_*.c"), *TESTS.glob("helpers/*.h")]
        self.archive(output, self.compile_all(self.dependencies(self.work / "amalgamation/diffuse.c", *tests)))


if __name__ == "__main__":
    WORK, OUTPUT = pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3]).resolve()
    prepare(WORK)
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    {"page": Emscripten.page, "libraries": Emscripten.libraries}[sys.argv[1]](Emscripten(WORK), OUTPUT)
