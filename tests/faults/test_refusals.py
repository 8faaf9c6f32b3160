"""Errors and unusual cases that no other test reaches (make coverage). Each error must be a sentence that says what
to do."""

import json

from conftest import connect, create, one, refused

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


def test_more_public_keys_than_a_release_can_have(db):
    assert "keys has more than 1048576 elements" in refused(db, GROUPS, json.dumps({"keys": list(range(2**20 + 1))}))


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
