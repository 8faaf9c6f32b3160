"""Makes databases for tests of reports (a hospital with a year of visits, and a database with hostile names), and reads pages."""

import html.parser
import json
import random
import re

from conftest import connect, one, strict_json

WARDS = ["cardiology", "emergency", "maternity", "neurology", "oncology", "paediatrics", "surgery"]


def hospital(path, months=12, clock=None):
    """Makes a database with the visits of a year, three tiers, monthly figures, a heat map and running totals. With a clock, each month is published on the
    5th of the next month. Without a clock, all figures are published today."""
    draw = random.Random(1)
    db = connect(path)
    db.execute("BEGIN")
    db.execute("CREATE TABLE ward(name TEXT PRIMARY KEY)")
    db.executemany("INSERT INTO ward VALUES (?)", [(w,) for w in WARDS])
    db.execute("CREATE TABLE visit(id INTEGER PRIMARY KEY, patient_id INT, ward TEXT, month INT, minutes REAL, stay REAL)")
    db.executemany("INSERT INTO visit(patient_id, ward, month, minutes, stay) VALUES (?, ?, ?, ?, ?)",
                   [(draw.randrange(6000), draw.choice(WARDS), draw.randint(1, 12), draw.gammavariate(4, 12), draw.gammavariate(2, 2))
                    for _ in range(20000)])
    db.execute("COMMIT")
    one(db, "SELECT dp_init('{\"unit\":\"patient\"}')")
    one(db, "SELECT dp_protect('visit', 'patient_id')")
    one(db, "SELECT dp_public('ward')")
    for tier in (("clinic", 0.05, 8.0, 1e-6), ("region", 0.005, 3.0, 1e-6), ("public", 0.0005, 1.0, 1e-6)):
        one(db, "SELECT dp_tier(?, ?, ?, ?)", *tier)

    def release(kind, columns, where, **options):
        one(db, "SELECT dp_release('clinic', ?, ?, ?)", kind, f"SELECT {columns} FROM visit WHERE {where}", json.dumps(options))
        for tier in ("region", "public"):
            one(db, "SELECT dp_diffuse(?, ?)", options["name"], tier)

    for month in range(1, months + 1):
        if clock:
            clock.set(f"{2025 + month // 12}-{month % 12 + 1:02}-05 09:00:00")
        release("count", "1", f"month = {month}", name=f"visits 2025-{month:02}", clip=4, weight=0.5)
    release("avg", "stay", "1", name="stay in days", lo=0, hi=30)
    release("median", "minutes", "1", name="minutes, median", lo=0, hi=240)
    release("group_count", "ward", "1", name="visits by ward", clip=6, keys=WARDS)
    release("group_avg", "ward, stay", "1", name="stay by ward", lo=0, hi=30, keys=WARDS)
    release("histogram", "minutes", "1", name="minutes", lo=0, hi=240, bins=12, clip=6)
    quarters = [[ward, quarter] for ward in WARDS[::-1] for quarter in ("Q1", "Q2", "Q3", "Q4")]
    release("group_count", "json_array(ward, 'Q' || ((month + 2) / 3))", "id % 9 OR month > 6", name="visits by ward and quarter", clip=4, keys=quarters)
    one(db, "SELECT dp_release('region', 'count', 'SELECT printf(''2025-%02d'', month), 1 FROM visit', ?)",
        json.dumps({"name": "visits so far", "clip": 4, "periods": "2025-01/2025-12", "weight": 0.5}))
    one(db, "SELECT dp_diffuse('visits so far', 'public')")
    for month in range(1, months + 1):
        one(db, "SELECT dp_append('visits so far', ?)", f"2025-{month:02}")
    one(db, "SELECT dp_release('clinic', 'sum', ?, ?)", "SELECT minutes FROM visit", '{"name":"minutes for the clinic only","clip":500}')
    return db


HOSTILE = ["<script>alert(1)</script>", "</script><img src=x onerror=alert(2)>", "\"'&amp;\u202eevil\\", "{{hash}}{{data}}", "<!--",
           "]]>", "%s%n", "a" * 80, "ü" * 40]


def hostile(path):
    """Makes a database with seven tiers, releases, groups and a unit. Their names are HTML or very long."""
    db = connect(path)
    db.execute("CREATE TABLE t(k, u)")
    db.executemany("INSERT INTO t VALUES (?, ?)", [(HOSTILE[i % 9], i) for i in range(900)])
    one(db, "SELECT dp_init(?)", json.dumps({"unit": HOSTILE[0]}))
    one(db, "SELECT dp_protect('t', 'u')")
    names = [name.replace(",", "") for name in HOSTILE[:7]]
    for i, name in enumerate(names):
        one(db, "SELECT dp_tier(?, ?, ?, 1e-6)", name, 0.5 / 3**i, 40.0 / 1.5**i)
    for name in HOSTILE:
        one(db, "SELECT dp_release(?, 'count', 'SELECT 1 FROM t', ?)", names[0], json.dumps({"name": name, "clip": 1}))
        one(db, "SELECT dp_diffuse(?, ?)", name, names[6])
    one(db, "SELECT dp_release(?, 'group_count', 'SELECT k FROM t', ?)", names[2], json.dumps({"name": "</table>", "keys": HOSTILE, "clip": 1}))
    for tier in names[3:]:
        one(db, "SELECT dp_diffuse('</table>', ?)", tier)
    return db


# ---- reading pages ----------------------------------------------------------------------------------


def report(db, tier=None):
    return one(db, "SELECT dp_report()") if tier is None else one(db, "SELECT dp_report(?)", tier)


def block(page):
    (text,) = re.findall(r'<script type="application/json" id="dp_value">(.*?)</script>', page, re.S)
    return text


def figures(page):
    """Returns the rows of the page's data block as dictionaries."""
    return strict_json(block(page))


class Text(html.parser.HTMLParser):
    """Parses a page, and collects its elements and its words."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.words, self.inside = [], "", None
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.inside = tag

    def handle_data(self, data):
        if self.inside not in ("style", "script"):
            self.words += data

    def handle_endtag(self, tag):
        self.inside = None

    def handle_comment(self, data):
        raise AssertionError("a comment")


def words(db, tier=None):
    return re.sub(r"\s+", " ", Text(report(db, tier)).words)
