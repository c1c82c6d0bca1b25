from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vnode.api import keys
from vnode.targets import name_conflicts
from vnode.targets.name_conflicts import NameConflicts


def make_chaperon(name, cluster):
    annotations = {keys.PARENT_CLUSTER_UID: cluster} if cluster else {}
    return {"metadata": {"namespace": "ns", "name": name, "annotations": annotations}}


def test_only_other_clusters_are_strangers():
    heard = []
    seen = NameConflicts("own", lambda: heard.append(1))
    for name, cluster in (("a", "own"), ("b", ""), ("c", "other"), ("d", "other")):
        seen.see(None, make_chaperon(name, cluster))

    assert seen.clusters == ["other"]
    assert len(heard) == 1


def test_a_cluster_is_forgotten_with_its_last_chaperon():
    heard = []
    seen = NameConflicts("own", lambda: heard.append(1))
    for name in ("a", "b"):
        seen.see(None, make_chaperon(name, "other"))

    seen.see(make_chaperon("a", "other"), None)
    assert seen.clusters == ["other"]
    seen.see(make_chaperon("b", "other"), None)
    assert seen.clusters == []
    assert len(heard) == 2


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["", "own", "x", "y", None]))),
)
def test_the_clusters_are_those_of_the_chaperons_that_are_there(changes):
    heard, present = [], {}
    seen = NameConflicts("own", lambda: heard.append(1))
    for name, cluster in changes:
        old = present.pop(name, None)
        new = None if cluster is None else make_chaperon(name, cluster)
        if new is not None:
            present[name] = new

        if old or new:
            seen.see(old, new)

    annotations = [chaperon["metadata"]["annotations"] for chaperon in present.values()]
    there = {note.get(keys.PARENT_CLUSTER_UID) for note in annotations}
    assert seen.clusters == sorted(there - {None, "own"})


def test_the_condition_names_the_other_and_the_cure():
    holds, reason, message = name_conflicts.explain("c1", ["u1", "u2"])
    assert (holds, reason) == (False, "ClusterNameTaken")
    assert "'c1'" in message
    assert "u1, u2" in message
    assert "--cluster-name" in message
    assert name_conflicts.explain("c1", [])[0]
