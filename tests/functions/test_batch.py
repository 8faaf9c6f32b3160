"""Tests dp_batch(): a batch writes all charges or none, costs as much as its single calls, and can run again after an error or a
crash, or while another process runs the same batch. tests/attacks/test_kill.py kills dp_batch() at its writes."""

import json
import threading

import pytest

from conftest import add_tiers, add_visits, connect, create, make_ledger, one, PATIENCE, reading, refused, run, when_reading

ROWS = "SELECT 1 FROM visits"
BATCH = [
    {"tier": "clinic", "kind": "sum", "sql": "SELECT minutes FROM visits",
     "options": {"name": "minutes", "clip": 20}, "diffuse": ["region", "public"]},
    {"tier": "region", "kind": "group_count", "sql": "SELECT patient % 3 FROM visits",
     "options": {"name": "thirds", "keys": ["0", "1", "2"], "clip": 1}, "diffuse": ["public"]},
    {"tier": "public", "kind": "median", "sql": "SELECT minutes FROM visits",
     "options": {"name": "middle", "lo": 0, "hi": 8, "bins": 16, "mechanism": "gaussian"}},
    {"tier": "clinic", "kind": "choice", "sql": "SELECT patient % 2 FROM visits",
     "options": {"name": "most", "candidates": ["0", "1"]}},
]
PUBLISHED = {(e["options"]["name"], t) for e in BATCH for t in [e["tier"], *e.get("diffuse", [])]}


def batch(db, elements, outcomes=None):
    """Returns the answers of a batch. `outcomes` is a list of the expected outcomes, or None."""
    made = json.loads(one(db, "SELECT dp_batch(?)", json.dumps(elements)))
    assert [item["name"] for item in made] == [element["options"]["name"] for element in elements]
    assert outcomes is None or [item["outcome"] for item in made] == outcomes
    return [item["answer"] for item in made]


def charges(db):
    return db.execute("SELECT release, tier, rate, slack, delta, curve FROM dp_charge ORDER BY id").fetchall()


def published(db):
    return set(db.execute("SELECT release, tier FROM dp_publication"))


def states(db):
    return dict(db.execute("SELECT name, state FROM dp_release"))


def stored(db, name, tier):
    """Returns the published value of a release at a tier. dp_diffuse() returns it without cost."""
    return one(db, "SELECT dp_diffuse(?, ?)", name, tier)


def check_answers(db, elements, answers):
    assert len(answers) == len(elements)
    for element, answer in zip(elements, answers):
        got = stored(db, element["options"]["name"], element["tier"])
        assert answer == got if isinstance(got, float) or element["kind"] == "choice" else answer == json.loads(got)


# ---- what it does and costs ---------------------------------------------------------------------


def test_a_batch_makes_what_single_calls_make_and_costs_the_same(tmp_path):
    """One ledger gets the batch and another ledger gets the single calls. The rows of dp_charge are the same in both, to the last
    digit."""
    together, single = (create(tmp_path / name) for name in ("a.db", "b.db"))
    answers = batch(together, BATCH)
    check_answers(together, BATCH, answers)
    for element in BATCH:
        one(single, "SELECT dp_release(?, ?, ?, ?)", element["tier"], element["kind"], element["sql"],
            json.dumps(element["options"]))
        for tier in element.get("diffuse", []):
            one(single, "SELECT dp_diffuse(?, ?)", element["options"]["name"], tier)
    assert sorted(charges(together), key=repr) == sorted(charges(single), key=repr)
    assert published(together) == published(single) == PUBLISHED
    slack = "SELECT name, slack, granularity, sensitivity, sql FROM dp_release"
    assert together.execute(slack).fetchall() == single.execute(slack).fetchall()
    for db in (together, single):
        assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("accountant", ["rdp", "gdp"])
