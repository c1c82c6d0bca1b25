"""What the status of a policy says of the workloads that it is for."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from tests.apiserver.links import following
from tests.unit.placement.environment import SETTLED, US, PlacementEnvironment, node_of
from vnode.api import keys, kinds, names, objects
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.cli.plan import planning
from vnode.cli.plan.planning import ClusterView, PlanRequest
from vnode.placement.status import accounts

pytestmark = pytest.mark.looptime

WEB = {"matchLabels": {"app": "web"}}
A, B, C = (node_of(name) for name in "abc")
SHARES = [
    {"cluster": "a", "weight": 40},
    {"cluster": "b", "weight": 40},
    {"cluster": "c", "weight": 20},
]


def entry(cluster: str, planned: int, running: int, waiting: int = 0) -> Object:
    return {"cluster": cluster, "planned": planned, "running": running, "waiting": waiting}


async def test_it_has_planned_and_running_of_each_workload(clock: Clock) -> None:
    env = PlacementEnvironment(clock, "a", "b", "c")
    env.add_policy(selector=WEB, targets=SHARES)
    env.add_pods("web", A, 4)
    env.add_pods("web", B, 5)
    env.add_pods("web", C, 1, phase="Pending")
    env.add_pods("other", C, 1)
    async with env.running():
        status = env.status()
        assert (status["workloadCount"], status["replicas"]) == (1, 10)
        assert status["workloads"] == [
            {
                "workload": "deployment/default/web",
                "replicas": 10,
                "targets": [entry(A, 4, 4), entry(B, 4, 5), entry(C, 2, 0, 1)],
            }
        ]
        condition, ready = status["conditions"]
        assert (ready["type"], ready["reason"]) == ("Ready", "Accepted")
        assert status["observedGeneration"] == 1
        assert condition["observedGeneration"] == 1
        assert [e["reason"] for e in env.server.all(kinds.EVENTS)] == ["Accepted"]


async def test_pods_that_end_or_have_finished_are_no_replicas(clock: Clock) -> None:
    env = PlacementEnvironment(clock, "a")
    env.add_policy(selector=WEB, targets=[{"cluster": "a", "weight": 1}])
    env.add_pods("web", A, 2)
    env.add_pods("web", "", 1, phase="Succeeded")
    async with env.running():
        assert env.status()["replicas"] == 2

        def end(pod: Object) -> None:
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

        env.server.change(kinds.PODS, f"web-{A}-0", "default", end)
        await asyncio.sleep(SETTLED)
        assert env.planned() == {"deployment/default/web": {A: 1}}
        env.server.remove(kinds.PODS, f"web-{A}-1", "default")
        env.server.remove(kinds.PODS, f"web-{A}-0", "default")
        await asyncio.sleep(SETTLED)
        assert env.status()["workloads"] == []
        assert env.status()["workloadCount"] == 0


async def test_candidates_of_pods_that_wait_are_told_by_cluster(clock: Clock) -> None:
    env = PlacementEnvironment(clock, "a", "b")
    env.add_policy(selector=WEB, mode="Fill", targets=[{"cluster": "a"}, {"cluster": "b"}])
    [pod] = env.add_pods("web", "", 1, phase="Pending")
    target, link = env.link("b")
    async with env.running(), following(link.chaperons):
        [workload] = env.status()["workloads"]
        assert workload["targets"] == [entry(A, 1, 0)]
        parent, uid = objects.name(pod), objects.uid(pod)
        metadata = {
            "name": names.chaperon(parent, uid),
            "namespace": "default",
            "labels": {keys.PARENT_CLUSTER_NAME: US.name, keys.PARENT_UID: uid},
            "annotations": {keys.PARENT_CLUSTER_UID: US.uid, keys.PARENT_NAME: parent},
        }
        target.add(kinds.POD_CHAPERONS, {"metadata": metadata})
        await asyncio.sleep(SETTLED)
        [workload] = env.status()["workloads"]
        assert workload["targets"] == [entry(A, 1, 0), entry(B, 0, 0, 1)]


async def test_placeholders_are_told_by_cluster(clock: Clock) -> None:
    env = PlacementEnvironment(clock, "a", "b")
    env.add_policy(selector=WEB, mode="Fill", targets=[{"cluster": "a"}, {"cluster": "b"}])
    pods = [objects.name(pod) for pod in env.add_pods("web", B, 2)]

    def wait(pod: Object) -> None:
        pod["metadata"]["annotations"] = {keys.PLACEHOLDERS: A}

    for pod in pods:
        env.server.change(kinds.PODS, pod, "default", wait)

    async with env.running():
        [workload] = env.status()["workloads"]
        assert workload["targets"] == [entry(A, 2, 0) | {"placeholders": 2}, entry(B, 0, 2)]
        env.server.remove(kinds.PODS, pods[0], "default")
        await asyncio.sleep(SETTLED)
        [workload] = env.status()["workloads"]
        assert workload["targets"] == [entry(A, 1, 0) | {"placeholders": 1}, entry(B, 0, 1)]


async def test_a_single_workload_is_planned_where_most_of_it_is(clock: Clock) -> None:
    env = PlacementEnvironment(clock, "a", "b")
    env.add_policy(selector=WEB, mode="Single")
    env.add_pods("web", B, 2)
    env.add_pods("web", "", 2, phase="Pending")
    async with env.running():
        assert env.planned() == {"deployment/default/web": {B: 4}}


@pytest.mark.parametrize("spec", [{"mode": "Any"}, {}])
async def test_where_no_plan_is_known_it_says_what_is_there(clock: Clock, spec: Object) -> None:
    env = PlacementEnvironment(clock, "a", "b")
    env.add_policy(selector=WEB, **spec)
    env.add_pods("web", B, 2)
    async with env.running():
        [workload] = env.status()["workloads"]
        assert workload["targets"] == [{"cluster": B, "running": 2, "waiting": 0}]


async def test_a_cluster_that_takes_no_pods_keeps_those_that_it_has(clock: Clock) -> None:
    env = PlacementEnvironment(clock, "a", "b", "c")
    env.add_target("d", "other")
    env.add_policy("all", "", selector=WEB, targets=[{"selector": {}, "weight": 1}])
    env.add_pods("web", A, 4)
    env.add_pods("web", C, 2)

    def cordon(node: Object) -> None:
        node["spec"]["unschedulable"] = True

    env.server.change(kinds.NODES, C, "", cordon)
    async with env.running():
        [workload] = env.status("all", "")["workloads"]
        assert workload["targets"] == [entry(A, 2, 4), entry(B, 2, 0), entry(C, 2, 2)]


async def test_what_the_maximums_leave_over_is_told(clock: Clock) -> None:
    env = PlacementEnvironment(clock, "a")
    env.add_policy(selector=WEB, targets=[{"cluster": "a", "weight": 1, "maxReplicas": 2}])
    env.add_pods("web", A, 3)
    async with env.running():
        [workload] = env.status()["workloads"]
        assert (workload["unplaced"], workload["targets"]) == (1, [entry(A, 2, 3)])


async def test_pods_are_counted_anew_when_their_policy_changes(clock: Clock) -> None:
    env = PlacementEnvironment(clock, "a")
    env.add_policy(selector=WEB, targets=[{"cluster": "a", "weight": 1}])
    env.add_pods("web", A, 3)
    async with env.running():
        env.add_policy("more", selector=WEB, priority=1)
        await asyncio.sleep(SETTLED)
        assert (env.status()["replicas"], env.status("more")["replicas"]) == (0, 3)
        env.server.remove(kinds.PLACEMENT_POLICIES, "more", "default")
        await asyncio.sleep(SETTLED)
        assert env.status()["replicas"] == 3


async def test_only_the_largest_workloads_are_listed_and_all_are_counted(clock: Clock) -> None:
    env = PlacementEnvironment(clock, "a")
    env.add_policy(selector={}, targets=[{"cluster": "a", "weight": 1}])
    for number in range(accounts.MOST_WORKLOADS + 10):
        env.add_pods(f"w{number}", A, 1)

    env.add_pods("large", A, 2)
    async with env.running():
        status = env.status()
        assert len(status["workloads"]) == accounts.MOST_WORKLOADS
        assert status["workloads"][0]["workload"] == "deployment/default/large"
        assert status["workloadCount"] == accounts.MOST_WORKLOADS + 11
        assert status["replicas"] == accounts.MOST_WORKLOADS + 12


async def test_a_burst_is_one_write_and_nothing_is_written_when_nothing_changes(
    clock: Clock,
) -> None:
    env = PlacementEnvironment(clock, "a")
    env.add_policy(selector=WEB, targets=[{"cluster": "a", "weight": 1}])
    async with env.running():
        before = env.server.count("patch", kinds.PLACEMENT_POLICIES)
        env.add_pods("web", A, 100)
        await asyncio.sleep(SETTLED)
        assert env.server.count("patch", kinds.PLACEMENT_POLICIES) == before + 1
        await asyncio.sleep(1000)
        assert env.server.count("patch", kinds.PLACEMENT_POLICIES) == before + 1


@pytest.mark.no_cover
async def test_counts_that_keep_changing_are_written_in_intervals(clock: Clock) -> None:
    env = PlacementEnvironment(clock, "a")
    env.add_policy(selector=WEB, targets=[{"cluster": "a", "weight": 1}])
    async with env.running():
        before = env.server.count("patch", kinds.PLACEMENT_POLICIES)
        for number in range(300):
            env.add_pods(f"web-{number}", A, 1)

            def relabel(pod: Object) -> None:
                pod["metadata"]["labels"]["app"] = "web"

            env.server.change(kinds.PODS, f"web-{number}-{A}-0", "default", relabel)
            await asyncio.sleep(2)

        assert env.server.count("patch", kinds.PLACEMENT_POLICIES) - before < 80
        await asyncio.sleep(SETTLED)
        assert env.status()["replicas"] == 300


async def test_without_policies_no_pod_is_looked_at(clock: Clock) -> None:
    env = PlacementEnvironment(clock, "a")
    env.add_pods("web", A, 3)
    async with env.running():
        asked = list[Object]()
        env.policies.of = asked.append  # type: ignore[assignment]
        env.add_pods("db", A, 3)
        await asyncio.sleep(SETTLED)
        assert asked == []


async def test_a_namespace_of_many_policies_does_not_keep_back_that_of_another(
    clock: Clock,
) -> None:
    env = PlacementEnvironment(clock, "a")
    stuck = 30
    env.server.fail(
        None,
        verb="patch",
        kind=kinds.PLACEMENT_POLICIES,
        when=lambda request: request.namespace == "a-many",
        times=None,
        delay=1000.0,
    )
    for number in range(stuck):
        env.add_policy(f"p{number}", "a-many")

    env.add_policy(selector=WEB)
    async with env.running():
        assert env.accepted()[0] == "True"
        assert env.status("p0", "a-many") == {}


def would_plan(env: PlacementEnvironment, name: str = "web") -> dict[str, int]:
    """Return what `vnode plan` says of the only workload of a policy."""
    policy = env.server.find(kinds.PLACEMENT_POLICIES, name, "default")
    assert policy is not None
    objs = env.server.all
    view = ClusterView(objs(kinds.NODES), objs(kinds.PODS), objs(kinds.PLACEMENT_POLICIES))
    request = PlanRequest(policy, "default")
    [account] = planning.make(request, view, env.clock.now().timestamp()).accounts
    return {target.cluster: target.planned or 0 for target in account.targets}


def ready(status: str) -> Callable[[Object], None]:
    def change(node: Object) -> None:
        node["status"] = {"conditions": [{"type": "Ready", "status": status}]}

    return change


def cordoned(is_cordoned: bool) -> Callable[[Object], None]:
    def change(node: Object) -> None:
        node["spec"] = {**objects.spec(node), "unschedulable": is_cordoned}

    return change


def in_region(region: str) -> Callable[[Object], None]:
    def change(node: Object) -> None:
        node["metadata"]["labels"]["region"] = region

    return change


@pytest.mark.parametrize(
    ("change", "back"),
    [
        (ready("False"), ready("True")),
        (ready("Unknown"), ready("True")),
        (cordoned(True), cordoned(False)),
        (in_region("us"), in_region("eu")),
    ],
)
async def test_it_is_true_at_once_when_a_cluster_is_lost_or_cordoned_and_when_it_is_back(
    clock: Clock, change: Callable[[Object], None], back: Callable[[Object], None]
) -> None:
    env = PlacementEnvironment(clock)
    for name in "abc":
        env.add_target(name, labels={"region": "eu"})

    env.add_policy(
        selector=WEB, clusters={"selector": {"matchLabels": {"region": "eu"}}}, targets=SHARES
    )
    env.add_pods("web", B, 8)
    async with env.running():
        before = env.planned()
        for each in (change, back):
            env.server.change(kinds.NODES, A, "", each)
            await asyncio.sleep(2)
            assert env.planned() == {"deployment/default/web": would_plan(env)}
            assert (env.planned() == before) is (each is back)


async def test_it_is_true_whatever_nodes_policies_and_pods_go_through(clock: Clock) -> None:
    env = PlacementEnvironment(clock, "a", "b", "c")
    soon = objects.timestamp(clock.now() + timedelta(seconds=300))
    drain = [{"cluster": "b", "until": soon}]
    env.add_policy(selector=WEB, targets=SHARES, drain=drain)
    env.add_pods("web", A, 3)
    dice, made = random.Random(7), 0
    async with env.running():
        for step in range(60):
            node = node_of(dice.choice("abc"))
            changes = [ready("True"), ready("False"), cordoned(True), cordoned(False)]
            if env.server.find(kinds.NODES, node) is None:
                env.add_target(node.rpartition("-")[2])
            elif dice.random() < 0.15:
                env.remove_target(node.rpartition("-")[2])
            elif dice.random() < 0.2:
                made += 1
                env.add_pods("web", node, 1, name=f"more-{made}")
            else:
                env.server.change(kinds.NODES, node, "", dice.choice(changes))

            await asyncio.sleep(12)
            counts = {k: v for k, v in would_plan(env).items() if v}
            [planned] = env.planned().values()
            assert {k: v for k, v in planned.items() if v} == counts, step


async def test_it_is_true_when_a_drain_ends(clock: Clock) -> None:
    env = PlacementEnvironment(clock, "a", "b")
    soon = objects.timestamp(clock.now() + timedelta(seconds=100))
    env.add_policy(selector=WEB, targets=SHARES[:2], drain=[{"cluster": "b", "until": soon}])
    env.add_pods("web", A, 8)
    async with env.running():
        assert env.planned()["deployment/default/web"] == {A: 8}
        await asyncio.sleep(100 - SETTLED + 2)
        assert env.planned()["deployment/default/web"] == {A: 4, B: 4}


class _Closed:
    """Says that moves to a cluster were in vain."""

    def __init__(self) -> None:
        self.found: dict[str, datetime] = {}
        self.changed: list[Callable[[str], None]] = []

    def closed(self, workload: str, group_by: str) -> dict[str, datetime]:
        return self.found if (workload, group_by) == ("deployment/default/web", "") else {}

    def subscribe(self, changed: Callable[[str], None]) -> None:
        self.changed.append(changed)


async def test_it_says_where_nothing_is_moved_for_a_while(clock: Clock) -> None:
    env, moves = PlacementEnvironment(clock, "a", "b"), _Closed()
    env.moves = moves
    env.add_policy(selector=WEB, targets=SHARES[:2])
    env.add_pods("web", A, 2)
    async with env.running():
        for found in ({B: clock.now() + timedelta(seconds=600)}, {}):
            moves.found = found
            for changed in moves.changed:
                changed("default/web")

            await asyncio.sleep(2)
            [workload] = env.status()["workloads"]
            closed = {t["cluster"]: t.get("noMovesUntil") for t in workload["targets"]}
            assert closed == {A: None, B: objects.timestamp(found[B]) if found else None}
