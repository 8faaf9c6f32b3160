"""Checks packages as an uploader would: check.py PACKAGES TOOLS.

The name and the metadata of a package must agree with its binary: system, CPU and C library. The binary must export one
symbol, need no libraries except those of the system, and contain no path of the machine that built it.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile

from binary import about
from compile import PLATFORMS, PUBLISHED, loadable_name, os_of

SYSTEM_LIBRARIES = {
    "linux": {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"},
    "linux_musl": {"libc.so"},
    "macos": {"/usr/lib/libSystem.B.dylib"},
    "windows": re.compile(r"(KERNEL32|ADVAPI32|bcrypt|api-ms-win-crt-[\w-]+)\.dll$", re.I),
}
LINKERS_OWN = {"__mh_dylib_header", "___dso_handle"}  # zig's linker exports these two symbols for the header of the file


def check_binary(platform, path):
    binary = about(path)
    system, cpu = platform.split("-")
    assert binary.system == system.split("_")[0] and binary.cpu == cpu, f"{path}: {binary}"
    ours = sorted(name for name in binary.exports if name not in LINKERS_OWN)
    assert ours == ["_" * (system == "macos") + f"sqlite3_{name}_init" for name in ("diffuse", "extension")], f"{path} exports {binary.exports}"
    allowed = SYSTEM_LIBRARIES[system]
    for need in binary.needs:
        assert need in allowed if isinstance(allowed, set) else allowed.match(need), f"{path} needs {need}"
    if system == "linux":
        assert binary.oldest <= (2, 17), f"{path} needs glibc {binary.oldest}"
    if system == "macos":
        assert binary.oldest == (11, 0), f"{path} needs macOS {binary.oldest}"
        assert cpu != "arm64" or binary.signed, f"{path} is not signed, not even ad hoc: macOS refuses it"
    data = pathlib.Path(path).read_bytes()
    for place in (str(pathlib.Path.cwd()), str(pathlib.Path.home()) + "/"):
        assert place.encode() not in data, f"{path} names {place}"


def check_wheels(packages, tools):
    for platform in PUBLISHED:
        (wheel,) = packages.glob(f"*-py3-none-{PLATFORMS[platform]['wheel']}.whl")
        with tempfile.TemporaryDirectory() as folder:
            zipfile.ZipFile(wheel).extractall(folder)
            check_binary(platform, f"{folder}/sqlite_diffuse/{loadable_name(platform)}")
        if os_of(platform) == "linux":
            shown = subprocess.run([sys.executable, "-m", "auditwheel", "show", str(wheel)], capture_output=True, text=True,
                                   env={**os.environ, "PYTHONPATH": str(tools / "python")})
            assert shown.returncode == 0, shown.stderr
            tags = re.findall(r"manylinux_2_(\d+)_", shown.stdout)
            assert tags and int(tags[0]) <= 17, shown.stdout


def check_npm(packages, tools):
    (main,) = packages.glob("sqlite-diffuse-[0-9]*.tgz")
    dependencies = json.load(tarfile.open(main).extractfile("package/package.json"))["optionalDependencies"]
    names = set()
    for platform in PUBLISHED:
        npm = PLATFORMS[platform]["npm"]
        (package,) = packages.glob(f"sqlite-diffuse-{npm['name']}-[0-9]*.tgz")
        with tempfile.TemporaryDirectory() as folder, tarfile.open(package) as tar:
            tar.extractall(folder)
            metadata = json.loads(pathlib.Path(folder, "package/package.json").read_text())
            check_binary(platform, f"{folder}/package/{loadable_name(platform)}")
        system, cpu = platform.split("-")
        assert metadata["os"] == [{"linux": "linux", "linux_musl": "linux", "macos": "darwin", "windows": "win32"}[system]]
        assert metadata["cpu"] == [{"x86_64": "x64", "aarch64": "arm64", "arm64": "arm64"}[cpu]]
        assert metadata.get("libc") == {"linux": ["glibc"], "linux_musl": ["musl"]}.get(system)
        assert dependencies[metadata["name"]] == metadata["version"]
        names.add(metadata["name"])
    assert names == set(dependencies)
    done = subprocess.run([tools / "npm/node_modules/.bin/publint", "--strict", str(main)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def check_archives(packages):
    for platform in PUBLISHED:
        for kind in ("loadable", "static"):
            (archive,) = packages.glob(f"diffuse-*-{kind}-{platform}.tar.gz")
            with tempfile.TemporaryDirectory() as folder, tarfile.open(archive) as tar:
                tar.extractall(folder)
                subprocess.run(["sha256sum", "--quiet", "-c", "checksums.txt"], cwd=folder, check=True)
                assert pathlib.Path(folder, "COPYING").exists() and pathlib.Path(folder, "SOURCES.md").exists()
                if kind == "loadable":
                    check_binary(platform, f"{folder}/{loadable_name(platform)}")
    subprocess.run(["sha256sum", "--quiet", "-c", "checksums.txt"], cwd=packages, check=True)


if __name__ == "__main__":
    PACKAGES, TOOLS = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    check_wheels(PACKAGES, TOOLS)
    check_npm(PACKAGES, TOOLS)
    check_archives(PACKAGES)
    print("packages: names, CPUs, C libraries, symbols and checksums agree")
