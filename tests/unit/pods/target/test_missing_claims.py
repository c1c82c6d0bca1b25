"""A delegate is made once the device claims that it names are there; its source hears of it."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.pods.target_side import NAMESPACE, TargetCluster
from vnode.api import kinds
from vnode.api.errors import Denied, NotFound

pytestmark = pytest.mark.looptime

CREATE = ("create", "pods")
BY_TEMPLATE = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]}
BY_NAME = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "shared"}]}
BOTH = [
    (BY_TEMPLATE, kinds.RESOURCE_CLAIM_TEMPLATES, "gpus"),
    (BY_NAME, kinds.RESOURCE_CLAIMS, "shared"),
]


@pytest.fixture
async def cluster(clock):
    return TargetCluster(clock)


@pytest.mark.parametrize(("spec", "kind", "name"), BOTH)
async def test_what_is_missing_is_said_at_once_and_awaited(cluster, spec, kind, name):
    cluster.send(spec=spec)
    async with cluster.running():
        await cluster.until(lambda: cluster.rejection, 1)
        assert cluster.rejection.startswith(f'{kind.kind} "{name}" not found: create it in')
        await asyncio.sleep(20)
        assert cluster.asked == [("patch", "podchaperons/status")]
        cluster.server.add(kind, {"metadata": {"name": name, "namespace": NAMESPACE}})
        await cluster.until(cluster.pod, 31)
        assert cluster.pod()["spec"]["resourceClaims"] == spec["resourceClaims"]


@pytest.mark.parametrize(("spec", "kind", "name"), BOTH)
async def test_a_delegate_whose_claims_are_there_is_made_at_once(cluster, spec, kind, name):
    cluster.server.add(kind, {"metadata": {"name": name, "namespace": NAMESPACE}})
    cluster.send(spec=spec)
    async with cluster.running():
        await cluster.until(cluster.pod, 1)
        assert cluster.asked[0] == CREATE


async def test_a_claim_that_is_being_deleted_is_no_use(cluster):
    metadata = {
        "name": "shared",
        "namespace": NAMESPACE,
        "finalizers": ["resource.kubernetes.io/delete-protection"],
        "deletionTimestamp": "2026-01-01T00:00:00Z",
    }
    cluster.server.add(kinds.RESOURCE_CLAIMS, {"metadata": metadata})
    cluster.send(spec=BY_NAME)
    async with cluster.running():
        await cluster.until(lambda: cluster.rejection, 1)
        assert cluster.rejection.startswith('ResourceClaim "shared" is being deleted')


@pytest.mark.parametrize("error", [Denied(403, "Forbidden", "no"), NotFound(404, "", "no page")])
async def test_what_cannot_be_looked_up_is_the_schedulers_to_judge(cluster, error):
    cluster.server.fail(error, verb="get", kind=kinds.RESOURCE_CLAIMS, times=None)
    cluster.send(spec=BY_NAME)
    async with cluster.running():
        await cluster.until(cluster.pod, 1)
