"""Counts of workloads: exactly what a full count gives, whatever happened before."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests import computing
from tests.computing import BusyClock
from tests.unit.scheduling import costs
from vnode.api import objects
from vnode.api.clock import SystemClock
from vnode.planning.deleted_replicas import KEPT
from vnode.planning.move_state import replicas_of
from vnode.planning.pod_size import PodSize
from vnode.planning.weighing import Weighting
from vnode.planning.workload import Workload
from vnode.planning.workload_counts import FEW
from vnode.planning.workload_pod import unschedulable_since
from vnode.scheduling.cache import Cache

NODES = ("a", "b")
SIZES = (1, 2)


def pod(
    uid: str, owner: str = "web", node: str = "", since: int | None = None, **fields: Any
) -> dict[str, Any]:
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": owner, "uid": owner}
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    moment = {"lastTransitionTime": objects.timestamp(datetime.fromtimestamp(since or 0, UTC))}
    return {
        "metadata": {
            "name": uid,
            "namespace": "default",
            "uid": uid,
            "ownerReferences": [{**reference, "controller": True}],
            **fields.get("metadata", {}),
        },
        "spec": {"nodeName": node} if node else {},
        "status": {
            "phase": fields.get("phase", "Pending"),
            "conditions": [] if since is None else [{**condition, **moment}],
        },
    }


def requesting(cpus: int, made: dict[str, Any]) -> dict[str, Any]:
    """Return a pod that requests CPUs."""
    requests = {"requests": {"cpu": str(cpus)}}
    spec = {**made["spec"], "containers": [{"name": "main", "resources": requests}]}
    return {**made, "spec": spec}


def web(cache: Cache) -> Workload:
    return cache.workloads.of(pod("x"), "")


def test_terminating_and_finished_pods_do_not_count() -> None:
    cache = Cache()
    cache.set_pod(pod("p", node="a"))
    cache.set_pod(pod("q", node="a"))
    assert web(cache).bound == {"a": 2}
    cache.set_pod(pod("p", node="a", phase="Succeeded"))
    cache.set_pod(pod("q", node="a", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}))
    assert not web(cache).members
    assert not web(cache).bound


def stateful(uid: str, **fields: Any) -> dict[str, Any]:
    made = pod(uid, node="a", **fields)
    made["metadata"]["ownerReferences"][0].update(apiVersion="apps/v1", kind="StatefulSet")
    return made


def test_a_pod_that_is_replaced_when_it_is_gone_is_awaited() -> None:
    cache = Cache()
    ends: Any = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    going = stateful("web-0", metadata=ends)
    cache.set_pod(stateful("web-0"))
    cache.set_pod(stateful("web-1"))
    workload = cache.workloads.of(going, "")
    for phase in ("Running", "Failed"):
        going["status"]["phase"] = phase
        cache.set_pod(going)
        assert workload.bound == {"a": 1}
        assert [each.name for each in workload.deleted] == ["web-0"]

    cache.set_pod(pod("p", node="a", metadata=ends))  # a Job has made another one
    assert not web(cache).deleted
    [deleted] = workload.deleted
    assert [deleted.is_awaited(deleted.ends_at + age) for age in (0, 599, 600)] == [1, 1, 0]

    cache.remove_pod("web-0")
    [deleted] = workload.deleted
    assert [deleted.is_awaited(deleted.ends_at + age) for age in (0, 59, 60)] == [1, 1, 0]

    cache.set_pod({**stateful("other"), "metadata": {**stateful("other")["metadata"], "uid": "o"}})
    assert workload.deleted
    again = stateful("web-0")
    again["metadata"]["uid"] = "again"
    cache.set_pod(again)
    assert not workload.deleted


def test_a_workload_of_which_no_pod_is_left_is_forgotten() -> None:
    cache = Cache()
    going = stateful("web-0", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    workload = cache.workloads.of(going, "")
    cache.set_pod(going)
    assert cache.workloads.of(going, "").deleted
    cache.remove_pod("web-0")
    assert not cache.workloads.of(going, "").deleted
    assert not workload.deleted


def test_weights_by_capacity_are_told_once_a_pod_was_planned_by_them() -> None:
    cache = Cache()
    cache.set_pod(pod("p"))
    assert cache.workloads.weights("job/default/web", "") is None
    web(cache).weigh(Weighting((), {"a": 30, "b": 10}, ()))
    assert cache.workloads.weights("job/default/web", "") == {"a": 30, "b": 10}
    assert cache.workloads.weights("job/default/other", "") is None
    assert cache.workloads.weights("job/elsewhere/web", "") is None


def test_a_pod_that_is_bound_where_it_was_not_planned_frees_its_place() -> None:
    cache = Cache()
    cache.set_pod(pod("p", since=1))
    workload = web(cache)
    workload.plan(workload.members["p"], "a", (("b", 9.0),))
    assert (workload.aimed, workload.opened, workload.held) == (
        {"a": 1},
        {"b": 1},
        {"a": 1, "b": 1},
    )
    assert not cache.set_pod(pod("p", since=2))
    assert cache.set_pod(pod("p", node="b"))
    assert (workload.aimed, workload.opened, workload.held) == ({}, {}, {"b": 1})
    assert not cache.remove_pod("p")


def test_a_pending_pod_that_goes_frees_its_place() -> None:
    cache = Cache()
    cache.set_pod(pod("p"))
    workload = web(cache)
    assert not cache.remove_pod("unknown")
    workload.plan(workload.members["p"], "a", ())
    assert cache.remove_pod("p")
    assert not workload.held


def test_the_label_of_a_policy_divides_pods_otherwise() -> None:
    cache = Cache()
    for uid, owner in (("p", "one"), ("q", "two")):
        cache.set_pod(pod(uid, owner, node="a", metadata={"labels": {"set": "s"}}))

    sample = pod("x", metadata={"labels": {"set": "s"}})
    assert cache.workloads.of(sample, "set").bound == {"a": 2}
    assert cache.workloads.of(pod("x", "one"), "").bound == {"a": 1}


def test_the_clock_of_a_pod_does_not_begin_while_a_gate_holds_it() -> None:
    gated = pod("p", since=3)
    assert unschedulable_since(gated) == 3
    gated["status"]["conditions"][0]["reason"] = "SchedulingGated"
    assert unschedulable_since(gated) is None


steps = st.tuples(
    st.sampled_from(("pending", "bound", "gone", "done", "assume", "forget", "aim")),
    st.sampled_from("pqrs"),
    st.sampled_from(("one", "two")),
    st.sampled_from(NODES),
    st.none() | st.integers(1, 50),
)


class CountsEnvironment:
    """A cache, and the pods that are live in it."""

    def __init__(self) -> None:
        self.cache = Cache()
        self.live: dict[str, dict[str, Any]] = {}

    def do(self, action: str, uid: str, owner: str, node: str, since: int | None) -> None:
        known = self.live.get(uid)
        is_bound = known is not None and "nodeName" in known["spec"]
        if action in ("pending", "bound"):
            if not is_bound:
                made = pod(uid, owner, node if action == "bound" else "", since)
                self.live[uid] = requesting(SIZES[uid in "pq"], made)
                self.cache.set_pod(self.live[uid])
        elif action == "gone":
            self.live.pop(uid, None)
            self.cache.remove_pod(uid)
        elif action == "done" and known:
            del self.live[uid]
            self.cache.set_pod({**known, "status": {"phase": "Failed"}})
        elif known and not is_bound:
            self.move(action, known, node, since)

    def move(self, action: str, known: dict[str, Any], node: str, since: int | None) -> None:
        uid = known["metadata"]["uid"]
        if action == "assume":
            self.cache.assume(known, node, 0.0)
        elif action == "forget":
            self.cache.forget(uid, node)
        else:
            workload = self.cache.workloads.of(known, "")
            opened = ((NODES[node == NODES[0]], float(since)),) if since else ()
            workload.plan(workload.members[uid], node, opened)

    def check(self, owner: str) -> None:
        workload = self.cache.workloads.of(pod("x", owner), "")
        owners = {uid: p["metadata"]["ownerReferences"][0]["name"] for uid, p in self.live.items()}
        assert workload.members.keys() == {uid for uid in owners if owners[uid] == owner}
        members = list(workload.members.values())
        assert workload.bound == Counter(m.node for m in members if m.node)
        assert workload.aimed == Counter(m.aim for m in members if m.aim)
        assert workload.opened == Counter(n for m in members for n, _ in m.opened)
        assert workload.held == Counter(node for m in members for node in m.holds())
        for member in members:
            assert not member.node or not (member.aim or member.opened or member.assumed)
            if not member.node:
                assert member.assumed == {n for n in NODES if self.cache.has(member.uid, n)}

        for node in NODES:
            for size in (PodSize((("cpu", 1000 * cpus), ("pods", 1))) for cpus in SIZES):
                waits = [
                    since
                    for m in members
                    for n, since in m.waits()
                    if n == node and m.size.is_within(size)
                ]
                assert workload.waited.since(node, size) == min(waits, default=math.inf)


@given(st.lists(steps, max_size=40), st.integers(0, 40))
def test_counts_are_those_of_a_full_count(taken: list[tuple[Any, ...]], asked_from: int) -> None:
    env = CountsEnvironment()
    for number, step in enumerate(taken):
        env.do(*step)
        if number >= asked_from:
            for owner in ("one", "two"):
                env.check(owner)

    for owner in ("one", "two"):
        env.check(owner)


def test_replicas_that_nobody_replaces_are_kept_up_to_a_bound_and_for_a_while() -> None:
    cache = Cache()
    cache.set_pod(stateful("stays"))
    workload = cache.workloads.of(stateful("x"), "")
    for number in range(KEPT + 10):
        cache.set_pod(stateful(f"web-{number}"))
        cache.set_pod(
            stateful(f"web-{number}", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
        )
        cache.remove_pod(f"web-{number}")

    assert len(workload.deleted) == KEPT
    assert "web-9" not in {each.name for each in workload.deleted}
    cache.set_pod(stateful("a", metadata={"creationTimestamp": "2026-01-01T00:00:59Z"}))
    assert len(workload.deleted) == KEPT
    cache.set_pod(stateful("b", metadata={"creationTimestamp": "2026-01-01T00:01:00Z"}))
    assert not workload.deleted
    assert not workload.deleted._of_name


def test_pods_are_counted_only_as_policies_in_force_divide_them() -> None:
    cache = Cache()
    cache.set_pod(pod("p", node="a"))
    before = cache.workloads.of(pod("p"), "team")
    assert cache.workloads.of(pod("p"), "") is not cache.workloads.of(pod("p"), "team")
    cache.workloads.keep("other", lambda _namespace: set())
    cache.workloads.keep("", lambda _namespace: {"", "team"})
    assert cache.workloads.of(pod("p"), "team") is before
    cache.workloads.keep("default", lambda namespace: {""} if namespace == "default" else set())
    assert list(cache.workloads._groups["default"]) == [""]
    cache.workloads.keep("", lambda _namespace: set())
    assert not cache.workloads._groups
    assert cache.workloads.of(pod("p"), "team").bound == {"a": 1}


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.booleans(), st.integers(0, 3))))
def test_the_newest_pod_is_the_one_that_was_made_last(
    acts: list[tuple[str, bool, int]],
) -> None:
    workload, there = Workload("job/default/web"), dict[str, dict[str, Any]]()
    for uid, comes, second in acts:
        if comes:
            made = f"2026-01-01T00:00:0{second}Z"
            created = there[uid]["metadata"]["creationTimestamp"] if uid in there else made
            there[uid] = pod(uid, metadata={"creationTimestamp": created})
            workload.put(there[uid])
        else:
            there.pop(uid, None)
            workload.remove(uid)

        found = max(
            there.values(), key=lambda p: (objects.created(p), objects.uid(p)), default=None
        )
        assert workload.newest is found


def test_what_moves_look_at_is_found_out_once_for_each_version_of_a_pod() -> None:
    workload, now = Workload("job/default/web"), datetime.now(UTC)
    for number in range(20):
        workload.put(pod(f"p{number}", node="a"))

    def look() -> int:
        return costs.bytecodes(lambda: replicas_of(workload.members, (), now, 60.0))

    first, again = look(), look()
    assert again < first / 3
    changed = pod("p0", node="a") | {
        "status": {"conditions": [{"type": "Ready", "status": "True"}]}
    }
    workload.put(changed)
    assert again < look() < again + first / 5
    assert [r.uid for r in replicas_of(workload.members, (), now, 60.0) if r.ready] == ["p0"]
    newest = costs.bytecodes(lambda: workload.newest)
    assert costs.bytecodes(lambda: workload.newest) < newest / 10


async def test_thousands_of_pods_are_counted_in_slices_by_what_a_policy_groups_them() -> None:
    """Of 12,000 pods that took 260 ms in one step, whenever a tenant had them grouped otherwise."""
    cache = Cache()
    made = [labelled(f"p{number}", str(number % 100)) for number in range(6_000)]
    for each in made:
        cache.set_pod(each)

    workloads, clock = cache.workloads, SystemClock()
    with computing.steps() as took:
        counting = [
            asyncio.create_task(workloads.count(labelled("x", "a"), "app", clock))
            for _ in range(20)
        ]
        await asyncio.sleep(0)
        assert not workloads.is_counted("default", "app")
        cache.remove_pod("p5999")
        cache.set_pod(labelled("p5998", "other"))
        cache.set_pod(labelled("new", "0"))
        await asyncio.gather(*counting)

    assert max(took) < 0.05
    assert workloads.is_counted("default", "app")
    found = {app: workloads.of(labelled("x", app), "app") for app in ("0", "98", "99")}
    counts = {app: len(workload.members) for app, workload in found.items()}
    assert counts == {"0": 61, "98": 59, "99": 59}
    assert len(workloads.of(labelled("x", "other"), "app").members) == 1


async def test_who_asks_while_pods_are_counted_sees_all_of_them() -> None:
    cache = Cache()
    for number in range(FEW + 1):
        cache.set_pod(labelled(f"p{number}", "a"))

    counting = asyncio.create_task(cache.workloads.count(labelled("x", "a"), "app", BusyClock()))
    await asyncio.sleep(0)
    assert not cache.workloads.is_counted("default", "app")
    assert len(cache.workloads.of(labelled("x", "a"), "app").members) == FEW + 1
    await counting


async def test_pods_are_counted_no_further_when_no_policy_groups_them_so_any_more() -> None:
    cache = Cache()
    for number in range(FEW + 1):
        cache.set_pod(labelled(f"p{number}", "a"))

    counting = asyncio.create_task(cache.workloads.count(labelled("x", "a"), "app", BusyClock()))
    await asyncio.sleep(0)
    cache.workloads.keep("default", lambda _namespace: ())
    steps = list(cache.workloads.steps("default", "app"))
    await counting
    assert not steps
    assert not cache.workloads.is_counted("default", "app")


def labelled(uid: str, app: str) -> dict[str, Any]:
    return pod(uid, metadata={"labels": {"app": app}})
