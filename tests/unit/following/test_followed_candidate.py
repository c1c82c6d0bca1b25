"""What a pending pod needs is in a target before its candidate is, and goes with that."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.following.fleet import COPIED, GPU, SOON, US, FollowingFleet
from vnode.api import keys, kinds
from vnode.api.errors import ConfigError, Denied
from vnode.following.follower import GRACE
from vnode.runtime.target_options import TargetOptions

pytestmark = pytest.mark.looptime


@pytest.fixture
async def fleet(clock):
    fleet = FollowingFleet(clock)
    fleet.add_originals()
    return fleet


async def test_a_pending_pod_has_what_it_needs_before_its_candidate_is_made(fleet):
    pod = fleet.add_pod(node=None)
    async with fleet.running():
        assert fleet.copied() == set()
        assert await fleet.following.ensure(pod, fleet.link) == ("", ())
        assert fleet.copied() == set(COPIED) - {kinds.SERVICES}  # a pod starts without those


async def test_without_its_candidate_a_pending_pod_needs_nothing_there(fleet):
    pod = fleet.add_pod(node=None)
    labels = {keys.PARENT_UID: "web", keys.PARENT_CLUSTER_NAME: US.name}
    annotations = {keys.PARENT_NAME: "web", keys.PARENT_NAMESPACE: "ns", keys.TARGET: str(GPU)}
    metadata = {
        "name": "web-abcde",
        "namespace": "ns",
        "labels": labels,
        "annotations": annotations,
    }
    async with fleet.running():
        await fleet.following.ensure(pod, fleet.link)
        fleet.gpu.add(kinds.POD_CHAPERONS, {"metadata": metadata})
        await asyncio.sleep(300)
        assert kinds.CONFIG_MAPS in fleet.copied()
        fleet.gpu.remove(kinds.POD_CHAPERONS, "web-abcde", "ns")
        await asyncio.sleep(GRACE + SOON)
        assert fleet.copied() == {kinds.CLAIMS}


async def test_a_candidate_that_is_never_made_needs_nothing_in_the_end(fleet):
    pod = fleet.add_pod(node=None)
    async with fleet.running():
        await fleet.following.ensure(pod, fleet.link)
        await asyncio.sleep(120)
        assert fleet.copied() == {kinds.CLAIMS}


async def test_a_pod_whose_secret_may_not_follow_gets_no_candidate_and_hears_why(fleet):
    fleet.gpu.fail(Denied(403, "Forbidden", "no"), verb="create", kind=kinds.SECRETS, times=None)
    pod = fleet.add_pod(node=None)
    async with fleet.running():
        with pytest.raises(ConfigError, match="Secret web may not follow to target gpu: no"):
            await fleet.following.ensure(pod, fleet.link)

        await asyncio.sleep(SOON)
        assert {name for name, text in fleet.events_about if "following.configMaps" in text} == {
            "web"
        }


async def test_an_object_of_somebody_else_is_used_as_it_is_and_the_pod_hears_of_it(fleet):
    fleet.gpu.add(kinds.CONFIG_MAPS, {"metadata": {"name": "web", "namespace": "ns"}, "data": {}})
    pod = fleet.add_pod(node=None)
    async with fleet.running():
        note, _tokens = await fleet.following.ensure(pod, fleet.link)
        assert note.startswith("ConfigMap web of target gpu is not from this cluster and differs")
        another = fleet.add_pod("web-abcde", node=None)
        assert await fleet.following.ensure(another, fleet.link) == (note, ())
        await asyncio.sleep(SOON)
        assert fleet.events_about == [("web", note), ("web-abcde", note)]
        assert fleet.copy(kinds.CONFIG_MAPS)["data"] == {}


async def test_a_pod_whose_namespace_may_not_be_made_hears_why(fleet):
    fleet.link.options = TargetOptions(create_namespaces=True)
    fleet.gpu.fail(Denied(403, "Forbidden", "no"), verb="create", kind=kinds.NAMESPACES)
    pod = fleet.add_pod(node=None)
    async with fleet.running():
        with pytest.raises(ConfigError, match="may not create namespace 'ns' in target gpu"):
            await fleet.following.ensure(pod, fleet.link)

        await asyncio.sleep(SOON)
        assert [
            name for name, text in fleet.events_about if "may not create namespace" in text
        ] == ["web"]


async def test_nothing_is_brought_to_the_cluster_itself(fleet):
    fleet.link.is_self = True
    pod = fleet.add_pod(node=None)
    async with fleet.running():
        assert await fleet.following.ensure(pod, fleet.link) == ("", ())
        fleet.following.renew(pod, fleet.link)
        await asyncio.sleep(SOON)
        assert fleet.copied() == set()


async def test_a_new_leader_has_what_a_candidate_needs_looked_at_again(fleet):
    pod = fleet.add_pod(node=None)
    async with fleet.running():
        fleet.following.renew(pod, fleet.link)
        await asyncio.sleep(SOON)
        assert fleet.copied() == set(COPIED) - {kinds.SERVICES}


async def test_a_pod_of_too_many_references_waits_and_says_so(clock):
    fleet = FollowingFleet(clock)
    named = [{"configMapRef": {"name": f"c{n}", "optional": True}} for n in range(501)]
    async with fleet.running():
        pod = fleet.add_pod(node=None)
        spec = {**pod["spec"], "containers": [{"name": "c", "envFrom": named}]}
        with pytest.raises(ConfigError, match="refers to more than 500 ConfigMaps"):
            await fleet.following.ensure({**pod, "spec": spec}, fleet.link)
