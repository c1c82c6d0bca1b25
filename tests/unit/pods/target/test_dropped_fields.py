"""A delegate whose API server would drop what it needs is not made; its source hears why."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.pods.target_side import TargetCluster
from vnode.api import kinds
from vnode.api.errors import Invalid
from vnode.pods.target import dropped_fields

pytestmark = pytest.mark.looptime

IMAGE = {"name": "model", "image": {"reference": "model:1"}}
PLAIN = {"name": "scratch", "emptyDir": {}}
CONTAINER = {"name": "main", "image": "busybox"}
RULE = {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}


@pytest.fixture
async def cluster(clock):
    return TargetCluster(clock)


class OldServer:
    """Drops volumes of images, and resources of pods, as one of 1.33 does, until `end`."""

    def __init__(self, cluster):
        self._ended = False
        cluster.server.admit(self._admit)

    def end(self):
        self._ended = True

    def _admit(self, request, obj):
        if request.kind is not kinds.PODS or self._ended:
            return obj

        spec = {field: value for field, value in obj["spec"].items() if field != "resources"}
        if "volumes" in spec:
            spec["volumes"] = [volume for volume in spec["volumes"] if "image" not in volume]

        return {**obj, "spec": spec}


def dry_runs(cluster):
    return [r for r in cluster.server.received(verb="create", kind=kinds.PODS) if r.is_dry_run]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"volumes": [IMAGE, PLAIN]}, "spec.volumes.image:"),
        ({"resources": {"requests": {"cpu": "1"}}}, "spec.resources:"),
    ],
)
async def test_a_pod_is_refused_of_which_something_would_be_dropped(cluster, spec, field):
    OldServer(cluster)
    cluster.send(spec=spec)
    async with cluster.running():
        await cluster.until(lambda: cluster.rejection, 1)
        assert f"API server would drop {field} its version" in cluster.rejection
        await asyncio.sleep(20)
        assert not cluster.pod()


async def test_a_pod_is_made_once_the_server_keeps_all_of_it(cluster):
    old = OldServer(cluster)
    cluster.send(spec={"volumes": [IMAGE]})
    async with cluster.running():
        await cluster.until(lambda: cluster.rejection, 1)
        old.end()
        await cluster.until(cluster.pod, 31)
        assert cluster.pod()["spec"]["volumes"] == [IMAGE]


async def test_a_server_is_asked_once_about_what_it_keeps(cluster):
    async with cluster.running():
        for name in ("web-0", "web-1"):
            cluster.send(name, spec={"volumes": [IMAGE]})
            await cluster.until(lambda name=name: cluster.pod(name), 1)
        assert len(dry_runs(cluster)) == 1


async def test_a_plain_pod_costs_no_dry_run(cluster):
    cluster.send(spec={"volumes": [PLAIN]})
    async with cluster.running():
        await cluster.until(cluster.pod, 1)
        assert not dry_runs(cluster)


async def test_what_the_server_refuses_is_told_in_its_words(cluster):
    cluster.server.fail(Invalid(400, "BadRequest", "no such image"), verb="create", kind=kinds.PODS)
    cluster.send(spec={"volumes": [IMAGE]})
    async with cluster.running():
        await cluster.until(lambda: cluster.rejection, 1)
        assert cluster.rejection == "no such image"


async def test_a_webhook_without_dry_runs_is_not_in_the_way(cluster):
    text = 'admission webhook "x.example.com" does not support dry run'
    cluster.server.fail(Invalid(400, "BadRequest", text), verb="create", kind=kinds.PODS)
    cluster.send(spec={"volumes": [IMAGE]})
    async with cluster.running():
        await cluster.until(cluster.pod, 1)


def test_fields_are_found_wherever_they_are():
    spec = {
        "containers": [
            {**CONTAINER, "restartPolicyRules": [RULE]},
            {**CONTAINER, "restartPolicyRules": [], "env": [{"name": "A", "value": ""}]},
            {**CONTAINER, "env": [{"name": "A", "valueFrom": {"fileKeyRef": {"key": "a"}}}]},
        ],
        "initContainers": [{**CONTAINER, "lifecycle": {"stopSignal": "SIGUSR1"}}],
        "volumes": [IMAGE, {**IMAGE, "name": "other"}, PLAIN],
        "resourceClaims": None,
        "hostnameOverride": "",
    }
    assert dropped_fields.used(spec) == {
        "volumes.image": 2,
        "containers.env.valueFrom.fileKeyRef": 1,
        "containers.restartPolicyRules": 1,
        "initContainers.lifecycle.stopSignal": 1,
    }
    assert dropped_fields.used({"containers": [CONTAINER]}) == {}
