"""Python's calendar, for tiers with periods: which days share a period."""

import datetime

DAY = datetime.timedelta(days=1)
KINDS = ["day", "week", "month", "quarter", "year"]


def period_of(kind, day):
    """The period that holds a day, as Python's calendar names it."""
    iso = day.isocalendar()
    return {"day": day.toordinal(), "week": (iso[0], iso[1]), "month": (day.year, day.month),
            "quarter": (day.year, (day.month - 1) // 3), "year": day.year}[kind]


def bounds(kind, day):
    """The first day of the period that holds a day, and of the next one, found by walking."""
    start = end = day
    while period_of(kind, start - DAY) == period_of(kind, day):
        start -= DAY
    while period_of(kind, end) == period_of(kind, day):
        end += DAY
    return start.isoformat(), end.isoformat()
