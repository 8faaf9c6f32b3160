"""Odd values that a row may contain, for test_odd_values.py and test_data_errors.py."""

import math
import struct

NAN = float("nan")

ODD = [
    None, NAN, math.inf, -math.inf, 0.0, -0.0, 5e-324, 1e-310, 1.7976931348623157e308, -1.7976931348623157e308, -(2**63),
    2**63 - 1, -(2**53) - 1, "", "abc", "12abc", " 7", "nan", "NaN", "-inf", "1e999", "-1e999", "1e-999", "9" * 400,
    "-9223372036854775808", "0x7fffffffffffffff", "a\0b", "\N{SNOWMAN}", b"", b"\x00\xff", b"1", b"\xff" * 24,
    struct.pack("<3d", NAN, math.inf, 1.0), struct.pack("<3d", 5e-324, -1e308, 1e308), struct.pack("<3f", NAN, 1.0, -math.inf),
    "[1,2,3]", "[NaN,1,2]", "[1e999,-1e999,0]", "[null,1,2]", '["1",2,3]', "[1,2]", "[1,2,3,4]", "[", "[]", "{}", "[[1],2,3]",
    "[1e308,1e308,1e308]", "[5e-324,0,0]", "null", "true",
]

COLUMNS = ("unit", "key", "x", "v")


def odd_row(column, value):
    """Returns a row to add to PEOPLE. The row has a unit of its own and an odd value in one column."""
    row = {"unit": "odd", "key": "north", "x": 0.5, "v": "[0.5,0.25,-0.5]", column: value}
    return tuple(row[name] for name in COLUMNS)
