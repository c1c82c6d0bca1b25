"""A delegate that somebody deletes, or takes out of sight, while its chaperon lives on."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.pods.target_side import NAMESPACE, SETTLED, TargetCluster
from vnode.api import keys, kinds, objects
from vnode.pods import delegate

pytestmark = pytest.mark.looptime

FOREIGN = "example.com/hold"
RECREATED = delegate.RECREATE_AFTER.total_seconds()


@pytest.fixture
async def cluster(clock):
    return TargetCluster(clock)


async def test_a_delegate_gets_its_label_back_and_does_not_count_as_missing(cluster):
    async with cluster.running():
        await cluster.send_running()
        unlabel(cluster)
        await asyncio.sleep(SETTLED)
        assert objects.labels(cluster.pod()) == {keys.PARENT_UID: "parent-of-web"}
        assert cluster.noted(keys.POD_MISSING_SINCE) is None


def unlabel(cluster):
    cluster.server.change(
        kinds.PODS, "web", NAMESPACE, lambda pod: pod["metadata"].update(labels={})
    )


async def test_a_delegate_that_somebody_deletes_is_marked_as_it_begins_to_end(cluster):
    async with cluster.running():
        await cluster.send_running()
        await cluster.evict()
        await asyncio.sleep(SETTLED)
        assert cluster.noted(keys.DELEGATE_DELETED) == "true"
        assert cluster.noted(keys.POD_MISSING_SINCE) is None


async def test_the_deletion_of_a_delegate_that_has_finished_is_not_marked(cluster):
    async with cluster.running():
        await cluster.send_running()
        cluster.server.change(kinds.PODS, "web", NAMESPACE, hold)
        cluster.report(phase="Succeeded")
        await asyncio.sleep(SETTLED)
        await cluster.evict()
        await asyncio.sleep(SETTLED)
        assert objects.is_terminating(cluster.pod())
        assert cluster.noted(keys.DELEGATE_DELETED) is None
        cluster.stop()
        await asyncio.sleep(SETTLED)
        assert cluster.noted(keys.POD_MISSING_SINCE)


def hold(pod):
    pod["metadata"]["finalizers"] = [FOREIGN]


async def test_a_lost_delegate_is_made_anew_if_the_source_says_nothing(cluster):
    async with cluster.running():
        await cluster.send_running(annotations={keys.IS_ALLOWED: "true"})
        first = objects.uid(cluster.pod())
        cluster.report(phase="Failed")
        cluster.stop()
        await asyncio.sleep(RECREATED - 5)
        assert objects.status(cluster.chaperon())["phase"] == "Failed"
        assert cluster.noted(keys.POD_MISSING_SINCE)
        assert not cluster.pod()
        await asyncio.sleep(10)
        assert objects.uid(cluster.pod()) not in ("", first)
        assert objects.spec(cluster.pod())["containers"]
        await cluster.run()
        assert cluster.noted(keys.POD_MISSING_SINCE) is None
        assert objects.status(cluster.chaperon())["phase"] == "Running"


@pytest.mark.parametrize(
    ("policy", "annotations", "again"),
    [
        ("Never", {keys.IS_ALLOWED: "true"}, False),
        ("OnFailure", {keys.IS_ALLOWED: "true"}, False),
        ("Never", {}, True),
        ("Always", {keys.IS_ALLOWED: "true"}, True),
    ],
)
async def test_only_what_runs_always_or_never_ran_is_made_anew(cluster, policy, annotations, again):
    async with cluster.running():
        await cluster.send_running(spec={"restartPolicy": policy}, annotations=annotations)
        cluster.stop()
        await asyncio.sleep(600)
        assert bool(cluster.pod()) == again


async def test_a_source_that_ends_the_chaperon_of_a_lost_delegate_gets_no_other(cluster):
    async with cluster.running():
        await cluster.send_running()
        cluster.stop()
        await asyncio.sleep(RECREATED - 5)
        await cluster.end()
        await cluster.until(lambda: cluster.ends, 1)
        await asyncio.sleep(600)
        assert cluster.count("create", "pods") == 1


async def test_a_delegate_that_is_about_to_end_takes_no_change(cluster):
    async with cluster.running():
        await cluster.send_running()
        await cluster.evict()
        cluster.annotate(sent='{"labels": {"app": "web"}}')
        await asyncio.sleep(SETTLED)
        assert "app" not in objects.labels(cluster.pod())
