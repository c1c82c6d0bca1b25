"""ResourceClaims and templates follow the pods that name them, where their classes are."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.following.fleet import SOON, US, FollowingFleet
from vnode.api import keys, kinds, objects
from vnode.api.class_names import ClassNames
from vnode.api.errors import ConfigError, NotFound, Unreachable
from vnode.following.follower import GRACE
from vnode.runtime.link import Link

pytestmark = pytest.mark.looptime

DEVICES = {"devices": {"requests": [{"name": "one", "exactly": {"deviceClassName": "gpu"}}]}}
EITHER = {
    "devices": {
        "requests": [
            {"name": "one", "firstAvailable": [{"deviceClassName": "a"}, {"deviceClassName": "b"}]}
        ]
    }
}
TEMPLATES, CLAIMS = kinds.RESOURCE_CLAIM_TEMPLATES, kinds.RESOURCE_CLAIMS
BOTH = pytest.mark.parametrize("kind", [TEMPLATES, CLAIMS], ids=str)
FIELDS = {TEMPLATES: "resourceClaimTemplateName", CLAIMS: "resourceClaimName"}


@pytest.fixture
async def fleet(clock):
    return FollowingFleet(clock)


def add_original(fleet, kind, devices=DEVICES, **status):
    spec = devices if kind is CLAIMS else {"spec": devices}
    metadata = {"name": "gpus", "namespace": "ns", "labels": {"team": "blue"}}
    body = {"metadata": metadata, "spec": spec}
    return fleet.source.add(kind, {**body, "status": status} if status else body)


def add_pod(fleet, kind, name="web", **spec):
    metadata = {"name": name, "namespace": "ns", "uid": name}
    claims = [{"name": "gpu", FIELDS[kind]: "gpus"}]
    body = {"containers": [{"name": "main"}], "resourceClaims": claims, **spec}
    return fleet.source.add(kinds.PODS, {"metadata": metadata, "spec": body})


def bind(fleet, name="web"):
    node = fleet.link.node_name
    fleet.source.change(kinds.PODS, name, "ns", lambda pod: pod["spec"].update(nodeName=node))


def copy(fleet, kind):
    return fleet.gpu.find(kind, "gpus", "ns")


def has_classes(monkeypatch, *names):
    classes = ClassNames(device_classes=dict.fromkeys(names, ""))
    monkeypatch.setattr(Link, "classes", property(lambda _link: classes))


@BOTH
async def test_one_is_there_before_the_candidate_and_goes_with_its_last_pod(fleet, kind):
    original = add_original(fleet, kind)
    pods = [add_pod(fleet, kind, name) for name in ("web", "other")]
    async with fleet.running():
        for pod in pods:
            assert await fleet.following.ensure(pod, fleet.link) == ("", ())
            bind(fleet, objects.name(pod))

        made = copy(fleet, kind)
        assert US.made(made)
        assert made["spec"] == original["spec"]
        assert objects.labels(made)["team"] == "blue"
        fleet.remove_pod("web")
        await asyncio.sleep(GRACE + 2 * SOON)
        assert copy(fleet, kind) == made
        fleet.remove_pod("other")
        await asyncio.sleep(GRACE + 2 * SOON)
        assert copy(fleet, kind) is None


@BOTH
async def test_the_copy_of_a_candidate_that_did_not_win_goes(fleet, kind):
    add_original(fleet, kind)
    pod = add_pod(fleet, kind)
    async with fleet.running():
        await fleet.following.ensure(pod, fleet.link)
        await fleet.following.ensure(pod, fleet.other)
        assert fleet.cpu.find(kind, "gpus", "ns")
        bind(fleet)
        await asyncio.sleep(GRACE + 3 * SOON)
        assert fleet.cpu.find(kind, "gpus", "ns") is None
        assert copy(fleet, kind)


async def test_an_allocation_stays_behind(fleet):
    add_original(fleet, CLAIMS)
    pod = add_pod(fleet, CLAIMS)
    async with fleet.running():
        await fleet.following.ensure(pod, fleet.link)
        assert "status" not in copy(fleet, CLAIMS)
        bind(fleet)
        fleet.gpu.change(
            CLAIMS, "gpus", "ns", lambda claim: claim.update(status={"allocation": {"x": 1}})
        )
        await asyncio.sleep(60)
        assert copy(fleet, CLAIMS)["status"] == {"allocation": {"x": 1}}


@BOTH
async def test_one_that_comes_late_follows_then(fleet, kind):
    pod = add_pod(fleet, kind)
    async with fleet.running():
        assert await fleet.following.ensure(pod, fleet.link) == ("", ())
        assert copy(fleet, kind) is None
        add_original(fleet, kind)
        await asyncio.sleep(SOON)
        assert copy(fleet, kind)


@BOTH
async def test_one_that_was_made_anew_is_made_anew_in_the_target(fleet, kind):
    add_original(fleet, kind)
    pod = add_pod(fleet, kind)
    async with fleet.running():
        await fleet.following.ensure(pod, fleet.link)
        bind(fleet)
        await asyncio.sleep(SOON)
        fleet.source.remove(kind, "gpus", "ns")
        await asyncio.sleep(SOON)
        new = add_original(fleet, kind, EITHER)
        await asyncio.sleep(SOON)
        assert copy(fleet, kind)["spec"] == new["spec"]
        assert objects.labels(copy(fleet, kind))[keys.PARENT_UID] == objects.uid(new)


@BOTH
@pytest.mark.parametrize(
    ("devices", "present", "missing"),
    [(DEVICES, ("cpu",), "gpu"), (EITHER, ("a",), "b"), (DEVICES, (), "gpu")],
)
async def test_a_target_without_a_class_gets_neither_pod_nor_copy(
    fleet, monkeypatch, kind, devices, present, missing
):
    has_classes(monkeypatch, *present)
    add_original(fleet, kind, devices)
    pod = add_pod(fleet, kind)
    async with fleet.running():
        wanted = f'DeviceClass "{missing}" not found: create it in the target'
        with pytest.raises(ConfigError, match=wanted):
            await fleet.following.ensure(pod, fleet.link)

        await asyncio.sleep(SOON)
        assert fleet.gpu.count("create", kind) == 0


@BOTH
async def test_a_target_with_the_classes_takes_the_pod(fleet, monkeypatch, kind):
    has_classes(monkeypatch, "a", "b")
    add_original(fleet, kind, EITHER)
    pod = add_pod(fleet, kind)
    async with fleet.running():
        assert await fleet.following.ensure(pod, fleet.link) == ("", ())
        assert copy(fleet, kind)


@pytest.mark.parametrize(
    ("status", "user"),
    [
        ({"reservedFor": [{"resource": "pods", "name": "local"}], "allocation": {}}, "pods/local"),
        ({"allocation": {"devices": {}}}, "nobody"),
    ],
)
async def test_a_claim_with_devices_of_the_source_goes_nowhere(fleet, status, user):
    add_original(fleet, CLAIMS, **status)
    pod = add_pod(fleet, CLAIMS)
    async with fleet.running():
        with pytest.raises(ConfigError, match=f"has devices of this cluster .used by {user}."):
            await fleet.following.ensure(pod, fleet.link)

        assert copy(fleet, CLAIMS) is None


async def test_a_claim_of_a_whole_group_is_refused(fleet):
    add_original(fleet, TEMPLATES)
    group = {"schedulingGroup": {"podGroupName": "workers"}}
    pod = add_pod(fleet, TEMPLATES, **group)
    async with fleet.running():
        with pytest.raises(Unreachable, match="has made no ResourceClaim"):
            await fleet.following.ensure(pod, fleet.link)

        owner = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "name": "workers"}
        metadata = {"name": "workers-gpu", "namespace": "ns", "ownerReferences": [owner]}
        claim = fleet.source.add(CLAIMS, {"metadata": metadata, "spec": DEVICES})
        made = [{"name": "gpu", "resourceClaimName": "workers-gpu"}]
        pod = {**pod, "status": {"resourceClaimStatuses": made}}
        with pytest.raises(
            ConfigError, match="ResourceClaim workers-gpu is one of the pod's PodGr"
        ):
            await fleet.following.ensure(pod, fleet.link)

        owners = [{"kind": "Pod", "name": "web"}]
        fleet.source.change(
            CLAIMS, "workers-gpu", "ns", lambda c: c["metadata"].update(ownerReferences=owners)
        )
        await asyncio.sleep(SOON)
        assert claim
        assert await fleet.following.ensure(pod, fleet.link) == ("", ())


@BOTH
async def test_one_of_the_target_itself_is_used_as_it_is(fleet, kind):
    add_original(fleet, kind)
    spec = {"spec": EITHER} if kind is TEMPLATES else EITHER
    theirs = fleet.gpu.add(kind, {"metadata": {"name": "gpus", "namespace": "ns"}, "spec": spec})
    pod = add_pod(fleet, kind)
    async with fleet.running():
        message, _tokens = await fleet.following.ensure(pod, fleet.link)
        assert "is not from this cluster and differs; it is used as it is" in message
        assert copy(fleet, kind) == theirs


@BOTH
async def test_a_target_that_is_too_old_for_claims_is_not_asked_for_them(fleet, kind):
    error = NotFound(404, "", "404 page not found")
    fleet.gpu.fail(error, kind=kind, times=None)
    async with fleet.running():
        await asyncio.sleep(60)
        assert fleet.gpu.count("list", kind) == 1
        assert fleet.gpu.count("watch", kind) == 0
