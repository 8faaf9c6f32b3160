"""Reads the properties of a shared library from its bytes: system, CPU, exported symbols, required libraries, oldest system."""
import collections
import pathlib
import re
import struct
import subprocess

About = collections.namedtuple("About", "system cpu exports needs oldest signed", defaults=[False])
ELF = {62: "x86_64", 183: "aarch64", 22: "s390x"}
PE = {0x8664: "x86_64", 0xAA64: "aarch64"}
MACH = {0x01000007: "x86_64", 0x0100000C: "arm64"}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def elf(path, data):
    order = "<" if data[5] == 1 else ">"
    (machine,) = struct.unpack_from(order + "H", data, 18)
    symbols = run("readelf", "-W", "--dyn-syms", str(path))
    rows = [line.split() for line in symbols.splitlines() if re.match(r"\s*\d+:", line)]
    exports = [r[7].split("@")[0] for r in rows if len(r) > 7 and r[4] in ("GLOBAL", "WEAK") and r[6] != "UND"]
    needs = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-W", "-d", str(path)))
    versions = [tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([\d.]+)", run("readelf", "-W", "-V", str(path)))]
    return About("linux", ELF[machine], exports, needs, max(versions, default=None))


def pe(path, data):
    (header,) = struct.unpack_from("<I", data, 0x3C)
    (machine,) = struct.unpack_from("<H", data, header + 4)
    text = run("objdump", "-p", str(path))
    exports = re.findall(r"^\s+\[\s*\d+\] (?:\+base\[\s*\d+\]\s+[0-9a-f]+ )?(\w+)$", text, re.M)
    return About("windows", PE[machine], exports, re.findall(r"DLL Name: (\S+)", text), None)


def trie(data):
    """Returns the names in a tree of exports. A node consists of the length of its data, the data, the number of its children,
    and for each child the text of its edge and its offset."""
    def number(at):
        value = shift = 0
        while True:
            value |= (data[at] & 127) << shift
            shift, at = shift + 7, at + 1
            if data[at - 1] < 128:
                return value, at

    names, nodes = [], [(0, "")]
    while nodes:
        at, name = nodes.pop()
        size, at = number(at)
        if size:
            names.append(name)
        at += size
        children, at = data[at], at + 1
        for _ in range(children):
            end = data.index(0, at)
            edge = data[at:end].decode()
            child, at = number(end + 1)
            nodes.append((child, name + edge))
    return names


def mach(data):
    _, cpu, _, kind, count, _, _, _ = struct.unpack_from("<8I", data, 0)
    assert kind == 6, "not a dynamic library"
    at, exports, needs, oldest, signed = 32, [], [], None, False
    for _ in range(count):
        command, size = struct.unpack_from("<II", data, at)
        if command == 0xC:  # LC_LOAD_DYLIB
            (offset,) = struct.unpack_from("<I", data, at + 8)
            needs.append(data[at + offset:at + size].split(b"\0")[0].decode())
        elif command == 0x32:  # LC_BUILD_VERSION
            (minimum,) = struct.unpack_from("<I", data, at + 12)
            oldest = (minimum >> 16, minimum >> 8 & 255)
        elif command == 0x1D:  # LC_CODE_SIGNATURE
            signed = True
        elif command in (0x22, 0x80000022):  # LC_DYLD_INFO: the exported symbols
            exports += trie(data[struct.unpack_from("<I", data, at + 40)[0]:])
        elif command == 0x80000033:  # LC_DYLD_EXPORTS_TRIE
            exports += trie(data[struct.unpack_from("<I", data, at + 8)[0]:])
        at += size
    return About("macos", MACH[cpu], exports, needs, oldest, signed)


def about(path):
    data = pathlib.Path(path).read_bytes()
    if data[:4] == b"\x7fELF":
        return elf(path, data)
    if data[:2] == b"MZ":
        return pe(path, data)
    if data[:4] == b"\xcf\xfa\xed\xfe":
        return mach(data)
    raise ValueError(f"{path}: neither ELF, PE nor Mach-O")
