"""Two sources whose gangs want the same room of one target; and PodGroups of Kubernetes' own.

All three clusters have Kubernetes' own PodGroups, which are alpha, and off by default.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

import pytest

from tests import kit
from tests.e2e.gang_pods import SLOT, create, member, offer, until_all_ran
from tests.e2e.gang_watch import LONGEST, watching
from tests.fleets import started
from tests.kit import Fleet
from vnode.api import kinds, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

GROUPS: Final = kinds.NATIVE_GROUPS[1]  # v1beta1, that of Kubernetes 1.37
CONDITION: Final = "PodGroupInitiallyScheduled"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Yield two sources, c1 and c2, of one target, c3."""
    with started(
        tmp_path_factory,
        *("c1", "c2", "c3", "--nodes", "3", "--agents"),
        *("--connect", "c1:c3", "--connect", "c2:c3"),
        "--apiserver-arg=--feature-gates=GenericWorkload=true",
        f"--apiserver-arg=--runtime-config={GROUPS.api_version}=true",
        sources=("c1", "c2"),
    ) as fleet:
        yield fleet


@pytest.fixture(autouse=True)
async def _clean(c1: Client, c2: Client, c3: Client) -> AsyncIterator[None]:
    """Give the target ten slots, which both sources know of; leave no pod."""
    for source in (c1, c2):
        await offer(source, c3, "c3", 4, 3, 3)

    yield
    for source in (c1, c2):
        await source.request("DELETE", kinds.PODS.path("default"))
        await kit.until_gone(source, kinds.PODS, "default")


async def test_gangs_of_two_sources_that_both_nearly_fill_a_target_end_one_after_the_other(
    c1: Client, c2: Client, c3: Client
) -> None:
    gangs = {c1: ["east0", "east1"], c2: ["west0", "west1"]}
    async with watching(8, c3=c3) as watch:
        for pair in zip(*gangs.values(), strict=True):
            made = (create(source, gang, 8, 8) for source, gang in zip(gangs, pair, strict=True))
            await asyncio.gather(*made)

        await until_all_ran(gangs, watch)
        assert watch.worst() < LONGEST
        assert all(places == {"c3"} for places in watch.places.values())


async def make_group(source: Client, name: str, minimum: int) -> None:
    spec = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
    await source.create(GROUPS, {"metadata": {"name": name}, "spec": spec}, "default")


async def make_pods(source: Client, group: str, count: int) -> None:
    for number in range(count):
        body = member(group, number)
        body["spec"]["schedulingGroup"] = {"podGroupName": group}
        await source.create(kinds.PODS, body, "default")


def says(group: Object, status: str, text: str) -> bool:
    found = objects.condition(group, CONDITION) or {}
    return found.get("status") == status and text in str(found.get("message"))


async def test_a_pod_group_of_kubernetes_tells_kubectl_whether_it_was_placed(
    fleet: Fleet, c1: Client, c3: Client
) -> None:
    def column(name: str) -> str:
        row = fleet.kubectl("c1", "get", "podgroups", name, "-n", "default", "--no-headers")
        return row.split()[3]

    await make_group(c1, "large", 12)
    assert column("large") == "Pending"
    await make_pods(c1, "large", 12)
    lacks = f"10 of 12 have a place in c3; 2 wait: Insufficient {SLOT}"
    await kit.until_one(c1, GROUPS, "large", "default", lambda g: says(g, "False", lacks))
    assert column("large") == "Unschedulable"
    await c1.request("DELETE", kinds.PODS.path("default"))
    await make_group(c1, "small", 4)
    await make_pods(c1, "small", 4)
    await kit.until_pods(c1, "small", lambda pods: kit.running(pods, 4))
    await kit.until_one(c1, GROUPS, "small", "default", lambda g: says(g, "True", "4 pods"))
    assert column("small") == "Scheduled"
    for delegate in await c3.list(kinds.PODS, "default"):
        assert "schedulingGroup" not in delegate["spec"]


async def test_what_another_scheduler_has_written_on_a_pod_group_stays(
    fleet: Fleet, c1: Client
) -> None:
    await make_group(c1, "theirs", 2)
    told: dict[str, Any] = {
        "type": CONDITION,
        "status": "False",
        "reason": "Unschedulable",
        "message": "by another",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    metadata = {"name": "theirs", "namespace": "default"}
    body = {"metadata": metadata, "status": {"conditions": [told]}}
    await c1.apply(GROUPS, body, subresource="status", manager="kube-scheduler")
    await make_pods(c1, "theirs", 2)

    of_group = "involvedObject.kind=PodGroup,involvedObject.name=theirs"
    await kit.until_event(c1, "default", f"{of_group},reason=Scheduled")
    assert says(await c1.get(GROUPS, "theirs", "default"), "False", "by another")
    await kit.until_pods(c1, "theirs", lambda pods: kit.running(pods, 2))
