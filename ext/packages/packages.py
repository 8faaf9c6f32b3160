"""Writes wheels, npm packages and archives from the files that compile.py has made: packages.py WORK OUTPUT.

The bytes of each file depend on the commit alone: names are sorted, and times are SOURCE_DATE_EPOCH.
"""
import base64
import gzip
import hashlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile

from compile import PLATFORMS, PUBLISHED, loadable_name

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
VERSION = (ROOT / "VERSION").read_text().strip()
EPOCH = int(os.environ["SOURCE_DATE_EPOCH"])


def write_tar(path, files):
    """Writes {name: bytes} as a .tar.gz. Programs and scripts are executable."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in sorted(files.items()):
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(data), EPOCH
            info.mode = 0o755 if name.endswith((".so", ".dylib", ".dll", ".sh", "configure", "debian/rules")) else 0o644
            tar.addfile(info, io.BytesIO(data))
    with open(path, "wb") as output, gzip.GzipFile("", "wb", 9, output, mtime=EPOCH) as packed:
        packed.write(raw.getvalue())


def write_wheel(folder, platform, files):
    """Writes a wheel in the binary distribution format of PyPA."""
    tag = PLATFORMS[platform]["wheel"]
    project = tomllib.loads((HERE / "python/pyproject.toml").read_text())["project"]
    info = f"sqlite_diffuse-{VERSION}.dist-info"
    metadata = ["Metadata-Version: 2.4", f"Name: {project['name']}", f"Version: {VERSION}", f"Summary: {project['description']}",
                f"Author: {project['authors'][0]['name']}", f"License-Expression: {project['license']}", "License-File: COPYING",
                "License-File: SOURCES.md", f"Keywords: {','.join(project['keywords'])}", f"Requires-Python: {project['requires-python']}"]
    metadata += [f"Classifier: {c}" for c in project["classifiers"]]
    for extra, requirements in project["optional-dependencies"].items():
        metadata += [f"Provides-Extra: {extra}", *(f'Requires-Dist: {r}; extra == "{extra}"' for r in requirements)]
    metadata += ["Description-Content-Type: text/markdown", "", (HERE / "python/README.md").read_text()]
    files = dict(files)
    files[f"{info}/METADATA"] = "\n".join(metadata).encode()
    tags = [f"Tag: py3-none-{t}" for t in tag.split(".")]
    files[f"{info}/WHEEL"] = "\n".join(["Wheel-Version: 1.0", "Generator: diffuse", "Root-Is-Purelib: false", *tags, ""]).encode()
    groups = project.get("entry-points", {})
    if groups:
        lines = [line for group, points in groups.items() for line in [f"[{group}]", *(f"{k} = {v}" for k, v in points.items()), ""]]
        files[f"{info}/entry_points.txt"] = "\n".join(lines).encode()
    for name, data in licences().items():
        files[f"{info}/licenses/{name}"] = data
    record = f"{info}/RECORD"
    rows = [f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip('=')},{len(data)}"
            for name, data in sorted(files.items())]
    files[record] = "\n".join([*rows, f"{record},,", ""]).encode()
    moment = max(time.gmtime(EPOCH)[:6], (1980, 1, 1, 0, 0, 0))
    with zipfile.ZipFile(folder / f"sqlite_diffuse-{VERSION}-py3-none-{tag}.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in sorted(files.items(), key=lambda item: (item[0].startswith(info), item[0])):  # the metadata comes last
            entry = zipfile.ZipInfo(name, moment)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            entry.external_attr = (0o100755 if name.endswith((".so", ".dylib", ".dll")) else 0o100644) << 16
            wheel.writestr(entry, data)


def licences():
    sources = (HERE / "SOURCES.md").read_text().replace("@VERSION@", VERSION)
    for name, mark in (("gsl", "@GSL@"), ("libsodium", "@SODIUM@")):
        sources = sources.replace(mark, (WORK / f"sources/{name}.version").read_text().strip())
    licence = (WORK / "sources/libsodium/LICENSE").read_text().strip("/* \n").replace("\n * ", "\n").replace("\n *", "\n")
    return {"COPYING": (ROOT / "LICENSE").read_bytes(), "SOURCES.md": sources.replace("@SODIUM_LICENSE@", licence).encode()}


def python_packages(output):
    for platform in PUBLISHED:
        name = loadable_name(platform)
        files = {f"sqlite_diffuse/{name}": (WORK / platform / name).read_bytes()}
        for path in sorted((HERE / "python/sqlite_diffuse").iterdir()):
            if path.is_file():
                text = path.read_text().replace("@VERSION@", VERSION).replace("@LOADABLE@", name)
                files[f"sqlite_diffuse/{path.name}"] = text.encode()
        write_wheel(output, platform, files)


def npm_packages(output):
    main = json.loads((HERE / "npm/package.json").read_text().replace("@VERSION@", VERSION))
    shared = {key: main[key] for key in ("license", "author", "version")}
    main["optionalDependencies"] = {}
    for platform in PUBLISHED:
        npm, name = PLATFORMS[platform]["npm"], loadable_name(platform)
        package = {"name": f"sqlite-diffuse-{npm['name']}", **shared, "description": f"sqlite-diffuse for {npm['name']}",
                   "main": f"./{name}", "files": [name, "COPYING", "SOURCES.md"], "os": [npm["os"]], "cpu": [npm["cpu"]]}
        if "libc" in npm:
            package["libc"] = [npm["libc"]]
        main["optionalDependencies"][package["name"]] = VERSION
        files = {name: (WORK / platform / name).read_bytes(), "package.json": json.dumps(package, indent=2).encode() + b"\n",
                 "README.md": f"# {package['name']}\n\nThe binary of `sqlite-diffuse` for this platform: install that package.\n".encode(),
                 **licences()}
        write_tar(output / f"{package['name']}-{VERSION}.tgz", {f"package/{k}": v for k, v in files.items()})
    files = {path.name: path.read_bytes() for path in (HERE / "npm").iterdir()}
    files |= {"package.json": json.dumps(main, indent=2).encode() + b"\n", **licences()}
    write_tar(output / f"sqlite-diffuse-{VERSION}.tgz", {f"package/{k}": v for k, v in files.items()})


def archives(output):
    header = (WORK / "amalgamation/diffuse.h").read_bytes()
    for platform in PUBLISHED:
        folder, name = WORK / platform, loadable_name(platform)
        loadable = {name: (folder / name).read_bytes(), **licences()}
        static = {"libdiffuse.a": (folder / "libdiffuse.a").read_bytes(), "libdiffuse-deps.a": (folder / "libdiffuse-deps.a").read_bytes(),
                  "diffuse.h": header, "README.md": (HERE / "STATIC.md").read_bytes(), **licences()}
        for kind, files in (("loadable", loadable), ("static", static)):
            sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {key}\n" for key, data in sorted(files.items()))
            files["checksums.txt"] = sums.encode()
            write_tar(output / f"diffuse-{VERSION}-{kind}-{platform}.tar.gz", files)
    top = f"diffuse-amalgamation-{VERSION}"
    files = {"diffuse.c": (WORK / "amalgamation/diffuse.c").read_bytes(), "diffuse.h": header, **licences()}
    write_tar(output / f"{top}.tar.gz", {f"{top}/{k}": v for k, v in files.items()})


def sources(output):
    """Writes the archives of source code that the licences require beside the binaries."""
    if subprocess.run(["git", "rev-parse"], cwd=ROOT, capture_output=True).returncode == 0:
        tar = subprocess.run(["git", "archive", "--format=tar", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(tar)) as committed:
            files = {m.name: committed.extractfile(m).read() for m in committed if m.isfile()}
        write_tar(output / f"diffuse-{VERSION}-source.tar.gz", {f"diffuse-{VERSION}/{k}": v for k, v in files.items()})
    downloads = {p.name: p.read_bytes() for p in (WORK / "sources/download").iterdir() if p.is_file()}
    write_tar(output / f"diffuse-{VERSION}-dependencies-source.tar.gz", downloads)


if __name__ == "__main__":
    WORK = pathlib.Path(sys.argv[1])
    folder = pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for make in (python_packages, npm_packages, archives, sources):
        make(folder)
