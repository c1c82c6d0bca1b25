"""A source hears why the target's controller manager makes no ResourceClaim for a delegate."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from tests.unit.pods.target_side import NAMESPACE, TargetCluster
from vnode.api import kinds, objects
from vnode.api.errors import TooLarge
from vnode.kube.client import Client
from vnode.pods.target.unmade_claims import PATIENCE, RECHECK, UnmadeClaims

pytestmark = pytest.mark.looptime

SPEC = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]}
MADE = [{"name": "gpu", "resourceClaimName": "web-gpu-x7f2"}]
REPORT = ("patch", "podchaperons/status")


@pytest.fixture
async def cluster(clock):
    cluster = TargetCluster(clock)
    metadata = {"name": "gpus", "namespace": NAMESPACE}
    cluster.server.add(kinds.RESOURCE_CLAIM_TEMPLATES, {"metadata": metadata})
    return cluster


def refuse(cluster, message, last="2026-01-01T00:00:00Z"):
    """Have the controller manager say why it makes no claim."""
    about = {"kind": "Pod", "namespace": NAMESPACE, "name": "web"}
    event = {
        "metadata": {"name": f"web.{len(message)}", "namespace": NAMESPACE},
        "involvedObject": {**about, "uid": objects.uid(cluster.pod())},
        "reason": "FailedResourceClaimCreation",
        "type": "Warning",
        "message": message,
        "lastTimestamp": last,
    }
    cluster.server.add(kinds.EVENTS, event)


async def test_the_last_refusal_is_told_until_the_claim_is_made(cluster):
    cluster.send(spec=SPEC)
    async with cluster.running():
        await cluster.until(cluster.pod, 1)
        refuse(cluster, "PodResourceClaim gpu: timed out", "2026-01-01T00:00:00Z")
        refuse(cluster, "PodResourceClaim gpu: admin access denied", "2026-01-01T00:00:01Z")
        await cluster.until(lambda: cluster.rejection, PATIENCE + 1)
        assert cluster.rejection == (
            "no ResourceClaim was made of ResourceClaimTemplate gpus: PodResourceClaim gpu: admin "
            "access denied"
        )
        await asyncio.sleep(3 * RECHECK)
        assert cluster.count(*REPORT) == 1  # said once
        cluster.report(resourceClaimStatuses=MADE)
        await cluster.until(lambda: not cluster.rejection, 1)
        await asyncio.sleep(3 * RECHECK)
        assert cluster.count(*REPORT) == 2


async def test_a_controller_manager_that_says_nothing_may_not_run(cluster):
    cluster.send(spec=SPEC)
    async with cluster.running():
        await cluster.until(lambda: cluster.rejection, PATIENCE + 1)
        assert cluster.rejection.endswith("see that the controller manager of the target runs")


@pytest.mark.parametrize("status", [{"resourceClaimStatuses": MADE}, {"phase": "Running"}])
async def test_a_delegate_with_its_claims_or_a_place_lacks_nothing(cluster, status):
    cluster.send(spec=SPEC)
    async with cluster.running():
        await cluster.until(cluster.pod, 1)
        before = cluster.server.count("list", kinds.EVENTS)
        scheduled = {"type": "PodScheduled", "status": "True"}
        cluster.report(**status, **({} if "phase" not in status else {"conditions": [scheduled]}))
        await asyncio.sleep(3 * RECHECK)
        assert not cluster.rejection
        assert cluster.server.count("list", kinds.EVENTS) == before


async def test_of_thousands_of_events_only_what_the_last_says_is_kept(clock):
    """Who may write Events may write any; all were read into memory, and compared at once."""
    flood = Flood()
    claims = UnmadeClaims(cast(Client, flood), clock)
    pod = {"metadata": {"name": "web", "namespace": NAMESPACE, "uid": "u"}, "spec": SPEC}
    await claims.judge(pod)
    await asyncio.sleep(PATIENCE)
    found, again = await claims.judge(pod)
    assert again == RECHECK
    condition = objects.condition(found, "PodScheduled")
    assert condition is not None
    assert condition["message"].endswith("gpus: said 500 times")
    assert flood.kept == [None] * 1000


class Flood:
    """A client of an API server that has more Events than are read."""

    def __init__(self):
        self.kept = []

    async def list(self, _kind, namespace, *, field_selector, limit, kept):
        assert field_selector
        for number in range(1000):
            count = number if number <= 500 else 0
            moment = f"2026-01-01T00:{count // 60:02}:{count % 60:02}Z"
            metadata = {"name": str(number), "namespace": namespace, "uid": "u"}
            event = {
                "metadata": {**metadata, "resourceVersion": "1"},
                "type": "Warning",
                "reason": "FailedResourceClaimCreation",
                "message": f"said {number} times",
                "lastTimestamp": moment,
            }
            self.kept.append(kept(event))

        raise TooLarge(f"more than {limit.values} values")
