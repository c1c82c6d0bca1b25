"""A delegate that somebody deletes, or takes out of sight, while its chaperon lives on."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.pods.target_side import NAMESPACE, SETTLED, TargetCluster
from vnode.api import keys, kinds, objects
from vnode.api.errors import Invalid, ServerError
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
        await cluster.evict()
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


async def test_the_source_never_sees_the_end_of_a_lost_delegate_without_its_deletion(cluster):
    seen = set()

    def note(kind, change):
        if kind is kinds.POD_CHAPERONS and change.new is not None:
            deleted = keys.DELEGATE_DELETED in objects.annotations(change.new)
            seen.add((objects.status(change.new).get("phase"), deleted))

    async with cluster.running():
        cluster.server.store.changed.add(note)
        await cluster.send_running(annotations={keys.IS_ALLOWED: "true"})
        await cluster.evict()
        cluster.report(phase="Failed")
        cluster.stop()
        await asyncio.sleep(RECREATED + 5)
        await cluster.run()
        assert ("Failed", True) in seen
        assert ("Failed", False) not in seen
        assert cluster.noted(keys.DELEGATE_DELETED) is None


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


PARENT = {keys.PARENT_NAMESPACE: "shop", keys.PARENT_NAME: "of-web", keys.PARENT_CLUSTER_UID: "us"}


async def test_a_delegate_has_the_name_of_its_source_that_its_chaperon_has(cluster):
    """As it has after `vnode migrate`, or an uninstall that kept the delegates."""
    async with cluster.running():
        await cluster.send_running(annotations={keys.IS_ALLOWED: "true", **PARENT})
        named = {keys.PARENT_CLUSTER_NAME: "c1", keys.PARENT_CLUSTER_UID: "us"}
        cluster.server.change(
            *(kinds.POD_CHAPERONS, "web", NAMESPACE),
            lambda chaperon: chaperon["metadata"]["labels"].update(named),
        )
        await asyncio.sleep(SETTLED)
        assert named.items() <= objects.labels(cluster.pod()).items()
        await cluster.end()


async def test_a_delegate_gets_back_its_owner_and_its_label_and_ends_with_its_chaperon(cluster):
    async with cluster.running():
        await cluster.send_running(annotations={keys.IS_ALLOWED: "true", **PARENT})
        owners = objects.metadata(cluster.pod())["ownerReferences"]

        def spoil(pod):
            pod["metadata"].update(ownerReferences=[], labels={keys.PARENT_UID: "other"})

        cluster.server.change(kinds.PODS, "web", NAMESPACE, spoil)
        await asyncio.sleep(SETTLED)
        # One that has lost both is anybody's.
        assert objects.labels(cluster.pod()) == {keys.PARENT_UID: "other"}
        assert cluster.rejection
        for lost in ({"ownerReferences": []}, {"labels": {keys.PARENT_UID: "other"}}):
            restored = {"ownerReferences": owners, "labels": {keys.PARENT_UID: "parent-of-web"}}
            change = {**restored, **lost}
            cluster.server.change(
                kinds.PODS, "web", NAMESPACE, lambda pod, new=change: pod["metadata"].update(new)
            )
            await asyncio.sleep(SETTLED)
            assert objects.metadata(cluster.pod())["ownerReferences"] == owners
            assert objects.labels(cluster.pod()) == {keys.PARENT_UID: "parent-of-web"}

        await cluster.end()
        await asyncio.sleep(SETTLED)
        assert objects.is_terminating(cluster.pod())
        assert not cluster.ends


async def test_a_delegate_that_was_let_go_gets_no_owner_again(cluster):
    """As by an uninstall that keeps delegates: they would end with the CRD of chaperons."""
    async with cluster.running():
        await cluster.send_running(annotations={keys.IS_ALLOWED: "true", **PARENT})
        cluster.server.change(
            kinds.POD_CHAPERONS, "web", NAMESPACE, lambda obj: obj["metadata"].pop("finalizers")
        )
        await asyncio.sleep(SETTLED)
        cluster.server.change(
            kinds.PODS, "web", NAMESPACE, lambda pod: pod["metadata"].pop("ownerReferences")
        )
        await asyncio.sleep(600)
        assert "ownerReferences" not in objects.metadata(cluster.pod())


async def test_what_the_target_wrote_on_a_lost_delegate_is_not_on_the_next(cluster):
    async with cluster.running():
        await cluster.send_running(annotations={keys.IS_ALLOWED: "true", "example.com/own": "1"})
        cluster.annotate(kind=kinds.PODS, team="injected")
        await asyncio.sleep(SETTLED)
        assert cluster.noted("example.com/team") == "injected"
        cluster.stop()
        await asyncio.sleep(RECREATED + 5)
        annotations = objects.annotations(cluster.pod())
        assert "example.com/team" not in annotations
        assert annotations["example.com/own"] == "1"
        await cluster.run()
        assert cluster.noted("example.com/team") is None


async def test_a_delegate_that_had_ended_is_not_made_anew_though_it_is_meant_to_run_always(cluster):
    async with cluster.running():
        await cluster.send_running(annotations={keys.IS_ALLOWED: "true"})
        cluster.report(phase="Failed", reason="Evicted")
        cluster.stop()
        await asyncio.sleep(10 * RECREATED)
        assert not cluster.pod()
        assert objects.status(cluster.chaperon())["reason"] == "Evicted"
        assert cluster.noted(keys.DELEGATE_DELETED) is None


@pytest.mark.parametrize("phase", ["Pending", "Running", "Failed"])
async def test_a_delegate_that_a_late_request_makes_again_leaves_the_result_as_it_is(
    cluster, phase
):
    async with cluster.running():
        await cluster.send_running(
            spec={"restartPolicy": "Never"}, annotations={keys.IS_ALLOWED: "true"}
        )
        cluster.report(phase="Succeeded", podIP="10.1.0.1")
        await asyncio.sleep(SETTLED)
        cluster.stop()
        await asyncio.sleep(SETTLED)
        late = delegate.build(cluster.chaperon())
        cluster.server.add(kinds.PODS, {**late, "status": {"phase": phase}})
        await asyncio.sleep(SETTLED)
        assert not cluster.pod()
        status = objects.status(cluster.chaperon())
        assert (status["phase"], status["podIP"]) == ("Succeeded", "10.1.0.1")
        assert cluster.noted(keys.POD_MISSING_SINCE)


async def test_an_agent_that_has_not_seen_how_a_delegate_ended_does_not_delete_it(cluster):
    async with cluster.running():
        await cluster.send_running(annotations={keys.IS_ALLOWED: "true"})
        cluster.server.silence_watches(kinds.PODS)
        cluster.report(phase="Succeeded")
        cluster.server.change(
            *(kinds.POD_CHAPERONS, "web", NAMESPACE),
            lambda chaperon: chaperon["status"].update(phase="Succeeded"),
        )
        await asyncio.sleep(SETTLED)
        assert not objects.is_terminating(cluster.pod())


async def test_a_status_that_the_api_server_finds_too_large_is_shortened(cluster):
    error = ServerError(500, "", "etcdserver: request is too large")
    cluster.server.fail(
        error,
        verb="patch",
        kind=kinds.POD_CHAPERONS,
        subresource="status",
        when=lambda request: len(str(request.body)) > 100_000,
        times=None,
    )
    async with cluster.running():
        await cluster.send_running()
        mounts = [{"name": "v", "mountPath": "/data/" + "x" * 200}] * 1000
        code = {"terminated": {"exitCode": 3}}
        entry = {"name": "main", "state": code, "volumeMounts": mounts}
        cluster.report(phase="Failed", containerStatuses=[entry])
        await asyncio.sleep(5)
        status = objects.status(cluster.chaperon())
        assert status["phase"] == "Failed"
        assert status["containerStatuses"] == [{"name": "main", "state": code}]


async def test_annotations_that_are_too_long_for_the_chaperon_do_not_keep_the_status(cluster):
    error = Invalid(422, "Invalid", "metadata.annotations: Too long")
    cluster.server.fail(
        error,
        verb="patch",
        kind=kinds.POD_CHAPERONS,
        when=lambda request: "example.com/team" in str(request.body),
        times=None,
    )
    async with cluster.running():
        await cluster.send_running()
        cluster.annotate(kind=kinds.PODS, team="long")
        cluster.report(phase="Succeeded")
        await asyncio.sleep(5)
        assert objects.status(cluster.chaperon())["phase"] == "Succeeded"