def test_private_keys_and_slack_are_charged_once_for_each_publication(tmp_path, accountant):
    tiers = [("clinic", 0.04, 12.0, 1e-5, accountant, 4e-6), ("region", 0.01, 11.0, 1e-5, accountant, 3e-6),
             ("public", 0.002, 10.0, 1e-5, accountant, 2e-6)]
    together, single = (create(tmp_path / name, tiers=tiers) for name in ("a.db", "b.db"))
    options = {"name": "by patient", "max_groups": 2, "clip": 1}
    element = {"tier": "clinic", "kind": "group_count", "sql": "SELECT patient % 5 FROM visits", "options": options,
               "diffuse": ["public", "region"]}
    batch(together, [element])
    one(single, "SELECT dp_release('clinic', 'group_count', ?, ?)", element["sql"], json.dumps(options))
    for tier in element["diffuse"]:
        one(single, "SELECT dp_diffuse('by patient', ?)", tier)
    for column in ("rate", "slack", "delta"):
        sums = [dict(db.execute(f"SELECT tier, total({column}) FROM dp_charge GROUP BY tier")) for db in (together, single)]
        assert sums[0].keys() == sums[1].keys()
        assert all(sums[0][tier] == pytest.approx(sums[1][tier], rel=1e-12) for tier in sums[0])
    assert one(together, "SELECT max(delta) FROM dp_charge") > 0
    before = charges(together)
    batch(together, [element])
    assert charges(together) == before and one(together, "SELECT dp_verify()") == "ok"


def test_a_batch_again_gives_the_same_and_runs_no_query(path):
    db = create(path)
    first, before = batch(db, BATCH, ["made"] * 4), charges(db)
    db.execute("DELETE FROM visits")
    assert batch(db, BATCH, ["replayed"] * 4) == first and charges(db) == before
    more = [{**BATCH[2], "diffuse": []}, {**BATCH[0], "diffuse": ["region"]}]
    assert batch(connect(path), more) == [first[2], first[0]] and charges(db) == before


def test_a_batch_may_diffuse_further_what_it_made_before(path):
    db = create(path)
    (value,) = batch(db, [{**BATCH[0], "diffuse": []}])
    assert published(db) == {("minutes", "clinic")}
    assert batch(db, [BATCH[0]], ["replayed"]) == [value]
    assert published(db) == {("minutes", t) for t in ("clinic", "region", "public")}
    assert one(db, "SELECT dp_verify()") == "ok"


def test_the_plan_of_a_batch_is_what_it_costs(path):
    db = create(path)
    plan = json.loads(one(db, "SELECT dp_plan(?)", json.dumps(BATCH)))
    assert len(plan["plans"]) == len(BATCH) and charges(db) == []
    batch(db, BATCH)
    paid = dict(db.execute("SELECT tier, total(rate) FROM dp_charge WHERE curve IS NULL GROUP BY tier"))
    for tier in plan["tiers"]:
        spent, left = db.execute("SELECT spent_epsilon, releases_left FROM dp_budget WHERE tier = ?", (tier["tier"],)).fetchone()
        assert tier["epsilon_after"] == spent and tier["releases_left"] == left
        assert tier["tier"] == "clinic" or tier["pays"] == pytest.approx(paid[tier["tier"]], rel=1e-12)
    count = int(plan["summary"].split()[1])
    again = [{**e, "options": {**e["options"], "name": "x" + e["options"]["name"]}} for e in BATCH]
    more = json.loads(one(db, "SELECT dp_plan(?)", json.dumps(again)))
    assert int(more["summary"].split()[1]) == count - 1
    again[0]["options"].update(half_width=1000, rows=5)
    solved = json.loads(one(db, "SELECT dp_plan(?)", json.dumps(again)))["plans"][0]
    assert solved["half_width"] == pytest.approx(1000, rel=1e-6) and 0 < solved["weight"] < 1


