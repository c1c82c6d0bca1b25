"""What owners make of moves on a real fleet: StatefulSets, Jobs, and what stays together."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

import pytest

from tests import kit
from tests.e2e.places import (
    C2,
    C3,
    Policy,
    Rooms,
    amend,
    place_pod,
    policy,
    rooms,
    until_there,
    until_told,
)
from tests.e2e.test_moves import budget
from vnode.api import kinds, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

__all__ = ["budget", "policy", "rooms"]

UNEQUAL = ({"cluster": "c2", "weight": 2}, {"cluster": "c3", "weight": 1})
SOON = {"afterUnschedulableFor": "5s"}
BACK = {"mode": "Probe", "stabilization": "3s", "maxConcurrent": 2}
EQUAL = ({"cluster": "c2", "weight": 1}, {"cluster": "c3", "weight": 1})
TARGETS = {C2: "c2", C3: "c3"}


class Owners:
    """Creates the workloads `web`, whose pods take a place each."""

    def __init__(self, source: Client) -> None:
        self._source = source

    async def stateful_set(self, replicas: int, **spec: str) -> None:
        """Create a StatefulSet, by default one whose pods are made one after the other."""
        body = kit.deployment("web", replicas, place_pod())
        body["kind"] = "StatefulSet"
        body["spec"] |= {"serviceName": "web", **spec}
        await self._source.create(kinds.STATEFUL_SETS, body, "default")

    async def job(self, parallelism: int) -> None:
        """Create a Job that takes longer than any test; evicted pods are no failures of it."""
        template = kit.deployment("web", 1, place_pod(restartPolicy="Never"))["spec"]["template"]
        delay = {"pod-complete.stage.kwok.x-k8s.io/delay": "1h"}
        template["metadata"]["annotations"] = template["metadata"]["annotations"] | delay
        ignored = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
        spec = {
            "parallelism": parallelism,
            "completions": parallelism,
            "podFailurePolicy": {"rules": [ignored]},
            "template": template,
        }
        body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "web"}, "spec": spec}
        await self._source.create(kinds.JOBS, body, "default")


@pytest.fixture
async def owners(source: Client) -> AsyncIterator[Owners]:
    """Yield a maker of owners of pods; the owners end with the test."""
    yield Owners(source)
    query = {"propagationPolicy": "Background"}
    await source.request("DELETE", kinds.STATEFUL_SETS.path("default"), query=query)


async def live(source: Client) -> list[Object]:
    pods = await source.list(kinds.PODS, "default", label_selector="app=web")
    return [pod for pod in pods if not objects.is_terminating(pod)]


async def test_a_stateful_set_is_drained_and_keeps_its_names(
    source: Client, policy: Policy, rooms: Rooms, owners: Owners
) -> None:
    await rooms(50, 50)
    await policy(*EQUAL, failback={"maxConcurrent": 2})
    await owners.stateful_set(4)
    await until_there(source, c2=2, c3=2)
    await amend(source, drain=[{"cluster": "c2"}])
    pods = await until_there(source, c3=4)
    names = {objects.name(pod) for pod in pods.values() if not objects.is_terminating(pod)}
    assert names == {f"web-{number}" for number in range(4)}


async def test_a_stateful_set_overflows_and_goes_back(
    source: Client, policy: Policy, rooms: Rooms, owners: Owners
) -> None:
    await rooms(2, 50)
    await policy(*UNEQUAL, overflow=SOON, failback=BACK)
    await owners.stateful_set(6, podManagementPolicy="Parallel")
    await until_there(source, c2=2, c3=4)
    await rooms(4, 50)
    await until_there(source, c2=4, c3=2)


async def test_a_job_overflows_and_goes_back_by_a_rebalance_only(
    source: Client, policy: Policy, rooms: Rooms, owners: Owners
) -> None:
    await rooms(2, 50)
    await policy(*UNEQUAL, overflow=SOON, failback=BACK)
    await owners.job(6)
    before = await until_there(source, c2=2, c3=4)
    await rooms(4, 50)
    metadata = {"name": "now", "namespace": "default"}
    await source.create(kinds.REBALANCES, {"metadata": metadata, "spec": {"maxConcurrent": 2}})
    after = await until_there(source, c2=4, c3=2)
    assert len(before.keys() & after.keys()) == 4
    await kit.until_one(
        source,
        kinds.REBALANCES,
        "now",
        "default",
        lambda obj: kit.has_condition(obj, "Complete") and objects.status(obj)["moved"] == 2,
    )
    await source.delete(kinds.REBALANCES, "now", "default")


async def test_a_job_is_moved_if_somebody_asks_for_it_only(
    source: Client, policy: Policy, rooms: Rooms, owners: Owners
) -> None:
    await rooms(50, 50)
    await policy(*EQUAL, reschedule={"when": ["PolicyChanged"]})
    await owners.job(4)
    pods = await until_there(source, c2=2, c3=2)
    first = {objects.uid(pod) for pod in pods.values()}

    await amend(source, targets=[EQUAL[0], {**EQUAL[1], "weight": 3}])
    await amend(source, drain=[{"cluster": "c3", "maxReplicas": 1}])
    await until_there(source, c2=3, c3=1)
    stayed = [pod for pod in await live(source) if objects.uid(pod) in first]
    assert Counter(TARGETS[objects.node_name(pod)] for pod in stayed) == {"c2": 2, "c3": 1}


@pytest.mark.usefixtures("budget")
async def test_what_is_kept_together_is_drained_as_a_whole(source: Client, policy: Policy) -> None:
    await policy(mode="Single")
    await source.create(kinds.DEPLOYMENTS, kit.deployment("web", 4, kit.pod("web")), "default")
    pods = await kit.until_pods(source, "web", lambda pods: kit.running(pods, 4))
    [first] = {TARGETS[objects.node_name(pod)] for pod in pods.values()}
    [second] = {"c2", "c3"} - {first}

    await amend(source, drain=[{"cluster": first}])
    await until_there(source, **{second: 4})
    await until_told(
        source, "Moved", f"(drain): 4 of 4 run in {first}, planned 0; {second} has room for all"
    )
    await amend(source, drain=None)
    await source.patch(kinds.DEPLOYMENTS, "web", {"spec": {"replicas": 6}}, "default")
    await until_there(source, **{second: 6})
