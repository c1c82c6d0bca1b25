"""Finalizers of Targets that are gone, which come off proxy pods that live on."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from tests import background, computing
from tests.apiserver import links
from tests.apiserver.server import APIServer
from tests.computing import WorkingClock
from vnode.api import keys, kinds, objects
from vnode.api.errors import ServerError
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.kube.informer import Informer
from vnode.pods.source.stale_finalizers import StaleFinalizers
from vnode.targets.target_lister import TargetLister

pytestmark = pytest.mark.looptime

GPU, CPU, ALL = TargetKey("ns", "gpu"), TargetKey("ns", "cpu"), TargetKey("", "all")
THEIRS = "example.com/hold"


class Source:
    """A cluster with Targets and proxy pods."""

    def __init__(self, clock):
        self.server = APIServer("c1", clock, latency=lambda: 0.002)
        client = self.server.client()
        self.proxies = Informer(client, kinds.PODS, label_selector=keys.HAS_FINALIZER)
        self.targets = TargetLister(client)
        self.releaser = StaleFinalizers(client, self.proxies, self.targets, WorkingClock(clock))
        for target in (GPU, CPU, ALL):
            self.add_target(target)

    def add_target(self, target):
        kind = kinds.TARGETS if target.namespace else kinds.CLUSTER_TARGETS
        metadata = {"name": target.name}
        if target.namespace:
            metadata["namespace"] = target.namespace

        self.server.add(kind, {"metadata": metadata})

    def remove_target(self, target):
        kind = kinds.TARGETS if target.namespace else kinds.CLUSTER_TARGETS
        self.server.remove(kind, target.name, target.namespace)

    def add_pod(self, name="web", *finalizers, node=None, ending=False):
        metadata = {"name": name, "namespace": "ns", "labels": {keys.HAS_FINALIZER: "true"}}
        metadata["finalizers"] = list(finalizers)
        if ending:
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"

        spec = {"nodeName": node} if node else {}
        self.server.add(kinds.PODS, {"metadata": metadata, "spec": spec})

    def left(self, name="web"):
        """Return the finalizers that a pod still has."""
        return objects.finalizers(self.server.find(kinds.PODS, name, "ns") or {})

    @asynccontextmanager
    async def releasing(self, *, targets=True):
        """Have finalizers taken off; the Targets are known if `targets`."""
        known = self.targets.informers if targets else ()
        async with (
            links.following(self.proxies, *known),
            background.running(self.releaser.run()),
        ):
            await asyncio.sleep(1)
            yield


@pytest.fixture
async def source(clock):
    return Source(clock)


async def test_what_goes_is_the_finalizer_of_a_target_that_is_gone_and_no_other(source):
    finalizers = [THEIRS, GPU.finalizer, CPU.finalizer, ALL.finalizer]
    source.add_pod("web", *finalizers)
    async with source.releasing():
        assert source.left() == finalizers
        source.remove_target(GPU)
        await asyncio.sleep(1)
        assert source.left() == [THEIRS, CPU.finalizer, ALL.finalizer]
        source.remove_target(ALL)
        await asyncio.sleep(1)
        assert source.left() == [THEIRS, CPU.finalizer]
        assert source.server.count("patch") == 2


async def test_of_thousands_of_pods_a_few_are_looked_at_in_one_step(source):
    for number in range(8000):
        source.add_pod(f"p{number}", GPU.finalizer, CPU.finalizer, ALL.finalizer, *([THEIRS] * 12))

    async with source.releasing():
        with computing.steps() as steps:
            source.add_target(TargetKey("ns", "new"))
            await asyncio.sleep(5)

        assert max(steps) < 0.02


async def test_targets_that_come_and_go_all_the_time_have_pods_looked_at_in_a_quarter_of_it(
    source,
):
    for number in range(4000):
        source.add_pod(f"p{number}", GPU.finalizer, CPU.finalizer, ALL.finalizer, *([THEIRS] * 12))

    async with source.releasing():
        looks, check = [], source.releaser._check

        def look(pod: Object) -> None:
            looks.append(1)
            check(pod)

        source.releaser._check = look
        for number in range(20):
            source.add_target(TargetKey("ns", f"new{number}"))
            await asyncio.sleep(0.01)  # by a clock that does not count the work itself

        assert 4000 <= len(looks) <= 10 * 4000
        new = TargetKey("ns", "new0")
        source.add_pod("last", new.finalizer, GPU.finalizer)
        source.remove_target(new)
        await asyncio.sleep(5)
        assert source.left("last") == [GPU.finalizer]


async def test_what_was_left_behind_before_goes_at_the_start(source):
    source.add_pod("web", GPU.finalizer, TargetKey("ns", "former").finalizer)
    async with source.releasing():
        assert source.left() == [GPU.finalizer]


async def test_a_pod_that_comes_with_a_stale_finalizer_loses_it(source):
    async with source.releasing():
        source.add_pod("web", GPU.finalizer, TargetKey("ns", "former").finalizer)
        await asyncio.sleep(1)
        assert source.left() == [GPU.finalizer]


async def test_nothing_goes_as_long_as_targets_are_not_known(source):
    source.add_pod("web", TargetKey("ns", "former").finalizer)
    async with source.releasing(targets=False):
        await asyncio.sleep(60)
        assert source.server.count("patch") == 0


async def test_pods_on_the_node_of_a_target_that_is_gone_are_left_to_their_end(source):
    former = TargetKey("ns", "former")
    source.add_pod("there", former.finalizer, node=former.node_name)
    source.add_pod("ending", former.finalizer, ending=True)
    source.add_pod("here", former.finalizer, node=GPU.node_name)
    source.add_pod("real", former.finalizer, node="worker-1")
    async with source.releasing():
        assert source.left("there") == source.left("ending") == [former.finalizer]
        assert source.left("here") == source.left("real") == []


async def test_a_pod_that_changed_meanwhile_is_looked_at_again(source):
    """The list of finalizers is written as a whole, so that of somebody else would be lost."""
    source.add_pod("web", GPU.finalizer)
    async with source.releasing():
        source.server.silence_watches(kinds.PODS)
        source.server.change(
            kinds.PODS, "web", "ns", lambda pod: pod["metadata"]["finalizers"].append(THEIRS)
        )
        source.remove_target(GPU)
        await asyncio.sleep(1)
        assert source.left() == [GPU.finalizer, THEIRS]
        source.server.cut_watches(kinds.PODS)
        await asyncio.sleep(60)
        assert source.left() == [THEIRS]


async def test_a_failure_is_tried_again_and_holds_up_no_other_pod(source):
    former = TargetKey("ns", "former").finalizer
    source.add_pod("bad", former)
    source.add_pod("good", former)
    error = ServerError(500, "", "no")
    fault = source.server.fail(
        error, verb="patch", when=lambda request: request.name == "bad", times=None
    )
    async with source.releasing():
        assert source.left("good") == []
        assert source.left("bad") == [former]
        fault.clear()
        await asyncio.sleep(60)
        assert source.left("bad") == []


async def test_a_pod_that_is_gone_is_no_failure(source):
    source.add_pod("web", GPU.finalizer)
    async with source.releasing():
        source.server.silence_watches(kinds.PODS)
        source.server.remove(kinds.PODS, "web", "ns")
        source.remove_target(GPU)
        await asyncio.sleep(60)
        assert source.server.count("patch") == 1
