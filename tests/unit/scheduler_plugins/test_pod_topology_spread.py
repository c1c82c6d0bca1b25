from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_plugins.pod_topology_spread import PodTopologySpread
from tests.permitted import any_namespace
from tests.unit.scheduling.builders import pod, virtual_node
from vnode.scheduling.cache import Cache
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.plugin import Handle, NoArgs

WEB = {"app": "web"}


@pytest.fixture
def plugin() -> PodTopologySpread:
    return PodTopologySpread(NoArgs(), Handle(namespace_refusal=any_namespace))


def constraint(**fields: Any) -> dict[str, Any]:
    return {
        "topologyKey": "region",
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": WEB},
        **fields,
    }


def env(**placed: list[str]) -> Cache:
    """Return a cache of two nodes in region `r1`, one in `r2` and one without a region.

    `placed` has the UIDs of the web pods of each node that is to have some.
    """
    cache = Cache()
    for name, region in (("a", "r1"), ("b", "r1"), ("c", "r2"), ("nowhere", "")):
        cache.update_node(virtual_node(name, labels={"region": region} if region else {}))

    for node, uids in placed.items():
        for uid in uids:
            cache.set_pod(pod(uid, labels=WEB, node=node))

    return cache


def passing(
    plugin: PodTopologySpread, cache: Cache, *constraints: dict[str, Any], **fields: Any
) -> set[str]:
    candidate = pod("p", labels=WEB, topologySpreadConstraints=list(constraints), **fields)
    state, snapshot = CycleState(), cache.snapshot()
    assert plugin.pre_filter(state, candidate, snapshot).is_success
    return {node.name for node in snapshot if plugin.filter(state, candidate, node).is_success}


def test_domains_fill_up_evenly(plugin: PodTopologySpread) -> None:
    assert passing(plugin, env(), constraint()) == {"a", "b", "c"}
    assert passing(plugin, env(a=["x"]), constraint()) == {"c"}
    assert passing(plugin, env(a=["x"]), constraint(maxSkew=2)) == {"a", "b", "c"}
    assert passing(plugin, env(a=["x"], c=["y"]), constraint()) == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("node", "detail"),
    [
        ("a", "(skew over region would be 2, maxSkew is 1)"),
        ("nowhere", "(missing required label region)"),
    ],
)
def test_reasons_are_the_phrase_of_kube_scheduler(
    plugin: PodTopologySpread, node: str, detail: str
) -> None:
    candidate = pod("p", labels=WEB, topologySpreadConstraints=[constraint()])
    state, snapshot = CycleState(), env(a=["x"]).snapshot()
    assert plugin.pre_filter(state, candidate, snapshot).is_success
    chosen = snapshot.get(node)
    assert chosen is not None
    outcome = plugin.filter(state, candidate, chosen)
    assert outcome.message == f"didn't match pod topology spread constraints {detail}"


def test_only_matching_pods_of_the_same_namespace_count(plugin: PodTopologySpread) -> None:
    cache = env()
    cache.set_pod(pod("x", labels={"app": "db"}, node="a"))
    cache.set_pod(pod("y", labels=WEB, node="a", namespace="other"))
    assert passing(plugin, cache, constraint()) == {"a", "b", "c"}


def test_too_few_domains_make_the_minimum_zero(plugin: PodTopologySpread) -> None:
    cache = env(a=["x"], c=["y"])
    assert passing(plugin, cache, constraint(minDomains=3)) == set()


def test_nodes_that_the_pod_cannot_go_to_do_not_hold_the_minimum_down(
    plugin: PodTopologySpread,
) -> None:
    cache = env(a=["x"])
    only_r1 = {"nodeSelector": {"region": "r1"}}
    assert passing(plugin, cache, constraint(), **only_r1) == {"a", "b", "c"}
    ignoring = constraint(nodeAffinityPolicy="Ignore")
    assert passing(plugin, cache, ignoring, **only_r1) == {"c"}


def test_tainted_nodes_count_unless_told_otherwise(plugin: PodTopologySpread) -> None:
    cache = env(a=["x"])
    taint = {"key": "k", "effect": "NoSchedule"}
    cache.update_node(virtual_node("c", labels={"region": "r2"}, taints=[taint]))
    assert passing(plugin, cache, constraint()) == {"c"}
    honoring = constraint(nodeTaintsPolicy="Honor")
    assert passing(plugin, cache, honoring) == {"a", "b", "c"}


def test_match_label_keys_narrow_the_selector_to_the_pods_own_values(
    plugin: PodTopologySpread,
) -> None:
    cache = env()
    cache.set_pod(pod("x", labels={**WEB, "rev": "1"}, node="a"))
    listed = constraint(matchLabelKeys=["rev", "absent"])
    spec: dict[str, Any] = {"topologySpreadConstraints": [listed]}
    for revision, expected in (("1", {"c"}), ("2", {"a", "b", "c"})):
        candidate = pod("p", labels={**WEB, "rev": revision}, **spec)
        state, snapshot = CycleState(), cache.snapshot()
        plugin.pre_filter(state, candidate, snapshot)
        passed = {n.name for n in snapshot if plugin.filter(state, candidate, n).is_success}
        assert passed == expected


def test_a_pod_without_hard_constraints_is_not_filtered(plugin: PodTopologySpread) -> None:
    soft = pod("p", topologySpreadConstraints=[constraint(whenUnsatisfiable="ScheduleAnyway")])
    for candidate in (pod("p"), soft):
        assert plugin.pre_filter(CycleState(), candidate, env().snapshot()).is_skip


def test_soft_constraints_prefer_the_emptier_domain(plugin: PodTopologySpread) -> None:
    cache = env(a=["x", "y"], c=["z"])
    soft = constraint(whenUnsatisfiable="ScheduleAnyway")
    candidate = pod("p", labels=WEB, topologySpreadConstraints=[soft])
    state, snapshot = CycleState(), cache.snapshot()
    assert plugin.pre_score(state, candidate, snapshot, snapshot.nodes).is_success
    scores = {node.name: plugin.score(state, candidate, node) for node in snapshot}
    plugin.normalize_score(state, candidate, scores)
    assert scores == {"a": 49, "b": 49, "c": 100, "nowhere": 0}


def test_an_unreadable_selector_is_a_rejection(plugin: PodTopologySpread) -> None:
    wrong = {"matchExpressions": [{"key": "a", "operator": "Is"}]}
    candidate = pod("p", topologySpreadConstraints=[constraint(labelSelector=wrong)])
    outcome = plugin.pre_filter(CycleState(), candidate, env().snapshot())
    assert outcome.is_rejected


@given(st.integers(1, 3), st.integers(1, 30))
def test_the_skew_never_exceeds_its_limit_whatever_node_is_chosen(skew: int, pods: int) -> None:
    plugin = PodTopologySpread(NoArgs(), Handle(namespace_refusal=any_namespace))
    cache = env()
    for number in range(pods):
        allowed = sorted(passing(plugin, cache, constraint(maxSkew=skew)))
        assert allowed
        cache.assume(pod(f"q{number}", labels=WEB), allowed[number % len(allowed)], 0)

    counts = {"a": 0, "b": 0, "c": 0}
    for node in cache.snapshot():
        counts[node.name] = node.requested.get("pods", 0)

    assert abs(counts["a"] + counts["b"] - counts["c"]) <= skew
