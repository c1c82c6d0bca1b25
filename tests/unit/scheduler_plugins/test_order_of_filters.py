"""Which nodes a pod may go to does not depend on the order in which Filter plugins are enabled."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_plugins import defaults
from tests.permitted import any_namespace
from tests.unit.pods.policies import Fixed, entry, spread
from tests.unit.scheduling.builders import ManualClock, pod, virtual_node
from vnode.api.objects import Object
from vnode.planning.policy import Mode, Policy
from vnode.planning.workload import Workload
from vnode.scheduling import registry, status
from vnode.scheduling.cache import Cache
from vnode.scheduling.config import DisabledPlugin, EnabledPlugin, Plugins, Profile
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.framework import Framework
from vnode.scheduling.plugin import FilterPlugin, Handle
from vnode.scheduling.registry import Registry
from vnode.scheduling.result import CycleResult
from vnode.scheduling.snapshot import VirtualNodeInfo
from vnode.scheduling.status import SUCCESS, Status

FREE = {"none": {"cpu": 0, "pods": 100}, "some": {"cpu": 2000, "pods": 100}}
MEMOS = {"_seats", "_oldest"}  # of a Workload: what follows from the rest
TAINT = {"key": "of-others", "effect": "NoSchedule"}


class License(FilterPlugin):
    """A user's own plugin: one cluster has no license."""

    NAME = "License"

    def filter(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> Status:
        return status.unschedulable("no license") if node.name == "b" else SUCCESS


def profile(names: list[str]) -> Profile:
    """Return one in which these plugins are enabled in that order, with their usual weights."""
    enabled = [EnabledPlugin(name) for name in names]
    return Profile(Plugins(enabled, [DisabledPlugin("*")]))


def build(policy: Policy | None, chosen: Profile) -> Framework:
    return registry.build(
        chosen,
        Registry((*defaults.PLUGINS, License)),
        defaults.WEIGHTS,
        Handle(namespace_refusal=any_namespace, policies=Fixed(policy), clock=ManualClock()),
    )


def of_web(uid: str, node: str = "") -> dict[str, Any]:
    made = pod(uid, owner="web", cpu="1", node=node)
    made["metadata"]["ownerReferences"][0] |= {"kind": "Job", "name": "web"}
    return made


def schedule(framework: Framework, cache: Cache, one: Object) -> CycleResult:
    cache.set_pod(one)
    result = framework.schedule(one, cache.snapshot())
    result.state.outcome.record()
    return result


@pytest.mark.parametrize("is_first", [False, True])
def test_no_pod_is_planned_for_a_cluster_that_a_users_plugin_rejects(is_first: bool) -> None:
    """Appended, as configuration does it, it stands after the plugin that plans."""
    names = list(defaults.WEIGHTS)
    framework = build(
        spread(entry("a"), entry("b")),
        profile(["License", *names] if is_first else [*names, "License"]),
    )
    cache = Cache()
    for name in "ab":
        cache.update_node(virtual_node(name))
        cache.update_free(name, {"cpu": 10_000, "pods": 100}, {"cpu": 10_000, "pods": 100})

    results = [schedule(framework, cache, of_web(f"p{number}")) for number in range(4)]
    assert [[node.name for node in each.feasible] for each in results] == [["a"]] * 4
    assert results[0].statuses["b"].message == "no license"


@st.composite
def caches(draw: st.DrawFn) -> tuple[list[tuple[str, dict[str, Any], str]], list[str]]:
    """Draw what nodes are like, and where pods of the workload run."""
    nodes = []
    for name in "abcd"[: draw(st.integers(1, 4))]:
        fields: dict[str, Any] = {
            "cordoned": draw(st.booleans()),
            "taints": [TAINT] if draw(st.booleans()) else [],
            "healthy": draw(st.booleans()),
        }
        fields["connecting"] = not fields["healthy"] and draw(st.booleans())
        nodes.append((name, fields, draw(st.sampled_from(sorted(FREE)))))

    bound = draw(st.lists(st.sampled_from([name for name, *_ in nodes]), max_size=3))
    return nodes, bound


def policies() -> st.SearchStrategy[Policy | None]:
    entries = st.lists(st.sampled_from("abcd"), min_size=1, max_size=4, unique=True)
    modes = st.sampled_from([Mode.SPREAD, Mode.FILL, Mode.SINGLE, Mode.ANY])
    made = st.builds(
        lambda mode, names, weight: spread(*(entry(n, weight=weight) for n in names), mode=mode),
        modes,
        entries,
        st.sampled_from([None, 3]),
    )
    return st.none() | made


def described(result: CycleResult, workload: Workload) -> object:
    """Return all that others go by, but for which of several rejections is named."""
    return (
        result.status.code,
        [(node.name, dict(node.scores)) for node in result.feasible],
        result.nominated,
        result.excluded,
        result.state.outcome.kept,
        result.state.outcome.better,
        dict(workload.aimed),
        dict(workload.opened),
    )


@given(
    there=caches(),
    policy=policies(),
    order=st.permutations([*defaults.WEIGHTS, "License"]),
)
def test_shuffled_plugins_give_the_same_result(
    there: tuple[list[tuple[str, dict[str, Any], str]], list[str]],
    policy: Policy | None,
    order: list[str],
) -> None:
    nodes, bound = there
    found = []
    for chosen in (profile([*defaults.WEIGHTS, "License"]), profile(order)):
        framework, cache = build(policy, chosen), Cache()
        for name, fields, free in nodes:
            cache.update_node(virtual_node(name, **fields))
            cache.update_free(name, FREE[free], FREE[free])

        for number, node in enumerate(bound):
            cache.set_pod(of_web(f"b{number}", node))

        for number in range(3):
            result = schedule(framework, cache, of_web(f"p{number}"))
            workload = cache.workloads.of(of_web("p0"), "")
            found.append(described(result, workload))

    assert found[:3] == found[3:]


def contents(value: object, seen: set[int]) -> object:
    """Return all that an object holds, in a form that can be compared."""
    if isinstance(value, str | int | float | bool | None):
        return value

    if id(value) in seen:
        return "..."

    seen = seen | {id(value)}
    if isinstance(value, dict | Counter):
        return {repr(k): contents(v, seen) for k, v in value.items()}

    if isinstance(value, list | tuple | set | frozenset):
        return [contents(each, seen) for each in value]

    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    names = [*getattr(value, "__dict__", ()), *slots]
    if callable(value) or not names:
        return type(value).__name__

    kept = (name for name in names if name not in MEMOS)
    return {name: contents(getattr(value, name, None), seen) for name in kept}


@given(there=caches(), policy=policies())
def test_what_only_asks_leaves_the_cache_as_it_was(
    there: tuple[list[tuple[str, dict[str, Any], str]], list[str]], policy: Policy | None
) -> None:
    nodes, bound = there
    framework, cache = build(policy, Profile()), Cache()
    for name, fields, free in nodes:
        cache.update_node(virtual_node(name, **fields))
        cache.update_free(name, FREE[free], FREE[free])

    for number, node in enumerate(bound):
        cache.set_pod(of_web(f"b{number}", node))

    pods = [of_web(f"p{number}") for number in range(2)]
    for one in pods:
        schedule(framework, cache, one)

    snapshot = cache.snapshot()
    before = contents(cache, set())
    for one in (*pods, of_web("new")):
        framework.takers(one, snapshot)
        for name, *_ in nodes:
            framework.check(one, snapshot, name)

    assert contents(cache, set()) == before
