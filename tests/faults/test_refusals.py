"""Errors and unusual cases that no other test reaches (make coverage). Each error must be a sentence that says what
to do."""

import json

import pytest

from conftest import add_tiers, connect, create, ledger_of, one, refused

FAR = [("clinic", 1e6, 1e9, 1e-6), ("public", 1e-12, 1.0, 1e-6)]
GROUPS = "SELECT dp_group_count('clinic', minutes, 1, ?) FROM visits"


def test_tiers_too_far_apart_for_one_lattice(path):
    db = create(path, tiers=FAR)
    one(db, "SELECT dp_sum('clinic', minutes, 10, 'a') FROM visits")
    assert "too far from that of release 'a'" in refused(db, "SELECT dp_diffuse('a', 'public')")


def test_tiers_too_far_apart_for_one_lattice_from_the_outside(path):
    db = create(path, tiers=FAR)
    one(db, "SELECT dp_sum('public', minutes, 10, 'a') FROM visits")
    assert "too far from that of release 'a'" in refused(
        db, """SELECT dp_sum('clinic', minutes, 10, '{"name":"a","refine":true}') FROM visits""")
    assert one(db, "SELECT count(*) FROM dp_charge WHERE tier = 'clinic'") == 1  # the inner tier has paid for the outer tier's release


def test_private_keys_need_delta_keys_and_cannot_be_refined(path):
    db = create(path)
    assert "has no delta_keys" in refused(db, GROUPS, "a")
    add_tiers(db, [("inner", 0.1, 20.0, 1e-6, "rdp", 1e-7), ("outer", 0.05, 20.0, 1e-6, "rdp", 1e-7)])
    one(db, "SELECT dp_group_count('outer', minutes, 1, 'a') FROM visits")
    assert "cannot be refined" in refused(
        db, """SELECT dp_group_count('inner', minutes, 1, '{"name":"a","refine":true}') FROM visits""")


@pytest.mark.parametrize("kind,options,message", [
    ("quantile", {"q": True, "lo": 0, "hi": 1}, "q must be a number"),
    ("vec_sum", {"clip": 1}, "dim is missing"),
    ("histogram", {"clip": 1, "lo": 0, "hi": 1}, "bins is missing"),
    ("group_count", {"clip": 1, "keys": [1], "max_groups": 2}, "max_groups is for keys that are selected privately"),
    ("group_count", {"clip": 1, "keys": [1], "key_share": 0.5}, "key_share is for keys that are selected privately"),
])
def test_options_that_are_missing_or_do_not_go_together(db, kind, options, message):
    assert message in refused(db, "SELECT dp_release('clinic', ?, 'SELECT 1, 1', ?)", kind, json.dumps(options))


def test_more_public_keys_than_a_release_can_have(db):
    assert "keys has more than 1048576 elements" in refused(db, GROUPS, json.dumps({"keys": list(range(2**20 + 1))}))


def test_distinct_units_in_a_ledger_of_rows(path):
    db = create(path, '{"protects":"row"}')
    assert "use dp_count" in refused(db, "SELECT dp_count_distinct('clinic') FROM visits")


def test_control_characters_in_keys(db):
    answer = one(db, GROUPS, json.dumps({"keys": ["a\nb", "\x01", 'c"\\']}))
    assert set(json.loads(answer)) == {"a\nb", "\x01", 'c"\\'}


def test_rows_of_kernels_that_do_not_add_up_are_refused_and_not_quoted():
    db = connect()
    for x in (17, 2.75, "quoted", b"quoted"):
        message = refused(db, "SELECT dp_kernel_dobrushin(?, 1, 0.5)", x)
        assert "the probabilities of one x do not add up to 1" in message
        assert not any(text in message for text in ("17", "2.75", "quoted", "0.5"))


def test_rows_have_numbers(db):
    assert len({rowid for (rowid,) in db.execute("SELECT rowid FROM dp_tier")}) == 3
    same = [one(db, "SELECT rowid FROM dp_amplify('doeblin', 0.3, 1, 1e-6)") for _ in range(2)]
    assert same[0] == same[1]  # a rowid belongs to the row


def test_a_marker_without_its_row(path):
    db = create(path)
    db.execute("DELETE FROM dp_ledger_id")
    assert "damaged" in refused(db, "SELECT dp_verify()")


