"""What is written to a proxy, and what is done when the API server does not take it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import SimpleNamespace

import pytest

from tests.apiserver.server import APIServer
from vnode.api import keys, kinds, objects
from vnode.api.errors import Denied, Invalid, ServerError, Unreachable
from vnode.pods.source import after_feedback, status_writer
from vnode.pods.source.status_writer import StatusWriter

pytestmark = pytest.mark.looptime

LINK = SimpleNamespace(runs_vnode=True, target="shop/c2")


class Source:
    """A cluster with the proxy; `refused` are the faults of patches, by subresource."""

    def __init__(self, clock):
        self.server = APIServer("c1", clock)
        self.refused = {}
        self.proxy = self.server.add(kinds.PODS, PROXY)

    def refuse(self, subresource, error):
        self.refused[subresource] = self.server.fail(
            error, verb="patch", kind=kinds.PODS, subresource=subresource, times=None
        )

    def annotate(self, annotations):
        def change(pod):
            pod["metadata"]["annotations"] = annotations

        self.proxy = self.server.change(kinds.PODS, "web", "shop", change)

    @property
    def patches(self):
        return [(each.subresource, each.body) for each in self.server.requests]

    @property
    def asked(self):
        return [subresource for subresource, _body in self.patches]


class Events(list):
    def event(self, about, type_, reason, message):
        self.append((reason, message))


PROXY = {
    "metadata": {"name": "web", "namespace": "shop", "uid": "u"},
    "spec": {"nodeName": "admiralty-c2"},
    "status": {"phase": "Running"},
}


def chaperon(phase="Failed", **status):
    metadata = {"name": "web-x", "annotations": {"cni": "x"}}
    return {"metadata": metadata, "spec": {}, "status": {"phase": phase, **status}}


@pytest.fixture
async def source(clock):
    return Source(clock)


@pytest.fixture
def events():
    return Events()


@pytest.fixture
def mirror(source, events, clock):
    return StatusWriter(source.server.client(), events, clock)


async def test_status_and_annotations_are_taken_over(mirror, source):
    assert await mirror.feed_back(source.proxy, chaperon(), LINK) is None
    assert source.asked == ["", "status"]


@pytest.mark.parametrize("part", ["status", ""])
@pytest.mark.parametrize("error", [Invalid(422, "Invalid", "too long"), Denied(403, "", "no way")])
async def test_what_is_refused_keeps_nothing_else_back_and_is_told(
    mirror, source, events, part, error
):
    source.refuse(part, error)
    assert await mirror.feed_back(source.proxy, chaperon(), LINK) == status_writer.RETRY_DELAY
    assert source.asked == ["", "status"]
    ((reason, message),) = events
    assert reason == "FeedbackRefused"
    assert error.message in message


async def test_a_webhook_that_is_away_keeps_only_annotations_back(mirror, source, events):
    source.refuse("", ServerError(500, "InternalError", "failed calling webhook"))
    with pytest.raises(ServerError):
        await mirror.feed_back(source.proxy, chaperon(), LINK)

    assert source.asked == ["", "status"]
    assert events == []


async def test_what_is_refused_is_tried_again_after_a_while_only(mirror, source, events):
    source.refuse("status", Denied(403, "", "no way"))
    reported = {**chaperon(), "metadata": {}}
    await mirror.feed_back(source.proxy, reported, LINK)
    await asyncio.sleep(10)
    assert await mirror.feed_back(source.proxy, reported, LINK) == status_writer.RETRY_DELAY - 10
    assert source.asked == ["status"]
    assert len(events) == 1

    await asyncio.sleep(status_writer.RETRY_DELAY)
    source.refused["status"].clear()
    assert await mirror.feed_back(source.proxy, reported, LINK) is None
    assert source.asked == ["status"] * 2


async def test_another_status_is_offered_at_once(mirror, source):
    source.refuse("status", Invalid(422, "Invalid", "no"))
    for phase in ("Succeeded", "Failed"):
        await mirror.feed_back(source.proxy, {**chaperon(phase), "metadata": {}}, LINK)

    assert source.asked == ["status"] * 2


async def test_a_status_that_arrives_late_does_not_replace_a_newer_one(mirror, source):
    source.server.fail(Unreachable("no answer"), subresource="status", late=lambda: 5.0)
    for phase in ("Pending", "Succeeded"):
        with suppress(Unreachable):
            await mirror.feed_back(source.proxy, {**chaperon(phase), "metadata": {}}, LINK)

    await asyncio.sleep(6)
    assert source.asked == ["status"] * 2
    assert objects.status(source.server.find(kinds.PODS, "web", "shop"))["phase"] == "Succeeded"


async def test_an_annotation_that_arrives_late_does_not_replace_what_a_user_wrote(mirror, source):
    source.server.fail(Unreachable("no answer"), subresource="", late=lambda: 5.0)
    with pytest.raises(Unreachable):
        await mirror.feed_back(source.proxy, chaperon("Running"), LINK)

    source.annotate({"cni": "mine"})
    await asyncio.sleep(6)
    assert source.asked == [""]
    assert objects.annotations(source.server.find(kinds.PODS, "web", "shop")) == {"cni": "mine"}


async def test_a_status_is_taken_over_though_there_is_no_room_for_the_record(mirror, source):
    """The pod's own annotations take all that an API server allows."""
    full = {keys.PREFIX + "own": "x" * after_feedback.ANNOTATIONS_LIMIT}
    source.annotate(full)
    theirs = [{"type": "x/checked", "status": "True"}]
    await mirror.feed_back(source.proxy, {**chaperon(conditions=theirs), "metadata": {}}, LINK)
    ((part, body),) = source.patches
    assert part == "status"
    assert objects.annotations(body) == {}
    assert body["status"]["conditions"] == theirs


def without(obj, path):
    """Return an object without the field of that path."""
    field, *rest = path
    if not rest:
        return {k: v for k, v in obj.items() if k != field}

    return {**obj, field: without(obj.get(field) or {}, rest)}


@pytest.mark.parametrize(
    "path", [("status", "field-of-tomorrow"), ("metadata", "annotations", "cni")]
)
async def test_what_the_api_server_leaves_out_is_offered_once(mirror, source, path):
    """It may be older than the target's, or its admission may take an annotation off."""
    source.server.admit(lambda _request, obj: without(obj, path))
    reported = chaperon("Running", **{"field-of-tomorrow": {"a": "b"}})
    await mirror.feed_back(source.proxy, reported, LINK)
    assert source.asked == ["", "status"]
    for _ in range(3):
        proxy = source.server.find(kinds.PODS, "web", "shop")
        assert await mirror.feed_back(proxy, reported, LINK) is None

    assert source.asked == ["", "status"]
    proxy = source.server.find(kinds.PODS, "web", "shop")
    changed = chaperon("Succeeded", **{"field-of-tomorrow": {"a": "b"}})
    await mirror.feed_back(proxy, changed, LINK)
    after = source.server.find(kinds.PODS, "web", "shop")
    assert objects.status(after)["phase"] == "Succeeded"
