"""What is asked of the target's API server for a change, and when it is asked again."""

from __future__ import annotations

import asyncio

import pytest

from tests.apiserver.server import APIServer
from vnode.api import keys, kinds, objects
from vnode.api.errors import Conflict, Denied, Invalid, NotFound, ServerError, Unreachable
from vnode.pods import annotation_merge
from vnode.pods.target import delegate_updater
from vnode.pods.target.delegate_updater import DelegateUpdater

pytestmark = pytest.mark.looptime

EPHEMERAL = "ephemeralcontainers"
GATE = "example.com/lb-ready"


class Target:
    """A cluster with a chaperon and its delegate, and the updater of its agent."""

    def __init__(self, clock):
        self.server = APIServer("c2", clock)
        self.updater = DelegateUpdater(self.server.client(), clock)

    def refuse(self, subresource, kind=Invalid):
        error = kind(422, "Invalid", f"no {subresource}")
        return self.server.fail(
            error, verb="patch", kind=kinds.PODS, subresource=subresource, times=None
        )

    def pair(self, sent, done=None):
        """Store a chaperon with the record `sent` and its delegate with the record `done`."""
        shell = {"name": "shell", "image": "busybox"}
        main = {"name": "main", "image": "busybox"}
        chaperon = {"containers": [main], "ephemeralContainers": [shell]}
        delegate = {"containers": [main], "readinessGates": [{"conditionType": GATE}]}
        return (
            self.server.add(kinds.POD_CHAPERONS, {**_head(sent), "spec": chaperon}),
            self.server.add(kinds.PODS, {**_head(done), "spec": delegate}),
        )

    @property
    def pod(self):
        return self.server.find(kinds.PODS, "web", "shop")

    @property
    def record(self):
        return annotation_merge.read(self.pod, keys.SENT)

    @property
    def asked(self):
        return [each.subresource for each in self.server.requests if each.verb == "patch"]


def _head(record):
    annotations = {keys.SENT: annotation_merge.text(record)} if record else {}
    return {
        "metadata": {"name": "web", "namespace": "shop", "uid": "u", "annotations": annotations}
    }


@pytest.fixture
async def target(clock):
    return Target(clock)


RESIZE = {"resources": {"containers": {"main": {"requests": {"cpu": "2"}}}}}
DEBUG = {"ephemeralContainers": {"shell": True}}
LABEL = {"labels": {"app": "web"}}
OPENED = {"conditions": {GATE: {"status": "True"}}}


async def test_nothing_is_asked_where_nothing_changed(target):
    assert await target.updater.update(*target.pair(LABEL, LABEL)) is None
    assert target.asked == []


async def test_each_part_has_its_own_request_and_the_last_one_writes_the_record(target):
    chaperon, pod = target.pair(RESIZE | DEBUG | LABEL)
    assert await target.updater.update(chaperon, pod) is None
    assert target.asked == ["resize", EPHEMERAL, ""]
    assert target.record == RESIZE | DEBUG | LABEL
    assert target.updater.under_way(pod)
    spec = objects.spec(target.pod)
    assert spec["containers"][0]["resources"] == {"requests": {"cpu": "2"}}
    assert [container["name"] for container in spec["ephemeralContainers"]] == ["shell"]


async def test_what_was_refused_stays_out_of_the_record_and_the_rest_is_done(target):
    target.refuse("resize")
    assert await target.updater.update(*target.pair(RESIZE | LABEL)) == "no resize"
    assert target.record == LABEL
    assert objects.labels(target.pod) == {"app": "web"}


@pytest.mark.parametrize("kind", [Invalid, Denied, NotFound])
async def test_whatever_the_api_server_will_not_do_is_a_refusal(target, kind):
    target.refuse("resize", kind)
    assert await target.updater.update(*target.pair(RESIZE)) == "no resize"


async def test_an_error_that_may_pass_is_the_callers(target):
    target.refuse("resize", ServerError)
    with pytest.raises(ServerError):
        await target.updater.update(*target.pair(RESIZE))


