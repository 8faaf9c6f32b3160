"""The tests of this directory that could fail by chance, together: at most once in a million runs."""


def test_false_alarms_add_up_to_at_most_a_millionth(request):
    rates = {}
    for item in request.session.items:
        for mark in item.iter_markers("alarm"):
            rates[item.location[0], item.originalname] = mark.args[0]
    assert sum(rates.values()) <= 1e-6, rates
