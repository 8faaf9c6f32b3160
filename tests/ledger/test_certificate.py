"""Every figure of dp_certificate() equals the figure in the ledger bit for bit, and follows from the variance and the
sensitivity."""

import json
import re
import sqlite3

import pytest
from mpmath import mp, mpf

from conftest import connect, INIT, interrupted, ledger_of, make_ledger, one, refused, strict_json
from truth import true_gaussian_epsilon, true_zcdp_epsilon

TRIGGERS = "dp_charge_no_update dp_charge_no_delete dp_charge_no_replace".split()
TIERS = [("clinic", 0.0123456789, 7.0 / 3, 1e-6), ("region", 1 / 300, 1.7, 3e-7, "gdp", 1e-9),
         ("public", 1e-4 / 3, 0.9, 1 / 3e5)]


@pytest.fixture
def book(path):
    """Makes a ledger with releases of every kind. Some names and options need escapes in JSON."""
    db = connect(path)
    db.execute("CREATE TABLE visits(patient, minutes)")
    db.executemany("INSERT INTO visits VALUES (?, ?)", [(i // 2, i % 7) for i in range(60)])
    make_ledger(db, json.dumps({"unit": 'pa"ti\\ent ✓', "adjacency": "replace"}), "visits, patient")
    for tier in TIERS:
        db.execute(f"SELECT dp_tier({','.join('?' * len(tier))})", tier).fetchall()
    rows = "SELECT minutes FROM visits"
    for tier, kind, options in [
            ("clinic", "sum", {"name": 'a "quoted"\\ name\n', "clip": 1 / 3}),
            ("region", "count", {"name": "b", "clip": 3, "weight": 1 / 7}),
            ("public", "ou_sum", {"name": "ç✓", "clip": 1e-150, "radius": 1e-149 / 3, "centre": -1e-151 / 7}),
            ("clinic", "ou_count", {"clip": 1, "theta": 1 / 3, "rho": 1e5 / 7, "weight": 0.1}),
            ("region", "sum", {"name": "big", "clip": 1e150 / 3, "weight": 0.01}),
            ("public", "sum", {"name": "refined", "clip": 10}),
            ("clinic", "sum", {"name": "gone", "clip": 10, "weight": 1e-3})]:
        one(db, "SELECT dp_release(?, ?, ?, ?)", tier, kind, rows, json.dumps(options))
    one(db, "SELECT dp_release('clinic', 'sum', ?, ?)", rows, '{"name":"refined","clip":10,"refine":true}')
    one(db, "SELECT dp_diffuse('a \"quoted\"\\ name' || char(10), 'public')")
    one(db, "SELECT dp_diffuse('big', 'public')")
    one(db, "SELECT dp_discard('gone')")
    interrupted(db, "SELECT dp_release('public', 'sum', 'SELECT minutes FROM visits',"
                """ '{"clip":10,"name":"failed"}')""")
    return db


def certificate(db):
    text = one(db, "SELECT dp_certificate()")
    assert one(db, "SELECT json_valid(?)", text) == 1
    return strict_json(text)


def rows(path, sql, *arguments):
    ledger = ledger_of(path)
    ledger.row_factory = sqlite3.Row
    return [dict(row) for row in ledger.execute(sql, arguments)]


def same(got, want):
    """Returns whether two values are equal and have the same type. Doubles must have the same bits."""
    assert type(got) is type(want) and got == want, (got, want)


def compare(got, row, names):
    for name, column in names.items():
        same(got[name], row[column])


def named(*names):
    return {name: name for name in names}


def test_every_figure_is_the_ledgers(book, path):
    got = certificate(book)
    assert set(got) == {"certificate", "ledger", "policy", "wider", "tiers", "releases", "charges", "last_hash", "last_seal", "verify"}
    assert got["certificate"] == 1 and got["verify"] == "ok"
    (terms,) = rows(path, "SELECT * FROM dp_ledger")
    assert got["ledger"].pop("format") == rows(path, "PRAGMA user_version")[0]["user_version"]
    same(got["ledger"], {**terms, "created_at": terms["created_at"][:10]})

    tiers = rows(path, "SELECT t.*, spent_rate, spent_slack, spent_delta, spent_epsilon, releases, b.epsilon AS budget"
                       " FROM dp_tier t JOIN dp_budget b ON b.tier = t.name ORDER BY t.rate DESC")
    assert [t["name"] for t in got["tiers"]] == [t["name"] for t in tiers] == ["clinic", "region", "public"]
    for t, row in zip(got["tiers"], tiers):
        names = named("name", "rate", "epsilon", "delta", "delta_keys", "accountant", "filter_order", "rate_limit",
                      "pure_limit", "slack_limit", "spent_rate", "spent_slack", "spent_delta", "spent_epsilon", "releases")
        compare(t, row, names)
        assert set(t) == set(names) | {"theorem", "period", "period_start", "period_end", "per_period", "all_periods", "wider_epsilon"}
        assert ("Feldman" in t["theorem"]) == (row["accountant"] == "rdp")
        assert ("Koskela" in t["theorem"]) == (row["accountant"] == "gdp")

    releases = rows(path, "SELECT * FROM dp_release ORDER BY id")
    assert len(got["releases"]) == len(releases) == 8
    assert {r["state"] for r in got["releases"]} == {"released", "discarded", "failed"}
    for r, row in zip(got["releases"], releases):
        names = named("id", "name", "kind", "mechanism", "state", "dimension", "granularity", "sensitivity", "weight",
                      "slack")
        compare(r, row, names)
        assert set(r) == set(names) | {"options", "publications", "theorem", "created_at", "tables"}
        assert r["tables"] == {"visits": "protected"}
        assert r["created_at"] == row["created_at"][:10]
        same(r["options"], json.loads(row["options"]))
        same(r["options"]["clip"], row["clip"])
        publications = rows(path, "SELECT * FROM dp_publication WHERE release_id = ? ORDER BY rate DESC", row["id"])
        assert len(r["publications"]) == len(publications)
        for p, published in zip(r["publications"], publications):
            compare(p, published, {**named("tier", "rate", "delta", "shrink", "centre", "clipped", "unclipped", "unit_stddev", "cut",
                                             "cut_low", "cut_high", "cut_within", "wider_clipped", "wider_unclipped", "threshold"), "variance": "clock"})
            assert p["published_at"] == published["published_at"][:10]
            assert p["curve"] == (published["curve"].hex() if published["curve"] else None)
            assert p["kernel"] == (json.loads(published["kernel"]) if published["kernel"] else None)
            assert len(p) == 19
        assert (r["theorem"]["shrink"] is None) == (row["mechanism"] == "gaussian")
        assert (r["theorem"]["stopping"] is None) == (row["until"] is None)
        if row["theta"] is not None:
            assert "Corollary 7" in r["theorem"]["shrink"]
        elif row["mechanism"] == "ou":
            assert "Theorem 8" in r["theorem"]["shrink"]

    (chain,) = rows(path, "SELECT count(*) AS n, (SELECT hash FROM dp_charge ORDER BY id DESC LIMIT 1) AS h"
                          " FROM dp_charge")
    same(got["charges"], chain["n"])
    same(got["last_hash"], chain["h"])
    assert re.fullmatch("[0-9a-f]{64}", got["last_hash"])
    (seal,) = rows(path, "SELECT hash FROM dp_seal ORDER BY id DESC LIMIT 1")
    assert got["last_seal"] == seal["hash"] != got["last_hash"]


def test_figures_follow_from_variance_and_sensitivity(book):
    got = certificate(book)
    tiers = {t["name"]: t for t in got["tiers"]}
    with mp.workdps(40):
        spent = dict.fromkeys(tiers, mpf(0))
        for r in got["releases"]:
            rates = {}
            for p in r["publications"]:
                exact = mpf(r["sensitivity"]) ** 2 / (2 * (mpf(p["variance"]) - mpf(1) / 12))
                assert exact <= p["rate"] <= exact * (1 + mpf("1e-12"))
                assert p["rate"] <= r["weight"] * tiers[p["tier"]]["rate"] * (1 + 1e-15)
                tau = mpf(p["variance"]) * mpf(4) ** r["granularity"]
                o = r["options"]
                if "theta" in o:
                    shrink = 1 / mp.sqrt(1 + mpf(o["theta"]) * tau / mpf(o["rho"]) ** 2)
                else:
                    shrink = 1 / (1 + tau / mpf(o["radius"]) ** 2) if "radius" in o else mpf(1)
                assert abs(p["shrink"] - shrink) <= shrink * mpf("1e-14")
                assert p["centre"] == o.get("centre", 0)
                rates[p["tier"]] = exact
            # the lattice is fine enough, and the sensitivity is that of the clip, rounded up
            clip = mpf(o["clip"]) * (2 if r["kind"].endswith("sum") else 1)  # "replace"
            steps = clip / mpf(2) ** r["granularity"]
            if r["publications"]:
                assert steps < r["sensitivity"] <= steps + 1 + mpf("1e-6")
                assert max(p["variance"] for p in r["publications"]) >= 2**40
            for name, t in tiers.items():
                seen = [rate for tier, rate in rates.items() if tiers[tier]["rate"] <= t["rate"]]
                spent[name] += max(seen, default=0)
        failed = next(r for r in got["releases"] if r["state"] == "failed")
        for name in spent:  # a failed release has paid and published nothing
            spent[name] += failed["weight"] * mpf(tiers["public"]["rate"])
            t = tiers[name]
            assert spent[name] * (1 - mpf("1e-12")) <= t["spent_rate"] <= spent[name] * (1 + mpf("1e-9"))
            delta = mpf(t["delta"]) - t["delta_keys"]
            if t["accountant"] == "gdp":
                delta -= t["slack_limit"] * (1 + mp.exp(t["epsilon"]))
                epsilon = true_gaussian_epsilon(t["spent_rate"], delta, t["spent_epsilon"])
            else:
                epsilon = true_zcdp_epsilon(t["spent_rate"], delta)
            assert epsilon <= t["spent_epsilon"] <= epsilon * (1 + mpf("1e-11"))
            assert t["spent_rate"] <= t["rate_limit"] and t["spent_epsilon"] <= t["epsilon"]


def test_an_empty_ledger_has_a_certificate(path):
    db = connect(path)
    one(db, INIT)
    got = certificate(db)
    assert (got["tiers"], got["releases"], got["charges"], got["last_hash"], got["verify"]) == ([], [], 0, None, "ok")
    assert re.fullmatch("[0-9a-f]{64}", got["last_seal"])  # the first seal covers the terms of the ledger


def test_without_a_ledger_there_is_none(path):
    assert refused(connect(path), "SELECT dp_certificate()") == (
        "dp_certificate: no privacy ledger for 'clinic.db' (run SELECT dp_init())")


def test_it_holds_no_value(book, path):
    """The certificate contains neither published values nor points of paths."""
    def numbers(part):
        if isinstance(part, (dict, list)):
            return set().union(*map(numbers, part.values() if isinstance(part, dict) else part))
        return {part} if isinstance(part, (int, float)) else set()

    shown = numbers(json.loads(one(book, "SELECT dp_certificate()")))
    values = {value for (value,) in ledger_of(path).execute("SELECT value FROM dp_value UNION ALL SELECT value FROM dp_path")}
    assert len(shown) > 20 and len(values) > 4
    assert not {value for value in values if abs(value) > 1000} & shown  # a small integer may occur in the certificate by chance


@pytest.mark.parametrize("change", [
    "UPDATE dp_charge SET rate = rate / 2 WHERE id = 2", "DELETE FROM dp_charge WHERE id = 3",
    "UPDATE dp_budget SET spent_epsilon = 0.1 WHERE tier = 'clinic'",
    "UPDATE dp_publication SET clock = clock * 2 WHERE tier = 'region'",
    "UPDATE dp_publication SET shrink = 0.5 WHERE release = 'b'", "UPDATE dp_value SET value = value + 1e6",
    "UPDATE dp_release SET sensitivity = sensitivity + 1 WHERE name = 'b'",
    "UPDATE dp_tier SET rate_limit = 2 * rate_limit WHERE name = 'region'",
    "UPDATE dp_release SET options = '{\"clip\":1.0}' WHERE name = 'b'",
    "UPDATE dp_release SET weight = 1.0 WHERE name = 'b'", "UPDATE dp_release SET kind = 'sum' WHERE name = 'b'",
    "UPDATE dp_release SET name = 'other' WHERE name = 'b'"])
def test_a_ledger_that_was_changed_says_so(book, path, change):
    before = certificate(book)
    ledger = ledger_of(path)
    for trigger in TRIGGERS:
        ledger.execute(f"DROP TRIGGER {trigger}")
    assert ledger.execute(change).rowcount > 0
    ledger.close()
    got = certificate(book)
    assert got["verify"] != "ok" and re.match(r"dp_\w+: ", got["verify"])
    assert got["verify"] == one(book, "SELECT dp_verify()")
    assert got["certificate"] == before["certificate"] and got["ledger"] == before["ledger"]