@pytest.mark.parametrize(
    ("part", "older", "newer"),
    [
        ("resize", RESIZE, {"resources": {"containers": {"main": {"requests": {"cpu": "3"}}}}}),
        ("status", OPENED, {"conditions": {GATE: {"status": "False"}}}),
        ("", LABEL, {"labels": {"app": "db"}}),
    ],
)
async def test_a_request_that_arrives_late_undoes_nothing(target, part, older, newer):
    """It was under way when its leader was killed, and the next one has done more since."""
    target.server.fail(Unreachable("no answer"), verb="patch", subresource=part, late=lambda: 5.0)
    with pytest.raises(Unreachable):
        await target.updater.update(*target.pair(older))

    assert await target.updater.update(*target.pair(newer)) is None
    written = target.pod
    await asyncio.sleep(6)
    assert target.pod == written


async def test_a_pod_that_has_changed_meanwhile_is_looked_at_again(target):
    chaperon, pod = target.pair(RESIZE | LABEL)
    target.server.change(kinds.PODS, "web", "shop", lambda pod: pod["metadata"].update(labels={}))
    with pytest.raises(Conflict):
        await target.updater.update(chaperon, pod)

    assert await target.updater.update(chaperon, target.pod) is None
    assert target.record == RESIZE | LABEL


async def test_a_part_that_was_refused_keeps_its_earlier_record(target):
    target.refuse("resize")
    earlier = {"resources": {"containers": {"main": {"requests": {"cpu": "1"}}}}}
    assert await target.updater.update(*target.pair(RESIZE | LABEL, earlier)) == "no resize"
    assert target.record == earlier | LABEL


async def test_a_condition_goes_to_the_status(target):
    assert await target.updater.update(*target.pair(OPENED | LABEL)) is None
    assert target.asked == ["status", ""]
    condition = {"type": GATE, "status": "True"}
    assert objects.status(target.pod) == {"conditions": [condition]}
    assert target.record == OPENED | LABEL


async def test_the_refusal_of_a_condition_keeps_nothing_back(target):
    target.refuse("status")
    assert await target.updater.update(*target.pair(OPENED | LABEL)) == "no status"
    assert target.record == LABEL


async def test_all_refusals_are_told(target):
    target.refuse("resize")
    target.refuse(EPHEMERAL)
    refusal = await target.updater.update(*target.pair(RESIZE | DEBUG))
    assert refusal == f"no resize; no {EPHEMERAL}"
    assert target.asked == ["resize", EPHEMERAL]


async def test_what_was_refused_is_asked_again_after_a_while_only(target):
    refusal, pair = target.refuse("resize"), target.pair(RESIZE)
    await target.updater.update(*pair)
    assert await target.updater.update(*pair) == "no resize"
    assert target.asked == ["resize"]

    await asyncio.sleep(delegate_updater.RETRY_DELAY)
    refusal.clear()
    assert await target.updater.update(*pair) is None
    assert target.asked == ["resize", "resize", ""]


async def test_another_change_is_tried_at_once(target):
    target.refuse("resize")
    await target.updater.update(*target.pair(RESIZE))
    await target.updater.update(*target.pair(RESIZE | LABEL))
    assert target.asked == ["resize", "resize", ""]


async def test_a_later_delegate_is_tried_at_once(target):
    target.refuse("resize")
    chaperon, pod = target.pair(RESIZE)
    await target.updater.update(chaperon, pod)
    later = {**pod, "metadata": {**pod["metadata"], "uid": "later"}}
    await target.updater.update(chaperon, later)
    assert target.asked == ["resize", "resize"]


async def test_a_refusal_goes_with_the_chaperon(target):
    target.refuse("resize")
    pair = target.pair(RESIZE)
    await target.updater.update(*pair)
    target.updater.forget("shop/web")
    await target.updater.update(*pair)
    assert target.asked == ["resize", "resize"]
