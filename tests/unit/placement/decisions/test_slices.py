"""Decisions are read from objects that anybody may have written."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.decisions import of_placement, of_profiles
from vnode.api import keys
from vnode.api.objects import Object
from vnode.placement.decisions import slices
from vnode.planning.cluster_decision import ClusterDecision, DecisionKind, DecisionReference

SIG = DecisionReference(DecisionKind.PLACEMENT_DECISION, "default", "web")
OCM = DecisionReference(DecisionKind.PLACEMENT, "default", "web")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["clusterName", "clusterProfileRef", "name", "x"]), inner)
    ),
    max_leaves=8,
)


def read(reference: DecisionReference, *found: Object, **profiles: str) -> ClusterDecision:
    """Read with the virtual nodes of profiles of the namespace fleet."""
    nodes = {f"fleet/{name}": frozenset({node}) for name, node in profiles.items()}
    return slices.read(reference, found, nodes)


def names(decision: ClusterDecision) -> list[str]:
    return [each.name for each in decision.clusters]


def test_slices_are_one_list_in_the_order_of_their_index() -> None:
    found = read(
        SIG,
        of_profiles("web", "fleet/d", index=10),
        of_profiles("web", "fleet/c", "b", index=2),
        of_profiles("web", "fleet/a", "fleet/c", index=0),
        of_profiles("other", "fleet/x"),
        of_profiles("web", "fleet/y", namespace="elsewhere"),
        a="node-a",
    )
    assert names(found) == ["fleet/a", "fleet/c", "default/b", "fleet/d"]
    assert [each.nodes for each in found.clusters[:2]] == [{"node-a"}, frozenset()]
    assert "web-2 is slice 1 by its place, and 2 by its label" in found.oddities[0]


def test_one_without_a_key_is_found_by_its_name() -> None:
    alone = of_profiles("x", "fleet/a")
    alone["metadata"] = {"name": "web", "namespace": "default"}
    assert names(read(SIG, alone)) == ["fleet/a"]
    assert names(read(SIG, alone, of_profiles("web", "fleet/b"))) == ["fleet/b"]


def test_a_placement_has_its_decisions_by_group_and_number() -> None:
    found = read(
        OCM,
        of_placement("web", "late", number=10),
        of_placement("web", "c", "b", number=9),
        of_placement("web", "last", number=1, group=1),
        of_placement("other", "x"),
        of_profiles("web", "fleet/y"),
    )
    assert names(found) == ["c", "b", "late", "last"]
    assert not found.oddities


def test_nothing_decided_is_no_missing_decision() -> None:
    assert read(OCM, of_placement("web")) == ClusterDecision(OCM)
    assert read(SIG, of_profiles("web")) == ClusterDecision(SIG)


@pytest.mark.parametrize(("reference", "cure"), [(SIG, "kubectl get"), (OCM, "kubectl describe")])
def test_a_missing_one_names_the_cure(reference: DecisionReference, cure: str) -> None:
    found = read(reference, of_profiles("other", "fleet/x"))
    assert found.is_known
    assert found.reason == "DecisionNotFound"
    assert cure in found.problem


@pytest.mark.parametrize(
    "entry",
    [
        None,
        7,
        {},
        {"clusterProfileRef": "a"},
        {"clusterProfileRef": {"name": "../a"}},
        {"clusterProfileRef": {"name": "a", "namespace": ["x"]}},
    ],
)
def test_what_cannot_be_read_is_left_out_and_told(entry: Any) -> None:
    odd = of_profiles("web", "fleet/a")
    odd["decisions"].insert(0, entry)
    found = read(SIG, odd)
    assert names(found) == ["fleet/a"]
    assert found.oddities == ("web-0 has a decision without a usable clusterProfileRef",)


@given(JSON)
def test_no_object_does_harm(content: Any) -> None:
    metadata = of_placement("web")["metadata"]
    assert read(OCM, {"metadata": metadata, "status": content}) is not None
    assert read(OCM, {"metadata": metadata, "status": {"decisions": content}}) is not None
    metadata = of_profiles("web")["metadata"]
    assert len(read(SIG, {"metadata": metadata, "decisions": content}).oddities) <= 5


@given(st.text(max_size=20))
def test_no_index_does_harm(index: str) -> None:
    odd = of_profiles("web", "fleet/a")
    odd["metadata"]["labels"][keys.DECISION_INDEX] = index
    assert set(names(read(SIG, odd, of_profiles("web", "fleet/b")))) == {"fleet/a", "fleet/b"}


def test_a_decision_for_more_clusters_than_there_can_be_is_cut() -> None:
    many = [f"c{n}" for n in range(slices.MOST + 10)]
    found = read(OCM, of_placement("web", *many))
    assert names(found) == many[: slices.MOST]
    assert "only the first" in found.oddities[0]


NONSENSE: Object = {
    "metadata": {"name": "web", "namespace": "default"},
    "decisions": [{}] * 300_000,
}
OF_MANY: list[Object] = [of_profiles("web", *["UPPER"] * 100, index=n) for n in range(5_000)]


@pytest.mark.parametrize("found", [[NONSENSE], OF_MANY], ids=["nonsense", "slices"])
def test_what_is_no_cluster_costs_no_more_than_clusters_do(found: list[Object]) -> None:
    begun = time.thread_time()
    decision = read(SIG, *found)
    assert time.thread_time() - begun < 0.3  # 0.8 and 2.7 s, if all were read
    assert decision.clusters == ()
    assert "only the first" in decision.oddities[-1]
