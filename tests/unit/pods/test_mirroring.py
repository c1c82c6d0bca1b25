"""What is written to a proxy, and what is done when the API server does not take it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from vnode.api import keys, objects
from vnode.api.errors import Denied, Invalid, ServerError
from vnode.pods import feedback, mirroring
from vnode.pods.mirroring import Mirror

LINK = SimpleNamespace(runs_vnode=True)


class Source:
    """Takes patches of pods, but for those of refused parts."""

    def __init__(self):
        self.refused: dict = {}  # by subresource
        self.patches: list = []  # (subresource, body)

    async def patch(self, kind, name, body, namespace, *, subresource, strategic):
        assert strategic == (subresource == "status")
        self.patches.append((subresource, body))
        if error := self.refused.get(subresource):
            raise error

        return {**PROXY, "metadata": {**PROXY["metadata"], "resourceVersion": "8"}}

    @property
    def asked(self):
        return [subresource for subresource, _body in self.patches]


class Clock:
    def __init__(self):
        self.time = 100.0

    def monotonic(self):
        return self.time


class Events(list):
    def event(self, about, type_, reason, message):
        self.append((reason, message))


PROXY = {
    "metadata": {"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "7"},
    "spec": {"nodeName": "admiralty-c2"},
    "status": {"phase": "Running"},
}


def chaperon(phase="Failed", **status):
    metadata = {"name": "web-x", "annotations": {"cni": "x"}}
    return {"metadata": metadata, "spec": {}, "status": {"phase": phase, **status}}


@pytest.fixture
def source():
    return Source()


@pytest.fixture
def events():
    return Events()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def mirror(source, events, clock):
    return Mirror(source, events, clock)


async def test_status_and_annotations_are_taken_over(mirror, source):
    assert await mirror.feed_back(PROXY, chaperon(), LINK) is None
    assert source.asked == [None, "status"]


@pytest.mark.parametrize("part", ["status", None])
@pytest.mark.parametrize("error", [Invalid(422, "Invalid", "too long"), Denied(403, "", "no way")])
async def test_what_is_refused_keeps_nothing_else_back_and_is_told(
    mirror, source, events, part, error
):
    source.refused[part] = error
    assert await mirror.feed_back(PROXY, chaperon(), LINK) == mirroring.AGAIN
    assert source.asked == [None, "status"]
    ((reason, message),) = events
    assert reason == "FeedbackRefused"
    assert error.message in message


async def test_a_webhook_that_is_away_keeps_only_annotations_back(mirror, source, events):
    source.refused[None] = ServerError(500, "InternalError", "failed calling webhook")
    with pytest.raises(ServerError):
        await mirror.feed_back(PROXY, chaperon(), LINK)

    assert source.asked == [None, "status"]
    assert events == []


async def test_what_is_refused_is_tried_again_after_a_while_only(mirror, source, events, clock):
    source.refused["status"] = Denied(403, "", "no way")
    told = {**chaperon(), "metadata": {}}
    await mirror.feed_back(PROXY, told, LINK)
    clock.time += 10
    assert await mirror.feed_back(PROXY, told, LINK) == mirroring.AGAIN - 10
    assert source.asked == ["status"]
    assert len(events) == 1

    clock.time += mirroring.AGAIN
    source.refused.clear()
    assert await mirror.feed_back(PROXY, told, LINK) is None
    assert source.asked == ["status"] * 2


async def test_another_status_is_offered_at_once(mirror, source):
    source.refused["status"] = Invalid(422, "Invalid", "no")
    for phase in ("Succeeded", "Failed"):
        await mirror.feed_back(PROXY, {**chaperon(phase), "metadata": {}}, LINK)

    assert source.asked == ["status"] * 2


async def test_a_status_is_taken_over_though_there_is_no_room_for_the_record(mirror, source):
    """The pod's own annotations take all that an API server allows."""
    full = {keys.PREFIX + "own": "x" * feedback.ANNOTATIONS_LIMIT}
    proxy = {**PROXY, "metadata": {**PROXY["metadata"], "annotations": full}}
    theirs = [{"type": "x/checked", "status": "True"}]
    await mirror.feed_back(proxy, {**chaperon(conditions=theirs), "metadata": {}}, LINK)
    ((part, body),) = source.patches
    assert part == "status"
    assert objects.annotations(body) == {}
    assert body["status"]["conditions"] == theirs
