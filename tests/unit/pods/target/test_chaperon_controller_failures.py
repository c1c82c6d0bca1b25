"""A delegate that cannot be made: who is told of it, and when it is tried again."""

from __future__ import annotations

import asyncio
import itertools
import json

import pytest

from tests.apiserver import status
from tests.unit.pods.target_side import NAMESPACE, SETTLED, TargetCluster
from vnode.api import keys, kinds, objects
from vnode.api.errors import Conflict, Denied, ServerError
from vnode.pods import delegate
from vnode.pods.target import delegate_creator

pytestmark = pytest.mark.looptime

CREATE = ("create", "pods")
REPORT = ("patch", "podchaperons/status")
BUSY = ServerError(500, "InternalError", "a webhook does not answer")
CHANGED = Conflict(409, "Conflict", "the quota has changed")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
TOLERATED = [{"operator": "Exists"}]
UNSEEN = Denied(403, "Forbidden", "no PriorityClass with name high was found")
FORBIDDEN = Denied(403, "Forbidden", "exceeded quota: pods=10")


@pytest.fixture
async def cluster(clock):
    return TargetCluster(clock)


async def test_a_pod_of_somebody_else_is_left_alone_until_it_is_gone(cluster):
    metadata = {"name": "web", "namespace": NAMESPACE, "uid": "theirs"}
    cluster.server.add(kinds.PODS, {"metadata": metadata, "spec": {"containers": []}})
    cluster.send()
    async with cluster.running():
        await asyncio.sleep(35)
        assert cluster.rejection == "another pod is named web"
        assert cluster.asked == [CREATE, REPORT, CREATE]  # said once
        assert objects.uid(cluster.pod()) == "theirs"
        cluster.stop()
        await cluster.until(lambda: owned(cluster), 31)


async def test_the_delegate_of_an_earlier_chaperon_makes_room(cluster):
    chaperon = cluster.send()
    pod = delegate.build({**chaperon, "metadata": {**chaperon["metadata"], "uid": "earlier"}})
    cluster.server.add(kinds.PODS, pod)
    async with cluster.running():
        await cluster.until(lambda: owned(cluster), 1)
        assert cluster.asked == [("delete", "pods"), CREATE]


async def test_the_delegate_of_an_earlier_chaperon_that_is_seen_late_makes_room(cluster):
    """It is refused as any pod of the name, until the informer shows whose it is."""
    async with cluster.running():
        await asyncio.sleep(SETTLED)
        cluster.server.silence_watches(kinds.PODS)
        chaperon = cluster.send()
        earlier = {**chaperon, "metadata": {**chaperon["metadata"], "uid": "earlier"}}
        cluster.server.add(kinds.PODS, delegate.build(earlier))
        await cluster.until(lambda: cluster.rejection, 1)
        cluster.server.cut_watches(kinds.PODS)
        await cluster.until(lambda: owned(cluster), 2)


async def test_a_labelled_pod_of_somebody_else_is_left_alone(cluster):
    labels = {keys.PARENT_UID: "parent-of-web"}
    owner = {"kind": "ReplicaSet", "name": "web", "uid": "rs", "controller": True}
    metadata = {"name": "web", "namespace": NAMESPACE, "labels": labels, "ownerReferences": [owner]}
    cluster.server.add(kinds.PODS, {"metadata": metadata, "spec": {"containers": []}})
    cluster.send()
    async with cluster.running():
        await asyncio.sleep(SETTLED)
        assert cluster.rejection == "another pod is named web"
        assert ("delete", "pods") not in cluster.asked
        cluster.stop()
        await cluster.until(lambda: owned(cluster), 31)


def owned(cluster):
    return objects.controller_uid(cluster.pod()) == objects.uid(cluster.chaperon())


@pytest.mark.parametrize("error", [BUSY, CHANGED])
async def test_an_error_that_passes_is_not_told(cluster, error):
    cluster.server.fail(error, verb="create", kind=kinds.PODS)
    cluster.send()
    async with cluster.running():
        await cluster.until(cluster.pod, 1)
        await asyncio.sleep(SETTLED)
        assert cluster.asked == [CREATE, CREATE]


@pytest.mark.parametrize("error", [BUSY, CHANGED])
async def test_an_error_that_does_not_pass_is_told_and_tried_again(cluster, error):
    fault = cluster.server.fail(error, verb="create", kind=kinds.PODS, times=None)
    cluster.send()
    async with cluster.running():
        await cluster.until(lambda: cluster.rejection == error.message, 1)
        await asyncio.sleep(5)
        assert cluster.count(*CREATE) > 4
        assert cluster.count(*REPORT) == 1
        fault.clear()
        await cluster.until(cluster.pod, 30)


async def test_a_failure_after_a_success_is_the_first_again(cluster):
    fault = cluster.server.fail(BUSY, verb="create", kind=kinds.PODS)
    cluster.send()
    async with cluster.running():
        await cluster.until(cluster.pod)
        cluster.stop()  # before it was reported, so that it is made anew at once
        cluster.server.fail(BUSY, verb="create", kind=kinds.PODS)
        await asyncio.sleep(SETTLED)
        assert fault.met == 1
        assert cluster.asked == [CREATE] * 4
        assert cluster.pod()


async def test_a_refusal_is_told_at_once_and_tried_again_later(cluster):
    fault = cluster.server.fail(FORBIDDEN, verb="create", kind=kinds.PODS, times=None)
    cluster.send()
    async with cluster.running():
        await asyncio.sleep(25)
        assert cluster.rejection == "exceeded quota: pods=10"
        assert cluster.asked == [CREATE, REPORT]
        fault.clear()
        await cluster.until(cluster.pod, 10)


