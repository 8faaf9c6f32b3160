"""An independent reader of shard states. It follows the description in ext/sums/sums.h and uses no code of the
extension."""

import hashlib
import json
import struct


class Decoded:
    """The content of a state: its parameters, serial number, shard and keys, and its sums. The sums are either `units`, a list
    of (kind, low, slot, numbers), or `totals`, a list of numbers."""

    def __init__(self, state):
        assert state[:8] == b"dp-state" and state[-32:] == hashlib.sha256(state[:-32]).digest()
        version, size, keys, entry, entries = struct.unpack_from("<IIIIQ", state, 8)
        assert version == 3 and entry in (1, 2)
        self.serial, at = state[32:48], 48 + size
        self.parameters = json.loads(state[48:at])
        texts = []
        for _ in range(1 + keys):
            (length,) = struct.unpack_from("<I", state, at)
            texts.append(state[at + 4:at + 4 + length].decode())
            at += 4 + length
        self.shard, *self.keys = texts
        body = state[at:-32]
        width = len(body) // entries if entries else 0
        assert width * entries == len(body)
        records = [body[i * width:(i + 1) * width] for i in range(entries)]
        if entry == 2:
            self.units = [(*struct.unpack_from("<QQQ", r), integers(r[24:])) for r in records]
        else:
            self.totals = [integers(r) for r in records]

    def by_name(self):
        """Returns the sums without their order: {(unit and key or cell) or key: numbers}."""
        if hasattr(self, "units"):
            bins = self.parameters.get("bins") or 1  # a slot is a bin of a key
            return {(kind, low, (self.keys[slot // bins], slot % bins) if self.keys else slot): n for kind, low, slot, n in self.units}
        return {self.keys[i] if self.keys else "": n for i, n in enumerate(self.totals)}


def integers(data):
    return tuple(int.from_bytes(data[i:i + 16], "little", signed=True) for i in range(0, len(data), 16))


def added(states):
    """Returns the sum of several states, by name."""
    total = {}
    for state in states:
        for name, numbers in Decoded(state).by_name().items():
            before = total.get(name)
            total[name] = tuple(map(sum, zip(before, numbers))) if before else numbers
    return total
