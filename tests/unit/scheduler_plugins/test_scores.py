from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from scheduler_plugins import defaults, normalizing
from tests.permitted import any_namespace
from tests.unit.scheduling.builders import ManualClock, pod, virtual_node
from vnode.scheduling import config, registry
from vnode.scheduling.cache import Cache
from vnode.scheduling.plugin import Handle
from vnode.scheduling.registry import Registry


def scores(plugin: str, cache: Cache, candidate: dict[str, Any], **args: object) -> dict[str, int]:
    """Return what one plugin gives each node, at weight 1."""
    section = {
        "profile": {
            "plugins": {
                "disabled": [{"name": "*"}],
                "enabled": [{"name": "PrioritySort"}, {"name": plugin, "weight": 1}],
            },
            "pluginConfig": [{"name": plugin, "args": args}],
        }
    }
    profile = config.load(section).profile
    known = Registry(defaults.PLUGINS)
    framework = registry.build(
        profile,
        known,
        defaults.WEIGHTS,
        Handle(namespace_refusal=any_namespace, clock=ManualClock()),
    )
    result = framework.schedule(candidate, cache.snapshot())
    assert result.status.is_success, result.status
    return {scored.name: scored.scores.get(plugin, -1) for scored in result.feasible}


def env(**free_cpu: int) -> Cache:
    cache = Cache()
    for name, cpu in free_cpu.items():
        whole = {"cpu": 10_000, "memory": 1000, "pods": 100}
        cache.update_node(virtual_node(name, allocatable=whole, labels={"name": name}))
        cache.update_free(name, {"cpu": cpu, "memory": 500, "pods": 90}, None)

    return cache


def test_least_allocated_prefers_the_emptier_target_and_most_allocated_the_fuller() -> None:
    cache = env(full=2000, empty=9000)
    least = scores("NodeResourcesFit", cache, pod("p", cpu="1"))
    assert least == {"empty": 65, "full": 30}
    most = scores(
        "NodeResourcesFit", cache, pod("p", cpu="1"), scoringStrategy={"type": "MostAllocated"}
    )
    assert most == {"empty": 35, "full": 70}
    only_cpu = {"type": "LeastAllocated", "resources": [{"name": "cpu"}]}
    assert scores("NodeResourcesFit", cache, pod("p", cpu="1"), scoringStrategy=only_cpu) == {
        "empty": 80,
        "full": 10,
    }


def test_balanced_allocation_prefers_equal_fractions() -> None:
    cache = env(balanced=6000, skewed=1000)
    assert scores("NodeResourcesBalancedAllocation", cache, pod("p", cpu="1")) == {
        "balanced": 100,
        "skewed": 75,
    }


def test_a_target_of_unknown_size_is_not_preferred() -> None:
    cache = env(known=9000)
    cache.update_node(virtual_node("unknown"))
    for plugin in ("NodeResourcesFit", "NodeResourcesBalancedAllocation"):
        assert scores(plugin, cache, pod("p", cpu="1"))["unknown"] == 0


def test_preferred_affinity_adds_weights() -> None:
    def preference(name: str, weight: int) -> dict[str, Any]:
        expression = {"key": "name", "operator": "In", "values": [name]}
        return {"weight": weight, "preference": {"matchExpressions": [expression]}}

    listed = [preference("a", 40), preference("b", 10), {"weight": 5, "preference": {}}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": listed}}
    given = scores("NodeAffinity", env(a=1, b=1, c=1), pod("p", affinity=affinity))
    assert given == {"a": 100, "b": 25, "c": 0}


def test_soft_taints_push_pods_away() -> None:
    cache = env(clean=1)
    soft = {"key": "k", "effect": "PreferNoSchedule"}
    cache.update_node(virtual_node("tainted", taints=[soft]))
    assert scores("TaintToleration", cache, pod("p")) == {"clean": 100, "tainted": 0}
    tolerant = pod("p", tolerations=[{"operator": "Exists"}])
    assert scores("TaintToleration", cache, tolerant) == {"clean": 100, "tainted": 100}


def test_siblings_keep_away_from_each_other() -> None:
    cache = env(a=1, b=1, c=1)
    for number, node in enumerate(["a", "a", "b"]):
        cache.set_pod(pod(f"q{number}", owner="rs", node=node))

    assert scores("EvenSpread", cache, pod("p", owner="rs")) == {"c": 100, "b": 50, "a": 0}
    assert set(scores("EvenSpread", cache, pod("p")).values()) == {-1}


@given(st.dictionaries(st.text(), st.integers(0, 10**9)), st.booleans())
def test_normalising_keeps_the_order_and_stays_in_range(raw: dict[str, int], reverse: bool) -> None:
    normal = dict(raw)
    normalizing.by_largest(normal, reverse=reverse)
    assert all(0 <= score <= 100 for score in normal.values())
    for one, score in raw.items():
        for other, higher in raw.items():
            if score < higher:
                low, high = (other, one) if reverse else (one, other)
                assert normal[low] <= normal[high]