async def test_a_priority_class_that_the_server_has_not_seen_yet_is_waited_for(cluster):
    """The source has read of it in the ClusterSummary before the admission plugin knows it."""
    cluster.server.fail(UNSEEN, verb="create", kind=kinds.PODS, times=1)
    cluster.send()
    async with cluster.running():
        await cluster.until(cluster.pod, 1)
        assert cluster.asked == [CREATE, CREATE]


async def test_a_priority_class_that_is_lacking_is_told_soon_with_its_cure(cluster):
    cluster.server.fail(UNSEEN, verb="create", kind=kinds.PODS, times=None)
    cluster.send()
    async with cluster.running():
        await cluster.until(lambda: cluster.rejection, 1)
        assert cluster.rejection == f"{UNSEEN.message}: create it in the target"


@pytest.mark.parametrize(
    ("refusal", "cure"),
    [
        (
            (
                'pods "p" is forbidden: error looking up service account ns/builder: '
                'serviceaccount "builder" not found'
            ),
            (
                f": create it there, in namespace ns, or have the Target do so by its annotation "
                f"{keys.CREATE_SERVICE_ACCOUNTS}"
            ),
        ),
        (
            'pods "p" is forbidden: pod rejected: RuntimeClass "gvisor" not found',
            ": create it in the target",
        ),
        (
            'pods "p" is forbidden: no PriorityClass with name high was found',
            ": create it in the target",
        ),
        ("exceeded quota: pods=10", ""),
    ],
)
def test_a_refusal_for_want_of_what_the_pod_names_is_told_with_its_cure(refusal, cure):
    head = {"name": "p-bcdfg", "namespace": "ns", "annotations": {keys.PARENT_NAME: "p"}}
    named = refusal.replace('"p"', '"p-bcdfg"')
    assert delegate_creator.explain(named, {"metadata": head}) == refusal + cure


async def test_an_error_in_other_words_each_time_is_not_tried_again_sooner(cluster):
    ports = itertools.count(40000)

    def refuse(request, obj):
        if request.kind is not kinds.PODS:
            return obj

        raise status.StatusError(500, "InternalError", f"no answer at port {next(ports)}")

    cluster.server.admit(refuse)
    cluster.send()
    async with cluster.running():
        await asyncio.sleep(30)
        assert 5 < cluster.count(*CREATE) < 15


SPECS = {
    "spec.tolerations": {"tolerations": "x"},
    "spec.tolerations[0]": {"tolerations": [1]},
    "spec.affinity": {"affinity": "x"},
    "spec.affinity.nodeAffinity": {"affinity": {"nodeAffinity": "x"}, "tolerations": TOLERATED},
    "nodeSelectorTerms[0]": {
        "affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [1]}}},
        "tolerations": TOLERATED,
    },
    "spec.containers": {"containers": 5},
    "spec.containers[0]": {"containers": [None]},
    "spec.ephemeralContainers": {"ephemeralContainers": "x"},
}


@pytest.mark.parametrize("field", SPECS)
async def test_a_chaperon_that_is_of_no_pod_is_refused_once_by_the_field(cluster, caplog, field):
    cluster.send(spec=SPECS[field])
    async with cluster.running():
        await asyncio.sleep(100)
        assert cluster.rejection.startswith("the PodChaperon is not of a pod: spec.")
        assert field in cluster.rejection
        assert cluster.asked == [REPORT]

    assert not caplog.records


async def test_a_chaperon_that_is_of_a_pod_after_all_gets_a_delegate(cluster):
    cluster.send(spec={"tolerations": "x"})
    async with cluster.running():
        await cluster.until(lambda: cluster.rejection, 1)
        body = {"spec": {"tolerations": []}}
        await cluster.source.patch(kinds.POD_CHAPERONS, "web", body, NAMESPACE)
        await cluster.until(cluster.pod, 1)


RECORDS = (
    {"images": "x"},
    {"images": {"containers": "x"}},
    {"images": {"containers": {"main": 5}}},
    {"resources": {"containers": [1]}},
    {"conditions": {"a": "x"}},
    {"labels": {"a": {}}},
    {"ephemeralContainers": [1]},
)


@pytest.mark.parametrize("record", RECORDS, ids=str)
async def test_a_record_that_no_source_writes_is_refused_by_the_field(cluster, caplog, record):
    async with cluster.running():
        cluster.send()
        await cluster.until(cluster.pod, 1)
        cluster.annotate(sent=json.dumps(record))
        await asyncio.sleep(100)
        refusal = objects.annotations(cluster.chaperon())[keys.REFUSED]
        assert refusal.startswith(f"annotation {keys.SENT}: {next(iter(record))}")
        assert cluster.asked == [CREATE, ("patch", "podchaperons")]

    assert not caplog.records


async def test_an_ephemeral_container_that_is_none_is_refused(cluster, caplog):
    async with cluster.running():
        cluster.send()
        await cluster.until(cluster.pod, 1)
        body = {
            "metadata": {"annotations": {keys.SENT: '{"ephemeralContainers":{"a":true}}'}},
            "spec": {"ephemeralContainers": "x"},
        }
        await cluster.source.patch(kinds.POD_CHAPERONS, "web", body, NAMESPACE)
        await asyncio.sleep(20)
        refusal = objects.annotations(cluster.chaperon())[keys.REFUSED]
        assert "spec.ephemeralContainers" in refusal

    assert not caplog.records


async def test_an_answer_that_was_lost_makes_no_second_delegate(cluster):
    cluster.server.fail(BUSY, verb="create", kind=kinds.PODS, after=True)
    async with cluster.running():
        await asyncio.sleep(SETTLED)
        cluster.server.silence_watches(kinds.PODS)
        cluster.send()
        await asyncio.sleep(5)
        assert cluster.asked == [CREATE, CREATE]
