from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from vnode.api import keys
from vnode.targets import name_conflicts
from vnode.targets.name_conflicts import NameConflicts

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def make_chaperon(name, cluster):
    annotations = {keys.PARENT_CLUSTER_UID: cluster} if cluster else {}
    return {"metadata": {"namespace": "ns", "name": name, "annotations": annotations}}


def test_only_other_clusters_conflict():
    calls = []
    conflicts = NameConflicts("own", lambda: calls.append(1))
    for name, cluster in (("a", "own"), ("b", ""), ("c", "other"), ("d", "other")):
        conflicts.on_chaperon(None, make_chaperon(name, cluster))

    assert conflicts.clusters == ["other"]
    assert len(calls) == 1


def test_a_cluster_is_forgotten_with_its_last_chaperon():
    calls = []
    conflicts = NameConflicts("own", lambda: calls.append(1))
    for name in ("a", "b"):
        conflicts.on_chaperon(None, make_chaperon(name, "other"))

    conflicts.on_chaperon(make_chaperon("a", "other"), None)
    assert conflicts.clusters == ["other"]
    conflicts.on_chaperon(make_chaperon("b", "other"), None)
    assert conflicts.clusters == []
    assert len(calls) == 2


def test_of_very_many_clusters_some_are_counted():
    """A target may make up any number, and all were sorted whenever one came or went."""
    calls = []
    conflicts = NameConflicts("own", lambda: calls.append(1))
    chaperons = [make_chaperon(f"c{number}", f"u{number}") for number in range(1000)]
    for chaperon in chaperons:
        conflicts.on_chaperon(None, chaperon)

    assert len(conflicts.clusters) == len(calls) == 100
    for chaperon in chaperons:
        conflicts.on_chaperon(chaperon, None)

    assert conflicts.clusters == []
    assert not conflicts._origins


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["", "own", "x", "y", None]))),
)
def test_the_clusters_are_those_of_the_chaperons_that_are_there(changes):
    calls, present = [], {}
    conflicts = NameConflicts("own", lambda: calls.append(1))
    for name, cluster in changes:
        old = present.pop(name, None)
        new = None if cluster is None else make_chaperon(name, cluster)
        if new is not None:
            present[name] = new

        if old or new:
            conflicts.on_chaperon(old, new)

    annotations = [chaperon["metadata"]["annotations"] for chaperon in present.values()]
    there = {note.get(keys.PARENT_CLUSTER_UID) for note in annotations}
    assert conflicts.clusters == sorted(there - {None, "own"})


def test_the_condition_names_the_other_and_the_cure():
    holds, reason, message = name_conflicts.explain("c1", ["u1", "u2"])
    assert (holds, reason) == (False, "ClusterNameTaken")
    assert "'c1'" in message
    assert "u1, u2" in message
    assert "--cluster-name" in message
    assert name_conflicts.explain("c1", [])[0]


def test_the_condition_appears_with_a_conflict_and_stays_to_say_that_it_is_over():
    target = {"metadata": {"name": "t", "generation": 1}}
    assert name_conflicts.condition(target, "c1", [], NOW) is None
    taken = name_conflicts.condition(target, "c1", ["other"], NOW)
    assert taken is not None
    assert (taken["status"], taken["reason"]) == ("False", "ClusterNameTaken")
    target["status"] = {"conditions": [taken]}
    over = name_conflicts.condition(target, "c1", [], NOW)
    assert over is not None
    assert (over["status"], over["reason"]) == ("True", "NoOtherSeen")


def test_of_many_clusters_with_long_names_a_few_are_named_in_part():
    _holds, _reason, message = name_conflicts.explain("c1", [f"{n}" * 10_000 for n in range(9)])
    assert "2" * 63 in message
    assert "3" * 63 not in message
    assert "and 6 more" in message
    assert len(message) < 600