# ---- all or nothing -----------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["a later release", "a diffusion"])
def test_a_batch_that_does_not_fit_charges_nothing(path, where):
    db = connect(path)
    add_visits(db)
    make_ledger(db, "{}", "visits, patient")
    add_tiers(db, [("clinic", 0.01, 1.0, 1e-6), ("public", 0.001, 0.3, 1e-6)])
    one(db, "SELECT dp_release('public', 'count', ?, '{\"name\":\"before\",\"clip\":1}')", ROWS)
    assert one(db, "SELECT releases_left FROM dp_budget WHERE tier = 'public'") == 1
    element = {"tier": "clinic", "kind": "count", "sql": ROWS}
    elements = [{**element, "options": {"name": name, "clip": 1}} for name in "abc"]
    if where == "a diffusion":
        elements = [{**e, "diffuse": ["public"]} for e in elements[:2]]
    else:
        elements[1:2] = [{**elements[1], "diffuse": ["public"]}]
    before = charges(db), states(db)
    number = 1 if where == "a diffusion" else 2
    message = refused(db, "SELECT dp_batch(?)", json.dumps(elements))
    assert message.startswith(f"dp_batch: release {number} of the batch: tier '") and "would exceed its budget" in message
    assert (charges(db), states(db)) == before
    assert len(batch(db, elements[:number])) == number
    assert one(db, "SELECT dp_verify()") == "ok"


GOOD = {"tier": "clinic", "kind": "count", "sql": ROWS, "options": {"name": "good", "clip": 1}}


@pytest.mark.parametrize("wrong,message", [
    ({"options": {"clip": 1}}, "the options must name the release"), ({"sql": None}, "sql must be the text of one SELECT"),
    ({"sql": "DELETE FROM visits"}, "sql must be one SELECT that only reads"), ({"sql": "SELECT 1, 2 FROM visits"}, "sql must give 1 column"),
    ({"kind": "mean"}, "unknown kind"), ({"tier": "village"}, "unknown tier"), ({"diffuse": ["village"]}, "unknown tier"),
    ({"diffuse": "public"}, "diffuse must be a JSON array"), ({"diffuse": [1]}, "diffuse must list the names of tiers"),
    ({"diffuse": ["clinic"]}, "tier 'clinic' is not outside tier 'clinic'"), ({"options": {"name": "b", "clip": 1, "refine": True}}, "refine is not for dp_batch"),
    ({"tier": "public", "diffuse": ["region"]}, "tier 'region' is not outside tier 'public'"), ({"colour": 1}, "unknown member 'colour'"),
    ({"options": {"name": "b", "clip": 1, "half_width": 0.1}}, "half_width must be at least "),
    ({"options": {"name": "good", "clip": 1}}, "the name 'good' is given twice"),
    ({"kind": "choice", "sql": "SELECT 'a' FROM visits", "options": {"name": "c", "candidates": ["a"]}, "diffuse": ["public"]}, "only through a public kernel")])
def test_a_wrong_element_charges_nothing(path, wrong, message):
    db = create(path)
    elements = [GOOD, {**GOOD, "options": {"name": "bad", "clip": 1}, **wrong}]
    said = refused(db, "SELECT dp_batch(?)", json.dumps(elements))
    assert message in said and "release 1 of the batch: " in said
    assert charges(db) == [] and states(db) == {}


@pytest.mark.parametrize("text,message", [("[", "malformed JSON array"), ("[1]", "not an object"), ("{}", "malformed JSON array"),
                                          ('[{"tier":"clinic"}]', "kind is missing"), ('[{"kind":"sum"}]', "tier is missing"),
                                          ('[{"tier":"clinic","kind":"sum"}]', "sql is missing")])
def test_what_is_no_batch_is_refused(path, text, message):
    assert message in refused(create(path), "SELECT dp_batch(?)", text)


def test_an_empty_batch_has_no_answers(path):
    assert batch(create(path), []) == []


def test_a_name_with_another_query_or_other_parameters_is_refused(path):
    db = create(path)
    batch(db, [GOOD])
    before = charges(db)
    for other in ({**GOOD, "sql": ROWS + " WHERE 1"}, {**GOOD, "options": {"name": "good", "clip": 2}}):
        assert "exists with" in refused(db, "SELECT dp_batch(?)", json.dumps([BATCH[0], other]))
    assert charges(db) == before


