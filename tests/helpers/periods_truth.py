"""Computes with Python's calendar which days belong to the same period of a tier."""

import datetime

DAY = datetime.timedelta(days=1)
KINDS = ["day", "week", "month", "quarter", "year"]


def period_of(kind, day):
    """Returns a name for the period that contains a day."""
    iso = day.isocalendar()
    return {"day": day.toordinal(), "week": (iso[0], iso[1]), "month": (day.year, day.month),
            "quarter": (day.year, (day.month - 1) // 3), "year": day.year}[kind]


def bounds(kind, day):
    """Returns the first day of the period that contains a day, and the first day of the next
    period. The function steps from day to day."""
    start = end = day
    while period_of(kind, start - DAY) == period_of(kind, day):
        start -= DAY
    while period_of(kind, end) == period_of(kind, day):
        end += DAY
    return start.isoformat(), end.isoformat()