# Pairs: an edit of the file, and the message of dp_verify() or of the next statement after this edit.
DAMAGE = [
    "UPDATE dp_charge SET tier = 'nowhere'",
    "UPDATE dp_charge SET rate = -1",
    "UPDATE dp_charge SET rate = 1e9",
    "UPDATE dp_charge SET curve = x'00'",
    "UPDATE dp_charge SET curve = zeroblob(920)",
    "UPDATE dp_charge SET hash = NULL WHERE 0; DELETE FROM dp_charge",
    "DELETE FROM dp_publication",
    "DELETE FROM dp_value",
    "DELETE FROM dp_path",
    "DELETE FROM dp_release",
    "DELETE FROM dp_budget",
    "DELETE FROM dp_order",
    "DELETE FROM dp_ledger",
    "UPDATE dp_release SET kind = 'unheard of'",
    "UPDATE dp_release SET dimension = 2",
    "UPDATE dp_release SET granularity = 5000",
    "UPDATE dp_release SET shift = -1",
    "UPDATE dp_release SET shift = 101",
    "UPDATE dp_release SET granularity = -5000",
    "UPDATE dp_release SET sensitivity = 0",
    "UPDATE dp_release SET sensitivity = 1 << 32",
    "UPDATE dp_release SET sensitivity = 1",
    "UPDATE dp_release SET weight = 0",
    "UPDATE dp_release SET weight = 2",
    "UPDATE dp_release SET centre = 9e999",
    "UPDATE dp_release SET size = -1",
    "UPDATE dp_release SET size = 1 << 30",
    "UPDATE dp_release SET max_groups = -1",
    "UPDATE dp_release SET max_groups = 1 << 30",
    "UPDATE dp_release SET dimension = NULL, max_groups = 1, key_share = 2",
    "UPDATE dp_release SET dimension = NULL, max_groups = 1, key_share = NULL",
    "UPDATE dp_publication SET centre = 1",
    "UPDATE dp_value SET low = low - 1",
    "UPDATE dp_value SET high = high + 1",
    "UPDATE dp_value SET stddev = stddev * 2",
    "UPDATE dp_value SET component = 1",
    "UPDATE dp_path SET value = 9223372036854775807",
    "UPDATE dp_path SET value = -9223372036854775807",
    "UPDATE dp_path SET clock = 1 << 62",
    "DELETE FROM dp_path WHERE tier = 'public'",
    "UPDATE dp_tier SET slack_limit = 5",
    "UPDATE dp_budget SET spent_curve = 1",
    "UPDATE dp_order SET alpha = alpha * 1.001",
    "UPDATE dp_order SET curve = 1",
    "UPDATE dp_publication SET clock = clock + 1",
    "UPDATE dp_publication SET rate = rate / 2",
    "UPDATE dp_value SET value = value + 1",
    "INSERT INTO dp_value SELECT release_id, release, tier, 'more', 0, 1, 1, 0, 2 FROM dp_value",
    "UPDATE dp_path SET value = value + 1",
    "UPDATE dp_path SET clock = 5",
    "UPDATE dp_path SET component = 7",
    "UPDATE dp_path SET key = 'k'",
    "INSERT INTO dp_path SELECT release_id, release, tier, clock, key, 1, value FROM dp_path",
    "UPDATE dp_tier SET rate = rate * 2",
    "UPDATE dp_tier SET epsilon = epsilon * 2",
    "UPDATE dp_tier SET accountant = 'gdp'",
    "UPDATE dp_budget SET spent_rate = 0",
    "UPDATE dp_budget SET releases_left = 10000",
    "UPDATE dp_order SET allowed = allowed + 1",
    "UPDATE dp_ledger SET adjacency = 'replace'",
    "PRAGMA user_version = 99",
    "PRAGMA application_id = 2",
]


@pytest.mark.parametrize("damage", DAMAGE)
def test_changed_books_are_noticed(path, damage):
    db = create(path)
    one(db, "SELECT dp_sum('region', minutes, 10, 'a') FROM visits")
    one(db, "SELECT dp_diffuse('a', 'public')")
    db.close()
    ledger = ledger_of(path)
    ledger.execute("PRAGMA foreign_keys = OFF")
    for trigger in ("update", "delete", "replace"):
        ledger.execute(f"DROP TRIGGER dp_charge_no_{trigger}")
    ledger.executescript(damage)
    ledger.close()
    db = connect(path)
    try:
        said = one(db, "SELECT dp_verify()")
    except Exception as error:
        said = str(error)
    assert said != "ok" and len(said) > 20, said
    for sql in ("SELECT dp_diffuse('a', 'public')", "SELECT dp_sum('region', minutes, 10, 'a') FROM visits",
                """SELECT dp_sum('clinic', minutes, 10, '{"name":"a","refine":true}') FROM visits""",
                "SELECT dp_certificate()", "SELECT dp_exposure('clinic')", "SELECT count(*) FROM dp_rdp"):
        try:
            one(db, sql)
        except Exception as error:
            assert len(str(error)) > 20, error