# ---- again --------------------------------------------------------------------------------------


FAILS = {"tier": "region", "kind": "count", "sql": "SELECT minutes FROM visits", "options": {"name": "fails", "clip": 1}, "diffuse": ["public"]}


def stopped_at(number, db, elements):
    """Runs a batch that is interrupted while it reads rows for the release with this number. Returns the error message."""
    with reading(db) as reads:
        db.set_progress_handler(lambda: len(reads) > number, 1)
        message = refused(db, "SELECT dp_batch(?)", json.dumps(elements))
        db.set_progress_handler(None, 0)
    return message


def kill_at(number):
    """Returns the code of a process that runs a batch and dies when it begins to read rows for the release with this number."""
    return f"""
        db, reads = connect(sys.argv[1]), []
        when_reading(db, lambda: reads.append(1) or (os.kill(os.getpid(), signal.SIGKILL) if len(reads) > {number} else None))
        one(db, "SELECT dp_batch(?)", sys.argv[2])
        """


def test_a_failed_release_is_never_run_again_and_the_rest_is_finished(path):
    db = create(path)
    elements = [BATCH[0], FAILS, BATCH[1]]
    message = stopped_at(1, db, elements)
    assert message.startswith("dp_batch: release 1 of the batch: ") and "interrupted" in message
    assert states(db) == {"minutes": "released", "fails": "failed", "thirds": "charged"}
    before = charges(db)
    assert ("fails", "public") in {row[:2] for row in before} and ("thirds", "public") in {row[:2] for row in before}
    assert "is not run again" in refused(db, "SELECT dp_plan(?)", json.dumps(elements))
    answers = batch(db, elements, ["replayed", "failed", "made"])
    assert answers[1] is None and charges(db) == before
    assert states(db) == {"minutes": "released", "fails": "failed", "thirds": "released"}
    check_answers(db, [elements[0], elements[2]], [answers[0], answers[2]])
    assert one(db, "SELECT count(*) FROM dp_value WHERE release = 'fails'") == 0
    assert one(db, "SELECT dp_verify()") == "ok"


def test_a_killed_batch_is_finished_by_the_next_one(path):
    """The test kills a batch inside its second query. The first release then has a value, the second has none, and both are
    charged."""
    create(path).close()
    elements = BATCH[:3]
    run(kill_at(1), path, json.dumps(elements), expect=-9)
    db = connect(path)
    assert states(db) == {"minutes": "released", "thirds": "charged", "middle": "charged"}
    before, values = charges(db), db.execute("SELECT * FROM dp_value").fetchall()
    assert published(db) == {("minutes", t) for t in ("clinic", "region", "public")}
    check_answers(db, elements, batch(db, elements))
    assert charges(db) == before and db.execute("SELECT * FROM dp_value").fetchall()[:len(values)] == values
    assert published(db) == {p for p in PUBLISHED if p[0] != "most"}
    assert one(db, "SELECT dp_verify()") == "ok"


def test_a_batch_that_is_finished_in_the_next_month_is_charged_in_the_first(path, clock):
    clock.set("2026-01-31 23:00:00")
    db = connect(path)
    add_visits(db)
    make_ledger(db, "{}", "visits, patient")
    for name, rate, epsilon in (("clinic", 0.004, 8.0), ("public", 0.0002, 3.0)):
        one(db, "SELECT dp_tier(?, ?, ?, 1e-6, '{\"period\":\"month\"}')", name, rate, epsilon)
    elements = [{**FAILS, "tier": "clinic"}, {**GOOD, "diffuse": ["public"]}]
    stopped_at(0, db, elements)
    before = charges(db)
    clock.set("2026-02-01 00:00:00")
    assert batch(db, elements)[0] is None and charges(db) == before
    assert published(db) == {("good", "clinic"), ("good", "public")}
    assert {month for (month,) in db.execute("SELECT period FROM dp_charge")} == {"2026-01-01"}
    assert one(db, "SELECT dp_verify()") == "ok"


