"""Quotas with promises: whatever happens in whatever order, the sums are those of the pods."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import computing
from tests.unit.scheduling import costs
from tests.unit.scheduling.builders import pod, virtual_node
from vnode.api import limit_ranges, objects, resource_quotas
from vnode.api.clock import SystemClock
from vnode.api.limit_ranges import LimitRange
from vnode.api.objects import Object
from vnode.api.priorities import BY_NAME
from vnode.api.resource_quotas import Quota
from vnode.scheduling.cache import Cache
from vnode.scheduling.known_usages import KnownUsages
from vnode.scheduling.promises import REPORT_SECONDS
from vnode.scheduling.quota_rules import MOST
from vnode.scheduling.quotas import Quotas

PODS = [
    pod(f"p{n}", namespace="n0" if n < 5 else "n1", cpu=f"{n}", priorityClassName="ab"[n % 2])
    for n in range(6)
]
NODES = ("x", "x", "y")
NAMESPACES = ("n0", "n1")


def quota(hard: dict[str, str], used: dict[str, str] | None = None, *classes: str) -> Quota:
    expression = {"scopeName": "PriorityClass", "operator": "In", "values": list(classes)}
    spec = {"scopeSelector": {"matchExpressions": [expression]}} if classes else {}
    obj = {"metadata": {"name": "q"}, "spec": spec, "status": {"hard": hard, "used": used or {}}}
    return resource_quotas.parse(obj)


def limit_range(cpu: str) -> LimitRange:
    limits = [{"type": "Container", "default": {"memory": cpu}, "defaultRequest": {"memory": cpu}}]
    return limit_ranges.parse({"metadata": {"name": "l"}, "spec": {"limits": limits}})


PLACES = st.tuples(st.sampled_from(NODES), st.sampled_from(("n0", "n0", "n1")), st.just("q"))
HARD = st.dictionaries(
    st.sampled_from(["cpu", "pods", "memory"]), st.sampled_from("01234"), min_size=1, max_size=2
)
RULES = st.one_of(
    st.none(),
    st.builds(
        lambda hard, classes: quota(hard, {}, *classes), HARD, st.sampled_from(["", "", "a", "ab"])
    ),
)
RANGES = st.one_of(st.none(), st.builds(limit_range, st.sampled_from("123")))
NUMBERS = st.integers(0, 2)  # of pods, all in one namespace
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("quota"), PLACES, RULES),
        st.tuples(st.just("range"), PLACES, RANGES),
        st.tuples(st.just("promise"), st.sampled_from(NODES), NUMBERS),
        st.tuples(st.just("settle"), st.sampled_from(NODES), NUMBERS),
        st.tuples(st.just("gone"), st.sampled_from(NODES), st.none()),
    ),
    min_size=15,
    max_size=40,
)


def apply(quotas: Quotas, kind: str, place: Any, value: Any) -> None:
    match kind:
        case "quota":
            quotas.set_quota(place[0], place[1], place[2], value)
        case "range":
            quotas.set_limit_range(place[0], place[1], place[2], value)
        case "promise":
            quotas.promise(PODS[value], place)
        case "settle":
            quotas.settle(f"p{value}", place)
        case "gone":
            quotas.remove_node(place)


def remembered(steps: list[Any]) -> list[Any]:
    """Return what is left of the steps, in the order in which it is simplest: rules, then pods."""
    left: dict[Any, Any] = {}
    for kind, place, value in steps:
        if kind == "gone":
            left = {k: v for k, v in left.items() if k[0] == "promise" or k[1][0] != place}
        elif kind == "settle":
            left.pop(("promise", (place, value)), None)
        elif kind == "promise":
            left[kind, (place, value)] = value
        elif value is None:
            left.pop((kind, place), None)
        else:
            left[kind, place] = value

    order = ("range", "quota", "promise")
    return [
        (kind, place[0] if kind == "promise" else place, value)
        for (kind, place), value in sorted(left.items(), key=lambda item: order.index(item[0][0]))
    ]


@given(STEPS)
def test_refusals_are_those_of_quotas_that_learned_of_the_rules_first_and_of_the_pods_then(
    steps: list[Any],
) -> None:
    quotas, fresh = Quotas(), Quotas()
    for step in steps:
        seen, before = quotas.generation, refusals(quotas)
        apply(quotas, *step)
        assert quotas.generation != seen or refusals(quotas) == before

    for step in remembered(steps):
        apply(fresh, *step)

    assert refusals(quotas) == refusals(fresh)
    for namespace in NAMESPACES:
        assert quotas.concerns(namespace) == fresh.concerns(namespace)


def refusals(quotas: Quotas) -> list[str]:
    certain = [" ".join(quotas.refusals(each, node, 0)) for each in PODS for node in NODES]
    return certain + [lacks(quotas, each, node) for each in PODS for node in NODES]


def lacks(quotas: Quotas, each: Object, node: str) -> str:
    """Return what a pod seems to lack on a node whose target nobody asks."""
    return quotas.waits(each, node, 0, asks=False)


def test_a_pod_does_not_keep_itself_away() -> None:
    quotas = Quotas()
    quotas.set_quota("x", "n0", "q", quota({"cpu": "2"}))
    assert lacks(quotas, PODS[2], "x") == ""
    quotas.promise(PODS[2], "x")
    quotas.promise(PODS[2], "x")
    assert lacks(quotas, PODS[2], "x") == ""
    assert lacks(quotas, PODS[4], "x") == (
        "no room in ResourceQuota q for cpu 4, and 2 of 2 are used"
    )
    assert lacks(quotas, PODS[4], "y") == lacks(quotas, PODS[5], "x") == ""


def test_a_scope_selects_pods_by_the_class_that_they_have_in_the_target() -> None:
    cache, urgent = Cache(), pod("p", namespace="n0", cpu="3", priorityClassName="urgent")
    cache.quotas.set_quota("x", "n0", "q", quota({"cpu": "2"}, {}, "high"))
    assert lacks(cache.quotas, urgent, "x") == ""
    seen = cache.generation
    cache.update_node(virtual_node("x", priority_classes={"urgent": "high"}))
    assert cache.generation != seen
    assert lacks(cache.quotas, urgent, "x")


def test_only_more_room_and_an_end_of_a_promise_may_help_others() -> None:
    quotas = Quotas()
    assert not quotas.set_quota("x", "n0", "q", quota({"cpu": "2"}))
    assert not quotas.set_quota("x", "n0", "q", quota({"cpu": "2"}, {"cpu": "1"}))
    assert quotas.set_quota("x", "n0", "q", quota({"cpu": "2"}))
    assert quotas.set_quota("x", "n0", "q", quota({"cpu": "2"}, {}, "a"))
    quotas.promise(PODS[2], "x")
    seen = quotas.generation
    assert quotas.settle("p2", "x")
    assert quotas.generation != seen
    assert not quotas.settle("p2", "x")
    quotas.promise(PODS[5], "x")
    assert not quotas.settle("p5", "x")  # no quota in its namespace
    assert quotas.set_quota("x", "n0", "q", None)


def test_of_a_namespace_with_very_many_quotas_some_are_left_to_its_api_server() -> None:
    quotas = Quotas()
    for number in range(2 * MOST):
        rule = Quota(f"q{number}", {"pods": 0}, {}, frozenset())
        quotas.set_quota("x", "n0", rule.name, rule)

    assert len(quotas.refusals(PODS[0], "x", 0)) == MOST


def test_an_assumption_is_a_promise_until_it_is_withdrawn() -> None:
    cache = Cache()
    cache.quotas.set_quota("x", "n0", "q", quota({"cpu": "4"}))
    cache.assume(PODS[2], "x", now=0)
    assert lacks(cache.quotas, PODS[4], "x")
    cache.set_pod(pod("p2", namespace="n0", cpu="2", node="x"))
    assert lacks(cache.quotas, PODS[4], "x")
    cache.remove_pod("p2")
    assert not lacks(cache.quotas, PODS[4], "x")
    cache.assume(PODS[2], "x", now=0)
    seen = cache.generation
    cache.forget("p2", "x")
    assert not lacks(cache.quotas, PODS[4], "x")
    assert cache.generation != seen


def test_who_does_not_ask_counts_what_was_taken_until_the_target_has_reported_it() -> None:
    """The answer about a candidate may come before the quota that has the delegate in its sum."""
    quotas = Quotas()
    quotas.set_quota("x", "n0", "q", quota({"pods": "1"}, {"pods": "0"}))
    quotas.promise(PODS[0], "x")
    assert quotas.refusals(PODS[1], "x", 0)
    assert quotas.settle("p0", "x", 10.0)
    assert not quotas.refusals(PODS[1], "x", 10.0), "it is asked, and refuses"
    assert quotas.refusals(PODS[1], "x", 10.0, asks=False)
    assert not quotas.refusals(PODS[1], "x", 10.0 + REPORT_SECONDS, asks=False)


def test_what_others_take_counts_beside_pods_that_are_asked_for_together() -> None:
    quotas = Quotas()
    quotas.set_quota("x", "n0", "q", quota({"cpu": "7"}))
    taken = quotas.demand(PODS[2], 2, "x")
    assert not quotas.lack([(PODS[2], 1)], "x", taken)
    assert quotas.lack([(PODS[2], 2)], "x", taken)
    assert quotas.lack([(PODS[2], 1), (PODS[2], 1)], "x", taken)
    assert quotas.demand(PODS[2], 2, "y") == {}


def test_each_of_many_pods_that_are_asked_for_together_costs_the_same() -> None:
    quotas = Quotas()
    quotas.set_quota("x", "n0", "q", quota({"cpu": "1000000"}))

    def cost(count: int) -> int:
        pods = [(PODS[2], 1)] * count
        return costs.bytecodes(lambda: quotas.lack(pods, "x"))

    assert cost(400) < 5 * cost(100)


@pytest.mark.parametrize("namespace", ["n0", "n1"])
def test_a_candidate_that_is_gone_has_answers_of_its_namespace_alone_looked_at(
    namespace: str,
) -> None:
    quotas = Quotas()
    for name in ("n0", "n1"):
        quotas.set_quota("x", name, "q", quota({"pods": "9"}))

    for number in range(300):
        metadata = {"name": "p", "namespace": "n1", "uid": f"u{number}"}
        kind = {**metadata, "labels": {"kind": f"of-{number}"}}
        quotas.answer({"metadata": kind, "spec": {"containers": []}}, "x", "no")

    seen = quotas.generation
    cost = costs.bytecodes(lambda: quotas.leave("u0", namespace, "x", 0))
    assert (quotas.generation != seen) is (namespace == "n1")
    assert (cost > 300) is (namespace == "n1")


def test_of_hundreds_of_limit_ranges_few_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[LimitRange] = []

    def look(each: LimitRange, _spec: Object) -> list[str]:
        looked.append(each)
        return []

    monkeypatch.setattr(LimitRange, "violations", look)
    quotas = Quotas()
    for number in range(200):
        quotas.set_limit_range("x", "n0", f"l{number}", limit_range("1"))

    quotas.refusals(PODS[0], "x", 0)
    assert 0 < len(looked) <= 10


def test_what_a_pod_counts_for_is_worked_out_once_for_equal_limits() -> None:
    known, found = KnownUsages(), pod("p", containers=[{"name": "c"}])
    first = known.of(found, [limit_range("1")], BY_NAME)
    assert known.of(found, [limit_range("1")], BY_NAME) is first
    assert known.of(found, [limit_range("2")], BY_NAME) != first
    assert known.of(found, [], BY_NAME).spec == objects.spec(found)
    assert known.kind(first) is known.kind(first)
    assert known.of(pod("p", containers=[{"name": "c"}]), [limit_range("1")], BY_NAME) == first


def test_thousands_of_containers_are_not_held_to_each_limit_of_each_target() -> None:
    """Five targets took 1.4 s in one cycle."""
    quotas, targets = Quotas(), [f"t{number}" for number in range(5)]
    for number, target in enumerate(targets, 1):
        quotas.set_quota(target, "default", "q", quota({"requests.cpu": "1k", "limits.cpu": "1k"}))
        quotas.set_limit_range(target, "default", "r", limit_range(str(number)))

    containers = [{"name": f"c{number}", "image": "x"} for number in range(8_000)]
    large = pod("p", containers=containers)
    begun = time.thread_time()
    for target in targets:
        assert not quotas.refusals(large, target, 0.0)
        assert not quotas.waits(large, target, 0.0, asks=True)

    assert time.thread_time() - begun < 0.25


def test_a_candidate_that_goes_looks_at_no_quotas_of_other_namespaces() -> None:
    def cost(namespaces: int) -> int:
        quotas = Quotas()
        for number in range(namespaces):
            quotas.set_quota("t", f"team-{number}", "q", quota({"pods": "1"}))

        return costs.bytecodes(lambda: quotas.leave("p", "t", "team-0", 0.0))

    assert cost(500) == cost(1)


@pytest.mark.parametrize("is_first", [True, False])
async def test_thousands_of_promised_pods_are_counted_by_other_limits_in_slices(
    is_first: bool,
) -> None:
    """Of 3,000 pods that took 220 ms in one step."""
    quotas, clock = Quotas(), SystemClock()
    if not is_first:
        quotas.set_quota("x", "default", "q", quota({"requests.memory": "10k", "pods": "10k"}))

    pods = [pod(f"p{number}", containers=[{"name": "c"}]) for number in range(3_000)]
    for each in pods:
        quotas.promise(each, "x")

    with computing.steps() as took:
        changed = asyncio.create_task(limit(quotas))
        await changed
        counting = asyncio.create_task(quotas.recounting.over(clock))
        await asyncio.sleep(0)
        assert not quotas.recounting.is_over
        quotas.settle("p2999", "x")
        quotas.settle("p0", "x")
        await counting

    assert max(took) < 0.05
    quotas.set_quota("x", "default", "q", quota({"requests.memory": "2999", "pods": "10k"}))
    assert not quotas.lack([(pods[0], 1)], "x")
    assert quotas.lack([(pods[0], 2)], "x")
    for each in pods:
        quotas.settle(objects.uid(each), "x")

    assert not quotas.lack([(pods[0], 2999)], "x")


async def limit(quotas: Quotas) -> None:
    quotas.set_limit_range("x", "default", "l", limit_range("1"))
