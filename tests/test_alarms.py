"""Checks that the false-alarm probabilities of all tests add up to at most one in a million."""

import pytest


def test_false_alarms_add_up_to_at_most_a_millionth(request):
    """The probability in an `alarm` mark covers all parameters of a test, or all tests of a
    file."""
    rates = {}
    for item in request.session.items:
        for place, node in ((item.originalname, item), ("", item.getparent(pytest.Module))):
            for mark in node.own_markers:
                if mark.name == "alarm":
                    rates[item.location[0], place] = mark.args[0]
    assert sum(rates.values()) <= 1e-6, rates
