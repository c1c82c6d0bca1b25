"""Which full targets see a pod."""

from __future__ import annotations

from collections import Counter
from typing import Any

from scheduler_plugins import defaults
from tests.permitted import any_namespace
from tests.unit.scheduling.builders import ManualClock, pod, virtual_node
from vnode.scheduling import config, registry
from vnode.scheduling.cache import Cache
from vnode.scheduling.framework import Framework
from vnode.scheduling.plugin import Handle
from vnode.scheduling.registry import Registry

FULL = {"cpu": 0, "pods": 100}


def framework(**args: Any) -> Framework:
    section = {"profile": {"pluginConfig": [{"name": "CandidateProbe", "args": args}]}}
    profile = config.load(section).profile
    return registry.build(
        profile,
        Registry(defaults.PLUGINS),
        defaults.WEIGHTS,
        Handle(namespace_refusal=any_namespace, clock=ManualClock()),
    )


def cache_of(**free: dict[str, int]) -> Cache:
    cache = Cache()
    for name, resources in free.items():
        cache.update_node(virtual_node(name))
        cache.update_free(name, resources, resources)

    return cache


def nominated(asked: dict[str, float], uid: str = "p", **free: dict[str, int]) -> tuple[str, ...]:
    snapshot = cache_of(**free).snapshot()
    return framework().schedule(pod(uid, cpu="1"), snapshot, asked).nominated


def test_pods_that_were_nowhere_are_dealt_to_all_full_targets() -> None:
    dealt = Counter(nominated({}, f"p{n}", a=FULL, b=FULL, c=FULL)[0] for n in range(300))
    assert set(dealt) == {"a", "b", "c"}
    assert min(dealt.values()) > 60


def test_targets_that_were_not_asked_go_first_and_then_those_asked_longest_ago() -> None:
    assert nominated({"a": 5.0, "c": 7.0}, a=FULL, b=FULL, c=FULL) == ("b",)
    assert nominated({"a": 5.0, "b": 6.0, "c": 4.0}, a=FULL, b=FULL, c=FULL) == ("c",)


def test_a_full_target_is_nominated_once_all_that_seem_to_have_room_have_said_no() -> None:
    roomy = {"cpu": 10_000, "pods": 100}
    assert nominated({}, a=roomy, b=FULL) == ()
    assert nominated({"b": 1.0}, a=roomy, b=FULL) == ()
    assert nominated({"a": 1.0}, a=roomy, b=FULL) == ("b",)
    assert nominated({"a": 1.0}, a=roomy, b=roomy, c=FULL) == ()


def test_a_plugin_that_targets_may_overcome_keeps_no_pod_off() -> None:
    """Whatever else says no does, although it is unschedulable and no more."""
    cache = cache_of(a=FULL)
    named = {"matchLabels": {"app": "x"}}
    cache.update_node(virtual_node("a", labels={"zone": "1"}))
    term = {"topologyKey": "zone", "labelSelector": named}
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    lonely = pod("p", labels={"app": "x"}, affinity={"podAntiAffinity": terms})
    cache.set_pod(pod("q", labels={"app": "x"}, node="a"))
    profile = framework(plugins=["InterPodAffinity"])
    assert framework().schedule(lonely, cache.snapshot()).excluded == {"a"}
    assert profile.schedule(lonely, cache.snapshot()).excluded == set()
    assert profile.schedule(lonely, cache.snapshot()).nominated == ("a",)