def test_of_two_that_finish_the_same_release_the_second_gives_the_stored_value(path):
    """One connection waits inside a query of the batch until another connection has finished the whole batch."""
    create(path).close()
    elements = [{**GOOD, "diffuse": ["public"]}, BATCH[0]]
    started, go_on = threading.Event(), threading.Event()

    def wait():
        started.set()
        assert go_on.wait(PATIENCE)

    slow, quick, results = connect(path), connect(path), []
    when_reading(slow, wait)
    thread = threading.Thread(target=lambda: results.append(batch(slow, elements)))
    thread.start()
    assert started.wait(PATIENCE)
    before = charges(quick)
    answers = batch(quick, elements)
    values = quick.execute("SELECT * FROM dp_value").fetchall()
    go_on.set()
    thread.join(PATIENCE)
    assert results == [answers] and charges(quick) == before
    assert quick.execute("SELECT * FROM dp_value").fetchall() == values
    assert one(quick, "SELECT dp_verify()") == "ok"


def test_a_release_of_an_aggregate_is_not_finished(path):
    """An aggregate returns its value before the value is stored. A host may therefore have seen a value that is not in the
    ledger, so the batch must not draw a new one."""
    create(path).close()
    run("""
        db = connect(sys.argv[1])
        once_charged(db, sys.argv[1], lambda: os.kill(os.getpid(), signal.SIGKILL))
        one(db, "SELECT dp_count('clinic', minutes, 1, 'good') FROM visits")
        """, path, expect=-9)
    db = connect(path)
    before = charges(db)
    assert "another query" in refused(db, "SELECT dp_batch(?)", json.dumps([GOOD]))
    assert states(db) == {"good": "charged"} and charges(db) == before


def test_a_killed_dp_release_is_finished_but_not_at_another_tier(path):
    create(path).close()
    run("""
        db = connect(sys.argv[1])
        when_reading(db, lambda: os.kill(os.getpid(), signal.SIGKILL))
        one(db, "SELECT dp_release('clinic', 'count', 'SELECT 1 FROM visits', json_object('name', 'good', 'clip', 1))")
        """, path, expect=-9)
    db = connect(path)
    element = {**GOOD, "sql": "SELECT 1 FROM visits"}
    assert "was charged at another tier" in refused(db, "SELECT dp_batch(?)", json.dumps([{**element, "tier": "public"}]))
    before = charges(db)
    assert len(before) == 1
    batch(db, [element])
    assert charges(db) == before and states(db) == {"good": "released"}


def test_diffusions_that_are_paid_cost_nothing_by_hand(path):
    """The batch is killed inside its query. Another batch without diffusions finishes the release. dp_diffuse() then publishes
    the diffusions that the killed batch has paid for."""
    create(path).close()
    run(kill_at(0), path, json.dumps([{**GOOD, "diffuse": ["region", "public"]}]), expect=-9)
    db = connect(path)
    before = charges(db)
    assert {tier for _, tier, *_ in before} == {"clinic", "region", "public"}
    one(db, "SELECT dp_batch(?)", json.dumps([GOOD]))
    for tier in ("public", "region"):
        one(db, "SELECT dp_diffuse('good', ?)", tier)
    assert charges(db) == before and one(db, "SELECT dp_verify()") == "ok"


def test_a_batch_cannot_run_inside_a_release(path):
    db = create(path)
    message = refused(db, "SELECT dp_release('clinic', 'count', ?, '{\"name\":\"a\",\"clip\":1}')",
                      "SELECT dp_batch('[]') FROM visits")
    assert "no such function: dp_batch" in message


def test_a_batch_needs_a_connection_that_can_write(path):
    create(path).close()
    reader = connect(f"file:{path}?mode=ro", uri=True)
    assert "cannot write" in refused(reader, "SELECT dp_batch(?)", json.dumps([GOOD]))
